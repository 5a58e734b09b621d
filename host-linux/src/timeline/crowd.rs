//! Timeline diagram of many ranks. Each group of consecutive ranks has a band with the share of its
//! processors' time that each activity takes, stacked, over time. Messages and interfaces are not
//! shown.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::Range;

use loggap_core::units::Picos;

use super::svg::{
    Axis, BOTTOM, LEFT, Options, RIGHT, SMALL, TOP, UNITS, WIDTH, at, colour, draw, head, label,
    text,
};
use super::{Activity, Lane, Span, Timeline};
use crate::output::plot::PlotError;
use crate::output::plot::canvas::{Align, BLACK, Canvas, LIGHT, Pixel};

/// Largest number of ranks that are drawn individually; of more, groups are drawn.
pub const MOST_RANKS: u32 = 32;
/// Largest number of bands.
const BANDS: u32 = 32;
/// Time steps across the picture.
const STEPS: usize = 290;
/// Height of a band, and distance between bands, in pixels.
const HEIGHT: f64 = 16.0;
const PITCH: f64 = 20.0;

/// Activities in the order of stacking, from below.
const ACTIVITIES: [Activity; 4] =
    [Activity::Send, Activity::Receive, Activity::Calc, Activity::Noise];

/// Draws `ranks` of `timeline` to `out`.
///
/// # Errors
///
/// Errors of `out`.
pub fn write(
    timeline: &Timeline,
    ranks: Range<u32>,
    options: &Options,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = Page::new(timeline, ranks, options);
    let base = page.height() - BOTTOM;
    draw(page.height(), out, |canvas| {
        page.axis.grid(canvas, base)?;
        for (band, shares) in &page.bands {
            page.band(canvas, *band, shares)?;
        }
        page.legend(canvas, &options.title)?;
        page.axis.labels(canvas, base)
    })
}

/// Processor time in ps, by activity and step.
type Shares = [Vec<f64>; ACTIVITIES.len()];

/// Layout of a picture.
struct Page {
    axis: Axis,
    /// First rank that is shown, and the end, which is not.
    first: u32,
    end: u32,
    /// Number of ranks in a band.
    group: u32,
    /// Length of a step times the number of processors, for each band, in ps.
    full: BTreeMap<u32, f64>,
    bands: BTreeMap<u32, Shares>,
}

impl Page {
    #[allow(clippy::cast_precision_loss, reason = "pixels")]
    fn new(timeline: &Timeline, ranks: Range<u32>, options: &Options) -> Self {
        let mut page = Self {
            axis: Axis::new(timeline, options),
            first: ranks.start,
            end: ranks.end,
            group: (ranks.end - ranks.start).div_ceil(BANDS).max(1),
            full: BTreeMap::new(),
            bands: BTreeMap::new(),
        };
        let mut processors = BTreeSet::new();
        for (span, _) in timeline.spans() {
            let Lane::Cpu(cpu) = span.lane else { continue };
            if !ranks.contains(&span.rank) {
                continue;
            }
            processors.insert((span.rank, cpu));
            page.add(&span);
        }
        for (rank, _) in processors {
            let step = page.step();
            *page.full.entry(page.band_of(rank)).or_default() += step;
        }
        page
    }

    const fn band_of(&self, rank: u32) -> u32 {
        rank.saturating_sub(self.first) / self.group
    }

    /// Length of a step, in ps.
    #[allow(clippy::cast_precision_loss, reason = "pixels")]
    fn step(&self) -> f64 {
        self.axis.to.since(self.axis.from).0 as f64 / STEPS as f64
    }

