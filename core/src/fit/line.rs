//! Incremental least squares of y = g + G·(s − 1).

use super::Point;
use super::double::Double;
use crate::number::{larger, sqrt};

/// A least-squares line through points (size, value): the `g` and `G` of
/// Eq. 5 of Hoefler et al., "`LogGP` in Theory and Practice".
///
/// Sizes are bytes, values picoseconds, `g` is the value at one byte in
/// picoseconds, `G` is picoseconds per byte. A size of 0 counts as 1, as
/// everywhere.
///
/// Adding a point, removing one (any, so also the front of a window) and
/// reading `g`, `G` and the residual mean square are O(1). The moments are
/// sums of about 106 bits, taken relative to the first size and centred only
/// when read, so removal undoes addition, and a window keeps its accuracy
/// whatever has passed through it: relative errors stay below 10⁻¹² after
/// 10⁶ points with sizes up to 2³⁰ (test against exact integers).
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    count: u64,
    /// Bytes after the first of the point added first: x is relative to it.
    origin: u64,
    weight: Double,
    x: Double,
    y: Double,
    xx: Double,
    xy: Double,
    yy: Double,
}

impl Line {
    /// A line without points.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes `point` with weight 1, whatever its sigma. O(1).
    pub fn add(&mut self, point: Point) {
        self.accumulate(point.size(), point.value(), 1.0);
    }

    /// Takes `point` with weight 1/sigma²; 1 ps for an unknown sigma. Residual
    /// mean squares are then dimensionless: 1 where the sigmas are right. O(1).
    pub fn add_weighted(&mut self, point: Point) {
        self.accumulate(point.size(), point.value(), weight_of(point));
    }

    /// Takes back a `point` that was added by [`Line::add`]. O(1).
    pub fn remove(&mut self, point: Point) {
        self.release(point.size(), point.value(), 1.0);
    }

    /// Takes back a `point` that was added by [`Line::add_weighted`]. O(1).
    pub fn remove_weighted(&mut self, point: Point) {
        self.release(point.size(), point.value(), weight_of(point));
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
        Some(self.solve()?.gap)
    }

    /// `G`, the slope, in ps per byte; `None` below two different sizes.
    #[must_use]
    pub fn gap_per_byte(&self) -> Option<f64> {
        Some(self.solve()?.slope)
    }

    /// Sum of (weighted) squared residuals over count − 2, in ps² for weights
    /// of 1; `None` below three points or two different sizes.
    ///
    /// The denominator of Eq. 6 as printed, l − k − 2 with both ends
    /// included, would be count − 3; two fitted parameters leave count − 2.
    #[must_use]
    pub fn residual_mean_square(&self) -> Option<f64> {
        let degrees_of_freedom = self.count.checked_sub(2).filter(|&d| d > 0)?;
        Some(self.solve()?.squares / degrees_of_freedom as f64)
    }

    /// Standard error of `g` in ps, from the residuals.
    #[must_use]
    pub fn gap_error(&self) -> Option<f64> {
        let solved = self.solve()?;
        Some(sqrt(self.residual_mean_square()? * solved.variance_at(0.0)))
    }

    /// Standard error of `G` in ps per byte, from the residuals.
    #[must_use]
    pub fn gap_per_byte_error(&self) -> Option<f64> {
        Some(sqrt(self.residual_mean_square()? / self.solve()?.spread))
    }

    /// Takes a point of `weight`, which has to be positive.
    pub(super) fn accumulate(&mut self, size: u64, value: f64, weight: f64) {
        if self.count == 0 {
            *self = Self { origin: after_first(size), ..Self::default() };
        }
        self.count = self.count.saturating_add(1);
        self.apply(size, value, weight);
    }

    /// Takes back a point that was accumulated.
    pub(super) fn release(&mut self, size: u64, value: f64, weight: f64) {
        match self.count.checked_sub(1) {
            Some(0) | None => *self = Self::default(),
            Some(rest) => {
                self.count = rest;
                self.apply(size, value, -weight);
            }
        }
    }

    fn apply(&mut self, size: u64, value: f64, weight: f64) {
        let x = signed_difference(after_first(size), self.origin);
        let (x_weight, y_weight) = (Double::product(weight, x), Double::product(weight, value));
        let (x, y) = (Double::from(x), Double::from(value));
        self.weight.add(&Double::from(weight));
        self.x.add(&x_weight);
        self.y.add(&y_weight);
        self.xx.add_product(&x_weight, &x);
        self.xy.add_product(&x_weight, &y);
        self.yy.add_product(&y_weight, &y);
    }

    /// The line itself; `None` below two different sizes.
    pub(super) fn solve(&self) -> Option<Solved> {
        if self.count < 2 {
            return None;
        }
        let mean_x = self.x.over(&self.weight);
        let mean_y = self.y.over(&self.weight);
        let spread = self.xx.less_product(&self.x, &mean_x);
        // Equal sizes leave a spread of rounding errors, or none.
        if spread.value() <= self.xx.value().abs() * 1e-28 || spread.value() <= 0.0 {
            return None;
        }
        let common = self.xy.less_product(&self.x, &mean_y);
        let slope = common.over(&spread);
        let squares = self.yy.less_product(&self.y, &mean_y).less_product(&common, &slope);
        let mut centre = mean_x;
        centre.add(&Double::from(self.origin as f64));
        Some(Solved {
            weight: self.weight.value(),
            centre: centre.value(),
            level: mean_y.value(),
            slope: slope.value(),
            gap: mean_y.less_product(&slope, &centre).value(),
            spread: spread.value(),
            squares: if self.count > 2 { larger(squares.value(), 0.0) } else { 0.0 },
        })
    }
}

/// A line that was solved for, centred at the mean size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Solved {
    /// Sum of the weights.
    pub(super) weight: f64,
    /// Mean of the bytes after the first.
    pub(super) centre: f64,
    /// Fitted value at the centre, ps.
    pub(super) level: f64,
    /// `G`, ps per byte.
    pub(super) slope: f64,
    /// `g`, ps.
    pub(super) gap: f64,
    /// Weighted sum of (x − centre)².
    pub(super) spread: f64,
    /// Weighted sum of squared residuals.
    pub(super) squares: f64,
}

impl Solved {
    /// The fitted value after `x` bytes beyond the first, ps.
    pub(super) fn at(&self, x: f64) -> f64 {
        self.level + self.slope * (x - self.centre)
    }

    /// Variance of [`Solved::at`] in units of the variance of a point of
    /// weight 1.
    pub(super) fn variance_at(&self, x: f64) -> f64 {
        let distance = x - self.centre;
        1.0 / self.weight + distance * distance / self.spread
    }
}

/// s − 1 of the formulas; an empty message counts as one byte.
pub(super) const fn after_first(size: u64) -> u64 {
    size.saturating_sub(1)
}

fn signed_difference(a: u64, b: u64) -> f64 {
    if a >= b { (a - b) as f64 } else { -((b - a) as f64) }
}

fn weight_of(point: Point) -> f64 {
    match point.sigma() {
        Some(sigma) => 1.0 / (sigma * sigma),
        None => 1.0,
    }
}
