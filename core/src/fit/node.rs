//! A point under analysis, and the trimmed line through a run of them.

use super::Point;
use super::line::{Line, Solved, after_first};

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
    pub(super) size: u64,
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
        Self { size: point.size(), value: point.value(), weight, dropped: false, before: false }
    }

    pub(super) const fn x(&self) -> f64 {
        after_first(self.size) as f64
    }

    pub(super) fn residual(&self, line: &Solved) -> f64 {
        self.value - line.at(self.x())
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
    line: Line,
    length: usize,
    dropped: usize,
    paid: f64,
    price: f64,
    /// Length at which all points are looked at again.
    next_scan: usize,
    solved: Option<Solved>,
}

impl Trimmed {
    pub(super) fn new(price: f64) -> Self {
        Self {
            line: Line::new(),
            length: 0,
            dropped: 0,
            paid: 0.0,
            price,
            next_scan: 0,
            solved: None,
        }
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
        let Some((node, _)) = run.split_first_mut() else { return };
        node.dropped = false;
        self.line.accumulate(node.size, node.value, node.weight);
        self.length += 1;
        let newest = *node;
        if self.length < MIN_POINTS {
            return;
        }
        self.solved = self.line.solve();
        let Some(solved) = self.solved else { return };
        if self.length >= self.next_scan || deletion_gain(&newest, &solved) > self.price {
            self.next_scan = self.length + 1 + self.length / 32;
            self.scan(run, solved);
            if self.dropped > 0 {
                self.scan_afresh(run);
            }
        }
    }

    /// Residual sum of squares plus what was paid for outliers; `None` for
    /// too few points.
    pub(super) fn cost(&self) -> Option<f64> {
        if self.kept() < MIN_POINTS {
            return None;
        }
        Some(self.solved?.squares + self.paid)
    }

    /// The line through what was kept; `None` for too few points.
    pub(super) const fn solved(&self) -> Option<Solved> {
        self.solved
    }

    pub(super) const fn kept(&self) -> usize {
        self.length - self.dropped
    }

    /// Leaves out the worst outlier or takes one back, while that pays.
    fn scan(&mut self, run: &mut [Node], mut solved: Solved) {
        for _ in 0..4 {
            let Some(index) = self.best_move(run, &solved) else { return };
            let Some(node) = run.get_mut(index) else { return };
            node.dropped = !node.dropped;
            if node.dropped {
                self.line.release(node.size, node.value, node.weight);
                self.dropped += 1;
            } else {
                self.line.accumulate(node.size, node.value, node.weight);
                self.dropped -= 1;
            }
            self.paid = self.total_price(run);
            self.solved = self.line.solve();
            match self.solved {
                Some(line) => solved = line,
                None => return,
            }
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
            if node.dropped {
                self.line.accumulate(node.size, node.value, node.weight);
                node.dropped = false;
            }
        }
        (self.dropped, self.paid) = (0, 0.0);
        self.solved = self.line.solve();
        if let Some(solved) = self.solved {
            self.scan(run, solved);
        }
        let cost = |trimmed: &Self| trimmed.cost().unwrap_or(f64::INFINITY);
        if cost(self) < cost(&before) {
            return;
        }
        *self = before;
        for node in run {
            node.dropped = node.before;
        }
    }

    /// The point whose leaving out, or taking back, saves most.
    fn best_move(&self, run: &[Node], solved: &Solved) -> Option<usize> {
        let may_drop =
            self.kept() > MIN_POINTS && (self.dropped + 1) * POINTS_PER_OUTLIER <= self.length;
        let (mut best, mut best_saving) = (None, 0.0);
        for (index, node) in run.iter().enumerate() {
            let gain = if node.dropped {
                let Some(price) = self.price_at(run, index) else { continue };
                price - insertion_loss(node, solved)
            } else if may_drop {
                let gain = deletion_gain(node, solved);
                if gain <= self.price + best_saving {
                    continue;
                }
                let Some(price) = self.price_at(run, index) else { continue };
                gain - price
            } else {
                continue;
            };
            if gain > best_saving {
                (best, best_saving) = (Some(index), gain);
            }
        }
        best
    }

    /// What leaving out the point costs beside its neighbours; `None` for
    /// the third of a group.
    fn price_at(&self, run: &[Node], index: usize) -> Option<f64> {
        let from = index.saturating_sub(NEAR);
        let near = run
            .iter()
            .enumerate()
            .skip(from)
            .take_while(|&(i, _)| i <= index + NEAR)
            .filter(|&(i, node)| i != index && node.dropped)
            .count();
        match near {
            0 => Some(self.price),
            1 => Some(self.price * SECOND_PRICE),
            _ => None,
        }
    }

    fn total_price(&self, run: &[Node]) -> f64 {
        let mut total = 0.0;
        let mut previous: Option<usize> = None;
        for (index, _) in run.iter().enumerate().filter(|(_, node)| node.dropped) {
            let near = previous.is_some_and(|p| index - p <= NEAR);
            total += if near { self.price * SECOND_PRICE } else { self.price };
            previous = Some(index);
        }
        total
    }
}

/// How much the residual sum of squares falls when the point is left out of
/// the line: r²w / (1 − leverage).
fn deletion_gain(node: &Node, solved: &Solved) -> f64 {
    let residual = node.residual(solved);
    let rest = 1.0 - node.weight * solved.variance_at(node.x());
    // A point of leverage 1 has no residual: nothing to gain.
    if rest <= 1e-9 { 0.0 } else { residual * residual * node.weight / rest }
}

/// How much the residual sum of squares rises when the point, now left out,
/// is taken into the line.
fn insertion_loss(node: &Node, solved: &Solved) -> f64 {
    let residual = node.residual(solved);
    residual * residual * node.weight / (1.0 + node.weight * solved.variance_at(node.x()))
}
