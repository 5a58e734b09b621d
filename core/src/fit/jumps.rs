//! Protocol changes: jumps of a curve's value.
//!
//! At each position between two neighbouring sizes, a line fitted to either side is extrapolated to
//! both sizes. The position is a jump if the lines differ in the same direction at both: two lines
//! that cross between the sizes are a kink, and the lines of a curve that bends one way differ in
//! opposite directions. The smaller of the two differences counts. It has to be large compared with
//!
//! - its own standard error, by a quantile corrected for the number of positions tested, from
//!   Student's distribution if noise was estimated;
//! - the misfit of the two lines: a continuous line with two bends has to be worse by [`ABRUPT`]
//!   times the sum of squares that they leave unexplained.

use core::ops::Range;

use super::curve::{Curve, Scatter};
use super::growing::GrowingLine;
use super::ranges::Config;
use super::{Change, Point};
use crate::number::{larger, nearest, smaller, sqrt};
use crate::slice::insert_first;
use crate::stats::distribution::{normal_upper, student_upper};

/// Fewest points of a line on one side.
const FEWEST: usize = 3;
/// Most points of a line on one side; bounds the work per position.
const MOST: usize = 16;
/// Distance in standard errors at which a point ends the line.
const CONSISTENT: f64 = 2.5;
/// Probability of a false change in a sweep of pure noise.
const FALSE_CHANGES: f64 = 0.001;
/// Least width of a ramp, as a ratio of sizes: a rise over more than that is no jump.
const RAMP: f64 = 1.25;
/// Least advantage of a jump over a ramp, relative to the jump's critical value.
const DISTINCT: f64 = 0.8;
/// Least ratio of the sum of squares explained by a jump to that left unexplained.
const ABRUPT: f64 = 8.0;
/// Excess of a sum of squares attributed to noise, in standard deviations; more is misfit.
const NOISE: f64 = 2.0;
/// Least height, relative to its critical value, of a jump that coincides with a significant one in
/// another curve.
const SUPPORTS: f64 = 0.6;

/// Jump of one curve at one position.
#[derive(Clone, Copy, Debug)]
struct Jump {
    /// Difference over its critical value; significant above 1.
    excess: f64,
    /// Difference at the first size of the new protocol, relative to the old line there.
    relative: f64,
}

/// Critical values of the ratio of a jump to its standard error.
#[derive(Clone, Copy, Debug)]
struct Critical {
    /// One-sided error probability of a position.
    tail: f64,
    /// Critical value for known noise.
    normal: f64,
}

impl Critical {
    /// Critical values for all positions of `curves`.
    fn of(curves: &[&[Point]]) -> Self {
        let positions: usize =
            curves.iter().map(|points| points.len().saturating_sub(2 * FEWEST)).sum();
        let tail = 0.5 * FALSE_CHANGES / larger(positions as f64, 1.0);
        Self { tail, normal: normal_upper(tail) }
    }

    fn at(self, ratio: f64, scatter: Scatter) -> f64 {
        match scatter.freedom {
            // Student's quantile is larger than the normal one.
            Some(freedom) if ratio > self.normal => student_upper(self.tail, freedom),
            _ => self.normal,
        }
    }
}

/// Finds jumps of `curves`, the most significant first, until `changes` is full; sorts them in
/// ascending order.
pub(super) fn find(curves: &[&[Point]], config: &Config, changes: &mut heapless::VecView<Change>) {
    let critical = Critical::of(curves);
    while !changes.is_full() {
        let Some(mut change) = strongest(curves, config, critical, changes) else { break };
        let jump = largest(curves, config, critical, change.at, changes);
        change.splits = jump >= config.tolerance;
        let place = changes.iter().take_while(|other| other.at < change.at).count();
        if changes.push(change).is_err() {
            break;
        }
        insert_first(changes.get_mut(place..).unwrap_or_default(), change);
    }
}

/// Most significant change besides the known ones.
fn strongest(
    curves: &[&[Point]],
    config: &Config,
    critical: Critical,
    known: &[Change],
) -> Option<Change> {
    let (mut best, mut most) = (None, 1.0);
    for (index, points) in curves.iter().enumerate() {
        let curve = Curve::new(points, config.resolution);
        for at in FEWEST..(points.len() + 1).saturating_sub(FEWEST) {
            let Some(jump) = jump(&curve, section(&curve, at, known), at, critical) else {
                continue;
            };
            if jump.excess > most {
                (best, most) = (change(&curve, index, at, &jump), jump.excess);
            }
        }
    }
    best
}

