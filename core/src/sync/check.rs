//! Whether corrected clocks agree: what `sync --check` asks.
//!
//! A check over the edges of the tree sees only what the synchronisation saw.
//! Between ranks that did not meet it is independent of it, so that pairs of
//! the root and any rank are checked, and triangles of ranks.

use super::{ClockModel, Offset, SECOND};
use crate::stats::Sorted;
use crate::units::{Picos, SignedPicos};
use crate::wide::scaled;

/// By how much two corrected clocks differ.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Residual {
    /// When, on the first rank's corrected clock.
    pub at: Picos,
    /// First minus second rank's corrected clock.
    pub value: SignedPicos,
    /// What both models claim that it is at most.
    pub claimed: Picos,
    /// What the measurement of `value` may be off by; 0 where the truth is
    /// known.
    pub uncertainty: Picos,
    /// How fast it may change, in ps per second, as both models claim.
    pub drift_error: u64,
}

impl Residual {
    /// Of two ranks whose clocks differ by `raw`, fresh pings of the first
    /// with the second.
    #[must_use]
    pub fn of(raw: &Offset, first: &ClockModel, second: &ClockModel) -> Self {
        let there = Picos(raw.at.0.saturating_sub_signed(raw.value.0));
        let (own, peer) = (first.offset_at(raw.at).0, second.offset_at(there).0);
        let claimed = first.error_at(raw.at).0.saturating_add(second.error_at(there).0);
        // `there` is off by as much as the offset, by which the second's model
        // moves at its drift; both models round by 1 ps.
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

    /// Of a clock whose reference is known to have read `truth` when the own
    /// reading was `local`.
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

    /// Whether the claim may hold, as far as was measured.
    #[must_use]
    pub const fn is_covered(&self) -> bool {
        let allowed = self.claimed.0.saturating_add(self.uncertainty.0);
        self.value.0.unsigned_abs() <= allowed
    }
}

/// Three ranks of which every one pinged the next: a and b, b and c, c and a.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Triangle {
    /// The sum of the residuals around, which is 0 for whatever models.
    pub closure: SignedPicos,
    /// What the sum may be off by: the measurements' uncertainties, and what
    /// the residuals may have changed between them.
    pub uncertainty: Picos,
}

impl Triangle {
    /// Of the residuals of a and b, b and c, c and a.
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

    /// False where a clock was set or pings were stamped wrongly: no
    /// asymmetry opens a triangle beyond its uncertainty.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closure.0.unsigned_abs() <= self.uncertainty.0
    }
}

/// Distribution of residuals.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ResidualSummary {
    /// How many there were.
    pub count: u32,
    /// Median of the magnitudes.
    pub p50: Picos,
    /// 99th percentile.
    pub p99: Picos,
    /// Largest magnitude.
    pub max: Picos,
    /// Largest claim.
    pub largest_claim: Picos,
    /// Mean claim.
    pub mean_claim: Picos,
    /// Residuals that their claims cover.
    pub covered: u32,
}

impl ResidualSummary {
    /// Share that the claims cover, from 0 to 1; 1 without residuals.
    #[must_use]
    pub fn covered_share(&self) -> f64 {
        if self.count == 0 { 1.0 } else { f64::from(self.covered) / f64::from(self.count) }
    }
}

/// Collects residuals.
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
    /// `memory` has an element for each residual.
    #[must_use]
    pub const fn new(memory: &'m mut [Picos]) -> Self {
        let largest_claim = Picos::ZERO;
        Self { magnitudes: memory, kept: 0, count: 0, covered: 0, largest_claim, claims: 0 }
    }

    /// Takes one more.
    ///
    /// # Errors
    ///
    /// The residual, where no memory is left.
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

    /// Their distribution; sorts the memory.
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
