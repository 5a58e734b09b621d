//! A straight line through points that have noise of their own and do not
//! quite lie on a line.
//!
//! The straight line of `LogGP` is a model: measured points lie beside it by
//! more than their own noise (caches, segmentation, alignment). A fit that
//! knows only the noise trusts its most precise points blindly and prints
//! intervals that the next size measured falls out of. So the variance of a
//! point is taken as `σᵢ² + (τ·yᵢ)²`: its own noise and a scatter `τ`
//! relative to the line, the same for all sizes. `τ` is the value at which
//! the weighted sum of squares equals its degrees of freedom (Paule and
//! Mandel, J. Res. NBS 87, 1982), 0 where the noise explains everything.

use super::Point;
use super::growing::{GrowingLine, after_first};
use crate::number::{larger, sqrt};
use crate::stats::Confidence;

/// Smallest standard error that is believed, in picoseconds: the resolution
/// of the time unit. Keeps weights finite where there is no noise at all.
const LEAST_SIGMA: f64 = 0.5;
/// Largest relative scatter that is tried: points ten times off the line.
const LARGEST_SCATTER: f64 = 10.0;
/// See [`MisfitLine::misfits`]; by chance once in a hundred lines.
const SIGNIFICANT: f64 = 2.5;
/// Halvings of the scatter's interval: leaves 10⁻⁸ of the largest.
const HALVINGS: u32 = 30;
/// Rounds in which the scale of the scatter, the line itself, is refined.
const REFINEMENTS: u32 = 3;

/// `value(s) = at_one + slope·(s − 1)` with what is known about it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MisfitLine {
    line: GrowingLine,
    /// Scatter about the line beyond the points' own noise, relative to the
    /// line's value.
    pub scatter: f64,
    /// Whether the scatter is more than chance makes of noise alone: a
    /// chi-square `SIGNIFICANT` standard deviations beyond its mean.
    pub misfits: bool,
}

impl MisfitLine {
    /// Fits `points`; `None` without points.
    #[must_use]
    pub fn fit(points: &[Point]) -> Option<Self> {
        let mut fitted = Self::default();
        fitted.refit(points, &Self::default());
        if points.len() < 3 || !fitted.has_slope() {
            return (!points.is_empty()).then_some(fitted);
        }
        let freedom = (points.len() - 2) as f64;
        fitted.misfits = fitted.line.squares > freedom + SIGNIFICANT * sqrt(2.0 * freedom);
        for _ in 0..REFINEMENTS {
            let scale = fitted;
            // The smallest scatter that explains what noise does not, which
            // may be none.
            let (mut low, mut high) = (0.0, LARGEST_SCATTER);
            fitted.scatter = 0.0;
            for _ in 0..=HALVINGS {
                fitted.refit(points, &scale);
                if fitted.line.squares > freedom {
                    low = fitted.scatter;
                } else {
                    high = fitted.scatter;
                }
                fitted.scatter = 0.5 * (low + high);
            }
            fitted.scatter = high;
            fitted.refit(points, &scale);
        }
        Some(fitted)
    }

    /// Weighted least squares; the weights come from the line `scale` and the
    /// scatter of this one about it.
    fn refit(&mut self, points: &[Point], scale: &Self) {
        self.line = GrowingLine::default();
        for point in points {
            let weight = 1.0 / scale.variance(point, self.scatter);
            self.line.accumulate(after_first(point.size()), point.value(), weight);
        }
    }

    /// Weighted mean of `s − 1`, where the line is known best.
    #[must_use]
    pub const fn centre(&self) -> f64 {
        self.line.centre
    }

    /// The line's value there, in picoseconds.
    #[must_use]
    pub const fn at_centre(&self) -> f64 {
        self.line.level
    }

    /// The slope, in picoseconds per byte; 0 without one.
    #[must_use]
    pub const fn slope(&self) -> f64 {
        self.line.slope
    }

