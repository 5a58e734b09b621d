//! Protocol change found in the curves of a sweep.

/// A protocol change: an abrupt jump of a curve's value.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Change {
    /// First measured size of the new protocol, in bytes: the best single estimate.
    pub at: u64,
    /// Lower end of the interval for the new protocol's first size, in bytes.
    pub low: u64,
    /// Upper end of that interval. Measurements between `low` and `high` narrow it; `low == high`
    /// is exact.
    pub high: u64,
    /// Index of the curve in which the jump is most significant.
    pub curve: usize,
    /// Relative height of the jump: curve's value at `at` over the old protocol's line there, less
    /// 1, in millionths.
    pub jump_ppm: i32,
    /// True if a range begins here. False if no curve jumps by the tolerance, or if a range would
    /// become too narrow.
    pub splits: bool,
}
