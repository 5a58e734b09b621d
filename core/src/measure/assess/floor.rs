//! Minimum number of samples behind each claim.

/// A claim about a link, and the samples that it requires.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Floor {
    /// Name of the claim.
    pub claim: &'static str,
    /// Number of samples required.
    pub samples: usize,
    /// Reason for the number.
    pub reason: &'static str,
}

impl Floor {
    /// A value at one size.
    pub const VALUE: Self =
        Self::new("value at a size", 3, "a single wrong one of three is not their median");
    /// A change of protocol: samples on each side, at its two nearest sizes together.
    pub const CHANGE: Self = Self::new(
        "change of protocol",
        8,
        "all of eight are on one side of their median once in 128",
    );
    /// As [`Floor::CHANGE`], on a machine that preempts the ends.
    pub const CHANGE_ON_BUSY: Self = Self::new(
        "change of protocol on a busy machine",
        80,
        "a size that is measured for a short time only meets one state of the machine",
    );
    /// 50% of the rounds are faster.
    pub const P50: Self = Self::new("p50", 1, "the sample itself");
    /// 10% of the rounds are slower.
    pub const P90: Self = Self::new("p90", 20, "two samples lie beyond it");
    /// 1% of the rounds are slower.
    pub const P99: Self = Self::new("p99", 200, "two samples lie beyond it");
    /// 0.1% of the rounds are slower.
    pub const P999: Self = Self::new("p99.9", 2_000, "two samples lie beyond it");
    /// Slowest round.
    pub const MAXIMUM: Self = Self::new("maximum", 1, "it is of these rounds alone");

    const fn new(claim: &'static str, samples: usize, reason: &'static str) -> Self {
        Self { claim, samples, reason }
    }
}
