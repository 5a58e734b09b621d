//! Detection of protocol changes during a sweep.

use super::Point;
use super::growing::GrowingLine;
use crate::number::{exp, larger, log, smaller};

/// Largest look-ahead, in points.
pub const MOST_AHEAD: usize = 8;

/// Fewest points of a line whose residuals can be judged.
const FEWEST: usize = 3;

/// A point is excluded from the current line if its own deviation exceeds this multiple of the
/// tolerated rise.
const OUTLIER: f64 = 4.0;

/// Settings of a [`ChangeDetector`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LookAhead {
    /// `pfact`: least ratio of the root mean square deviation of the points ahead to that of the
    /// current protocol's points, both from the current line.
    pub factor: f64,
    /// `x`: points to look ahead, clamped to 3 to [`MOST_AHEAD`].
    pub points: usize,
    /// Resolution of the values in ps; smaller deviations are ignored.
    pub resolution: f64,
}

impl Default for LookAhead {
    /// The paper's values, and a resolution of 1 ps.
    fn default() -> Self {
        Self { factor: 2.0, points: 3, resolution: 1.0 }
    }
}

/// A change found by a [`ChangeDetector`].
#[derive(Clone, Copy, Debug)]
pub struct Detected {
    /// Index of the first point of the new protocol, counted from the first
    /// point pushed.
    pub index: usize,
    /// Last size of the old protocol, in bytes.
    pub before: u64,
    /// First size of the new protocol, in bytes. The change lies above `before` and at or below
    /// this size.
    pub at: u64,
    /// The line of the old protocol.
    pub line: GrowingLine,
}

/// Streaming detection of protocol changes by looking ahead: section 2.6 of Hoefler et al.,
/// "`LogGP` in Theory and Practice", with corrections. O(1) per point for a given look-ahead; needs
/// no lent memory.
///
/// As in the paper, a line is fitted to the points from the last change up to the current one, and
/// a change is assumed behind the current point if the mean square deviation rises by more than a
/// factor for all of the `x` next points. Differences from Eq. 6 as printed:
///
/// - *A single point cannot cause a change.* Every interval that the paper compares contains the
///   point after the current one, so that one outlier there raises all of them. Here each of the
///   `x` points is left out once, and the others must raise the deviation by themselves.
/// - *The rise is compared, not the mean.* The mean square over all points hardly moves if there
///   are many points before; the rise of the sum of squares, per point ahead, does not depend on
///   their number. It has to exceed (pfact² + 2·ln(n)/(x − 1)) times the mean square of the points
///   before: with the number n of positions tested grows the probability that noise deviates at one
///   of them.
/// - *The factor is one of deviations.* The paper multiplies the mean square by pfact itself.
/// - *The factor is larger if there are few points.* The factor f above holds for known noise. If
///   noise is estimated with ν degrees of freedom it becomes ν/m·(exp(m·f/ν) − 1) for m = x − 1,
///   which is exceeded with the same probability.
/// - *Noiseless values are accepted.* The deviation of the current protocol counts as no less than
///   the resolution of the values, and than the points' own standard errors if they are known;
///   there is no other threshold.
/// - The divisor is the count less 2: Eq. 6's l − k − 2 counts the points from k to l as l − k.
/// - *The position* of the change is determined x − 1 points later, as the one with the least sum
///   of squares of a line before and one after it: with some of the points ahead beyond a change,
///   the deviation already rises before it.
/// - A point that deviates from the line is excluded from it if the next ones do not.
#[derive(Clone, Copy, Debug)]
pub struct ChangeDetector {
    settings: LookAhead,
    /// Line through the points up to the current one.
    line: GrowingLine,
    /// True if points are weighted by their own errors: decided by the first point.
    weighted: bool,
    /// Points ahead of the current one.
    ahead: [Point; 2 * MOST_AHEAD],
    waiting: usize,
    /// Index of the first point ahead.
    next: usize,
    /// Size of the current point, in bytes.
    current: u64,
    /// True if a change was detected among the points ahead whose position is still open.
    suspected: bool,
}

impl ChangeDetector {
    /// Detector before the first point.
    #[must_use]
    pub fn new(settings: LookAhead) -> Self {
        let points = settings.points.clamp(FEWEST, MOST_AHEAD);
        Self {
            settings: LookAhead { points, ..settings },
            line: GrowingLine::new(),
            weighted: false,
            ahead: [Point::default(); 2 * MOST_AHEAD],
            waiting: 0,
            next: 0,
            current: 0,
            suspected: false,
        }
    }

