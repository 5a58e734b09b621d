//! Time, data volume and their quotient as integers.
//!
//! Time is counted in picoseconds (`u64`, up to 213 days), data in bytes, and time per byte in 2⁻¹⁶
//! picoseconds per byte, so that a 400 Gb/s link (20 ps per byte) is held to six significant
//! digits. Arithmetic is checked; all conversions between these types are in this file.

use core::fmt;
use core::time::Duration;

use crate::number::nearest;

/// A result that does not fit into 64 bits of its unit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Overflow;

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("time overflow: more than 2^64 picoseconds (213 days)")
    }
}

impl core::error::Error for Overflow {}

/// A point in time or a duration, in picoseconds.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Picos(pub u64);

impl Picos {
    /// Zero time.
    pub const ZERO: Self = Self(0);
    /// The longest representable time, 2⁶⁴ − 1 ps.
    pub const MAX: Self = Self(u64::MAX);

    /// `nanos` nanoseconds, `None` past [`Picos::MAX`].
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Option<Self> {
        match nanos.checked_mul(1_000) {
            Some(picos) => Some(Self(picos)),
            None => None,
        }
    }

    /// `duration`, saturating at [`Picos::MAX`].
    #[must_use]
    pub fn from_duration(duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).ok();
        nanos.and_then(Self::from_nanos).unwrap_or(Self::MAX)
    }

    /// `micros` microseconds, `None` past [`Picos::MAX`].
    #[must_use]
    pub const fn from_micros(micros: u64) -> Option<Self> {
        match micros.checked_mul(1_000_000) {
            Some(picos) => Some(Self(picos)),
            None => None,
        }
    }

    /// This time in seconds, rounded to the nearest `f64`.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "rounding to the nearest double is the contract")]
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// The sum of both.
    ///
    /// # Errors
    ///
    /// [`Overflow`] past 2⁶⁴ ps.
    pub const fn plus(self, other: Self) -> Result<Self, Overflow> {
        match self.0.checked_add(other.0) {
            Some(sum) => Ok(Self(sum)),
            None => Err(Overflow),
        }
    }

    /// `count` times this duration.
    ///
    /// # Errors
    ///
    /// [`Overflow`] past 2⁶⁴ ps.
    pub const fn times(self, count: u64) -> Result<Self, Overflow> {
        match self.0.checked_mul(count) {
            Some(product) => Ok(Self(product)),
            None => Err(Overflow),
        }
    }

    /// Time elapsed since `earlier`; zero when `earlier` is later than this.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// Signed difference `self − other` in picoseconds, saturating at the
    /// ends of `i64`.
    #[must_use]
    #[allow(clippy::cast_possible_wrap, reason = "both branches are below 2^63 by the min")]
    pub const fn signed_difference(self, other: Self) -> i64 {
        const LIMIT: u64 = i64::MAX as u64;
        if self.0 >= other.0 {
            let d = self.0 - other.0;
            if d > LIMIT { i64::MAX } else { d as i64 }
        } else {
            let d = other.0 - self.0;
            if d > LIMIT { -i64::MAX } else { -(d as i64) }
        }
    }
}

impl fmt::Display for Picos {
    /// With the SI unit that leaves one to three digits before the point.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (divisor, unit) = match self.0 {
            0..1_000 => return write!(f, "{} ps", self.0),
            1_000..1_000_000 => (1_000, "ns"),
            1_000_000..1_000_000_000 => (1_000_000, "us"),
            1_000_000_000..1_000_000_000_000 => (1_000_000_000, "ms"),
            _ => (1_000_000_000_000, "s"),
        };
        let thousandths = (self.0 % divisor) / (divisor / 1_000);
        write!(f, "{}.{thousandths:03} {unit}", self.0 / divisor)
    }
}

/// A duration per byte, in 2⁻¹⁶ picoseconds per byte (LogGP's `G`, LogGOPS's
/// `O`).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PerByte(pub u64);

impl PerByte {
    /// Zero per byte.
    pub const ZERO: Self = Self(0);
    /// Fractional bits of the fixed-point value.
    pub const FRACTION_BITS: u32 = 16;

    /// `picos` whole picoseconds per byte, `None` past 2⁴⁸ ps per byte.
    #[must_use]
    pub const fn from_picos(picos: u64) -> Option<Self> {
        if picos >> (64 - Self::FRACTION_BITS) == 0 {
            Some(Self(picos << Self::FRACTION_BITS))
        } else {
            None
        }
    }

    /// Seconds per byte, rounded to the nearest `f64`.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "rounding to the nearest double is the contract")]
    pub fn seconds(self) -> f64 {
        self.0 as f64 * (1e-12 / 65_536.0)
    }

    /// Duration of `bytes` bytes, rounded down to whole picoseconds.
    ///
    /// # Errors
    ///
    /// [`Overflow`] past 2⁶⁴ ps.
    #[allow(clippy::cast_possible_truncation, reason = "checked against u64::MAX just before")]
    pub const fn times(self, bytes: Bytes) -> Result<Picos, Overflow> {
        let product = (self.0 as u128 * bytes.0 as u128) >> Self::FRACTION_BITS;
        if product > u64::MAX as u128 { Err(Overflow) } else { Ok(Picos(product as u64)) }
    }
}

/// Difference of two times, in picoseconds; noise may make it negative.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SignedPicos(pub i64);

impl SignedPicos {
    /// This difference in seconds, rounded to the nearest `f64`.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "rounding to the nearest double is the contract")]
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// This difference as an unsigned time; `None` if negative.
    #[must_use]
    #[allow(clippy::cast_sign_loss, reason = "the branch excludes negative values")]
    pub const fn picos(self) -> Option<Picos> {
        if self.0 < 0 { None } else { Some(Picos(self.0 as u64)) }
    }

