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
use super::growing::after_first;
use crate::number::{hypotenuse, larger, sqrt};
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
    /// Weighted mean of `s − 1`, where the line is known best.
    pub centre: f64,
    /// Value there, in picoseconds.
    pub at_centre: f64,
    /// Slope, in picoseconds per byte.
    pub slope: f64,
    /// Weighted sum of squares of the sizes about the centre, relative to
    /// the sum of weights; 0 where all points have one size.
    spread: f64,
    /// Sum of weights.
    weight: f64,
    /// Scatter about the line beyond the points' own noise, relative to the
    /// line's value.
    pub scatter: f64,
    /// Whether the scatter is more than chance makes of noise alone: a
    /// chi-square `SIGNIFICANT` standard deviations beyond its mean.
    pub misfits: bool,
    /// Number of points.
    pub count: u32,
}

impl MisfitLine {
    /// Fits `points`; `None` without points.
    #[must_use]
    pub fn fit(points: &[Point]) -> Option<Self> {
        let mut line = Self::weighted(points, &Self::default(), 0.0)?;
        if line.count < 3 || line.spread <= 0.0 {
            return Some(line);
        }
        let freedom = f64::from(line.count - 2);
        let limit = freedom + SIGNIFICANT * sqrt(2.0 * freedom);
        let misfits = line.sum_of_squares(points, &line, 0.0) > limit;
        for _ in 0..REFINEMENTS {
            let scale = line;
            let scatter = smallest_sufficient(|scatter| {
                let candidate = Self::weighted(points, &scale, scatter)?;
                Some(candidate.sum_of_squares(points, &scale, scatter) > freedom)
            })?;
            line = Self { scatter, misfits, ..Self::weighted(points, &scale, scatter)? };
        }
        Some(line)
    }

    /// The line's value at size 1.
    #[must_use]
    pub fn at_one(&self) -> f64 {
        self.at_centre - self.slope * self.centre
    }

    /// The line's value at `bytes` beyond the first.
    #[must_use]
    pub fn at(&self, bytes: f64) -> f64 {
        self.at_centre + self.slope * (bytes - self.centre)
    }

    /// Whether a slope could be fitted: points of at least two sizes.
    #[must_use]
    pub fn has_slope(&self) -> bool {
        self.spread > 0.0
    }

    /// Standard error of the value at the centre.
    #[must_use]
    pub fn centre_error(&self) -> f64 {
        sqrt(1.0 / self.weight)
    }

    /// Standard error of the slope; infinite without one.
    #[must_use]
    pub fn slope_error(&self) -> f64 {
        if self.has_slope() { sqrt(1.0 / (self.weight * self.spread)) } else { f64::INFINITY }
    }

    /// Standard error of the value at size 1; infinite without a slope
    /// unless the points are there.
    #[must_use]
    pub fn at_one_error(&self) -> f64 {
        if self.centre == 0.0 {
            return self.centre_error();
        }
        hypotenuse(self.centre_error(), self.centre * self.slope_error())
    }

    /// How many standard errors the interval of `confidence` spans to each
    /// side: Student's where the scatter was estimated from the points,
    /// normal where their own noise explains them.
    #[must_use]
    pub fn quantile(&self, confidence: Confidence) -> f64 {
        if self.scatter > 0.0 {
            confidence.student(self.count.saturating_sub(2))
        } else {
            confidence.normal()
        }
    }

    /// How much `point` moves the value at size 1: the derivative of
    /// [`MisfitLine::at_one`] by the point's value.
    #[must_use]
    pub fn pull_at_one(&self, point: &Point) -> f64 {
        self.weight_of(point) / self.weight - self.centre * self.pull_slope(point)
    }

    /// How much `point` moves the slope: the derivative of the slope by the
    /// point's value.
    #[must_use]
    pub fn pull_slope(&self, point: &Point) -> f64 {
        if !self.has_slope() {
            return 0.0;
        }
        self.weight_of(point) * (bytes(point) - self.centre) / (self.weight * self.spread)
    }

    /// The part of [`MisfitLine::at_one_error`] that comes from the points'
    /// own noise and that more measuring would reduce.
    #[must_use]
    pub fn at_one_noise(&self, points: &[Point]) -> f64 {
        root_sum(points, |point| self.pull_at_one(point))
    }

