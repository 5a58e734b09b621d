//! What comes out of looking for protocol changes.

/// A protocol change: an abrupt jump of a curve's value.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Change {
    /// First measured size of the new protocol, in bytes: the best single
    /// answer from the points at hand.
    pub at: u64,
    /// Smallest size that may be the first of the new protocol.
    pub low: u64,
    /// Largest size that may be the first of the new protocol. Measuring
    /// between `low` and `high` narrows the interval; `low == high` is exact.
    pub high: u64,
    /// Index of the curve that shows it best.
    pub curve: usize,
    /// By how many millionths that curve's value at `at` is larger than the
    /// old protocol's line there.
    pub jump_ppm: i32,
    /// Whether a range begins here. Not so where no curve jumps by the
    /// tolerance, and where a range would become too narrow.
    pub splits: bool,
}