    /// The nearest difference to `picos` picoseconds, saturating at the ends
    /// of `i64`; NaN counts as zero.
    #[must_use]
    pub fn from_f64(picos: f64) -> Self {
        Self(nearest(picos))
    }
}

impl fmt::Display for SignedPicos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        Picos(self.0.unsigned_abs()).fmt(f)
    }
}

/// Fitted slope, in 2⁻¹⁶ picoseconds per byte; noise may make it negative.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SignedPerByte(pub i64);

impl SignedPerByte {
    /// Seconds per byte, rounded to the nearest `f64`.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "rounding to the nearest double is the contract")]
    pub fn seconds(self) -> f64 {
        self.0 as f64 * (1e-12 / 65_536.0)
    }

    /// This slope as an unsigned one; `None` if negative.
    #[must_use]
    #[allow(clippy::cast_sign_loss, reason = "the branch excludes negative values")]
    pub const fn per_byte(self) -> Option<PerByte> {
        if self.0 < 0 { None } else { Some(PerByte(self.0 as u64)) }
    }

    /// The nearest slope to `picos` picoseconds per byte, saturating at the
    /// ends of `i64`; NaN counts as zero.
    #[must_use]
    pub fn from_f64(picos: f64) -> Self {
        Self(nearest(picos * 65_536.0))
    }

    /// Cost of `bytes` bytes at this slope, rounded towards minus infinity, saturating at the ends
    /// of `i64`.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "clamped to i64 just before")]
    pub const fn times(self, bytes: Bytes) -> SignedPicos {
        let product = (self.0 as i128 * bytes.0 as i128) >> PerByte::FRACTION_BITS;
        if product > i64::MAX as i128 {
            SignedPicos(i64::MAX)
        } else if product < i64::MIN as i128 {
            SignedPicos(i64::MIN)
        } else {
            SignedPicos(product as i64)
        }
    }
}

/// A volume of data in bytes.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Bytes(pub u64);

impl Bytes {
    /// The bytes after the first, `s − 1` of the LogGP formulas; 0 for an
    /// empty message, which costs the same as one byte.
    #[must_use]
    pub const fn after_first(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_duration_is_as_long_in_picoseconds_or_the_longest_time() {
        assert_eq!(Picos::from_duration(Duration::new(3, 5)), Picos(3_000_000_005_000));
        assert_eq!(Picos::from_duration(Duration::ZERO), Picos::ZERO);
        assert_eq!(Picos::from_duration(Duration::from_secs(18_446_745)), Picos::MAX);
        assert_eq!(Picos::from_duration(Duration::MAX), Picos::MAX);
    }

    #[test]
    fn sums_and_products_past_the_end_are_overflow() {
        assert_eq!(Picos::MAX.plus(Picos(1)), Err(Overflow));
        assert_eq!(Picos(1 << 40).times(1 << 24), Err(Overflow));
        assert_eq!(PerByte(u64::MAX).times(Bytes(u64::MAX)), Err(Overflow));
        assert_eq!(Picos::from_nanos(u64::MAX), None);
        assert_eq!(PerByte::from_picos(1 << 48), None);
    }

    #[test]
    fn per_byte_rounds_down_only_after_the_product() {
        let third = PerByte(65_536 / 3);
        assert_eq!(third.times(Bytes(1)), Ok(Picos(0)));
        assert_eq!(third.times(Bytes(300_000)), Ok(Picos(99_998)));
        assert_eq!(PerByte::from_picos(20).map(|g| g.times(Bytes(1_000))), Some(Ok(Picos(20_000))));
    }

    #[test]
    fn an_empty_message_costs_what_one_byte_costs() {
        assert_eq!(Bytes(0).after_first(), Bytes(1).after_first());
        assert_eq!(Bytes(5).after_first(), Bytes(4));
    }

    #[test]
    fn differences_are_signed_and_saturate() {
        assert_eq!(Picos(3).signed_difference(Picos(5)), -2);
        assert_eq!(Picos::MAX.signed_difference(Picos::ZERO), i64::MAX);
        assert_eq!(Picos::ZERO.signed_difference(Picos::MAX), -i64::MAX);
    }

    #[test]
    fn fitted_numbers_keep_their_sign_and_saturate() {
        assert_eq!(SignedPicos(-1).picos(), None);
        assert_eq!(SignedPicos(7).picos(), Some(Picos(7)));
        assert_eq!(SignedPicos::from_f64(-1e300), SignedPicos(i64::MIN));
        assert_eq!(SignedPicos::from_f64(f64::NAN), SignedPicos(0));
        assert_eq!(SignedPicos(-1_500_000).to_string(), "-1.500 us");
        assert_eq!(SignedPerByte::from_f64(20.0), SignedPerByte(20 << 16));
        assert_eq!(SignedPerByte(20 << 16).times(Bytes(1_000)), SignedPicos(20_000));
        assert_eq!(SignedPerByte(-1).times(Bytes(u64::MAX)), SignedPicos(-(1 << 48)));
        assert_eq!(SignedPerByte(i64::MAX).times(Bytes(u64::MAX)), SignedPicos(i64::MAX));
        assert_eq!(SignedPerByte(-3).per_byte(), None);
    }

    #[test]
    fn times_print_with_their_unit() {
        assert_eq!(Picos(999).to_string(), "999 ps");
        assert_eq!(Picos(1_500_000).to_string(), "1.500 us");
        assert_eq!(Picos(2_000_000_000_000).to_string(), "2.000 s");
    }
}