    /// The part of [`MisfitLine::slope_error`] that comes from the points'
    /// own noise; infinite without a slope.
    #[must_use]
    pub fn slope_noise(&self, points: &[Point]) -> f64 {
        if self.has_slope() {
            root_sum(points, |point| self.pull_slope(point))
        } else {
            f64::INFINITY
        }
    }

    fn weight_of(&self, point: &Point) -> f64 {
        1.0 / self.variance(point, self.scatter)
    }

    /// The variance of a point about this line with `scatter`.
    fn variance(&self, point: &Point, scatter: f64) -> f64 {
        own_variance(point) + square(scatter * self.scale_at(point))
    }

    /// What a scatter is relative to: the line's value, or the point's where
    /// the line is lower than half of it.
    fn scale_at(&self, point: &Point) -> f64 {
        larger(larger(self.at(bytes(point)), 0.5 * point.value().abs()), LEAST_SIGMA)
    }

    /// Sum of squares about this line, weighted by the variances that
    /// `scatter` about the line `scale` gives.
    fn sum_of_squares(&self, points: &[Point], scale: &Self, scatter: f64) -> f64 {
        let residual = |point: &Point| point.value() - self.at(bytes(point));
        let term = |point| square(residual(point)) / scale.variance(point, scatter);
        points.iter().map(term).sum()
    }

    /// Weighted least squares, in two passes so that nothing cancels. The
    /// weights come from the variances as in [`MisfitLine::sum_of_squares`].
    fn weighted(points: &[Point], scale: &Self, scatter: f64) -> Option<Self> {
        let usable = || points.iter().map(|point| (point, 1.0 / scale.variance(point, scatter)));
        let (mut weight, mut centre, mut at_centre, mut count) = (0.0, 0.0, 0.0, 0);
        for (point, w) in usable() {
            weight += w;
            centre += (bytes(point) - centre) * (w / weight);
            at_centre += (point.value() - at_centre) * (w / weight);
            count += 1;
        }
        if count == 0 {
            return None;
        }
        let (mut spread, mut product) = (0.0, 0.0);
        for (point, w) in usable() {
            let share = w / weight;
            spread += share * square(bytes(point) - centre);
            product += share * (bytes(point) - centre) * (point.value() - at_centre);
        }
        let slope = if spread > 0.0 { product / spread } else { 0.0 };
        Some(Self { centre, at_centre, slope, spread, weight, scatter: 0.0, misfits: false, count })
    }
}

/// Bytes beyond the first, `s − 1`.
fn bytes(point: &Point) -> f64 {
    after_first(point.size())
}

/// The variance of the point's own noise.
fn own_variance(point: &Point) -> f64 {
    square(larger(point.sigma().unwrap_or(LEAST_SIGMA), LEAST_SIGMA))
}

/// `√Σ(pull·σ)²`: how far the points' own noise moves what they pull at.
fn root_sum(points: &[Point], pull: impl Fn(&Point) -> f64) -> f64 {
    sqrt(points.iter().map(|point| square(pull(point)) * own_variance(point)).sum())
}

/// The smallest scatter in [0, [`LARGEST_SCATTER`]] that is not in `excess`,
/// to within 2⁻³⁰ of the largest.
fn smallest_sufficient(excess: impl Fn(f64) -> Option<bool>) -> Option<f64> {
    let (mut low, mut high, mut middle) = (0.0, LARGEST_SCATTER, 0.0);
    for _ in 0..=HALVINGS {
        if excess(middle)? {
            low = middle;
        } else {
            high = middle;
        }
        if high <= 0.0 {
            break;
        }
        middle = 0.5 * (low + high);
    }
    Some(high)
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
        assert!((line.at_one() - 1e6).abs() < 1e-6 && (line.slope - 80.0).abs() < 1e-9);
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
            let (at_one, slope) = (after.at_one() - before.at_one(), after.slope - before.slope);
            assert!((at_one - 10.0 * before.pull_at_one(point)).abs() < 1e-6);
            assert!((slope - 10.0 * before.pull_slope(point)).abs() < 1e-9);
        }
    }

    #[test]
    fn one_size_has_a_value_but_no_slope() {
        let point = Point::new(4, 70.0, 2.0).unwrap();
        let line = MisfitLine::fit(&[point]).unwrap();
        assert!(!line.has_slope() && line.slope_error().is_infinite());
        assert_eq!((line.at_centre, line.slope), (70.0, 0.0));
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
            covered += u32::from((line.slope - 300.0).abs() <= half);
        }
        assert!((368..=396).contains(&covered), "{covered} of 400");
    }
}
