//! Errors of offsets, summarised.

use loggap_core::stats::Sorted;
use loggap_core::units::Picos;
use serde::Serialize;

use super::seconds;

/// Magnitudes of the errors of offsets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Errors {
    /// Mean.
    #[serde(rename = "error_mean_s", serialize_with = "seconds")]
    pub mean: Picos,
    /// 99th percentile.
    #[serde(rename = "error_p99_s", serialize_with = "seconds")]
    pub p99: Picos,
    /// Largest.
    #[serde(rename = "error_max_s", serialize_with = "seconds")]
    pub max: Picos,
}

impl Errors {
    /// Summary of `magnitudes`, which it sorts; zeros if there are none.
    pub(super) fn of(magnitudes: &mut [Picos]) -> Self {
        let sum: u64 = magnitudes.iter().map(|error| error.0).sum();
        let mean = Picos(sum.checked_div(magnitudes.len() as u64).unwrap_or(0));
        let sorted = Sorted::new(magnitudes);
        let quantile = |percent| sorted.quantile(percent, 100).unwrap_or_default();
        Self { mean, p99: quantile(99), max: quantile(100) }
    }
}
