//! Scatter of single rounds about their median.
//!
//! The interval of a median describes the median. A prediction is about a single later round, on a
//! machine whose speed varies a little; the samples of a measurement, spread over its whole time,
//! show by how much.

use super::ranges::SizeSpan;
use super::store::value_in;
use crate::measure::{Quantity, SampleStore};
use crate::model::Curve;
use crate::wide::scaled;

impl SampleStore<'_> {
    /// Half the distance between the 5% and the 95% quantile of single rounds, relative to the
    /// curve's value, averaged over the sizes of `span`; in millionths.
    pub(in crate::measure) fn round_spread_ppm(&self, curve: Curve, span: SizeSpan) -> u32 {
        let (mut sum, mut count) = (0, 0);
        for row in self.rows_in(span) {
            if let Some(ppm) = self.relative_spread(row, curve.parts().0) {
                sum += u64::from(ppm);
                count += 1;
            }
        }
        u32::try_from(sum / count.max(1)).unwrap_or(u32::MAX)
    }

    /// Relative spread of one size's rounds, at most 100%. For a difference of rounds, that of the
    /// burst.
    fn relative_spread(&self, row: usize, quantity: Quantity) -> Option<u32> {
        let rounds = self.cell(row, quantity);
        let last = rounds.len().checked_sub(1)?;
        let (low, high) = (rounds.get(last / 20)?, rounds.get(last - last / 20)?);
        let typical = self.middle(row, quantity)?.unsigned_abs();
        let ppm = scaled(value_in(*high).abs_diff(value_in(*low)) / 2, 1_000_000, typical.max(1));
        Some(u32::try_from(ppm.min(1_000_000)).unwrap_or(1_000_000))
    }
}
