//! The least number of samples behind each claim.

/// Something said of a link, and the samples that it takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Floor {
    /// Name of the claim.
    pub claim: &'static str,
    /// Samples that it takes.
    pub samples: usize,
    /// Reason for the number.
    pub reason: &'static str,
}

impl Floor {
    /// A value at a size, of those that are measured here.
    pub const VALUE: Self =
        Self::new("value at a size", 3, "a single wrong one of three is not their median");
    /// A change of protocol, on each side of it at the two nearest sizes.
    pub const CHANGE: Self = Self::new(
        "change of protocol",
        8,
        "all of eight are on one side of their median once in 128",
    );
    /// As [`Floor::CHANGE`], where processors were taken away.
    pub const CHANGE_ON_BUSY: Self = Self::new(
        "change of protocol on a busy machine",
        80,
        "a size that is measured for a short time only meets one state of the machine",
    );
    /// Half of the rounds are faster.
    pub const P50: Self = Self::new("p50", 1, "the sample itself");
    /// One round in 10 is slower.
    pub const P90: Self = Self::new("p90", 20, "two samples lie beyond it");
    /// One round in 100 is slower.
    pub const P99: Self = Self::new("p99", 200, "two samples lie beyond it");
    /// One round in 1,000 is slower.
    pub const P999: Self = Self::new("p99.9", 2_000, "two samples lie beyond it");
    /// The slowest round.
    pub const MAXIMUM: Self = Self::new("maximum", 1, "it is of these rounds alone");

    const fn new(claim: &'static str, samples: usize, reason: &'static str) -> Self {
        Self { claim, samples, reason }
    }
}
