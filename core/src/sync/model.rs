//! Linear model of the own clock against a reference clock.

use super::{Assumptions, DriftError, MOST_DRIFT_PPM, Offset, SECOND};
use crate::units::{Picos, SignedPicos};
use crate::wide::scaled;

/// Own clock against a reference: `reference(t) = t − d(t)` with `d(t) = offset + drift·(t − at)`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ClockModel {
    /// Own reading at which `offset` holds.
    pub at: Picos,
    /// Own minus reference clock at that reading.
    pub offset: SignedPicos,
    /// Gain of the own clock on the reference, in ps per own second.
    pub drift: i64,
    /// Error bound of `offset` from `at` to `until`.
    pub error: Picos,
    /// Own reading up to which `error` holds.
    pub until: Picos,
    /// Error bound of `drift`, in ps per second: the rate at which the error grows before `at` and
    /// after `until`.
    pub drift_error: u64,
    /// Largest difference of the momentary drift from `drift` between `at` and `until`, in ps per
    /// second: the rate at which the error grows with the distance from the nearer of the two.
    pub wander: u64,
}

impl ClockModel {
    /// Model of the reference clock itself.
    #[must_use]
    pub fn reference() -> Self {
        Self { until: Picos::MAX, ..Self::default() }
    }

    /// Model from a single offset; the drift is only known to be at most `drift_ppm` millionths.
    #[must_use]
    pub fn of_offset(offset: &Offset, drift_ppm: u32) -> Self {
        Self {
            at: offset.at,
            offset: offset.value,
            drift: 0,
            error: offset.half_width,
            until: offset.at,
            drift_error: u64::from(drift_ppm) * PER_MILLION,
            wander: 0,
        }
    }

    /// Interpolates between an offset before and one after the measurement. Far more accurate than
    /// extrapolation, since no slope has to be estimated.
    ///
    /// # Errors
    ///
    /// [`DriftError::Order`] if the second is not later than the first, [`DriftError::Implausible`]
    /// if a clock must have been set between them.
    pub fn between(first: &Offset, second: &Offset) -> Result<Self, DriftError> {
        let span = second.at.since(first.at);
        if span == Picos::ZERO {
            return Err(DriftError::Order { first: first.at, second: second.at });
        }
        let gained = i128::from(second.value.0) - i128::from(first.value.0);
        let rate = |picos: u64| scaled(picos, SECOND, span.0);
        let magnitude = rate(u64::try_from(gained.unsigned_abs()).unwrap_or(u64::MAX));
        let drift = like(if gained < 0 { -1 } else { 1 }, magnitude);
        let widths = first.half_width.0.saturating_add(second.half_width.0);
        // Wide bounds, as of a descheduled rank, do not prove that a clock was set.
        let least = like(drift, magnitude.saturating_sub(rate(widths)));
        plausible(least).map_err(|_| DriftError::Implausible(drift))?;
        // The midpoints of wide bounds may suggest a faster drift than clocks have. The slope is
        // then limited, and the remainder is added to both errors.
        let slope = drift.clamp(-MOST_DRIFT, MOST_DRIFT);
        let less = drift.abs_diff(slope);
        let error = first.half_width.max(second.half_width).0;
        let followed = scaled(span.0, slope.unsigned_abs(), SECOND);
        let missed = u64::try_from(gained.unsigned_abs()).unwrap_or(u64::MAX);
        let missed = if less == 0 { 0 } else { missed.saturating_sub(followed).saturating_add(1) };
        Ok(Self {
            at: first.at,
            offset: first.value,
            drift: slope,
            error: Picos(error.saturating_add(missed)),
            until: second.at,
            drift_error: rate(widths).saturating_add(1).saturating_add(less),
            wander: 0,
        })
    }

    /// This model for a clock whose momentary drift may differ from its mean as stated by
    /// `assumptions`; [`ClockModel::between`] takes the drift as constant.
    #[must_use]
    pub fn wandering(self, assumptions: &Assumptions) -> Self {
        let wander = assumptions.wander();
        Self { wander, drift_error: self.drift_error.saturating_add(wander), ..self }
    }

