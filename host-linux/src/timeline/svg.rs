//! Timeline diagram like Fig. 6 to 8 of the paper. Time runs to the right; each rank has a band
//! with a lane for each processor and interface. Messages are slanted bars from the interface of
//! the sender to that of the receiver, as wide as their transmission is long.

use std::collections::BTreeMap;
use std::io::{self, Write};

use loggap_core::units::Picos;
use plotters::style::{RGBColor, WHITE};

use super::chrome::Tag;
use super::{Activity, Lane, Message, Span, Timeline};
use crate::decimal;
use crate::output::plot::PlotError;
use crate::output::plot::canvas::{
    Align, BLACK, BLUE, Canvas, Font, GREY, LIGHT, ORANGE, PURPLE, Pixel, SKY, Sheet, TITLE,
    VERMILION,
};

/// Page width in pixels.
pub(super) const WIDTH: f64 = 1_280.0;
/// Margin left of the time axis, for labels.
pub(super) const LEFT: f64 = 96.0;
/// Margin right of the time axis.
pub(super) const RIGHT: f64 = 24.0;
/// Margin above the first band, for title and legend.
pub(super) const TOP: f64 = 58.0;
/// Margin below the last band, for the axis.
pub(super) const BOTTOM: f64 = 44.0;
/// Total height of the bands if there are many ranks.
const CROWDED: f64 = 1_800.0;
/// Coordinates per pixel: positions are rounded to tenths of a pixel.
pub(super) const UNITS: u8 = 10;
/// Font sizes in pixels.
pub(super) const SMALL: u32 = 15;
const SMALLER: u32 = 11;

const CALC: RGBColor = RGBColor(138, 138, 138);
const BAND: RGBColor = RGBColor(243, 243, 243);

pub(super) const fn colour(activity: Activity) -> RGBColor {
    match activity {
        Activity::Send => BLUE,
        Activity::Receive => ORANGE,
        Activity::Calc => CALC,
        Activity::Noise => VERMILION,
    }
}

/// Title and time range of a diagram.
#[derive(Clone, Debug)]
pub struct Options {
    /// Title above the picture.
    pub title: String,
    /// Start of the time axis.
    pub from: Picos,
    /// End of the time axis; the end of the timeline if `None`.
    pub to: Option<Picos>,
}

/// Draws `timeline` to `out`.
///
/// # Errors
///
/// Errors of `out`; also if there are more ranks than a picture can show.
pub fn write(timeline: &Timeline, options: &Options, out: &mut dyn Write) -> io::Result<()> {
    let page = Page::new(timeline, options);
    draw(page.height, out, |canvas| {
        page.grid(canvas)?;
        for message in &timeline.messages {
            page.message(canvas, message)?;
        }
        for (span, message) in timeline.spans() {
            page.span(canvas, &span, message)?;
        }
        page.margins(canvas)?;
        page.legend(canvas, &options.title)?;
        page.axis.labels(canvas, page.base())?;
        page.labels(canvas)
    })
}