fn change(curve: &Curve<'_>, index: usize, at: usize, jump: &Jump) -> Option<Change> {
    let (before, first) = (curve.get(at.checked_sub(1)?)?, curve.get(at)?);
    let ppm = nearest(1e6 * jump.relative);
    Some(Change {
        at: first.size(),
        low: before.size().saturating_add(1),
        high: first.size(),
        curve: index,
        jump_ppm: i32::try_from(ppm).unwrap_or(if ppm < 0 { i32::MIN } else { i32::MAX }),
        splits: false,
    })
}

/// Largest relative jump at size `at` among the curves with one there.
fn largest(
    curves: &[&[Point]],
    config: &Config,
    critical: Critical,
    at: u64,
    known: &[Change],
) -> f64 {
    curves.iter().fold(0.0, |largest, points| {
        let curve = Curve::new(points, config.resolution);
        let index = curve.index_of(at);
        match jump(&curve, section(&curve, index, known), index, critical) {
            Some(jump) if jump.excess > SUPPORTS => larger(largest, jump.relative.abs()),
            _ => largest,
        }
    })
}

/// Range of indices around position `at` that contains no known change.
fn section(curve: &Curve<'_>, at: usize, known: &[Change]) -> Range<usize> {
    let mut section = 0..curve.points().len();
    for change in known {
        let index = curve.index_of(change.at);
        if index <= at {
            section.start = section.start.max(index);
        } else {
            section.end = section.end.min(index);
        }
    }
    section
}

/// Jump before point `at`, from lines fitted within `section`.
fn jump(curve: &Curve<'_>, section: Range<usize>, at: usize, critical: Critical) -> Option<Jump> {
    let Range { start: first, end } = section;
    if at < first + FEWEST || at + FEWEST > end {
        return None;
    }
    let scatter = curve.scatter(first, at, end);
    let mut window = Window::default();
    let old = window.side(curve, (first..at).rev(), scatter)?;
    window.turn()?;
    let new = window.side(curve, at..end, scatter)?;
    let (last, next) = (curve.get(at - 1)?.after_first(), curve.get(at)?.after_first());
    let (left, right) = (new.at(last) - old.at(last), new.at(next) - old.at(next));
    let error = |x: f64| scatter.factor * (old.variance_at(x) + new.variance_at(x));
    let ratio = sqrt(smaller(left * left / error(last), right * right / error(next)));
    let required = critical.at(ratio, scatter);
    let before = larger(old.at(next).abs(), f64::MIN_POSITIVE);
    let relative = right / before;
    let significance = ratio / required;
    if (left > 0.0) != (right > 0.0) || significance <= 0.5 {
        return None;
    }
    let squares = (old.squares + new.squares) / scatter.factor;
    let freedom = window.samples.len().saturating_sub(4) as f64;
    let misfit = larger(squares - freedom - NOISE * sqrt(2.0 * freedom), 0.0);
    let gain = window.least_continuous(old.count()) / scatter.factor - squares;
    let distinct = DISTINCT * required;
    let gained = sqrt(larger(gain, 0.0) / larger(distinct * distinct, ABRUPT * misfit));
    Some(Jump { excess: smaller(significance, gained), relative })
}

/// A point near the position.
#[derive(Clone, Copy, Debug)]
struct Sample {
    x: f64,
    value: f64,
    weight: f64,
}

/// Points on both sides of the position that a line on each side describes.
#[derive(Debug, Default)]
struct Window {
    samples: heapless::Vec<Sample, { 2 * MOST }>,
}

