//! Noise and outliers of a curve, from the residuals of its points.

use super::Point;
use super::growing::GrowingLine;
use crate::number::larger;

/// Residuals on each side of a position from which its noise is estimated.
const EACH_SIDE: usize = 8;
/// Mean of the lower three quarters of squared standard normal variables.
const TRIMMED_MEAN: f64 = 0.368_6;
/// Degrees of freedom per residual of such a mean: trimming loses a third, and neighbouring
/// residuals share two of three points.
const FREEDOM: f64 = 0.35;

/// Largest ratio of estimated variance to the points' own at which the latter are trusted and only
/// scaled; above it noise is estimated from residuals alone.
const MISJUDGED: f64 = 4.0;

/// The points of a sweep with their variances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve<'p> {
    points: &'p [Point],
    /// True if at least half of the points have standard errors.
    known: bool,
    /// Variance caused by rounding to the clock's resolution.
    least: f64,
}

/// Distance of a point from the straight line between its neighbours, with its variance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Residual {
    pub(super) value: f64,
    pub(super) variance: f64,
}

/// Noise around a position, in units of the points' variances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scatter {
    pub(super) factor: f64,
    /// Degrees of freedom of the estimate; `None` if the points' own standard errors explain the
    /// noise.
    pub(super) freedom: Option<u32>,
}

impl<'p> Curve<'p> {
    pub(super) fn new(points: &'p [Point], resolution: f64) -> Self {
        let known = points.iter().filter(|point| point.sigma().is_some()).count();
        let least = larger(resolution * resolution / 12.0, f64::MIN_POSITIVE);
        Self { points, known: 2 * known >= points.len(), least }
    }

    pub(super) const fn points(&self) -> &'p [Point] {
        self.points
    }

    pub(super) fn get(&self, index: usize) -> Option<&'p Point> {
        self.points.get(index)
    }

    /// Index of the first point of `size` or more.
    pub(super) fn index_of(&self, size: u64) -> usize {
        self.points.partition_point(|point| point.size() < size)
    }

    /// Variance of a point: its own, or a neighbour's if it has none. If no sigmas are known, the
    /// square of the smoothed value: noise is then known up to a factor, see [`Curve::scatter`].
    pub(super) fn variance(&self, index: usize) -> f64 {
        let around = [index, index.saturating_sub(1), index + 1];
        let near = around.map(|index| self.points.get(index));
        let sigma = if self.known {
            let mut sigmas = near.iter().flatten().filter_map(|point| point.sigma());
            sigmas.next().unwrap_or(0.0)
        } else {
            let magnitude =
                |index: usize| near.get(index).copied().flatten().map(|p| p.value().abs());
            let own = magnitude(0).unwrap_or(0.0);
            0.5 * own + 0.25 * (magnitude(1).unwrap_or(own) + magnitude(2).unwrap_or(own))
        };
        larger(sigma * sigma, self.least)
    }

    /// The nearest point before `index` that is no outlier.
    fn before(&self, index: usize, first: usize) -> Option<usize> {
        (first..index).rev().find(|&index| self.is_used(index))
    }

    /// The nearest point after `index` that is no outlier.
    fn behind(&self, index: usize, end: usize) -> Option<usize> {
        (index + 1..end).find(|&index| self.is_used(index))
    }

    pub(super) fn is_used(&self, index: usize) -> bool {
        self.points.get(index).is_some_and(|point| !point.is_outlier())
    }

    /// Distance of a point from the line between its neighbours within `first..end`; `None` for
    /// outliers and for points without a neighbour on both sides.
    pub(super) fn residual(&self, index: usize, first: usize, end: usize) -> Option<Residual> {
        let point = self.points.get(index).filter(|point| !point.is_outlier())?;
        let (left, right) = (self.before(index, first)?, self.behind(index, end)?);
        let (before, behind) = (self.points.get(left)?, self.points.get(right)?);
        let width = behind.after_first() - before.after_first();
        let part = (point.after_first() - before.after_first()) / width;
        let line = (1.0 - part) * before.value() + part * behind.value();
        let variance = self.variance(index)
            + (1.0 - part) * (1.0 - part) * self.variance(left)
            + part * part * self.variance(right);
        Some(Residual { value: point.value() - line, variance })
    }

    /// Noise around the boundary before point `at`, within `first..end`: trimmed mean of squared
    /// residuals that do not span the boundary. The largest quarter is ignored, as changes and
    /// bends elsewhere may have caused it.
    pub(super) fn scatter(&self, first: usize, at: usize, end: usize) -> Scatter {
        let mut squares = [0.0; 2 * EACH_SIDE];
        let mut count = 0;
        let left = (first..at).rev().filter_map(|index| self.residual(index, first, at));
        let right = (at..end).filter_map(|index| self.residual(index, at, end));
        for residual in left.take(EACH_SIDE).chain(right.take(EACH_SIDE)) {
            if let Some(place) = squares.get_mut(count) {
                *place = residual.value * residual.value / residual.variance;
                count += 1;
            }
        }
        let squares = squares.get_mut(..count).unwrap_or_default();
        let kept = count - count / 4;
        sort(squares);
        let sum: f64 = squares.iter().take(kept).sum();
        let factor = sum / (larger(kept as f64, 1.0) * TRIMMED_MEAN);
        let freedom = larger(FREEDOM * count as f64, 1.0);
        let freedom_count = (1..16).take_while(|&n| f64::from(n) <= freedom).count();
        let freedom_count = u32::try_from(freedom_count).unwrap_or(1);
        if !self.known {
            let freedom = Some(if count == 0 { 0 } else { freedom_count });
            return Scatter { factor: larger(factor, f64::EPSILON * f64::EPSILON), freedom };
        }
        if factor <= MISJUDGED {
            return Scatter { factor: larger(factor, 1.0), freedom: None };
        }
        Scatter { factor, freedom: Some(freedom_count) }
    }
}

