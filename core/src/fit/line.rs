//! Least-squares line of a range with non-negative parameters.
//!
//! The straight line of `LogGP` is a model: measured points deviate from it by more than their own
//! noise (caches, segmentation, alignment), and a fit weighted by that noise alone trusts the most
//! precise points too much. So the variance of a point is taken as `σᵢ² + (τ·yᵢ)²`: its own noise
//! and a scatter `τ` relative to the line, the same for all sizes. `τ` is the value at which the
//! weighted sum of squares equals its degrees of freedom (Paule and Mandel, J. Res. NBS 87, 1982),
//! or 0 if the sum of squares is not significantly larger than noise makes it.
//!
//! The line is `g + G·(s − 1)` with `g ≥ 0` and `G ≥ 0`. If least squares would violate a bound,
//! that parameter is 0 and the other is fitted alone.

use super::Point;
use super::growing::GrowingLine;
use crate::number::{larger, sqrt};
use crate::stats::Confidence;

/// Least standard error of a point, in picoseconds: the resolution of the time unit. Keeps weights
/// finite without noise.
const LEAST_SIGMA: f64 = 0.5;
/// Upper end of the search for the relative scatter: points ten times off the line.
const LARGEST_SCATTER: f64 = 10.0;
/// Significance of a misfit, in standard deviations of a chi-square beyond its mean: exceeded by
/// chance in one of a hundred lines.
const SIGNIFICANT: f64 = 2.5;
/// Bisection steps for the scatter: leaves 10⁻⁸ of the largest.
const HALVINGS: u32 = 30;
/// Iterations in which the line that scales the scatter is refined.
const REFINEMENTS: u32 = 3;

/// Parameters of a line that are 0 because a free fit would make them negative.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Bound {
    /// Neither.
    #[default]
    Free,
    /// The value at the first size of the range.
    Gap,
    /// `G`, the slope.
    Slope,
    /// Both: no value is positive.
    Both,
}

/// Least-squares line under the bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bounded {
    /// s − 1 of the range's first size, in bytes.
    pub(super) first: f64,
    pub(super) gap: f64,
    pub(super) slope: f64,
    pub(super) bound: Bound,
    /// Weighted sum of squared residuals.
    pub(super) squares: f64,
}

impl Bounded {
    /// The problem is convex: its minimum is the free one if that is within the bounds, otherwise
    /// the better of the two on the edges. O(1).
    pub(super) fn of(moments: &GrowingLine, first: f64) -> Self {
        let &GrowingLine { weight, centre, level, slope, spread, squares, .. } = moments;
        let centre = centre - first;
        let on_edge = |gap: f64, slope: f64, bound| {
            let off = level - gap - slope * centre;
            let turn = moments.slope - slope;
            let squares = squares + weight * off * off + spread * turn * turn;
            Self { first, gap, slope, bound, squares }
        };
        let gap = moments.at(first);
        if gap >= 0.0 && slope >= 0.0 {
            return Self { first, gap, slope, bound: Bound::Free, squares };
        }
        let flat = on_edge(larger(level, 0.0), 0.0, Bound::Slope);
        // Σwxy / Σwx².
        let raised = spread + weight * centre * centre;
        let rising = (slope * spread + weight * centre * level) / raised;
        let steep = on_edge(0.0, larger(rising, 0.0), Bound::Gap);
        let least = if raised > 0.0 && steep.squares < flat.squares { steep } else { flat };
        let bound = if least.gap > 0.0 || least.slope > 0.0 { least.bound } else { Bound::Both };
        Self { bound, ..least }
    }
}

/// `value(s) = g + G·(s − 1)` with `g ≥ 0` and `G ≥ 0`, with standard errors. Outliers among the
/// points are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    /// The unconstrained line with the same weights.
    moments: GrowingLine,
    bounded: Bounded,
    /// Scatter about the line beyond the points' own noise, relative to the line's value; 0 if it
    /// is not significant.
    scatter: f64,
}

impl Line {
    /// Fits `points`; `None` if all of them are outliers.
    #[must_use]
    pub fn fit(points: &[Point]) -> Option<Self> {
        let mut fitted = Self::default();
        fitted.refit(points, &Self::default());
        let count = fitted.moments.count();
        if count < 3 || !fitted.has_slope() {
            return (count > 0).then_some(fitted);
        }
        let freedom = (count - 2) as f64;
        if fitted.bounded.squares <= freedom + SIGNIFICANT * sqrt(2.0 * freedom) {
            return Some(fitted);
        }
        for _ in 0..REFINEMENTS {
            let scale = fitted;
            // Bisects for the smallest scatter that explains the residuals.
            let (mut low, mut high) = (0.0, LARGEST_SCATTER);
            for _ in 0..=HALVINGS {
                fitted.scatter = 0.5 * (low + high);
                fitted.refit(points, &scale);
                if fitted.bounded.squares > freedom {
                    low = fitted.scatter;
                } else {
                    high = fitted.scatter;
                }
            }
            fitted.scatter = high;
            fitted.refit(points, &scale);
        }
        Some(fitted)
    }

