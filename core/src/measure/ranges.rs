//! The protocol ranges of a sweep and the lines of each.

use super::{AssessError, AssessMemory, AssessOptions, AssessRequirements, Curve, SampleStore};
use crate::fit::{Config, FitError, MisfitLine, Point, Segmentation};
use crate::model::{Change, Estimate, Mark, SizeLine};
use crate::number::{larger, nearest};
use crate::units::{Bytes, PerByte, Picos, SignedPerByte, SignedPicos};

/// First and last size of a range.
pub(super) type Span = (u32, u32);

/// Finds the protocol changes in the gap over all sizes, at most one fewer
/// than fit into `changes`. Returns the smallest and the largest size.
pub(super) fn find<const N: usize>(
    store: &SampleStore<'_>,
    options: &AssessOptions,
    memory: &mut AssessMemory<'_>,
    changes: &mut heapless::Vec<Change, N>,
) -> Result<Span, AssessError> {
    let max_changes = options.max_changes.min(N.saturating_sub(1));
    let needed = AssessRequirements::new(store.len(), max_changes);
    if memory.points.len() < store.len() {
        return Err(AssessError::Memory(needed));
    }
    let points = store.points(Curve::Gap, (0, u32::MAX), memory.points);
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Err(AssessError::NoSamples);
    };
    let ends = (narrow(first.size()), narrow(last.size()));
    let mut segmentation = Segmentation::new(memory.nodes, memory.cells, memory.segments);
    let AssessOptions { confidence, detector, .. } = *options;
    let config = Config { confidence, max_changes, detector, ..Config::default() };
    match segmentation.run(points, &config) {
        Ok(fit) => {
            for change in fit.changes().take(max_changes) {
                let (at, low, high) = (Bytes(change.at), Bytes(change.low), Bytes(change.high));
                // Fewer than `N`.
                let _ = changes.push(Change { at, low, high });
            }
        }
        Err(FitError::Memory(_)) => return Err(AssessError::Memory(needed)),
        // Points ascend by construction; with few of them there is one range.
        Err(FitError::TooFewPoints(_) | FitError::Order { .. }) => {}
    }
    Ok(ends)
}

/// The ranges between `changes`, from the first to the last size of `ends`.
pub(super) const fn spans(changes: &[Change], (first, last): Span) -> Spans<'_> {
    Spans { changes, first: Some(first), last }
}

/// See [`spans`].
pub(super) struct Spans<'c> {
    changes: &'c [Change],
    /// Where the next range begins.
    first: Option<u32>,
    last: u32,
}

impl Iterator for Spans<'_> {
    type Item = Span;

    #[cfg_attr(target_os = "none", inline(never))]
    fn next(&mut self) -> Option<Span> {
        let first = self.first?;
        let next = self.changes.split_off_first().map(|change| narrow(change.at.0));
        self.first = next;
        Some((first, next.map_or(self.last, |next| next.saturating_sub(1))))
    }
}

/// A size of the store, which holds none that is beyond 32 bits.
pub(super) fn narrow(size: u64) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

/// [`SignedPerByte`] of one picosecond per byte.
const SLOPE_UNITS: f64 = (1 << PerByte::FRACTION_BITS) as f64;

/// How far a number is known, as half intervals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Width {
    /// At which it has converged.
    pub(super) wanted: f64,
    /// The interval.
    total: f64,
    /// The part of it that more samples would reduce: where the points scatter
    /// about the line for other reasons than noise, only what comes from
    /// noise.
    pub(super) noise: f64,
}

impl Width {
    /// `value`, which is known to this width, in parts of a unit.
    #[cfg_attr(target_os = "none", inline(never))]
    fn around(&self, value: f64, parts: f64) -> Estimate<i64> {
        let mark = if self.total <= self.wanted {
            Mark::Converged
        } else if self.noise <= self.wanted {
            Mark::Misfit
        } else {
            Mark::BudgetSpent
        };
        let [value, low, high] =
            [value, value - self.total, value + self.total].map(|number| nearest(number * parts));
        Estimate { value, low, high, mark }
    }
}

/// The line of a curve in a range.
#[derive(Clone, Debug)]
pub(super) struct Fitted<'p> {
    pub(super) points: &'p [Point],
    pub(super) line: MisfitLine,
    /// How many standard errors an interval spans to each side.
    quantile: f64,
    pub(super) at_one: Width,
    pub(super) slope: Width,
}

/// A number that hardly matters need not be known as well as it is small:
/// this part of the wanted exactness, applied to the whole line, is enough.
const SLACK: f64 = 0.25;

impl<'p> Fitted<'p> {
    /// The line through `points`, which lie in `span`; `None` without points.
    ///
    /// Its value at size 1 and its slope are each judged relative to
    /// themselves. But a slope of nothing has no relative error, nor has a
    /// value at size 1 that a range of large sizes extrapolates to about zero:
    /// so it is enough, too, when what the slope adds over the range, or the
    /// value at size 1, is known to [`SLACK`] of the wanted exactness of the
    /// line's value in the range. A slope of which nothing can be known, for
    /// want of a second size, is not waited for; the value at size 1 is then
    /// the one there, and so is its error.
    pub(super) fn new(
        points: &'p [Point],
        (first, last): Span,
        options: &AssessOptions,
    ) -> Option<Self> {
        let line = MisfitLine::fit(points)?;
        let quantile = line.quantile(options.confidence);
        let relative = f64::from(options.relative_error_ppm) * 1e-6;
        let slack = |size: u32| SLACK * line.at(f64::from(size.saturating_sub(1))).abs();
        let width = |wanted: f64, total: f64, noise: fn(&MisfitLine, &[Point]) -> f64| {
            let noise = if line.misfits { noise(&line, points) } else { total };
            Width { wanted, total: quantile * total, noise: quantile * noise }
        };
        let slope_error = line.slope_error();
        let (error, wanted) = if line.has_slope() {
            let length = f64::from(last.saturating_sub(first).max(1));
            let wanted = relative * larger(line.slope().abs(), slack(last) / length);
            (line.at_one_error(), wanted)
        } else {
            (line.centre_error(), f64::INFINITY)
        };
        let slope = width(wanted, slope_error, MisfitLine::slope_noise);
        let wanted = relative * larger(line.at_one().abs(), slack(first));
        let at_one = width(wanted, error, MisfitLine::at_one_noise);
        Some(Self { points, line, quantile, at_one, slope })
    }

    /// The line for the profile.
    pub(super) fn size_line(&self) -> SizeLine {
        let scatter_ppm = 1e6 * self.quantile * self.line.scatter;
        let at_one = self.at_one.around(self.line.at_one(), 1.0);
        let slope = self.slope.around(self.line.slope(), SLOPE_UNITS);
        SizeLine {
            at_one: Estimate {
                value: SignedPicos(at_one.value),
                low: SignedPicos(at_one.low),
                high: SignedPicos(at_one.high),
                mark: at_one.mark,
            },
            per_byte: Estimate {
                value: SignedPerByte(slope.value),
                low: SignedPerByte(slope.low),
                high: SignedPerByte(slope.high),
                mark: slope.mark,
            },
            centre: Bytes(whole(self.line.centre()).saturating_add(1)),
            centre_half_width: Picos(whole(self.quantile * self.line.centre_error())),
            scatter_ppm: u32::try_from(whole(scatter_ppm)).unwrap_or(u32::MAX),
        }
    }
}

/// The nearest whole number that is not negative, saturating at 2⁶³ − 1.
pub(super) fn whole(value: f64) -> u64 {
    u64::try_from(nearest(value)).unwrap_or(0)
}
