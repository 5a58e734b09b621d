//! Incremental least squares of y = g + G·(s − 1), of a window too.

use super::Point;
use super::double::Double;
use super::growing::{GrowingLine, weight_of};
use crate::number::larger;

/// A least-squares line through points (size, value): the `g` and `G` of
/// Eq. 5 of Hoefler et al., "`LogGP` in Theory and Practice".
///
/// Sizes are bytes, values picoseconds, `g` is the value at one byte in
/// picoseconds, `G` is picoseconds per byte. A size of 0 counts as 1, as
/// everywhere. Where points only come and none goes, a [`GrowingLine`] takes a
/// tenth of the operations.
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
        Some(self.solve()?.1)
    }

    /// `G`, the slope, in ps per byte; `None` below two different sizes.
    #[must_use]
    pub fn gap_per_byte(&self) -> Option<f64> {
        self.solve()?.0.gap_per_byte()
    }

    /// See [`GrowingLine::residual_mean_square`].
    #[must_use]
    pub fn residual_mean_square(&self) -> Option<f64> {
        self.solve()?.0.residual_mean_square()
    }

    /// Standard error of `g` in ps, from the residuals.
    #[must_use]
    pub fn gap_error(&self) -> Option<f64> {
        self.solve()?.0.gap_error()
    }

    /// Standard error of `G` in ps per byte, from the residuals.
    #[must_use]
    pub fn gap_per_byte_error(&self) -> Option<f64> {
        self.solve()?.0.gap_per_byte_error()
    }

    /// Takes a point of `weight`, which has to be positive.
    fn accumulate(&mut self, size: u64, value: f64, weight: f64) {
        if self.count == 0 {
            *self = Self { origin: after_first(size), ..Self::default() };
        }
        self.count = self.count.saturating_add(1);
        self.apply(size, value, weight);
    }

    /// Takes back a point that was accumulated.
    fn release(&mut self, size: u64, value: f64, weight: f64) {
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

    /// The line itself and `g`, which would lose digits if it were computed
    /// from the line's level; `None` below two different sizes.
    fn solve(&self) -> Option<(GrowingLine, f64)> {
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
        let line = GrowingLine {
            count: self.count,
            weight: self.weight.value(),
            centre: centre.value(),
            level: mean_y.value(),
            slope: slope.value(),
            spread: spread.value(),
            squares: if self.count > 2 { larger(squares.value(), 0.0) } else { 0.0 },
        };
        Some((line, mean_y.less_product(&slope, &centre).value()))
    }
}

const fn after_first(size: u64) -> u64 {
    size.saturating_sub(1)
}

fn signed_difference(a: u64, b: u64) -> f64 {
    if a >= b { (a - b) as f64 } else { -((b - a) as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::trials::Generator;
    use quickcheck::quickcheck;
    use std::vec::Vec;

    const POINTS: usize = 1_000_000;

    /// Whole numbers with a scatter, sizes up to 2³⁰.
    fn point(random: &mut Generator) -> Point {
        let size = 1 + (random.next() >> 34);
        let value = 1_000_000 + 80 * (size - 1) + random.next() % 1_000_000;
        Point::new(size, value as f64, 0.0).unwrap()
    }

    fn points(seed: u64) -> impl Iterator<Item = Point> {
        let mut random = Generator::new(seed);
        (0..POINTS).map(move |_| point(&mut random))
    }

    /// g and G from sums of integers; both divisions alone are rounded.
    #[allow(clippy::cast_possible_truncation, reason = "whole numbers of 40 bits")]
    fn exact(points: impl Iterator<Item = Point>) -> (f64, f64) {
        let (mut n, mut x, mut y, mut xx, mut xy) = (0_i128, 0, 0, 0, 0);
        for point in points {
            let px = i128::from(point.size() - 1);
            // Without the slope that is known, so that the products fit.
            let py = point.value() as i128 - 80 * px;
            (n, x, y, xx, xy) = (n + 1, x + px, y + py, xx + px * px, xy + px * py);
        }
        let spread = (n * xx - x * x) as f64;
        ((y * xx - x * xy) as f64 / spread, 80.0 + (n * xy - x * y) as f64 / spread)
    }

    fn near(got: Option<f64>, expected: f64, relative: f64) -> bool {
        got.is_some_and(|got| (got / expected - 1.0).abs() < relative)
    }

    #[test]
    fn many_points_give_what_exact_integers_give() {
        let (gap, slope) = exact(points(1));
        let (mut line, mut growing) = (Line::new(), GrowingLine::new());
        for point in points(1) {
            line.add(point);
            growing.add(point);
        }
        assert!(near(line.gap(), gap, 1e-14) && near(line.gap_per_byte(), slope, 1e-14));
        let got = (growing.gap(), growing.gap_per_byte());
        // The value at one byte is a ten-thousandth of those measured.
        assert!(near(got.0, gap, 1e-8) && near(got.1, slope, 1e-12), "{got:?} for {gap} {slope}");
        let (mean, more) = (line.residual_mean_square(), growing.residual_mean_square());
        assert!(near(more, mean.unwrap(), 1e-9), "{more:?} for {mean:?}");
    }

    #[test]
    fn a_window_knows_nothing_of_what_passed_through_it() {
        let mut line = Line::new();
        line.add(Point::new(1 << 30, 1e15, 0.0).unwrap());
        for point in points(2) {
            line.add(point);
        }
        line.remove(Point::new(1 << 30, 1e15, 0.0).unwrap());
        for point in points(2).take(POINTS - 10) {
            line.remove(point);
        }
        let (gap, slope) = exact(points(2).skip(POINTS - 10));
        assert!(near(line.gap(), gap, 1e-12) && near(line.gap_per_byte(), slope, 1e-12));
    }

    quickcheck! {
        fn both_lines_are_the_same(values: Vec<(u32, u32, u16)>) -> bool {
            let points = values.iter().map(|&(size, value, sigma)| {
                Point::new(size.into(), value.into(), f64::from(sigma)).unwrap()
            });
            let (mut line, mut growing) = (Line::new(), GrowingLine::new());
            for point in points {
                line.add_weighted(point);
                growing.add_weighted(point);
            }
            match (line.gap_per_byte(), growing.gap_per_byte()) {
                // Where nothing cancels, to the last digits.
                (Some(slope), Some(other)) => {
                    let reach = growing.at(0.0).abs() + f64::from(u32::MAX);
                    let spread = libm::sqrt(growing.spread / growing.weight);
                    (slope - other).abs() * spread <= 1e-13 * reach
                }
                (a, b) => a == b,
            }
        }
    }
}