fn sort(values: &mut [f64]) {
    for end in 1..values.len() {
        for index in (1..=end).rev() {
            if let Some([a, b]) = values.get_mut(index - 1..=index)
                && *a > *b
            {
                core::mem::swap(a, b);
            }
        }
    }
}

/// Least distance of an outlier from the line through its four neighbours, in standard errors…
const OUTLIER: f64 = 5.0;
/// …and relative to the neighbours' own scatter about that line. See [`UNKNOWN_NOISE`] if sigmas
/// are unknown.
const BESIDE_NEIGHBOURS: f64 = 5.0;
/// Least distance of an outlier from the line of the two neighbours on either side, relative to
/// that from the line of all four. A smaller one means a step.
const BOTH_SIDES: f64 = 0.5;
/// Variance of a line through two points, relative to the point's own, from which on its
/// extrapolation is useless.
const LEVERAGE: f64 = 400.0;
/// As [`BESIDE_NEIGHBOURS`], if sigmas are unknown: exceeded by Student's distribution with two
/// degrees of freedom in 1% of all cases.
const UNKNOWN_NOISE: f64 = 10.0;

/// Marks single disturbances: points far from a line on which their four neighbours agree. No line
/// is fitted to outliers and no change is based on them. The two points at each end are never
/// marked. O(points).
pub fn mark_outliers(points: &mut [Point]) {
    for point in &mut *points {
        *point = point.as_regular();
    }
    let Curve { known, least, .. } = Curve::new(points, 1.0);
    for index in 2..points.len().saturating_sub(2) {
        let outlier = is_outlier(&Curve { points, known, least }, index);
        if let Some(point) = points.get_mut(index).filter(|_| outlier) {
            *point = point.as_outlier();
        }
    }
}

fn is_outlier(curve: &Curve<'_>, index: usize) -> bool {
    let mut line = GrowingLine::default();
    let Some(point) = curve.get(index) else { return false };
    let (x, own) = (point.after_first(), curve.variance(index));
    let mut sides = [f64::INFINITY; 2];
    let neighbours = [[index - 2, index - 1], [index + 2, index + 1]];
    for (side, neighbours) in sides.iter_mut().zip(neighbours) {
        let mut beside = GrowingLine::default();
        for neighbour in neighbours {
            let Some(point) = curve.get(neighbour) else { return false };
            let weight = 1.0 / curve.variance(neighbour);
            line.accumulate(point.after_first(), point.value(), weight);
            beside.accumulate(point.after_first(), point.value(), weight);
        }
        // A line through two neighbouring sizes cannot be extrapolated to a distant one.
        if beside.variance_at(x) < LEVERAGE * own {
            *side = (point.value() - beside.at(x)).abs();
        }
    }
    let off = point.value() - line.at(x);
    // The first point after a step lies on the line of one side.
    if sides.iter().any(|&side| side < BOTH_SIDES * off.abs()) {
        return false;
    }
    let beside = line.squares / 2.0;
    let square = off * off / (own + line.variance_at(x));
    if curve.known {
        square > OUTLIER * OUTLIER && square > BESIDE_NEIGHBOURS * BESIDE_NEIGHBOURS * beside
    } else {
        square > UNKNOWN_NOISE * UNKNOWN_NOISE * beside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_residual_is_the_distance_from_the_line_between_its_neighbours() {
        // The line at 100 B is 10 + 0.25 * 8 = 12.
        let points = [(1, 10.0, 1.0), (100, 15.0, 2.0), (397, 18.0, 4.0)];
        let points = points.map(|(size, value, sigma)| Point::new(size, value, sigma).unwrap());
        let curve = Curve::new(&points, 0.0);
        let Residual { value, variance } = curve.residual(1, 0, 3).unwrap();
        assert!((value - 3.0).abs() < 1e-12, "{value}");
        let expected = 4.0 + 0.75 * 0.75 + 0.25 * 0.25 * 16.0;
        assert!((variance - expected).abs() < 1e-12, "{variance}");
        assert!(curve.residual(0, 0, 3).is_none() && curve.residual(1, 1, 3).is_none());
    }
}