    /// The line's value at size 1.
    #[must_use]
    pub fn at_one(&self) -> f64 {
        self.at(0.0)
    }

    /// The line's value at `bytes` beyond the first.
    #[must_use]
    pub fn at(&self, bytes: f64) -> f64 {
        self.line.at(bytes)
    }

    /// Whether a slope could be fitted: points of at least two sizes.
    #[must_use]
    pub const fn has_slope(&self) -> bool {
        self.line.spread > 0.0
    }

    /// Standard error of the value at the centre.
    #[must_use]
    pub fn centre_error(&self) -> f64 {
        sqrt(1.0 / self.line.weight)
    }

    /// Standard error of the slope; infinite without one.
    #[must_use]
    pub fn slope_error(&self) -> f64 {
        sqrt(1.0 / self.line.spread)
    }

    /// Standard error of the value at size 1; infinite without a slope
    /// unless the points are there.
    #[must_use]
    pub fn at_one_error(&self) -> f64 {
        if self.line.centre == 0.0 { self.centre_error() } else { sqrt(self.line.variance_at(0.0)) }
    }

    /// How many standard errors the interval of `confidence` spans to each
    /// side: Student's where the scatter was estimated from the points,
    /// normal where their own noise explains them.
    #[must_use]
    pub fn quantile(&self, confidence: Confidence) -> f64 {
        if self.scatter > 0.0 {
            let freedom = self.line.count().saturating_sub(2);
            confidence.student(u32::try_from(freedom).unwrap_or(u32::MAX))
        } else {
            confidence.normal()
        }
    }

    /// How much `point` moves the value at size 1: the derivative of
    /// [`MisfitLine::at_one`] by the point's value.
    #[must_use]
    pub fn pull_at_one(&self, point: &Point) -> f64 {
        self.weight_of(point) / self.line.weight - self.line.centre * self.pull_slope(point)
    }

    /// How much `point` moves the slope: the derivative of the slope by the
    /// point's value.
    #[must_use]
    pub fn pull_slope(&self, point: &Point) -> f64 {
        if !self.has_slope() {
            return 0.0;
        }
        let distance = after_first(point.size()) - self.line.centre;
        self.weight_of(point) * distance / self.line.spread
    }

    /// The part of [`MisfitLine::at_one_error`] that comes from the points'
    /// own noise and that more measuring would reduce.
    #[must_use]
    pub fn at_one_noise(&self, points: &[Point]) -> f64 {
        self.noise(points, Self::pull_at_one)
    }

    /// The part of [`MisfitLine::slope_error`] that comes from the points'
    /// own noise; infinite without a slope.
    #[must_use]
    pub fn slope_noise(&self, points: &[Point]) -> f64 {
        if self.has_slope() { self.noise(points, Self::pull_slope) } else { f64::INFINITY }
    }

    /// `√Σ(pull·σ)²`: how far the points' own noise moves what they pull at.
    fn noise(&self, points: &[Point], pull: fn(&Self, &Point) -> f64) -> f64 {
        let mut sum = 0.0;
        for point in points {
            sum += square(pull(self, point)) * own_variance(point);
        }
        sqrt(sum)
    }

    fn weight_of(&self, point: &Point) -> f64 {
        1.0 / self.variance(point, self.scatter)
    }

    /// The variance of a point about this line with `scatter`, which is
    /// relative to the line's value, or the point's where the line is lower
    /// than half of it.
    fn variance(&self, point: &Point, scatter: f64) -> f64 {
        let line = self.at(after_first(point.size()));
        let scale = larger(larger(line, 0.5 * point.value().abs()), LEAST_SIGMA);
        own_variance(point) + square(scatter * scale)
    }
}

/// The variance of the point's own noise.
fn own_variance(point: &Point) -> f64 {
    square(larger(point.sigma().unwrap_or(0.0), LEAST_SIGMA))
}

