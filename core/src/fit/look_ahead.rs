//! Detection of protocol changes while a sweep runs.

use super::Point;
use super::growing::GrowingLine;
use crate::number::{exp, larger, log, smaller};

/// Most points that a detector may look ahead.
pub const MOST_AHEAD: usize = 8;

/// Points that a line needs before it can be judged.
const FEWEST: usize = 3;

/// A point is left out of the line that it joins when its own deviation
/// exceeds this many times what the detector tolerates.
const OUTLIER: f64 = 4.0;

/// Settings of a [`ChangeDetector`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LookAhead {
    /// `pfact`: how many times as far as the points of the present protocol
    /// those ahead must lie from its line, as root mean squares.
    pub factor: f64,
    /// `x`: points to look ahead, 3 to [`MOST_AHEAD`]; others are taken as
    /// the nearest of these.
    pub points: usize,
    /// Resolution of the values in ps: deviations below it mean nothing.
    pub resolution: f64,
}

impl Default for LookAhead {
    /// The paper's values, and 1 ps.
    fn default() -> Self {
        Self { factor: 2.0, points: 3, resolution: 1.0 }
    }
}

/// A change that a [`ChangeDetector`] found.
#[derive(Clone, Copy, Debug)]
pub struct Detected {
    /// Index of the first point of the new protocol, counted from the first
    /// point pushed.
    pub index: usize,
    /// Last size of the old protocol, in bytes.
    pub before: u64,
    /// First size of the new protocol, in bytes. The change lies above
    /// `before` and not above this.
    pub at: u64,
    /// The line of the old protocol.
    pub line: GrowingLine,
}

/// Streaming detection by looking ahead: section 2.6 of Hoefler et al.,
/// "`LogGP` in Theory and Practice", repaired. O(1) a point for a given number
/// of points ahead; no memory but its own.
///
/// As in the paper, the points from the last change up to the current one
/// have a line, and a change is assumed behind the current point when the
/// mean square deviation rises by more than a factor for all of the `x` next
/// points. What differs from Eq. 6 as printed:
///
/// - *"For all" means that no single point can bring it about.* Every
///   interval that the paper compares contains the point after the current
///   one, so that one outlier there raises all of them. Here each of the `x`
///   points is left out once, and the rest must raise the deviation by
///   itself.
/// - *What is compared is the rise, not the mean.* The mean square over all
///   points hardly moves when many points lie behind; the rise of the sum of
///   squares, a point ahead, does not depend on how many there are. It has to
///   exceed pfact² times the mean square of the points behind, and
///   2·ln(n)/(x − 1) times it besides: with every position that is tested, so
///   grows the chance that one of them deviates without a change.
/// - *Few points prove little.* That factor f holds for known noise. Where
///   the noise is estimated with ν degrees of freedom it becomes
///   ν/m·(exp(m·f/ν) − 1) for m = x − 1, which is exceeded as rarely.
/// - *No noise is no reason to stop.* The deviation of the present protocol
///   counts as no less than the resolution of the values, and than the
///   points' own standard errors where they have some; there is no other
///   threshold below which nothing is reported.
/// - The divisor is the count less 2: Eq. 6's l − k − 2 counts the points
///   from k to l as l − k.
/// - *Where* the change is, is decided x − 1 points later, by the least sum of
///   squares of a line before and one after it: with some of the points ahead
///   beyond a change, the deviation rises already before it.
/// - A point that lies off the line without the next ones doing so too stays
///   out of it.
#[derive(Clone, Copy, Debug)]
pub struct ChangeDetector {
    settings: LookAhead,
    /// Points up to the current one.
    line: GrowingLine,
    /// Whether points weigh by their own errors: decided by the first.
    weighted: bool,
    /// Points ahead of the current one.
    ahead: [Point; 2 * MOST_AHEAD],
    waiting: usize,
    /// Index of the first point ahead.
    next: usize,
    /// Size of the current point.
    current: u64,
    /// A change lies among the points ahead.
    suspected: bool,
}

impl ChangeDetector {
    /// A detector that has seen no point.
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

    /// Takes the next point of a sweep, larger than the one before. Returns a
    /// change once the points after it tell where it is.
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

    /// Ends the sweep: a change that only further points would have told the
    /// place of.
    pub fn finish(&mut self) -> Option<Detected> {
        if self.suspected { self.conclude() } else { None }
    }

    /// Tests the current point with those ahead; moves on unless they tell of
    /// a change.
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

    /// By how much those ahead raise the sum of squares, each: without the
    /// one that raises it most.
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

    /// Points ahead that have to tell of a change: all but one.
    fn telling(&self) -> f64 {
        (self.settings.points - 1) as f64
    }

    /// The rise that noise may cause.
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

    /// Finds the place of a suspected change, and begins the new protocol.
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

    /// Makes the first point ahead the current one.
    fn step(&mut self) {
        if let Some(first) = self.ahead().first().copied() {
            self.line = self.line_with(self.line, &[first]);
            self.current = first.size();
        }
        self.drop_first();
    }

    fn drop_first(&mut self) {
        // Moved down by one; `copy_within` would be a firmware's only memmove.
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
