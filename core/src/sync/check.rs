//! Agreement of corrected clocks, as tested by `sync --check`.
//!
//! A check over the edges of the tree repeats the measurements of the synchronisation. Pings
//! between ranks that the tree does not connect are independent of it, so pairs of the root and any
//! rank are checked, and triangles of ranks.

use super::{ClockModel, Offset, SECOND};
use crate::stats::Sorted;
use crate::units::{Picos, SignedPicos};
use crate::wide::scaled;

/// Difference of two corrected clocks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Residual {
    /// Time of the measurement, on the first rank's corrected clock.
    pub at: Picos,
    /// First minus second rank's corrected clock.
    pub value: SignedPicos,
    /// Error bound claimed by both models together.
    pub claimed: Picos,
    /// Error bound of the measurement of `value`; 0 if the truth is known.
    pub uncertainty: Picos,
    /// Largest change of the difference over time claimed by both models, in ps per second.
    pub drift_error: u64,
}

impl Residual {
    /// Residual of two ranks whose clocks differ by `raw`, measured by new pings of the first with
    /// the second.
    #[must_use]
    pub fn of(raw: &Offset, first: &ClockModel, second: &ClockModel) -> Self {
        let there = Picos(raw.at.0.saturating_sub_signed(raw.value.0));
        let (own, peer) = (first.offset_at(raw.at).0, second.offset_at(there).0);
        let claimed = first.error_at(raw.at).0.saturating_add(second.error_at(there).0);
        // `there` has the error of the offset, and the second's model changes by its drift over
        // that time; both models round by 1 ps.
        let moved = scaled(raw.half_width.0, second.drift.unsigned_abs(), SECOND);
        let drift_error = first.drift_error.saturating_add(first.wander);
        let drift_error = drift_error.saturating_add(second.drift_error);
        Self {
            at: first.reference_at(raw.at),
            value: SignedPicos(raw.value.0.saturating_sub(own).saturating_add(peer)),
            claimed: Picos(claimed),
            uncertainty: Picos(raw.half_width.0.saturating_add(moved).saturating_add(2)),
            drift_error: drift_error.saturating_add(second.wander),
        }
    }

    /// Residual of a model whose reference is known to have read `truth` at the own reading
    /// `local`.
    #[must_use]
    pub fn of_truth(model: &ClockModel, local: Picos, truth: Picos) -> Self {
        let corrected = model.reference_at(local);
        Self {
            at: truth,
            value: SignedPicos(corrected.signed_difference(truth)),
            claimed: model.error_at(local),
            uncertainty: Picos::ZERO,
            drift_error: model.drift_error,
        }
    }

    /// True if the residual lies within claim and measurement error.
    #[must_use]
    pub const fn is_covered(&self) -> bool {
        let allowed = self.claimed.0.saturating_add(self.uncertainty.0);
        self.value.0.unsigned_abs() <= allowed
    }
}

/// Three ranks a, b and c, with residuals of a and b, b and c, c and a.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Triangle {
    /// Sum of the three residuals, which is 0 for exact measurements, whatever the models.
    pub closure: SignedPicos,
    /// Error bound of the sum: the measurements' uncertainties and the change of the residuals
    /// between them.
    pub uncertainty: Picos,
}

impl Triangle {
    /// Triangle of the residuals of a and b, b and c, c and a.
    #[must_use]
    pub fn of(sides: &[Residual; 3]) -> Self {
        let first = sides.iter().map(|side| side.at).min().unwrap_or_default();
        let last = sides.iter().map(|side| side.at).max().unwrap_or_default();
        let mut closure = 0_i64;
        let mut uncertainty = 0_u64;
        for side in sides {
            closure = closure.saturating_add(side.value.0);
            let changed = scaled(last.since(first).0, side.drift_error, SECOND);
            let side = side.uncertainty.0.saturating_add(changed);
            uncertainty = uncertainty.saturating_add(side);
        }
        Self { closure: SignedPicos(closure), uncertainty: Picos(uncertainty) }
    }

    /// True if the sum lies within its uncertainty. It does not if a clock was set or pings have
    /// wrong time stamps; asymmetric delays cannot exceed the uncertainty.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closure.0.unsigned_abs() <= self.uncertainty.0
    }
}

/// Order statistics of residuals.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ResidualSummary {
    /// Number of residuals.
    pub count: u32,
    /// Median of the magnitudes.
    pub p50: Picos,
    /// 99th percentile of the magnitudes.
    pub p99: Picos,
    /// Largest magnitude.
    pub max: Picos,
    /// Largest claimed error.
    pub largest_claim: Picos,
    /// Mean claimed error.
    pub mean_claim: Picos,
    /// Number of residuals within their claims.
    pub covered: u32,
}

impl ResidualSummary {
    /// Share of residuals within their claims, from 0 to 1; 1 if there are none.
    #[must_use]
    pub fn covered_share(&self) -> f64 {
        if self.count == 0 { 1.0 } else { f64::from(self.covered) / f64::from(self.count) }
    }
}

/// Collector of residuals.
#[derive(Debug)]
pub struct Residuals<'m> {
    magnitudes: &'m mut [Picos],
    kept: usize,
    count: u32,
    covered: u32,
    largest_claim: Picos,
    claims: u64,
}

impl<'m> Residuals<'m> {
    /// Empty collector; `memory` limits the number of residuals.
    #[must_use]
    pub const fn new(memory: &'m mut [Picos]) -> Self {
        let largest_claim = Picos::ZERO;
        Self { magnitudes: memory, kept: 0, count: 0, covered: 0, largest_claim, claims: 0 }
    }

    /// Adds a residual.
    ///
    /// # Errors
    ///
    /// The residual, if the memory is full.
    pub fn push(&mut self, residual: Residual) -> Result<(), Residual> {
        let Some(place) = self.magnitudes.get_mut(self.kept) else { return Err(residual) };
        *place = Picos(residual.value.0.unsigned_abs());
        self.kept += 1;
        self.count = self.count.saturating_add(1);
        self.covered = self.covered.saturating_add(residual.is_covered().into());
        self.largest_claim = self.largest_claim.max(residual.claimed);
        self.claims = self.claims.saturating_add(residual.claimed.0);
        Ok(())
    }

    /// Order statistics of the residuals; sorts the memory.
    #[must_use]
    pub fn summary(&mut self) -> ResidualSummary {
        let magnitudes = self.magnitudes.get_mut(..self.kept).unwrap_or_default();
        let sorted = Sorted::new(magnitudes);
        let quantile = |percent| sorted.quantile(percent, 100).unwrap_or_default();
        let mean = self.claims.checked_div(self.count.into()).unwrap_or(0);
        ResidualSummary {
            count: self.count,
            p50: quantile(50),
            p99: quantile(99),
            max: quantile(100),
            largest_claim: self.largest_claim,
            mean_claim: Picos(mean),
            covered: self.covered,
        }
    }
}
