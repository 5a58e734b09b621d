//! A least-squares line that points are only added to.

use super::Point;
use crate::number::sqrt;

/// The unconstrained least-squares line of y = g + G·(s − 1), one point at a
/// time (recursive least squares).
///
/// Sizes are bytes, values picoseconds; a size of 0 counts as 1. Each update
/// moves the line in proportion to the residual and raises the sum of squares
/// by a square: no difference of large sums is taken, so that rounding stays
/// that of a double.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct GrowingLine {
    pub(super) count: u64,
    /// Sum of the weights.
    pub(super) weight: f64,
    /// Mean of the bytes after the first.
    pub(super) centre: f64,
    /// Fitted value at the centre, ps.
    pub(super) level: f64,
    /// `G`, ps per byte; 0 below two different sizes.
    pub(super) slope: f64,
    /// Weighted sum of (x − centre)².
    pub(super) spread: f64,
    /// Weighted sum of squared residuals.
    pub(super) squares: f64,
}

impl GrowingLine {
    /// A line without points.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes `point` with weight 1, whatever its sigma. O(1).
    pub fn add(&mut self, point: Point) {
        self.accumulate(point.after_first(), point.value(), 1.0);
    }

    /// Takes `point` with weight 1/sigma²; 1 ps for an unknown sigma. Residual
    /// mean squares are then dimensionless: 1 where the sigmas are right. O(1).
    pub(crate) fn add_weighted(&mut self, point: Point) {
        self.accumulate(point.after_first(), point.value(), weight_of(point));
    }

    /// Points in the line.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// `g`, the fitted value at one byte, in ps; `None` below two different
    /// sizes.
    #[must_use]
    pub fn gap(&self) -> Option<f64> {
        self.has_slope().then(|| self.at(0.0))
    }

    /// `G`, the slope, in ps per byte; `None` below two different sizes.
    #[must_use]
    pub fn gap_per_byte(&self) -> Option<f64> {
        self.has_slope().then_some(self.slope)
    }

    /// Sum of (weighted) squared residuals over count − 2, in ps² for weights
    /// of 1; `None` below three points or two different sizes.
    ///
    /// The denominator of Eq. 6 as printed, l − k − 2 with both ends
    /// included, would be count − 3; two fitted parameters leave count − 2.
    pub(crate) fn residual_mean_square(&self) -> Option<f64> {
        (self.has_slope() && self.count > 2).then(|| self.squares / (self.count - 2) as f64)
    }

    /// Standard error of `G` in ps per byte, from the residuals.
    pub(crate) fn gap_per_byte_error(&self) -> Option<f64> {
        Some(sqrt(self.residual_mean_square()? / self.spread))
    }

    /// Takes a value after `x` bytes beyond the first, with a `weight`, which
    /// has to be positive.
    pub(super) fn accumulate(&mut self, x: f64, value: f64, weight: f64) {
        let distance = x - self.centre;
        let off = value - self.at(x);
        let total = self.weight + weight;
        let share = weight / total;
        let moment = self.weight * share * distance;
        let spread = self.spread + moment * distance;
        // Equal sizes have a mean, not a slope.
        let (turn, kept) =
            if spread > 0.0 { (off / spread, self.spread / spread) } else { (0.0, 1.0) };
        self.squares += self.weight * share * off * off * kept;
        self.slope += moment * turn;
        self.level += share * (value - self.level);
        self.centre += share * distance;
        self.spread = spread;
        self.weight = total;
        self.count += 1;
    }

    const fn has_slope(&self) -> bool {
        self.spread > 0.0
    }

    /// The fitted value after `x` bytes beyond the first, ps.
    pub(super) fn at(&self, x: f64) -> f64 {
        self.level + self.slope * (x - self.centre)
    }

    /// Variance of [`GrowingLine::at`] in units of the variance of a point of
    /// weight 1.
    pub(super) fn variance_at(&self, x: f64) -> f64 {
        let distance = x - self.centre;
        1.0 / self.weight + distance * distance / self.spread
    }
}

/// 1/sigma², 1 for an unknown sigma.
pub(super) fn weight_of(point: Point) -> f64 {
    match point.sigma() {
        Some(sigma) => 1.0 / (sigma * sigma),
        None => 1.0,
    }
}
