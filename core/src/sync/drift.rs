//! Drift of a clock, from offsets over time.

use core::fmt;

use super::model::plausible;
use super::{Assumptions, ClockModel, Offset, SECOND};
use crate::fit::{GrowingLine, Point};
use crate::number::nearest;
use crate::stats::Confidence;
use crate::units::{Picos, SignedPicos};

/// Least span over which a slope is fitted. The slope of a few milliseconds is noise, and
/// extrapolated over seconds it would dominate the error of the clock.
pub const LEAST_SPAN: Picos = Picos(500_000_000_000);

/// Largest plausible drift between two clocks, in millionths; if they move apart faster, one was
/// set. More than crystals have, so that [`Assumptions::drift_ppm`] may be raised up to it.
pub const MOST_DRIFT_PPM: u32 = 500;

/// Significance level of a slope, in percent: one that clocks without drift show more often by
/// chance is taken as zero. For three offsets that is one within 64 standard errors, for five,
/// within 5.8.
const BY_CHANCE_PERCENT: f64 = 1.0;

/// Reasons why there is no model of a clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum DriftError {
    /// No offset was measured.
    NoOffsets,
    /// The offsets are not in order of time.
    Order {
        /// Time of the first offset.
        first: Picos,
        /// Time of the second offset.
        second: Picos,
    },
    /// The clocks drift by this, in ps per second, which exceeds [`MOST_DRIFT_PPM`]: one of them
    /// was set.
    Implausible(i64),
    /// An offset contradicted those before: a clock was set, or drifted faster than assumed.
    Set,
}

impl fmt::Display for DriftError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOffsets => f.write_str("no offset was measured: no ping was answered"),
            Self::Order { first, second } => {
                write!(f, "an offset at {second} after one at {first}: offsets go forward in time")
            }
            Self::Implausible(drift) => write!(
                f,
                "the clocks move apart by {} us a second, more than {MOST_DRIFT_PPM}: one was set, \
                 use monotonic clocks",
                drift / 1_000_000
            ),
            Self::Set => f.write_str(
                "an offset contradicts those before: a clock was set, or drifts faster than assumed",
            ),
        }
    }
}

impl core::error::Error for DriftError {}

/// Least-squares line of offsets over own time.
#[derive(Clone, Copy, Debug, Default)]
pub struct DriftEstimator {
    first: Option<Offset>,
    last: Option<Offset>,
    /// Line with the time since the first offset plus 1, in picoseconds, as the size, and the
    /// change of the offset as the value.
    line: GrowingLine,
}

impl DriftEstimator {
    /// Adds the next offset.
    ///
    /// # Errors
    ///
    /// [`DriftError::Order`] if it is not later than the one before; it is then ignored.
    #[allow(
        clippy::cast_precision_loss,
        reason = "a change of offset, exact up to 2^53 ps = 2.5 h"
    )]
    pub fn push(&mut self, offset: &Offset) -> Result<(), DriftError> {
        if let Some(last) = self.last.filter(|last| last.at >= offset.at) {
            return Err(DriftError::Order { first: last.at, second: offset.at });
        }
        let first = *self.first.get_or_insert(*offset);
        let moved = offset.value.0.saturating_sub(first.value.0) as f64;
        // A point beyond 53 days is not added; the model is then implausible.
        if let Ok(point) = Point::new(offset.at.since(first.at).0.saturating_add(1), moved, 0.0) {
            self.line.add(point);
        }
        self.last = Some(*offset);
        Ok(())
    }

    /// Model of the own clock, valid from the first offset to the last and, with a growing error,
    /// beyond.
    ///
    /// The drift is 0 if the offsets span less than [`LEAST_SPAN`], if there are fewer than three,
    /// or if the slope is not significant; [`ClockModel::drift_error`] then bounds it.
    ///
    /// # Errors
    ///
    /// [`DriftError::NoOffsets`], [`DriftError::Implausible`].
    pub fn model(&self) -> Result<ClockModel, DriftError> {
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return Err(DriftError::NoOffsets);
        };
        let steady = ClockModel::of_offset(&last, MOST_DRIFT_PPM);
        let span = last.at.since(first.at);
        let slope = (self.line.gap_per_byte(), self.line.gap_per_byte_error());
        let (Some(slope), Some(error)) = slope else { return Ok(steady) };
        if span < LEAST_SPAN {
            return Ok(steady);
        }
        let per_second = |slope: f64| nearest(slope * SECOND as f64);
        plausible(per_second(slope))?;
        if slope.abs() <= self.significant() * error {
            let drift_error = per_second(slope.abs() + error).unsigned_abs();
            return Ok(ClockModel { drift_error, ..steady });
        }
        let begin = nearest(self.line.gap().unwrap_or(0.0));
        Ok(ClockModel {
            at: first.at,
            offset: SignedPicos(first.value.0.saturating_add(begin)),
            drift: per_second(slope),
            error: first.half_width.max(last.half_width),
            until: last.at,
            drift_error: per_second(error).unsigned_abs(),
            wander: 0,
        })
    }

    /// Significance threshold of a slope, in standard errors.
    fn significant(&self) -> f64 {
        let offsets = u32::try_from(self.line.count()).unwrap_or(u32::MAX);
        let confidence = Confidence::from_percent(100.0 - BY_CHANCE_PERCENT).unwrap_or_default();
        confidence.student(offsets.saturating_sub(2))
    }

    /// Model of the own clock from the last offset on. Its error is a bound as long as
    /// `assumptions` and the offsets' half widths hold; the drift error of
    /// [`DriftEstimator::model`] is one standard error.
    ///
    /// The mean drift is bounded by the first and the last offset with their half widths, and by
    /// the assumed drift. The model's drift is that of [`DriftEstimator::model`], or the nearest to
    /// it within these bounds.
    ///
    /// # Errors
    ///
    /// [`DriftError::NoOffsets`], [`DriftError::Implausible`].
    pub fn bounded(&self, assumptions: &Assumptions) -> Result<ClockModel, DriftError> {
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return Err(DriftError::NoOffsets);
        };
        let steady = ClockModel::of_offset(&last, assumptions.drift_ppm);
        if last.at.since(first.at) < LEAST_SPAN {
            return Ok(steady);
        }
        let between = ClockModel::between(&first, &last)?.wandering(assumptions);
        let fitted = match self.model() {
            Ok(model) => model.drift,
            // The offsets scatter more than clocks can drift, so only the bounds are used.
            Err(DriftError::Implausible(_)) => between.drift,
            Err(error) => return Err(error),
        };
        let (low, high) = (
            between.drift.saturating_sub_unsigned(between.drift_error),
            between.drift.saturating_add_unsigned(between.drift_error),
        );
        let most = i64::try_from(steady.drift_error).unwrap_or(i64::MAX);
        let (narrow_low, narrow_high) = (low.max(-most), high.min(most));
        // The clock is faster than assumed: the measurement overrides the assumption.
        let is_faster = narrow_low > narrow_high;
        let (low, high) = if is_faster { (low, high) } else { (narrow_low, narrow_high) };
        let drift = fitted.max(low).min(high);
        let drift_error = high.abs_diff(drift).max(low.abs_diff(drift));
        Ok(ClockModel { drift, drift_error, ..steady })
    }

    /// Most recent offset.
    #[must_use]
    pub const fn last(&self) -> Option<Offset> {
        self.last
    }
}
