//! What one change would explain in a run of points.

use super::node::{MIN_POINTS, Node, Trimmed};

/// A run of nodes with a change before the node at `index`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    pub(super) index: usize,
    /// Cost with a line of its own on either side.
    pub(super) free: f64,
    /// Cost with lines of the same slope: a step of g alone.
    pub(super) step: f64,
}

impl Split {
    /// The split of `run` before `index`; marks the outliers of both sides.
    pub(super) fn of(run: &mut [Node], index: usize, price: f64) -> Option<Self> {
        let (left, right) = run.split_at_mut_checked(index)?;
        let (left, right) = (Trimmed::through(left, price), Trimmed::through(right, price));
        let free = left.cost() + right.cost();
        let (a, b) = (left.line, right.line);
        // One slope for both costs (G₁ − G₂)² over the variance of that.
        let turn = a.slope - b.slope;
        let step = free + turn * turn / (1.0 / a.spread + 1.0 / b.spread);
        Some(Self { index, free, step })
    }

    /// The indices where `run` can be split.
    pub(super) const fn range(length: usize) -> core::ops::Range<usize> {
        MIN_POINTS..length.saturating_sub(MIN_POINTS - 1)
    }

    /// The split of `run` that costs least by `cost`.
    pub(super) fn best(run: &mut [Node], price: f64, cost: impl Fn(&Self) -> f64) -> Option<Self> {
        let mut best: Option<Self> = None;
        for index in Self::range(run.len()) {
            let Some(split) = Self::of(run, index, price) else { continue };
            if best.is_none_or(|b| cost(&split) < cost(&b)) {
                best = Some(split);
            }
        }
        best
    }
}