    /// Weighted least squares. The weights follow from this line's scatter relative to the line
    /// `scale`.
    fn refit(&mut self, points: &[Point], scale: &Self) {
        self.moments = GrowingLine::default();
        for point in points.iter().filter(|point| !point.is_outlier()) {
            let weight = 1.0 / scale.variance(point, self.scatter);
            self.moments.accumulate(point.after_first(), point.value(), weight);
        }
        let used = points.iter().find(|point| !point.is_outlier());
        let first = used.map_or(0.0, |point| point.after_first());
        self.bounded = Bounded::of(&self.moments, first);
    }

    /// `g`: value at size 1, in picoseconds.
    #[must_use]
    pub fn at_one(&self) -> f64 {
        self.at(0.0)
    }

    /// `G`: slope, in picoseconds per byte; 0 if it could not be fitted.
    #[must_use]
    pub const fn slope(&self) -> f64 {
        self.bounded.slope
    }

    /// Value at `bytes` bytes after the first, in picoseconds.
    #[must_use]
    pub fn at(&self, bytes: f64) -> f64 {
        self.bounded.gap + self.bounded.slope * (bytes - self.bounded.first)
    }

    /// Parameters that are 0 because a free fit would make them negative.
    #[must_use]
    pub const fn bound(&self) -> Bound {
        self.bounded.bound
    }