impl Window {
    /// Adds points in the order of `indices` until one is inconsistent with the line through those
    /// before; returns the line.
    fn side(
        &mut self,
        curve: &Curve<'_>,
        indices: impl Iterator<Item = usize>,
        scatter: Scatter,
    ) -> Option<GrowingLine> {
        let mut line = GrowingLine::default();
        for index in indices.filter(|&index| curve.is_used(index)).take(MOST) {
            let point = curve.get(index)?;
            let (x, own) = (point.after_first(), curve.variance(index));
            if line.count() >= FEWEST as u64 {
                let off = point.value() - line.at(x);
                let variance = scatter.factor * (own + line.variance_at(x));
                if off * off > CONSISTENT * CONSISTENT * variance {
                    break;
                }
            }
            let sample = Sample { x, value: point.value(), weight: 1.0 / own };
            line.accumulate(x, sample.value, sample.weight);
            self.samples.push(sample).ok()?;
        }
        (line.count() >= FEWEST as u64).then_some(line)
    }

    /// Reverses the samples. `slice::reverse` would link code that panics.
    fn turn(&mut self) -> Option<()> {
        let half = self.samples.len() / 2;
        let (front, back) = self.samples.split_at_mut_checked(half)?;
        for (one, other) in front.iter_mut().zip(back.iter_mut().rev()) {
            core::mem::swap(one, other);
        }
        Some(())
    }

    /// Smallest weighted sum of squared residuals of a continuous line with two bends. If the bends
    /// are on different sides of the boundary before sample `at`, there has to be a further point
    /// between them, and the ratio of their sizes is at least [`RAMP`] times that of the boundary's
    /// two sizes, if the window is that wide.
    fn least_continuous(&self, at: u64) -> f64 {
        let count = self.samples.len();
        let at = usize::try_from(at).unwrap_or(count);
        let size = |index: usize| self.samples.get(index).map_or(0.0, |sample| sample.x + 1.0);
        let ramp = smaller(RAMP * size(at) / size(at - 1), size(count - 2) / size(1));
        let mut least = f64::INFINITY;
        for from in 1..count - 2 {
            for to in from + 1..count - 1 {
                let aside = to < at || from >= at;
                let wide = to >= from + 2 && size(to) >= ramp * size(from);
                if aside || wide {
                    least = smaller(least, self.continuous([0, from, to, count - 1]));
                }
            }
        }
        least
    }

    /// Weighted sum of squared residuals of the best continuous line with bends at `knots`.
    ///
    /// The unknowns are the values at the knots. Each sample lies between two of them, so the
    /// normal equations are tridiagonal.
    fn continuous(&self, knots: [usize; 4]) -> f64 {
        let places = knots.map(|index| self.samples.get(index).map_or(0.0, |sample| sample.x));
        let mut rows = [[0.0; 3]; 4];
        self.visit(knots, places, |knot, part, sample| {
            let weight = sample.weight;
            if let Some([left, right]) = rows.get_mut(knot..knot + 2) {
                left[0] += weight * (1.0 - part) * (1.0 - part);
                left[1] += weight * (1.0 - part) * part;
                left[2] += weight * (1.0 - part) * sample.value;
                right[0] += weight * part * part;
                right[2] += weight * part * sample.value;
            }
        });
        let mut values = [0.0; 4];
        for knot in 0..3 {
            if let Some([row, next]) = rows.get_mut(knot..knot + 2) {
                let part = row[1] / row[0];
                next[0] -= part * row[1];
                next[2] -= part * row[2];
            }
        }
        let mut behind = 0.0;
        for (value, row) in values.iter_mut().zip(&rows).rev() {
            *value = (row[2] - row[1] * behind) / row[0];
            behind = *value;
        }
        let mut squares = 0.0;
        self.visit(knots, places, |knot, part, sample| {
            if let Some(&[left, right]) = values.get(knot..knot + 2) {
                let off = sample.value - (1.0 - part) * left - part * right;
                squares += sample.weight * off * off;
            }
        });
        squares
    }

    /// Calls `see` for each sample with the index of the knot before it and the sample's position
    /// between that knot and the next, from 0 to 1.
    fn visit(&self, knots: [usize; 4], places: [f64; 4], mut see: impl FnMut(usize, f64, &Sample)) {
        for (index, sample) in self.samples.iter().enumerate() {
            let knot = usize::from(index > knots[1]) + usize::from(index > knots[2]);
            if let Some(&[left, right]) = places.get(knot..knot + 2) {
                see(knot, (sample.x - left) / (right - left), sample);
            }
        }
    }
}
