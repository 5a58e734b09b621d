//! The reference clock, computed from the own one.

use super::{Assumptions, DriftError, MOST_DRIFT_PPM, Offset, SECOND};
use crate::units::{Picos, SignedPicos};
use crate::wide::scaled;

/// The own clock against a reference: `reference(t) = t − d(t)` with
/// `d(t) = offset + drift·(t − at)`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ClockModel {
    /// The own reading at which `offset` holds.
    pub at: Picos,
    /// Own minus reference there.
    pub offset: SignedPicos,
    /// What the own clock gains on the reference, in ps per own second.
    pub drift: i64,
    /// What `offset` may be off by from `at` to `until`.
    pub error: Picos,
    /// The own reading up to which `error` holds.
    pub until: Picos,
    /// What `drift` may be off by, in ps per second: beyond `until`, and
    /// before `at`, the error grows by it.
    pub drift_error: u64,
    /// What the momentary drift may differ from `drift` between `at` and
    /// `until`, in ps per second: the error grows by it with the distance
    /// from the nearer of both.
    pub wander: u64,
}

impl ClockModel {
    /// The clock that all others are compared with.
    #[must_use]
    pub fn reference() -> Self {
        Self { until: Picos::MAX, ..Self::default() }
    }

    /// From one offset: nothing is known about the drift but that it is at
    /// most `drift_ppm` millionths.
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

    /// Interpolates between an offset before and one after what is measured,
    /// which is far better than to extrapolate: no slope has to be guessed.
    ///
    /// # Errors
    ///
    /// [`DriftError::Order`] when the second is not later than the first,
    /// [`DriftError::Implausible`] when a clock must have been set between
    /// them.
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
        // A rank that lost its processor knows little, which is no clock that was set.
        let least = like(drift, magnitude.saturating_sub(rate(widths)));
        plausible(least).map_err(|_| DriftError::Implausible(drift))?;
        // No clock is as fast as the middles of wide bounds may be apart: what
        // the slope is less than theirs adds to both errors.
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

    /// The same model of a clock whose momentary drift may differ from its
    /// mean as `assumptions` say. [`ClockModel::between`] alone takes it as
    /// constant.
    #[must_use]
    pub fn wandering(self, assumptions: &Assumptions) -> Self {
        let wander = assumptions.wander();
        Self { wander, drift_error: self.drift_error.saturating_add(wander), ..self }
    }

    /// How far `offset`, against the same reference, lies outside of what
    /// this model and its own half width allow: by that much the clock was
    /// set, or moved faster than assumed. Zero where both agree.
    #[must_use]
    pub fn contradiction(&self, offset: &Offset) -> SignedPicos {
        let off = offset.value.0.saturating_sub(self.offset_at(offset.at).0);
        let allowed = self.error_at(offset.at).0.saturating_add(offset.half_width.0);
        let beyond = off.unsigned_abs().saturating_sub(allowed.saturating_add(1));
        SignedPicos(like(off, beyond))
    }

    /// The reference's reading at the own reading `local`; zero before the
    /// reference's own begin.
    #[must_use]
    pub fn reference_at(&self, local: Picos) -> Picos {
        Picos(local.0.saturating_sub_signed(self.offset_at(local).0))
    }

    /// Own minus reference at the own reading `local`, saturating.
    #[must_use]
    pub fn offset_at(&self, local: Picos) -> SignedPicos {
        let (distance, way) =
            if local < self.at { (self.at.since(local), -1) } else { (local.since(self.at), 1) };
        let gained = scaled(distance.0, self.drift.unsigned_abs(), SECOND);
        SignedPicos(self.offset.0.saturating_add(like(way * self.drift.signum(), gained)))
    }

    /// The own reading when the reference's is `reference`: when to begin
    /// something that begins everywhere at once.
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

    /// What [`ClockModel::reference_at`] may be off by.
    #[must_use]
    pub fn error_at(&self, local: Picos) -> Picos {
        let outside = self.at.since(local).0.max(local.since(self.until).0);
        let inside = local.since(self.at).0.min(self.until.since(local).0);
        let grown = scaled(outside, self.drift_error, SECOND);
        let bent = scaled(inside, self.wander, SECOND);
        Picos(self.error.0.saturating_add(grown).saturating_add(bent))
    }

    /// This model of a parent's clock after `child`'s model, which has the
    /// parent as its reference: the child's clock against this reference.
    /// The slopes are `s₁ + s₂ − s₁·s₂`, the errors add.
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

/// A millionth as a drift, in ps per second.
pub(super) const PER_MILLION: u64 = SECOND / 1_000_000;

/// [`MOST_DRIFT_PPM`], in ps per second.
const MOST_DRIFT: i64 = MOST_DRIFT_PPM as i64 * PER_MILLION as i64;

/// A drift that quartz crystals have.
pub(super) fn plausible(drift: i64) -> Result<(), DriftError> {
    let is_plausible = (-MOST_DRIFT..=MOST_DRIFT).contains(&drift);
    if is_plausible { Ok(()) } else { Err(DriftError::Implausible(drift)) }
}

/// `magnitude` with the sign of `sign`, saturating.
fn like(sign: i64, magnitude: u64) -> i64 {
    let magnitude = i64::try_from(magnitude).unwrap_or(i64::MAX);
    if sign < 0 { -magnitude } else { magnitude }
}
