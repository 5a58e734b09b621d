//! Incremental least-squares line.

use super::Point;
use crate::number::sqrt;

/// Unconstrained least-squares line y = g + G·(s − 1), updated point by point (recursive least
/// squares).
///
/// Sizes are bytes, values picoseconds; a size of 0 counts as 1. Each update moves the line in
/// proportion to the residual and adds a square to the sum of squares. No large sums are
/// subtracted, so the only rounding error is that of a double.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct GrowingLine {
    pub(super) count: u64,
    /// Sum of the weights.
    pub(super) weight: f64,
    /// Weighted mean of s − 1, in bytes.
    pub(super) centre: f64,
    /// Fitted value at the centre, ps.
    pub(super) level: f64,
    /// `G`, ps per byte; 0 until there are two different sizes.
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

    /// Adds `point` with weight 1, ignoring its sigma. O(1).
    pub fn add(&mut self, point: Point) {
        self.accumulate(point.after_first(), point.value(), 1.0);
    }

    /// Adds `point` with weight 1/sigma²; an unknown sigma counts as 1 ps. The residual mean square
    /// is then dimensionless, and 1 if the sigmas are right. O(1).
    pub(crate) fn add_weighted(&mut self, point: Point) {
        self.accumulate(point.after_first(), point.value(), weight_of(point));
    }

    /// Number of points added.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// `g`, the fitted value at one byte, in ps; `None` for fewer than two different sizes.
    #[must_use]
    pub fn gap(&self) -> Option<f64> {
        self.has_slope().then(|| self.at(0.0))
    }

    /// `G`, the slope, in ps per byte; `None` for fewer than two different sizes.
    #[must_use]
    pub fn gap_per_byte(&self) -> Option<f64> {
        self.has_slope().then_some(self.slope)
    }

    /// Sum of (weighted) squared residuals over count − 2, in ps² for weights of 1; `None` for
    /// fewer than three points or two different sizes.
    ///
    /// The denominator of Eq. 6 as printed, l − k − 2 with both ends included, would be count − 3;
    /// with two fitted parameters it is count − 2.
    #[must_use]
    pub fn residual_mean_square(&self) -> Option<f64> {
        (self.has_slope() && self.count > 2).then(|| self.squares / (self.count - 2) as f64)
    }

    /// Standard error of `G` in ps per byte, from the residuals.
    pub(crate) fn gap_per_byte_error(&self) -> Option<f64> {
        Some(sqrt(self.residual_mean_square()? / self.spread))
    }

    /// Adds a value at `x` bytes after the first, with a positive `weight`.
    pub(super) fn accumulate(&mut self, x: f64, value: f64, weight: f64) {
        let distance = x - self.centre;
        let off = value - self.at(x);
        let total = self.weight + weight;
        let share = weight / total;
        let moment = self.weight * share * distance;
        let spread = self.spread + moment * distance;
        // Points of one size have a mean, but no slope.
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

    /// Fitted value at `x` bytes after the first, ps.
    pub(super) fn at(&self, x: f64) -> f64 {
        self.level + self.slope * (x - self.centre)
    }

    /// Variance of [`GrowingLine::at`], relative to that of a point of weight 1.
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
