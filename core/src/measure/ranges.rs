//! The protocol ranges of a sweep and the lines of each.

use super::{AssessError, AssessMemory, AssessOptions, AssessRequirements, Curve, SampleStore};
use crate::fit::{Config, FitError, MisfitLine, Point, Segmentation};
use crate::model::{Change, Estimate, Mark, SizeLine};
use crate::number::{larger, nearest};
use crate::units::{Bytes, Picos, SignedPerByte, SignedPicos};

/// Where protocols begin and end.
#[derive(Debug)]
pub(super) struct Ranges<const N: usize> {
    /// First and last size of each, at least one.
    pub(super) spans: heapless::Vec<(u64, u64), N>,
    /// The changes between them.
    pub(super) changes: heapless::Vec<Change, N>,
}

/// Finds the protocol changes in the gap over all sizes.
pub(super) fn find<const N: usize>(
    store: &SampleStore<'_>,
    options: &AssessOptions,
    memory: &mut AssessMemory<'_>,
) -> Result<Ranges<N>, AssessError> {
    let max_changes = options.max_changes.min(N.saturating_sub(1));
    let needed = AssessRequirements::new(store.len(), max_changes);
    if memory.points.len() < store.len() {
        return Err(AssessError::Memory(needed));
    }
    let points = store.points(Curve::Gap, (0, u64::MAX), options.confidence, memory.points);
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Err(AssessError::NoSamples);
    };
    let (first, last) = (first.size(), last.size());
    let mut changes = heapless::Vec::new();
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
    Ok(Ranges { spans: spans(&changes, first, last), changes })
}

/// The ranges between changes. Room for all: there is one change fewer than
/// `N` at most.
fn spans<const N: usize>(
    changes: &[Change],
    first: u64,
    last: u64,
) -> heapless::Vec<(u64, u64), N> {
    let begins = core::iter::once(first).chain(changes.iter().map(|change| change.at.0));
    let ends = changes.iter().map(|change| change.at.0.saturating_sub(1));
    let mut spans = heapless::Vec::new();
    for span in begins.zip(ends.chain(core::iter::once(last))) {
        let _ = spans.push(span);
    }
    spans
}

/// The line through `points`, which lie in `span`; `None` without points.
pub(super) fn line(
    points: &[Point],
    span: (u64, u64),
    options: &AssessOptions,
) -> Option<SizeLine> {
    let fitted = MisfitLine::fit(points)?;
    let quantile = fitted.quantile(options.confidence);
    let scatter_ppm = 1e6 * quantile * fitted.scatter;
    let [at_one, per_byte] = marks(&fitted, points, span, options);
    let interval = |value: f64, error: f64| (value - quantile * error, value + quantile * error);
    let (low, high) = interval(fitted.at_one(), at_one_error(&fitted));
    let (least, most) = interval(fitted.slope, fitted.slope_error());
    Some(SizeLine {
        at_one: Estimate {
            value: SignedPicos::from_f64(fitted.at_one()),
            low: SignedPicos::from_f64(low),
            high: SignedPicos::from_f64(high),
            mark: at_one,
        },
        per_byte: Estimate {
            value: SignedPerByte::from_f64(fitted.slope),
            low: SignedPerByte::from_f64(least),
            high: SignedPerByte::from_f64(most),
            mark: per_byte,
        },
        centre: Bytes(whole(fitted.centre).saturating_add(1)),
        centre_half_width: Picos(whole(quantile * fitted.centre_error())),
        scatter_ppm: u32::try_from(whole(scatter_ppm)).unwrap_or(u32::MAX),
    })
}

/// Standard error of the value at size 1. Points of a single size say nothing
/// about any other: the value is the one there, and so is its error.
fn at_one_error(fitted: &MisfitLine) -> f64 {
    if fitted.has_slope() { fitted.at_one_error() } else { fitted.centre_error() }
}

/// Whether the value at size 1 and the slope have converged, see
/// [`targets`]. A slope of which nothing can be known, for want of a second
/// size, is not waited for.
pub(super) fn marks(
    fitted: &MisfitLine,
    points: &[Point],
    (first, last): (u64, u64),
    options: &AssessOptions,
) -> [Mark; 2] {
    let quantile = fitted.quantile(options.confidence);
    let wanted = targets(fitted, (first, last), options);
    if !fitted.has_slope() {
        let converged = matches!(wanted, [wanted, _] if quantile * fitted.centre_error() <= wanted);
        let at_one = if converged { Mark::Converged } else { Mark::BudgetSpent };
        return [at_one, Mark::Converged];
    }
    let total = [fitted.at_one_error(), fitted.slope_error()];
    let noise = [fitted.at_one_noise(points), fitted.slope_noise(points)];
    core::array::from_fn(|index| {
        let within = |errors: &[f64; 2]| matches!((errors.get(index), wanted.get(index)), (Some(e), Some(w)) if quantile * e <= *w);
        match (within(&total), within(&noise)) {
            (true, _) => Mark::Converged,
            (false, true) if fitted.misfits => Mark::Misfit,
            _ => Mark::BudgetSpent,
        }
    })
}

/// A number that hardly matters need not be known as well as it is small:
/// this part of the wanted exactness, applied to the whole line, is enough.
const SLACK: f64 = 0.25;

/// Half-widths at which the value at size 1 and the slope have converged.
///
/// Each is judged relative to itself. But a slope of nothing has no relative
/// error, nor has a value at size 1 that a range of large sizes extrapolates
/// to about zero: so it is enough, too, when what the slope adds over the
/// range, or the value at size 1, is known to [`SLACK`] of the wanted
/// exactness of the line's value in the range.
pub(super) fn targets(
    fitted: &MisfitLine,
    (first, last): (u64, u64),
    options: &AssessOptions,
) -> [f64; 2] {
    let relative = f64::from(options.relative_error_ppm) * 1e-6;
    let value_at = |size: u64| fitted.at(size.saturating_sub(1) as f64).abs();
    let length = last.saturating_sub(first).max(1) as f64;
    let at_one = larger(fitted.at_one().abs(), SLACK * value_at(first));
    let slope = larger(fitted.slope.abs(), SLACK * value_at(last) / length);
    [relative * at_one, relative * slope]
}

/// The nearest whole number that is not negative, saturating at 2⁶³ − 1.
pub(super) fn whole(value: f64) -> u64 {
    u64::try_from(nearest(value)).unwrap_or(0)
}