    /// Number of points fitted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.moments.count()
    }

    /// True if a slope could be fitted: points of at least two sizes.
    #[must_use]
    pub const fn has_slope(&self) -> bool {
        self.moments.spread > 0.0
    }

    /// Scatter about the line beyond the points' own noise, relative to the line's value; 0 if it
    /// is not significant.
    #[must_use]
    pub const fn scatter(&self) -> f64 {
        self.scatter
    }

    /// True if the points deviate from the line by significantly more than their own noise.
    pub(crate) const fn misfits(&self) -> bool {
        self.scatter > 0.0
    }

    /// Weighted mean of `s − 1`, at which the unconstrained line is known best.
    #[must_use]
    pub const fn centre(&self) -> f64 {
        self.moments.centre
    }

    /// Standard error of the value at the centre.
    pub(crate) fn centre_error(&self) -> f64 {
        sqrt(1.0 / self.moments.weight)
    }

    /// Standard error of the slope; infinite if it could not be fitted. For a slope at its bound,
    /// that of the unconstrained line.
    #[must_use]
    pub fn slope_error(&self) -> f64 {
        match self.bounded.bound {
            Bound::Gap => sqrt(1.0 / self.raised()),
            _ => sqrt(1.0 / self.moments.spread),
        }
    }

    /// Standard error of the value at size 1; infinite without a slope, unless all points are at
    /// size 1. For a value at its bound, that of the unconstrained line.
    #[must_use]
    pub fn at_one_error(&self) -> f64 {
        if self.moments.centre == 0.0 || self.bounded.bound == Bound::Slope {
            self.centre_error()
        } else {
            sqrt(self.moments.variance_at(0.0))
        }
    }

    /// Half-width of the interval of `confidence`, in standard errors: Student's quantile if the
    /// scatter was estimated from the points, the normal one if their own noise explains it.
    #[must_use]
    pub fn quantile(&self, confidence: Confidence) -> f64 {
        if self.scatter > 0.0 {
            let freedom = self.moments.count().saturating_sub(2);
            confidence.student(u32::try_from(freedom).unwrap_or(u32::MAX))
        } else {
            confidence.normal()
        }
    }

    /// Derivative of [`Line::at_one`] with respect to the value of `point`, which is one of those
    /// fitted. 0 for outliers and for a value at its bound.
    #[must_use]
    pub fn pull_at_one(&self, point: &Point) -> f64 {
        self.pull_at(0.0, point)
    }

    /// Derivative of [`Line::slope`] with respect to the value of `point`. 0 for outliers and for a
    /// slope at its bound.
    #[must_use]
    pub fn pull_slope(&self, point: &Point) -> f64 {
        let weight = self.weight_of(point);
        match self.bounded.bound {
            Bound::Free if self.has_slope() => {
                weight * (point.after_first() - self.moments.centre) / self.moments.spread
            }
            Bound::Gap => weight * (point.after_first() - self.bounded.first) / self.raised(),
            _ => 0.0,
        }
    }

    /// Derivative of [`Line::at`] with respect to the value of `point`.
    #[must_use]
    pub fn pull_at(&self, bytes: f64, point: &Point) -> f64 {
        let level = self.weight_of(point) / self.moments.weight;
        match self.bounded.bound {
            Bound::Free => level + (bytes - self.moments.centre) * self.pull_slope(point),
            Bound::Slope => level,
            Bound::Gap => (bytes - self.bounded.first) * self.pull_slope(point),
            Bound::Both => 0.0,
        }
    }

    /// Part of [`Line::at_one_error`] that is due to the points' own noise and that more
    /// measurements would reduce.
    pub(crate) fn at_one_noise(&self, points: &[Point]) -> f64 {
        self.noise(points, Self::pull_at_one)
    }

    /// Part of [`Line::slope_error`] that is due to the points' own noise; infinite if there is no
    /// slope.
    pub(crate) fn slope_noise(&self, points: &[Point]) -> f64 {
        if self.has_slope() { self.noise(points, Self::pull_slope) } else { f64::INFINITY }
    }

    /// Largest deviation of `points` from the line, relative to the points' values; outliers are
    /// ignored.
    #[must_use]
    pub fn largest_deviation(&self, points: &[Point]) -> f64 {
        points.iter().filter(|point| !point.is_outlier()).fold(0.0, |largest, point| {
            let off = point.value() - self.at(point.after_first());
            larger(largest, (off / larger(point.value().abs(), LEAST_SIGMA)).abs())
        })
    }

    /// `√Σ(pull·σ)²`: standard error that the points' own noise causes in the quantity with
    /// derivatives `pull`.
    fn noise(&self, points: &[Point], pull: fn(&Self, &Point) -> f64) -> f64 {
        let mut sum = 0.0;
        for point in points {
            let pull = pull(self, point);
            sum += pull * pull * own_variance(point);
        }
        sqrt(sum)
    }

    /// Weighted sum of squared distances in size from the range's first size.
    fn raised(&self) -> f64 {
        let away = self.moments.centre - self.bounded.first;
        self.moments.spread + self.moments.weight * away * away
    }

    fn weight_of(&self, point: &Point) -> f64 {
        if point.is_outlier() { 0.0 } else { 1.0 / self.variance(point, self.scatter) }
    }

    /// Variance of `point` with relative `scatter` about this line. The scale is the line's value,
    /// or half the point's if that is larger.
    fn variance(&self, point: &Point, scatter: f64) -> f64 {
        let line = self.at(point.after_first());
        let scattered = scatter * larger(larger(line, 0.5 * point.value().abs()), LEAST_SIGMA);
        own_variance(point) + scattered * scattered
    }
}

