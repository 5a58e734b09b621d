//! What comes out of a fit.

use super::growing::after_first;
use crate::number::hypotenuse;

/// An estimate with its confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Estimate {
    /// The estimate itself.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    pub(super) fn symmetric(value: f64, half_width: f64) -> Self {
        Self { value, low: value - half_width, high: value + half_width }
    }

    /// Half the width of the interval.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// A protocol change: where a new line begins.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Change {
    /// Index of the first point of the new protocol.
    pub index: usize,
    /// First measured size of the new protocol, in bytes: the best single
    /// answer from the points at hand.
    pub at: u64,
    /// Smallest size that may be the first of the new protocol.
    pub low: u64,
    /// Largest size that may be the first of the new protocol. Measuring
    /// between `low` and `high` narrows the interval; `low == high` is exact.
    pub high: u64,
}

/// One protocol's range of sizes and its line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Segment {
    /// Index of the first point.
    pub first: usize,
    /// Index of the last point, included.
    pub last: usize,
    /// Size of the first point in bytes.
    pub first_size: u64,
    /// Size of the last point in bytes.
    pub last_size: u64,
    /// The change at which this segment begins; for the first segment of a
    /// sweep all its sizes are the first size.
    pub begins: Change,
    /// `g`, the value at one byte, in ps: extrapolated where the segment
    /// begins later.
    pub gap: Estimate,
    /// `G` in ps per byte.
    pub gap_per_byte: Estimate,
    /// Unweighted sum of squared residuals over points − 2, in ps².
    pub residual_mean_square: f64,
    /// Points that the line was fitted to.
    pub points: usize,
    /// Points of the range left out as outliers.
    pub outliers: usize,
    /// Bytes after the first at which the line is known best; value and slope
    /// are uncorrelated there.
    pub centre: f64,
    /// The line's value at `centre`, in ps.
    pub level: Estimate,
}

impl Segment {
    /// The line at `size` bytes in ps, with the confidence interval of the
    /// line (not of a single measurement).
    #[must_use]
    pub fn at(&self, size: u64) -> Estimate {
        let distance = after_first(size) - self.centre;
        let value = self.level.value + self.gap_per_byte.value * distance;
        let half_width =
            hypotenuse(self.level.half_width(), self.gap_per_byte.half_width() * distance);
        Estimate::symmetric(value, half_width)
    }
}
