//! Percentile that shows the tail of round trips.

use crate::profile::{ProfileDocument, SizeRecord};

/// A percentile beyond the median.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Tail {
    /// 99th percentile, if most sizes have enough rounds for it.
    P99,
    /// 90th percentile otherwise.
    P90,
}

impl Tail {
    /// p99, or p90 if p99 is unknown at most sizes.
    pub(super) fn of(document: &ProfileDocument) -> Self {
        let rounds = || document.sizes.iter().filter(|record| record.rounds.is_some());
        let known = rounds().filter(|record| Self::P99.at(record).is_some()).count();
        if known * 2 > rounds().count() { Self::P99 } else { Self::P90 }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::P99 => "p99",
            Self::P90 => "p90",
        }
    }

    /// Value in seconds, if known.
    pub(super) fn at(self, record: &SizeRecord) -> Option<f64> {
        let [_, p90, p99, ..] = record.rounds.as_ref()?.percentiles;
        match self {
            Self::P99 => p99,
            Self::P90 => p90,
        }
    }
}