    /// Adds the time of a span to the steps that it overlaps.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "steps of a picture; casts saturate"
    )]
    fn add(&mut self, span: &Span) {
        let step = self.step();
        let place = |time: Picos| time.signed_difference(self.axis.from) as f64 / step;
        let (start, end) = (place(span.start).max(0.0), place(span.end).min(STEPS as f64));
        let stack = self
            .bands
            .entry(self.band_of(span.rank))
            .or_insert_with(|| std::array::from_fn(|_| vec![0.0; STEPS]));
        let of = ACTIVITIES.iter().zip(stack).find(|(one, _)| **one == span.activity);
        let Some((_, steps)) = of else { return };
        let first = start as usize;
        let touched = steps.iter_mut().enumerate().skip(first);
        for (index, time) in touched.take_while(|(index, _)| (*index as f64) < end) {
            let (left, right) = (index as f64, index as f64 + 1.0);
            *time += (end.min(right) - start.max(left)).max(0.0) * step;
        }
    }

    fn height(&self) -> f64 {
        TOP + PITCH * f64::from(self.bands.keys().last().map_or(0, |last| last + 1)) + BOTTOM
    }

    /// y of the lower edge of a band.
    fn base(band: u32) -> f64 {
        TOP + PITCH * f64::from(band) + HEIGHT
    }

    /// x of the start of a step.
    #[allow(clippy::cast_precision_loss, reason = "pixels")]
    fn x(step: usize) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * step as f64 / STEPS as f64
    }

    fn band(&self, canvas: &Canvas<'_>, band: u32, shares: &Shares) -> Result<(), PlotError> {
        let full = self.full.get(&band).copied().unwrap_or(1.0).max(f64::MIN_POSITIVE);
        let base = Self::base(band);
        canvas.line(vec![at(LEFT, base), at(WIDTH - RIGHT, base)], LIGHT, UNITS.into())?;
        let mut below = vec![0.0; STEPS];
        for (activity, times) in ACTIVITIES.iter().zip(shares) {
            let stacked: Vec<f64> =
                below.iter().zip(times).map(|(low, time)| low + time / full).collect();
            if stacked != below {
                let upper = edge(&stacked, base);
                let lower = edge(&below, base).into_iter().rev();
                canvas.area(upper.into_iter().chain(lower).collect(), colour(*activity))?;
            }
            below = stacked;
        }
        let first = self.first + band * self.group;
        let last = (first + self.group).min(self.end).saturating_sub(1);
        let name = match self.group {
            1 => format!("rank {first}"),
            _ => format!("{first} to {last}"),
        };
        text(canvas, &name, at(LEFT - 6.0, base - HEIGHT / 2.0), SMALL, BLACK, Align::Right)
    }

    fn legend(&self, canvas: &Canvas<'_>, title: &str) -> Result<(), PlotError> {
        let x = head(canvas, title, &ACTIVITIES)?;
        let ranks = if self.group == 1 { "each rank" } else { "the ranks of each band" };
        let note = format!(
            "share of the processor time of {ranks}; --timeline-ranks 0:{} draws messages",
            MOST_RANKS - 1
        );
        label(canvas, &note, x)
    }
}

/// Outline of `shares` above `base`, from left to right; corners only.
fn edge(shares: &[f64], base: f64) -> Vec<Pixel> {
    let mut points = Vec::new();
    let mut last = None;
    for (step, share) in shares.iter().enumerate() {
        let y = base - HEIGHT * share.min(1.0);
        let height = at(0.0, y).1;
        if last != Some(height) {
            if let Some(before) = last {
                points.push((at(Page::x(step), y).0, before));
            }
            points.push(at(Page::x(step), y));
        }
        last = Some(height);
    }
    if let Some(height) = last {
        points.push((at(Page::x(shares.len()), base).0, height));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Calc;

    fn calc(rank: u32, start: u64, work: u64) -> Calc {
        let (start, work) = (Picos(start), Picos(work));
        Calc { rank, cpu: 0, op: 0, start, work, noise: Picos::ZERO }
    }

    #[test]
    fn a_band_holds_the_share_of_its_processors() {
        // In each pair of ranks, the first calculates all the time and the second half of it.
        let calcs = (0..64).map(|rank| calc(rank, 0, if rank % 2 == 0 { 2_900 } else { 1_450 }));
        let timeline = Timeline { ranks: 64, calcs: calcs.collect(), messages: Vec::new() };
        let options = Options { title: String::new(), from: Picos::ZERO, to: None };
        let page = Page::new(&timeline, 0..64, &options);
        assert_eq!((page.group, page.bands.len()), (2, 32));
        let share = |step: usize| page.bands[&7][2][step] / page.full[&7];
        assert!((share(10) - 1.0).abs() < 1e-9 && (share(200) - 0.5).abs() < 1e-9);
        assert!(page.bands[&7][0][10].abs() < 1e-9, "nothing is sent");
    }

    #[test]
    fn many_ranks_and_spans_make_a_small_picture() {
        let calcs = (0..4_096).flat_map(|rank| {
            (0..100).map(move |round| calc(rank, round * 1_000 + u64::from(rank % 97) * 10, 500))
        });
        let timeline = Timeline { ranks: 4_096, calcs: calcs.collect(), messages: Vec::new() };
        let options = Options { title: "t".into(), from: Picos::ZERO, to: None };
        let mut out = Vec::new();
        write(&timeline, 0..4_096, &options, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.len() < 1_000_000, "{}", text.len());
        assert!(text.contains("0 to 127") && text.contains("3968 to 4095"), "{text}");
    }
}
