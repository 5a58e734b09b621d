//! The interval of a difference of two medians.

use super::distribution::normal_upper;
use super::{Measure, MedianInterval};
use crate::number::hypotenuse;

/// A scaled difference of two independent medians with its interval, in the
/// unit of the samples (picoseconds).
///
/// Eq. 5 is such a difference: (PRTT(n,0,s) − PRTT(1,0,s)) / (n − 1), and so
/// is Eq. 4 before d is taken off. The interval combines the distances of
/// both medians to the ends of their order-statistic intervals in quadrature
/// (MOVER, the "method of variance estimates recovery" of Zou and Donner,
/// Statistics in Medicine 27, 2008): the lower end of a − b is
///
/// ```text
/// (a − b) − √((a − a_lo)² + (b_hi − b)²)
/// ```
///
/// and the upper end its mirror image. Unlike the difference of the ends it
/// keeps the level instead of overshooting it, and unlike a standard error
/// it keeps the skewness that measured times have.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Difference {
    /// The scaled difference of the medians.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// The level that both intervals reach.
    pub coverage: f64,
    /// False when a sample was too small for the level asked for.
    pub reached: bool,
}

impl Difference {
    /// (`minuend` − `subtrahend`) / `divisor`. `None` when `divisor` is 0.
    #[must_use]
    pub fn of<T: Measure>(
        minuend: &MedianInterval<T>,
        subtrahend: &MedianInterval<T>,
        divisor: u32,
    ) -> Option<Self> {
        if divisor == 0 {
            return None;
        }
        let scale = f64::from(divisor);
        let larger = minuend.median >= subtrahend.median;
        let magnitude = minuend.median.distance(subtrahend.median) as f64;
        let value = if larger { magnitude } else { -magnitude };
        let below = quadrature(
            minuend.median.distance(minuend.low),
            subtrahend.median.distance(subtrahend.high),
        );
        let above = quadrature(
            minuend.median.distance(minuend.high),
            subtrahend.median.distance(subtrahend.low),
        );
        Some(Self {
            value: value / scale,
            low: (value - below) / scale,
            high: (value + above) / scale,
            coverage: minuend.coverage.min(subtrahend.coverage),
            reached: minuend.reached && subtrahend.reached,
        })
    }

    /// The standard error that a normal estimate with this interval would
    /// have; infinite when a sample had a single element.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        let quantile = normal_upper((1.0 - self.coverage) / 2.0);
        if quantile > 1e-6 { (self.high - self.low) / (2.0 * quantile) } else { f64::INFINITY }
    }
}

fn quadrature(first: u64, second: u64) -> f64 {
    hypotenuse(first as f64, second as f64)
}