    /// Distance of `offset`, against the same reference, from the range allowed by this model and
    /// its own half width: the clock was set by at least that, or drifted faster than assumed. Zero
    /// if the two agree.
    #[must_use]
    pub fn contradiction(&self, offset: &Offset) -> SignedPicos {
        let off = offset.value.0.saturating_sub(self.offset_at(offset.at).0);
        let allowed = self.error_at(offset.at).0.saturating_add(offset.half_width.0);
        let beyond = off.unsigned_abs().saturating_sub(allowed.saturating_add(1));
        SignedPicos(like(off, beyond))
    }

    /// Reference reading at the own reading `local`; zero before the reference's own beginning.
    #[must_use]
    pub fn reference_at(&self, local: Picos) -> Picos {
        Picos(local.0.saturating_sub_signed(self.offset_at(local).0))
    }

    /// Own minus reference clock at the own reading `local`, saturating.
    #[must_use]
    pub fn offset_at(&self, local: Picos) -> SignedPicos {
        let (distance, way) =
            if local < self.at { (self.at.since(local), -1) } else { (local.since(self.at), 1) };
        let gained = scaled(distance.0, self.drift.unsigned_abs(), SECOND);
        SignedPicos(self.offset.0.saturating_add(like(way * self.drift.signum(), gained)))
    }

    /// Own reading when the reference shows `reference`, for actions that start on all ranks at
    /// once.
    #[must_use]
    pub fn local_at(&self, reference: Picos) -> Picos {
        let there = i128::from(self.at.0) - i128::from(self.offset.0);
        let distance = i128::from(reference.0) - there;
        let passed = u64::try_from(distance.unsigned_abs()).unwrap_or(u64::MAX);
        // Δt = Δr / (1 − s) = Δr + Δr·s / (1 − s)
        let divisor = SECOND.saturating_sub_signed(self.drift).max(1);
        let gained = like(self.drift.signum(), scaled(passed, self.drift.unsigned_abs(), divisor));
        let passed = passed.saturating_add_signed(gained);
        Picos(if distance < 0 {
            self.at.0.saturating_sub(passed)
        } else {
            self.at.0.saturating_add(passed)
        })
    }

    /// Error bound of [`ClockModel::reference_at`].
    #[must_use]
    pub fn error_at(&self, local: Picos) -> Picos {
        let outside = self.at.since(local).0.max(local.since(self.until).0);
        let inside = local.since(self.at).0.min(self.until.since(local).0);
        let grown = scaled(outside, self.drift_error, SECOND);
        let bent = scaled(inside, self.wander, SECOND);
        Picos(self.error.0.saturating_add(grown).saturating_add(bent))
    }

    /// Combines this model of a parent's clock with `child`'s model against that parent: the
    /// child's clock against this model's reference. The slopes are `s₁ + s₂ − s₁·s₂`, the errors
    /// add.
    #[must_use]
    pub fn after(&self, child: &Self) -> Self {
        let parent = child.reference_at(child.at);
        let offset = child.offset.0.saturating_add(self.offset_at(parent).0);
        let both = scaled(self.drift.unsigned_abs(), child.drift.unsigned_abs(), SECOND);
        let both = like(self.drift.signum() * child.drift.signum(), both);
        let drift = child.drift.saturating_add(self.drift).saturating_sub(both);
        let error = |local| self.error_at(child.reference_at(local)).0;
        let worst = error(child.at).max(error(child.until));
        Self {
            at: child.at,
            offset: SignedPicos(offset),
            drift,
            error: Picos(child.error.0.saturating_add(worst)),
            until: child.until,
            drift_error: child.drift_error.saturating_add(self.drift_error),
            wander: child.wander.saturating_add(self.wander),
        }
    }
}

/// One millionth as a drift, in ps per second.
const PER_MILLION: u64 = SECOND / 1_000_000;

/// [`MOST_DRIFT_PPM`], in ps per second.
const MOST_DRIFT: i64 = MOST_DRIFT_PPM as i64 * PER_MILLION as i64;

/// Checks that quartz crystals can have this drift.
pub(super) fn plausible(drift: i64) -> Result<(), DriftError> {
    let is_plausible = (-MOST_DRIFT..=MOST_DRIFT).contains(&drift);
    if is_plausible { Ok(()) } else { Err(DriftError::Implausible(drift)) }
}

/// `magnitude` with the sign of `sign`, saturating.
fn like(sign: i64, magnitude: u64) -> i64 {
    let magnitude = i64::try_from(magnitude).unwrap_or(i64::MAX);
    if sign < 0 { -magnitude } else { magnitude }
}
