//! A point under analysis, and the trimmed line through a run of them.

use super::Point;
use super::growing::{GrowingLine, after_first};

/// Points that a segment needs besides its outliers.
pub(super) const MIN_POINTS: usize = 3;

/// Distance within which two outliers are one disturbance.
const NEAR: usize = 2;

/// How much more the second outlier of one disturbance costs; a third is not
/// bought at any price, because three points in a row are a protocol.
const SECOND_PRICE: f64 = 4.0;

/// Outliers among the points of a segment: at most one in this many.
const POINTS_PER_OUTLIER: usize = 4;

/// One point as [`Segmentation`](super::Segmentation) holds it. Lent by the
/// caller, contents are the segmentation's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Node {
    /// Bytes after the first.
    pub(super) x: f64,
    pub(super) value: f64,
    /// 1/variance, in units of the scale.
    pub(super) weight: f64,
    /// Left out as an outlier.
    pub(super) dropped: bool,
    /// What `dropped` was before another choice is tried.
    before: bool,
}

impl Node {
    pub(super) const fn new(point: Point, weight: f64) -> Self {
        let x = after_first(point.size());
        Self { x, value: point.value(), weight, dropped: false, before: false }
    }

    pub(super) fn residual(&self, line: &GrowingLine) -> f64 {
        self.value - line.at(self.x)
    }

    /// How much the sum of squares of `line` falls when the point is left out
    /// of it, for `sign` −1: r²w / (1 − leverage). For 1, how much it rises
    /// when the point is taken in.
    fn effect(&self, line: &GrowingLine, sign: f64) -> f64 {
        let residual = self.residual(line);
        let rest = 1.0 + sign * self.weight * line.variance_at(self.x);
        // A point of leverage 1 has no residual: nothing to gain.
        if rest <= 1e-9 { 0.0 } else { residual * residual * self.weight / rest }
    }
}

/// A line through a run of nodes that leaves out isolated outliers, each for
/// a price: the cost of a segment.
///
/// With `price` = K²σ² this is the least-squares cost with the loss of a
/// point bounded by K², but only for isolated points: the second of two
/// neighbours is dearer, three in a row are never left out. So a single
/// point never makes a segment, and three points of a new protocol are never
/// explained away.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trimmed {
    /// Through what is kept.
    pub(super) line: GrowingLine,
    length: usize,
    dropped: usize,
    paid: f64,
    price: f64,
    /// Length at which all points are looked at again.
    next_scan: usize,
}

impl Trimmed {
    pub(super) fn new(price: f64) -> Self {
        let line = GrowingLine::default();
        Self { line, length: 0, dropped: 0, paid: 0.0, price, next_scan: 0 }
    }

    /// The trimmed line through all of `nodes`; marks the outliers.
    pub(super) fn through(nodes: &mut [Node], price: f64) -> Self {
        let mut trimmed = Self::new(price);
        for first in (0..nodes.len()).rev() {
            if let Some(run) = nodes.get_mut(first..) {
                trimmed.extend(run);
            }
        }
        trimmed
    }

    /// Takes the first of `run` in addition to the rest, which was taken
    /// before. Amortised O(1) beyond 32 points, O(length) below.
    pub(super) fn extend(&mut self, run: &mut [Node]) {
        let Some(newest) = run.first_mut() else { return };
        newest.dropped = false;
        self.line.accumulate(newest.x, newest.value, newest.weight);
        self.length += 1;
        // No point is worth more than all.
        if self.length < MIN_POINTS || self.dropped == 0 && self.line.squares <= self.price {
            return;
        }
        if self.length >= self.next_scan || newest.effect(&self.line, -1.0) > self.price {
            self.next_scan = self.length + 1 + self.length / 32;
            self.scan(run);
            if self.dropped > 0 {
                self.scan_afresh(run);
            }
        }
    }

    /// Residual sum of squares plus what was paid for outliers; infinite for
    /// too few points.
    pub(super) fn cost(&self) -> f64 {
        if self.kept() < MIN_POINTS { f64::INFINITY } else { self.line.squares + self.paid }
    }

    pub(super) const fn kept(&self) -> usize {
        self.length - self.dropped
    }

    /// Leaves out the worst outlier or takes one back, while that pays.
    fn scan(&mut self, run: &mut [Node]) {
        for _ in 0..4 {
            let Some(index) = self.best_move(run) else { return };
            let Some(node) = run.get_mut(index) else { return };
            node.dropped = !node.dropped;
            self.fit(run);
        }
    }

    /// Chooses the outliers anew and keeps the choice when it is better: the
    /// point that looked worst of four may be the only sound one of them
    /// once there are more, and neither leaving out nor taking back a single
    /// point leads from one choice to the other.
    fn scan_afresh(&mut self, run: &mut [Node]) {
        let before = *self;
        for node in run.iter_mut() {
            node.before = node.dropped;
            node.dropped = false;
        }
        self.fit(run);
        self.scan(run);
        if self.cost() < before.cost() {
            return;
        }
        *self = before;
        for node in run {
            node.dropped = node.before;
        }
    }

    /// Fits the line to what is not dropped, and adds up what that cost.
    fn fit(&mut self, run: &[Node]) {
        (self.line, self.dropped, self.paid) = (GrowingLine::default(), 0, 0.0);
        let mut alone_from = 0;
        for (index, node) in run.iter().enumerate() {
            if node.dropped {
                let near = index < alone_from;
                self.paid += if near { self.price * SECOND_PRICE } else { self.price };
                self.dropped += 1;
                alone_from = index + NEAR + 1;
            } else {
                self.line.accumulate(node.x, node.value, node.weight);
            }
        }
    }

    /// The point whose leaving out, or taking back, saves most.
    fn best_move(&self, run: &[Node]) -> Option<usize> {
        let may_drop =
            self.kept() > MIN_POINTS && (self.dropped + 1) * POINTS_PER_OUTLIER <= self.length;
        let (mut best, mut best_saving) = (None, 0.0);
        for (index, node) in run.iter().enumerate() {
            let Some(price) = self.price_at(run, index) else { continue };
            let saving = if node.dropped {
                price - node.effect(&self.line, 1.0)
            } else if may_drop {
                node.effect(&self.line, -1.0) - price
            } else {
                continue;
            };
            if saving > best_saving {
                (best, best_saving) = (Some(index), saving);
            }
        }
        best
    }

    /// What leaving out the point costs beside its neighbours; `None` for
    /// the third of a group.
    fn price_at(&self, run: &[Node], index: usize) -> Option<f64> {
        let mut near = 0;
        for other in index.saturating_sub(NEAR)..=index + NEAR {
            let dropped = run.get(other).is_some_and(|node| node.dropped);
            near += usize::from(dropped && other != index);
        }
        match near {
            0 => Some(self.price),
            1 => Some(self.price * SECOND_PRICE),
            _ => None,
        }
    }
}