/// Draws a page of this height to `out`.
pub(super) fn draw(
    height: f64,
    out: &mut dyn Write,
    on: impl FnOnce(&Canvas<'_>) -> Result<(), PlotError>,
) -> io::Result<()> {
    let size = (rounded(WIDTH), rounded(height));
    let sheet = Sheet { size, units: UNITS.into(), bleed: rounded(WIDTH), margins: (0, 0, 0, 0) };
    out.write_all(sheet.draw(on).map_err(io::Error::other)?.as_bytes())
}

#[allow(clippy::cast_possible_truncation, reason = "pixels; the cast saturates")]
const fn rounded(number: f64) -> i32 {
    number.round() as i32
}

/// Pixel at a position relative to the upper left corner of the visible page.
pub(super) fn at(x: f64, y: f64) -> Pixel {
    (rounded((x + WIDTH) * f64::from(UNITS)), rounded(y * f64::from(UNITS)))
}

pub(super) fn text(
    canvas: &Canvas<'_>,
    text: &str,
    at: Pixel,
    size: u32,
    color: RGBColor,
    align: Align,
) -> Result<(), PlotError> {
    canvas.text(text, at, Font { size: size * u32::from(UNITS), color }, align)
}

/// y of the middle of a legend.
const LEGEND: f64 = 37.0;

/// A word of the legend.
pub(super) fn label(canvas: &Canvas<'_>, name: &str, x: f64) -> Result<(), PlotError> {
    text(canvas, name, at(x, LEGEND), SMALL, BLACK, Align::Left)
}

/// Title and legend of a page; returns where the legend ends.
pub(super) fn head(
    canvas: &Canvas<'_>,
    title: &str,
    activities: &[Activity],
) -> Result<f64, PlotError> {
    text(canvas, title, at(LEFT, 16.0), TITLE, BLACK, Align::Left)?;
    let mut x = LEFT;
    for activity in activities {
        canvas.bar([at(x, 31.0), at(x + 14.0, 42.0)], colour(*activity), 1.0)?;
        label(canvas, activity.name(), x + 19.0)?;
        x += 84.0;
    }
    Ok(x)
}

/// Time axis of a page.
pub(super) struct Axis {
    pub(super) from: Picos,
    pub(super) to: Picos,
}

impl Axis {
    pub(super) fn new(timeline: &Timeline, options: &Options) -> Self {
        let to = options.to.unwrap_or_else(|| timeline.end());
        Self { from: options.from, to: to.max(Picos(options.from.0.saturating_add(1))) }
    }

    /// x of a time.
    #[allow(clippy::cast_precision_loss, reason = "pixels")]
    fn x(&self, time: Picos) -> f64 {
        let offset = time.signed_difference(self.from) as f64;
        let width = WIDTH - LEFT - RIGHT;
        // Clamped, because coordinates far outside the page would only make the file longer.
        let share = (offset / self.to.since(self.from).0 as f64).clamp(-1.0, 2.0);
        LEFT + width * share
    }

    /// Draws a line at each tick, down to `base`.
    pub(super) fn grid(&self, canvas: &Canvas<'_>, base: f64) -> Result<(), PlotError> {
        for tick in self.ticks() {
            let x = self.x(tick);
            canvas.line(vec![at(x, TOP - 6.0), at(x, base)], LIGHT, UNITS.into())?;
        }
        Ok(())
    }

    /// Writes the times of the ticks, and the unit.
    pub(super) fn labels(&self, canvas: &Canvas<'_>, base: f64) -> Result<(), PlotError> {
        let scale = Scale::of(self.to);
        let below = |name: &str, x: f64, y: f64| {
            text(canvas, name, at(x, base + y), SMALL, BLACK, Align::Below)
        };
        for tick in self.ticks() {
            below(&scale.number(tick), self.x(tick), 4.0)?;
        }
        below(&format!("time [{}]", scale.unit), f64::midpoint(LEFT, WIDTH - RIGHT), 22.0)
    }

    /// Times with a label.
    fn ticks(&self) -> impl Iterator<Item = Picos> {
        let (from, to) = (self.from, self.to);
        let step = tick_step(to.since(from));
        let first = from.0.div_ceil(step).checked_mul(step);
        std::iter::successors(first, move |tick| tick.checked_add(step))
            .take_while(move |&tick| tick <= to.0)
            .map(Picos)
    }
}

/// Vertical extent of a lane.
#[derive(Clone, Copy, Debug)]
struct Row {
    top: f64,
    height: f64,
}

impl Row {
    fn bottom(self) -> f64 {
        self.top + self.height
    }

    fn middle(self) -> f64 {
        self.top + self.height / 2.0
    }
}

/// Layout of a picture.
struct Page {
    axis: Axis,
    /// Lanes of each rank, from top to bottom.
    rows: BTreeMap<(u32, Lane), Row>,
    /// Band of each rank.
    bands: BTreeMap<u32, Row>,
    height: f64,
    used: Vec<Activity>,
    /// Height of a processor lane in pixels.
    scale: f64,
}

impl Page {
    fn new(timeline: &Timeline, options: &Options) -> Self {
        let lanes = timeline.lanes();
        let units: f64 = lanes.values().map(|set| band_units(set.len())).sum();
        // A processor lane is 14 pixels high, less if there are many.
        let scale = (CROWDED / units.max(1.0)).clamp(1.5, 14.0);
        let (mut rows, mut bands) = (BTreeMap::new(), BTreeMap::new());
        let mut top = TOP;
        for (rank, set) in lanes {
            let band_top = top;
            for lane in set {
                let height = scale * if matches!(lane, Lane::Cpu(_)) { 1.0 } else { 0.4 };
                rows.insert((rank, lane), Row { top, height });
                top += height;
            }
            bands.insert(rank, Row { top: band_top, height: top - band_top });
            top += 1.6 * scale;
        }
        let mut used: Vec<_> = timeline.spans().map(|(span, _)| span.activity).collect();
        used.sort_unstable();
        used.dedup();
        let axis = Axis::new(timeline, options);
        Self { axis, rows, bands, height: top + BOTTOM, used, scale }
    }

    fn x(&self, time: Picos) -> f64 {
        self.axis.x(time)
    }

    /// y of the lower end of the plot.
    fn base(&self) -> f64 {
        self.height - BOTTOM + 4.0
    }

    /// Draws the background: the bands, and a line at each tick of the axis.
    fn grid(&self, canvas: &Canvas<'_>) -> Result<(), PlotError> {
        self.axis.grid(canvas, self.base())?;
        for band in self.bands.values() {
            let corners = [at(LEFT, band.top), at(WIDTH - RIGHT, band.bottom())];
            canvas.bar(corners, BAND, 1.0)?;
        }
        Ok(())
    }

    /// Covers parts of messages outside the time range.
    fn margins(&self, canvas: &Canvas<'_>) -> Result<(), PlotError> {
        canvas.bar([at(0.0, 0.0), at(LEFT, self.height)], WHITE, 1.0)?;
        canvas.bar([at(WIDTH - RIGHT, 0.0), at(WIDTH, self.height)], WHITE, 1.0)
    }

    fn legend(&self, canvas: &Canvas<'_>, title: &str) -> Result<(), PlotError> {
        let x = head(canvas, title, &self.used)?;
        canvas.line(vec![at(x, 33.0), at(x + 26.0, 41.0)], BLACK, UNITS.into())?;
        label(canvas, "message, first byte; shaded until its last", x + 32.0)?;
        let x = x + 296.0;
        canvas.bar(waiting(x, x + 26.0, LEGEND), PURPLE, 1.0)?;
        label(canvas, "waits for its receiver", x + 32.0)
    }

    /// Draws the names of ranks, processors and interfaces.
    fn labels(&self, canvas: &Canvas<'_>) -> Result<(), PlotError> {
        let mut last = f64::NEG_INFINITY;
        for (rank, band) in &self.bands {
            // Skip labels that would overlap the previous one.
            if band.middle() - last >= 13.0 {
                last = band.middle();
                let name = format!("rank {rank}");
                text(canvas, &name, at(LEFT - 38.0, last), SMALL, BLACK, Align::Right)?;
            }
        }
        if self.scale < 10.0 {
            return Ok(());
        }
        for ((_, lane), row) in &self.rows {
            let (name, y) = match lane {
                Lane::Cpu(index) => (format!("CPU {index}"), row.middle()),
                // The two directions share a label.
                Lane::NicOut(index) => (format!("NIC {index}"), row.bottom()),
                Lane::NicIn(_) => continue,
            };
            text(canvas, &name, at(LEFT - 4.0, y), SMALLER, GREY, Align::Right)?;
        }
        Ok(())
    }

    fn span(
        &self,
        canvas: &Canvas<'_>,
        span: &Span,
        message: Option<&Message>,
    ) -> Result<(), PlotError> {
        let Some(row) = self.rows.get(&(span.rank, span.lane)) else { return Ok(()) };
        let (from, to) = (self.x(span.start), self.x(span.end));
        let cpu = matches!(span.lane, Lane::Cpu(_));
        let (inset, opacity) =
            if cpu { (row.height * 0.08, 1.0) } else { (row.height * 0.15, 0.45) };
        // Leave a gap between neighbours of one colour, and make very short spans visible.
        let seam = if cpu && to - from > 3.0 { 0.2 } else { 0.0 };
        let to = to.max(from + 0.4);
        let corners = [at(from + seam, row.top + inset), at(to - seam, row.bottom() - inset)];
        canvas.bar(corners, colour(span.activity), opacity)?;
        let what = match message {
            None => String::new(),
            Some(message) => {
                let (direction, peer) = match span.activity {
                    Activity::Send => ("to", message.to.rank),
                    _ => ("from", message.from.rank),
                };
                format!(" {} B {direction} {peer}, tag {}", message.size, Tag(message.tag))
            }
        };
        let (name, time) = (span.activity.name(), self.interval(span.start, span.end));
        canvas.tooltip(&format!("{name}{what}: {time}"))
    }

    fn interval(&self, start: Picos, end: Picos) -> String {
        let scale = Scale::of(self.axis.to);
        let (start, end, unit) = (scale.number(start), scale.number(end), scale.unit);
        format!("{start} {unit} to {end} {unit}")
    }

    /// y at which a message leaves its sender's band and reaches its receiver's.
    fn ends(&self, message: &Message) -> Option<(f64, f64)> {
        let (from_rank, to_rank) = (message.from.rank, message.to.rank);
        let (from, to) = (self.bands.get(&from_rank), self.bands.get(&to_rank));
        match (from, to) {
            (Some(from), Some(to)) if from.top < to.top => Some((from.bottom(), to.top)),
            (Some(from), Some(to)) if from.top > to.top => Some((from.top, to.bottom())),
            (Some(same), Some(_)) => Some((same.bottom(), same.bottom())),
            // The other end is not shown.
            (Some(from), None) if to_rank > from_rank => {
                Some((from.bottom(), from.bottom() + self.scale))
            }
            (Some(from), None) => Some((from.top, from.top - self.scale)),
            (None, Some(to)) if from_rank < to_rank => Some((to.top - self.scale, to.top)),
            (None, Some(to)) => Some((to.bottom() + self.scale, to.bottom())),
            (None, None) => None,
        }
    }

    fn message(&self, canvas: &Canvas<'_>, message: &Message) -> Result<(), PlotError> {
        let Some((start, end)) = self.ends(message) else { return Ok(()) };
        let first = [at(self.x(message.left()), start), at(self.x(message.arrived), end)];
        if message.costs.gap_bytes > Picos::ZERO {
            let later =
                |time: Picos| self.x(time.plus(message.costs.gap_bytes).unwrap_or(Picos::MAX));
            let last = [at(later(message.arrived), end), at(later(message.left()), start)];
            canvas.shade([first, last].concat(), SKY)?;
        }
        canvas.line(first.to_vec(), BLACK, 8)?;
        canvas.tooltip(&format!(
            "{} B from {} to {}, tag {}: {}",
            message.size,
            message.from.rank,
            message.to.rank,
            Tag(message.tag),
            self.interval(message.left(), message.arrived)
        ))?;
        if message.handled > message.arrived {
            let y = if end < start { end + 1.5 } else { end - 1.5 };
            let corners = waiting(self.x(message.arrived), self.x(message.handled), y);
            canvas.bar(corners, PURPLE, 0.8)?;
        }
        Ok(())
    }
}

/// Corners of a thin bar for the time that a message waits.
fn waiting(from: f64, to: f64, y: f64) -> [Pixel; 2] {
    [at(from, y - 0.7), at(to, y + 0.7)]
}

/// Approximate height of a band with the space below it, in processor lanes; a lane counts 0.7, as
/// interface lanes are lower.
#[allow(clippy::cast_precision_loss, reason = "pixels")]
fn band_units(lanes: usize) -> f64 {
    1.6 + lanes as f64 * 0.7
}

/// Unit of a time axis.
struct Scale {
    unit: &'static str,
    /// Decimal digits between the unit and a picosecond.
    digits: u32,
}

impl Scale {
    /// Unit for times up to `end`.
    const fn of(end: Picos) -> Self {
        let (unit, digits) = match end.0 {
            0..10_000 => ("ps", 0),
            10_000..10_000_000 => ("ns", 3),
            10_000_000..10_000_000_000 => ("µs", 6),
            10_000_000_000..10_000_000_000_000 => ("ms", 9),
            _ => ("s", 12),
        };
        Self { unit, digits }
    }

    /// A time in this unit, exact, without trailing zeros.
    fn number(&self, time: Picos) -> String {
        decimal::fixed(time.0.into(), self.digits)
    }
}

/// Distance of ticks: 1, 2 or 5 times a power of ten, for six to fifteen ticks.
fn tick_step(length: Picos) -> u64 {
    let mut step = 1u64;
    loop {
        for factor in [1, 2, 5] {
            let candidate = step.saturating_mul(factor);
            if length.0 / candidate <= 12 {
                return candidate;
            }
        }
        step = step.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for length in [1, 7, 999, 12_345, 9_999_999, 1 << 40, u64::MAX] {
            let step = tick_step(Picos(length));
            assert!(length / step <= 12, "{length}");
            assert!(step == 1 || length / step >= 4, "{length} {step}");
        }
    }

    #[test]
    fn numbers_on_the_axis_are_exact_in_its_unit() {
        let micros = Scale::of(Picos(20_000_000));
        assert_eq!(micros.unit, "µs");
        assert_eq!(micros.number(Picos(2_500_000)), "2.5");
        assert_eq!(micros.number(Picos(2_000_000)), "2");
        assert_eq!(micros.number(Picos(2_050_001)), "2.050001");
        assert_eq!(Scale::of(Picos(9_999)).number(Picos(120)), "120");
    }

    #[test]
    fn titles_cannot_break_the_picture() {
        let mut out = Vec::new();
        let options = Options { title: "a<b>&".into(), from: Picos::ZERO, to: None };
        write(&Timeline::default(), &options, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("a&lt;b&gt;&amp;"));
        assert!(text.ends_with("</svg>\n"));
    }
}
