//! Numbers of 64 bits in two halves.

/// Number of its low and high half.
pub(crate) const fn whole([low, high]: [u32; 2]) -> u64 {
    low as u64 | (high as u64) << 32
}

/// Low and high half of a number.
#[allow(clippy::cast_possible_truncation, reason = "the halves are meant")]
pub(crate) const fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}