    /// Adds the next point of a sweep, larger than the one before. Returns a change as soon as the
    /// points after it determine its position.
    pub fn push(&mut self, point: Point) -> Option<Detected> {
        if self.next == 0 && self.waiting == 0 {
            self.weighted = point.sigma().is_some();
        }
        if let Some(place) = self.ahead.get_mut(self.waiting) {
            *place = point;
            self.waiting += 1;
        }
        if self.suspected {
            let enough = self.waiting + 1 >= 2 * self.settings.points;
            return if enough { self.conclude() } else { None };
        }
        if self.waiting < self.settings.points {
            return None;
        }
        if self.line.count() < FEWEST as u64 {
            self.step();
            return None;
        }
        self.look();
        None
    }

    /// Ends the sweep; returns a change that was still waiting for further points.
    pub fn finish(&mut self) -> Option<Detected> {
        if self.suspected { self.conclude() } else { None }
    }

    /// Tests for a change behind the current point; otherwise moves to the next point.
    fn look(&mut self) {
        let tolerated = self.tolerated();
        if self.rise() > tolerated {
            self.suspected = true;
        } else if self.rise_by_first() > OUTLIER * tolerated {
            self.drop_first();
        } else {
            self.step();
        }
    }

    fn ahead(&self) -> &[Point] {
        self.ahead.get(..self.waiting).unwrap_or(&[])
    }

    /// Rise of the sum of squares per point ahead, without the point that raises it most.
    fn rise(&self) -> f64 {
        let mut least = f64::INFINITY;
        for left_out in 0..self.waiting {
            let mut rest = self.line;
            for (_, point) in self.ahead().iter().enumerate().filter(|&(at, _)| at != left_out) {
                self.take(&mut rest, point);
            }
            least = smaller(least, rest.squares);
        }
        (least - self.line.squares) / self.telling()
    }

    fn rise_by_first(&self) -> f64 {
        let first = self.ahead().get(..1).unwrap_or(&[]);
        self.line_with(self.line, first).squares - self.line.squares
    }

    /// Number of points ahead that have to confirm a change: all but one.
    fn telling(&self) -> f64 {
        (self.settings.points - 1) as f64
    }

    /// Largest rise that is attributed to noise.
    fn tolerated(&self) -> f64 {
        let telling = self.telling();
        let positions = (self.next + 1) as f64;
        let factor = self.settings.factor * self.settings.factor + 2.0 * log(positions) / telling;
        let deviation = self.line.residual_mean_square().unwrap_or(0.0);
        if self.weighted {
            return factor * larger(deviation, 1.0);
        }
        let free = self.line.count().saturating_sub(2).max(1) as f64;
        let few = free / telling * (exp(telling * factor / free) - 1.0);
        few * larger(deviation, self.settings.resolution * self.settings.resolution / 12.0)
    }

    /// Determines the position of the suspected change and starts the line of the new protocol.
    fn conclude(&mut self) -> Option<Detected> {
        self.suspected = false;
        let cost = |old: usize| {
            let (before, after) = self.ahead().split_at_checked(old)?;
            let before = self.line_with(self.line, before).squares;
            Some(before + self.line_with(GrowingLine::new(), after).squares)
        };
        let last = self.waiting.checked_sub(FEWEST)?;
        let costs = (0..=last).filter_map(|old| Some((old, cost(old)?)));
        let (old, _) = costs.min_by(|a, b| a.1.total_cmp(&b.1))?;
        for _ in 0..old {
            self.step();
        }
        let at = self.ahead().first()?.size();
        let found = Detected { index: self.next, before: self.current, at, line: self.line };
        self.line = GrowingLine::new();
        while self.waiting >= self.settings.points {
            self.step();
        }
        Some(found)
    }

    /// Makes the first point ahead the current point.
    fn step(&mut self) {
        if let Some(first) = self.ahead().first().copied() {
            self.line = self.line_with(self.line, &[first]);
            self.current = first.size();
        }
        self.drop_first();
    }

    fn drop_first(&mut self) {
        // Shifts down by one. `copy_within` would link memmove into a firmware for this alone.
        let mut next = Point::default();
        for place in self.ahead.iter_mut().rev() {
            core::mem::swap(place, &mut next);
        }
        self.waiting = self.waiting.saturating_sub(1);
        self.next += 1;
    }

    fn line_with(&self, mut line: GrowingLine, points: &[Point]) -> GrowingLine {
        for point in points {
            self.take(&mut line, point);
        }
        line
    }

    fn take(&self, line: &mut GrowingLine, point: &Point) {
        if self.weighted { line.add_weighted(*point) } else { line.add(*point) }
    }
}
