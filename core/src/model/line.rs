//! A parameter that depends on message size: a straight line with its
//! uncertainty.

use super::{Estimate, Mark};
use crate::units::{Bytes, Picos, SignedPerByte, SignedPicos};
use crate::wide::{self, scaled};

/// `value(s) = at_centre + (s − centre)·per_byte`, fitted to measured points.
///
/// Intercept and slope of a fit are correlated, but value at the centre and slope are not, so the
/// interval at any size follows from the two. A line fitted to large sizes may be negative at size
/// 1, for example behind a token bucket, whose burst takes no time; [`SizeLine::at_one`] is then 0.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SizeLine {
    /// Value at size 1; 0 if the line is negative there.
    pub at_one: Estimate<SignedPicos>,
    /// Slope.
    pub per_byte: Estimate<SignedPerByte>,
    /// Size at which the line is known best.
    pub centre: Bytes,
    /// Value at the centre.
    pub at_centre: SignedPicos,
    /// Half of the confidence interval at the centre.
    pub centre_half_width: Picos,
    /// Scatter of later rounds about the line beyond its own interval, in millionths of the line's
    /// value: the misfit of the model and the scatter of single rounds.
    pub scatter_ppm: u32,
}

impl SizeLine {
    /// An exactly known line.
    #[must_use]
    pub const fn exact(at_one: SignedPicos, per_byte: SignedPerByte) -> Self {
        Self {
            at_one: Estimate::exact(at_one),
            per_byte: Estimate::exact(per_byte),
            centre: Bytes(1),
            at_centre: at_one,
            centre_half_width: Picos::ZERO,
            scatter_ppm: 0,
        }
    }

    /// True if the slope is known. It is not if a single size was measured: the interval of the
    /// slope is then unbounded and [`SizeLine::at_one`] is the value at that size.
    #[must_use]
    pub const fn has_slope(&self) -> bool {
        self.per_byte.low.0 > i64::MIN || self.per_byte.high.0 < i64::MAX
    }

    /// Value of the line at `size`, saturating; size 0 counts as 1.
    #[must_use]
    pub const fn at(&self, size: Bytes) -> SignedPicos {
        let size = if size.0 == 0 { 1 } else { size.0 };
        let rest = self.per_byte.value.times(Bytes(size.abs_diff(self.centre.0)));
        SignedPicos(if size >= self.centre.0 {
            self.at_centre.0.saturating_add(rest.0)
        } else {
            self.at_centre.0.saturating_sub(rest.0)
        })
    }

    /// Half of the confidence interval at `size`, saturating: the uncertainties of the value at the
    /// centre and of the slope, added in quadrature.
    #[must_use]
    pub fn half_width(&self, size: Bytes) -> Picos {
        let distance = Bytes(self.centre.0.abs_diff(size.0.max(1)));
        let slope = SignedPerByte(self.slope_half_width()).times(distance);
        hypotenuse(self.centre_half_width, Picos(slope.0.unsigned_abs()))
    }

    /// Half of the interval in which a *measured* value at `size` is expected: the line's own
    /// interval and the scatter about it, added in quadrature.
    #[must_use]
    pub fn point_half_width(&self, size: Bytes) -> Picos {
        let value = self.at(size).0.unsigned_abs();
        let scatter = Picos(scaled(value, self.scatter_ppm.into(), 1_000_000));
        hypotenuse(self.half_width(size), scatter)
    }

    /// Adds an independent scatter, in millionths of the line's value.
    pub(crate) fn include_scatter(&mut self, ppm: u32) {
        let both = hypotenuse(Picos(self.scatter_ppm.into()), Picos(ppm.into()));
        self.scatter_ppm = u32::try_from(both.0).unwrap_or(u32::MAX);
    }

    /// The mark of the value at size 1 if that has not converged, otherwise the slope's.
    #[must_use]
    pub const fn mark(&self) -> Mark {
        match self.at_one.mark {
            Mark::Converged => self.per_byte.mark,
            other => other,
        }
    }

    const fn slope_half_width(&self) -> i64 {
        self.per_byte.high.0.saturating_sub(self.per_byte.low.0) / 2
    }
}

/// `√(a² + b²)`, saturating.
pub(super) fn hypotenuse(a: Picos, b: Picos) -> Picos {
    Picos(wide::hypotenuse(a.0, b.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> SizeLine {
        SizeLine {
            at_one: Estimate::exact(SignedPicos(1_000)),
            per_byte: Estimate {
                value: SignedPerByte(2 << 16),
                low: SignedPerByte(1 << 16),
                high: SignedPerByte(3 << 16),
                mark: Mark::Converged,
            },
            centre: Bytes(1_001),
            at_centre: SignedPicos(3_000),
            centre_half_width: Picos(300),
            scatter_ppm: 100_000,
        }
    }

    #[test]
    fn the_line_is_known_best_at_its_centre() {
        assert_eq!(line().at(Bytes(1_001)), SignedPicos(3_000));
        assert_eq!(line().half_width(Bytes(1_001)), Picos(300));
        assert_eq!(line().half_width(Bytes(1_401)), Picos(500));
        assert_eq!(line().half_width(Bytes(601)), Picos(500));
    }

    #[test]
    fn a_measured_point_is_expected_within_line_and_scatter() {
        assert_eq!(line().point_half_width(Bytes(1_001)), Picos(424)); // √(300² + 300²)
    }

    #[test]
    fn an_empty_message_counts_as_one_byte() {
        assert_eq!(line().at(Bytes(0)), line().at(Bytes(1)));
        assert_eq!(line().half_width(Bytes(0)), line().half_width(Bytes(1)));
    }

    #[test]
    fn absurd_lines_saturate() {
        let mut absurd = SizeLine::exact(SignedPicos(i64::MAX), SignedPerByte(i64::MAX));
        absurd.scatter_ppm = u32::MAX;
        assert_eq!(absurd.at(Bytes(u64::MAX)), SignedPicos(i64::MAX));
        assert!(absurd.point_half_width(Bytes(u64::MAX)) > Picos(1 << 63));
        assert_eq!(hypotenuse(Picos::MAX, Picos::MAX), Picos::MAX);
    }
}