fn square(x: f64) -> f64 {
    x * x
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn points(values: impl Fn(u64) -> f64, sigma: impl Fn(u64) -> f64) -> Vec<Point> {
        (0..16).map(|e| 1 << e).map(|s| Point::new(s, values(s), sigma(s)).unwrap()).collect()
    }

    #[test]
    fn points_on_a_line_are_fitted_exactly_and_without_scatter() {
        let line = MisfitLine::fit(&points(|s| 1e6 + 80.0 * (s - 1) as f64, |_| 0.0)).unwrap();
        assert!((line.at_one() - 1e6).abs() < 1e-6 && (line.slope() - 80.0).abs() < 1e-9);
        assert!(line.scatter.abs() < 1e-12);
    }

    #[test]
    fn scatter_beyond_the_noise_is_found_relative_to_the_line() {
        let wiggle = |s: u64| if s.ilog2().is_multiple_of(2) { 1.05 } else { 0.95 };
        let value = |s: u64| (1e6 + 80.0 * s as f64) * wiggle(s);
        let line = MisfitLine::fit(&points(value, |_| 1.0)).unwrap();
        assert!((0.04..0.07).contains(&line.scatter), "{}", line.scatter);
        assert!((line.at_one() - 1e6).abs() < 3e4, "{}", line.at_one());
        // Noise alone would claim a slope within 1e-5.
        assert!(line.slope_error() > 1.0, "{}", line.slope_error());
    }

    #[test]
    fn noise_that_explains_the_residuals_leaves_no_scatter() {
        let wiggle = |s: u64| if s.ilog2().is_multiple_of(2) { 500.0 } else { -500.0 };
        let line = MisfitLine::fit(&points(|s| 1e6 + wiggle(s), |_| 1_000.0)).unwrap();
        assert!(line.scatter.abs() < 1e-12);
    }

    #[test]
    fn pulls_are_the_derivatives() {
        let sigma = |s: u64| 1_000.0 + s as f64;
        let plain = points(|s| 1e6 + 80.0 * s as f64, sigma);
        let before = MisfitLine::fit(&plain).unwrap();
        for (index, point) in plain.iter().enumerate() {
            let mut moved = plain.clone();
            moved[index] =
                Point::new(point.size(), point.value() + 10.0, sigma(point.size())).unwrap();
            let after = MisfitLine::fit(&moved).unwrap();
            let (at_one, slope) =
                (after.at_one() - before.at_one(), after.slope() - before.slope());
            assert!((at_one - 10.0 * before.pull_at_one(point)).abs() < 1e-6);
            assert!((slope - 10.0 * before.pull_slope(point)).abs() < 1e-9);
        }
    }

    #[test]
    fn one_size_has_a_value_but_no_slope() {
        let point = Point::new(4, 70.0, 2.0).unwrap();
        let line = MisfitLine::fit(&[point]).unwrap();
        assert!(!line.has_slope() && line.slope_error().is_infinite());
        assert_eq!((line.at_centre(), line.slope()), (70.0, 0.0));
        assert_eq!(MisfitLine::fit(&[]), None);
    }

    #[test]
    fn the_interval_covers_the_truth_as_often_as_it_says() {
        // A linear congruential generator is random enough for a coverage count.
        let mut state = 1_u64;
        let mut uniform = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut covered = 0;
        for _ in 0..400 {
            let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            let sample: Vec<Point> = (0..12)
                .map(|e| {
                    let size = 1_u64 << e;
                    let truth = 1e6 + 300.0 * (size - 1) as f64;
                    let value = truth * (1.0 + 0.02 * normal()) + 5_000.0 * normal();
                    Point::new(size, value, 5_000.0).unwrap()
                })
                .collect();
            let line = MisfitLine::fit(&sample).unwrap();
            let half = line.quantile(Confidence::P95) * line.slope_error();
            covered += u32::from((line.slope() - 300.0).abs() <= half);
        }
        assert!((368..=396).contains(&covered), "{covered} of 400");
    }
}