fn own_variance(point: &Point) -> f64 {
    let sigma = larger(point.sigma().unwrap_or(0.0), LEAST_SIGMA);
    sigma * sigma
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn points(values: impl Fn(u64) -> f64, sigma: impl Fn(u64) -> f64) -> Vec<Point> {
        (0..16).map(|e| 1 << e).map(|s| Point::new(s, values(s), sigma(s)).unwrap()).collect()
    }

    fn close(got: f64, expected: f64) -> bool {
        (got - expected).abs() <= 1e-6 * expected.abs().max(1e-3)
    }

    #[test]
    fn points_on_a_line_are_fitted_exactly_and_without_scatter() {
        let line = Line::fit(&points(|s| 1e6 + 80.0 * (s - 1) as f64, |_| 0.0)).unwrap();
        assert!(close(line.at_one(), 1e6) && close(line.slope(), 80.0));
        assert!(!line.misfits() && line.bound() == Bound::Free);
        assert!(line.largest_deviation(&points(|s| 1e6 + 80.0 * (s - 1) as f64, |_| 0.0)) < 1e-9);
    }

    #[test]
    fn the_largest_deviation_is_relative_to_the_value_and_leaves_outliers_out() {
        let exact = |s: u64| 1e6 + 80.0 * (s - 1) as f64;
        let line = Line::fit(&points(exact, |_| 0.0)).unwrap();
        // One value is half of the line's: a deviation of 100% of the value.
        let mut beside = points(|s| if s == 64 { 0.5 * exact(s) } else { exact(s) }, |_| 0.0);
        assert!(close(line.largest_deviation(&beside), 1.0));
        super::super::mark_outliers(&mut beside);
        assert!(line.largest_deviation(&beside) < 1e-9);
    }

    #[test]
    fn scatter_beyond_the_noise_is_found_relative_to_the_line() {
        let wiggle = |s: u64| if s.ilog2().is_multiple_of(2) { 1.05 } else { 0.95 };
        let value = |s: u64| (1e6 + 80.0 * s as f64) * wiggle(s);
        let line = Line::fit(&points(value, |_| 1.0)).unwrap();
        assert!((0.04..0.07).contains(&line.scatter()), "{}", line.scatter());
        // With the noise alone, the slope would seem known within 1e-5.
        assert!(line.slope_error() > 1.0, "{}", line.slope_error());
    }

    #[test]
    fn noise_that_explains_the_residuals_leaves_no_scatter() {
        let wiggle = |s: u64| if s.ilog2().is_multiple_of(2) { 1_100.0 } else { -1_100.0 };
        let line = Line::fit(&points(|s| 1e6 + wiggle(s), |_| 1_000.0)).unwrap();
        assert!(!line.misfits());
    }

    #[test]
    fn parameters_that_would_be_negative_are_zero_and_the_other_is_its_own_fit() {
        // Doubling the size costs four times as much, so unconstrained least squares would give a
        // negative value.
        let rising = Line::fit(&points(|s| 0.001 * (s * s) as f64, |_| 10.0)).unwrap();
        assert_eq!((rising.bound(), rising.at_one().to_bits()), (Bound::Gap, 0));
        assert!(rising.slope() > 0.0);
        let falling = Line::fit(&points(|s| 1e6 - 10.0 * s as f64, |_| 10.0)).unwrap();
        assert_eq!((falling.bound(), falling.slope().to_bits()), (Bound::Slope, 0));
        // The mean of the powers of two below 2^16 is (2^16 - 1)/16.
        assert!(close(falling.at_one(), 1e6 - 10.0 * 65_535.0 / 16.0) || falling.misfits());
        let negative = Line::fit(&points(|_| -5.0, |_| 1.0)).unwrap();
        assert_eq!((negative.bound(), negative.at(9.0).to_bits()), (Bound::Both, 0));
    }

    #[test]
    fn pulls_are_the_derivatives_whatever_binds() {
        type Value = fn(u64) -> f64;
        let shapes: [(Value, Bound); 3] = [
            (|s| 1e6 + 80.0 * s as f64, Bound::Free),
            (|s| 80.0 * (s as f64) - 20_000.0, Bound::Gap),
            (|s| 1e6 - 0.5 * s as f64, Bound::Slope),
        ];
        for (value, bound) in shapes {
            let sigma = |s: u64| 20_000.0 + s as f64;
            let plain = points(value, sigma);
            let before = Line::fit(&plain).unwrap();
            assert_eq!((before.bound(), before.misfits()), (bound, false));
            for (index, point) in plain.iter().enumerate() {
                let mut moved = plain.clone();
                let raised = Point::new(point.size(), point.value() + 10.0, sigma(point.size()));
                moved[index] = raised.unwrap();
                let after = Line::fit(&moved).unwrap();
                for bytes in [0.0, 1_000.0] {
                    let by = after.at(bytes) - before.at(bytes);
                    assert!((by - 10.0 * before.pull_at(bytes, point)).abs() < 1e-6);
                }
                let turned = after.slope() - before.slope();
                assert!((turned - 10.0 * before.pull_slope(point)).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn one_size_has_a_value_but_no_slope() {
        let point = Point::new(4, 70.0, 2.0).unwrap();
        let line = Line::fit(&[point]).unwrap();
        assert!(!line.has_slope() && line.slope_error().is_infinite());
        assert_eq!((line.at(3.0), line.slope()), (70.0, 0.0));
        assert_eq!(Line::fit(&[]), None);
    }

    #[test]
    fn outliers_move_nothing() {
        let mut sample = points(|s| 1e6 + 80.0 * (s - 1) as f64, |_| 10.0);
        sample[8] = Point::new(256, 9e6, 10.0).unwrap();
        super::super::mark_outliers(&mut sample);
        let line = Line::fit(&sample).unwrap();
        assert!(close(line.at_one(), 1e6) && close(line.slope(), 80.0));
        assert_eq!((line.count(), line.pull_slope(&sample[8])), (15, 0.0));
    }
}
