//! Where to add sizes: around protocol changes, and in ranges with few sizes.

use super::plan_memory::RowPlan;
use super::ranges::Ranges;
use super::{Curve, Experiment, Planner, Quantity};
use crate::fit::MisfitLine;
use crate::units::Picos;
use crate::wide::times;

/// Rounds of either kind that a size gets at a time.
const STEP: usize = 6;
/// Samples of a size at most, to tell the side of a change it is on.
const MOST_SAMPLES: usize = 48;
/// A point is on one side when the sides are this many standard errors
/// apart.
const CLEAR: f64 = 5.0;
/// Sizes at which a range should measure everything.
const FULL_ROWS: usize = 4;

impl<const N: usize> Planner<'_, N> {
    /// Queues the next step towards the exact size of each change: more
    /// samples at the sizes next to it while these do not tell its sides
    /// apart, then a size midway between them. A change whose sides cannot
    /// be told apart, because of noise or because the lines meet there, is
    /// abandoned; so are all when a third of the time is spent.
    pub(super) fn bisect(&mut self, ranges: &Ranges<N>) {
        // Sizes to measure: at most two for each change.
        let mut sizes = heapless::Vec::<u32, 32>::new();
        for pair in ranges.spans.windows(2) {
            let [left, right] = pair else { continue };
            let Some((below, at)) = self.bracket(right.0) else { continue };
            let bracket = (u64::from(below), u64::from(at));
            if self.abandoned.contains(&bracket) {
                continue;
            }
            let jump = self.jump(*left, *right);
            let blurred = |&size: &u32| self.sigma(size) * CLEAR > jump;
            let mut unclear = [below, at].into_iter().filter(blurred).peekable();
            if unclear.peek().is_some() {
                let mut more = unclear.filter(|&size| self.may_sample(size)).peekable();
                if more.peek().is_some() {
                    for size in more {
                        // What does not fit comes with the next step.
                        let _ = sizes.push(size);
                    }
                } else {
                    self.abandon(bracket);
                }
            } else if let Some(middle) = midway(below, at) {
                let room = self.add_row(middle, RowPlan::default());
                if !room || sizes.push(middle).is_err() {
                    self.abandon(bracket);
                }
            }
        }
        self.queue_steps(&sizes);
    }

    /// Makes each range measure everything at its ends and at a few sizes
    /// between, so that it has overheads of its own.
    pub(super) fn complete_ranges(&mut self, ranges: &Ranges<N>) {
        if ranges.changes.is_empty() {
            return;
        }
        for &span in &ranges.spans {
            for _ in 0..FULL_ROWS {
                if !self.complete_by_one(span) {
                    break;
                }
            }
        }
    }

    /// Promotes or adds one size; `false` when the range has what it needs or
    /// can have.
    fn complete_by_one(&mut self, (first, last): (u64, u64)) -> bool {
        let inside = |size: u32| (first..=last).contains(&u64::from(size));
        let rows = || (0..self.store.len()).filter(|&row| self.store.size(row).is_some_and(inside));
        let full = |row: usize| self.plans.get(row).is_some_and(|plan| plan.full && !plan.parked);
        let ends = [rows().next(), rows().next_back()];
        if let Some(row) = ends.into_iter().flatten().find(|&row| !full(row)) {
            return self.promote(row);
        }
        if rows().filter(|&row| full(row)).count() >= FULL_ROWS {
            return false;
        }
        // The widest hole between sizes that measure everything.
        let sizes = || rows().filter(|&row| full(row)).filter_map(|row| self.store.size(row));
        let holes = sizes().zip(sizes().skip(1));
        let Some((low, high)) = holes.max_by_key(|(low, high)| high - low) else { return false };
        let Some(middle) = midway(low, high) else { return false };
        let between =
            |row: &usize| self.store.size(*row).is_some_and(|size| low < size && size < high);
        let distance = |row: &usize| self.store.size(*row).map(|size| size.abs_diff(middle));
        match rows().filter(between).min_by_key(distance) {
            Some(row) => self.promote(row),
            None => self.add_row(middle, RowPlan::full()),
        }
    }

    fn promote(&mut self, row: usize) -> bool {
        if let Some(plan) = self.plans.get_mut(row) {
            plan.full = true;
            plan.parked = false;
        }
        true
    }

    /// The neighbouring measured sizes that a change at `at` lies between.
    fn bracket(&self, at: u64) -> Option<(u32, u32)> {
        let row = self.store.find(u32::try_from(at).ok()?).ok()?;
        let measured = |row: &usize| self.store.count(*row, Quantity::Gap) > 0;
        let below = (0..row).rev().find(measured)?;
        Some((self.store.size(below)?, self.store.size(row)?))
    }

    /// How far the lines of two ranges are apart where the second begins.
    fn jump(&mut self, left: (u64, u64), right: (u64, u64)) -> f64 {
        let confidence = self.options.assess.confidence;
        let there = right.0.saturating_sub(1) as f64;
        let mut value = |span| {
            let points = self.store.points(Curve::Gap, span, confidence, self.memory.points);
            MisfitLine::fit(points).map_or(0.0, |line| line.at(there))
        };
        (value(right) - value(left)).abs()
    }

    fn sigma(&self, size: u32) -> f64 {
        let row = self.store.find(size).unwrap_or(usize::MAX);
        let gap = self.store.derive(row, Curve::Gap, self.options.assess.confidence);
        gap.map_or(f64::INFINITY, |gap| gap.sigma)
    }

    /// Whether a size may get more samples for the sake of bisection.
    fn may_sample(&self, size: u32) -> bool {
        let row = self.store.find(size).unwrap_or(usize::MAX);
        self.store.count(row, Quantity::Gap) < MOST_SAMPLES
            && self.takes_more(row, Quantity::Gap)
            && self.bisection_left > Picos::ZERO
    }

    fn abandon(&mut self, bracket: (u64, u64)) {
        // With no room left the change is looked at again, at no cost but that.
        let _ = self.abandoned.push(bracket);
    }

    fn queue_steps(&mut self, sizes: &[u32]) {
        for &size in sizes {
            let Ok(row) = self.store.find(size) else { continue };
            for quantity in [Quantity::RoundTrip, Quantity::Gap] {
                let messages = if quantity == Quantity::Gap { self.options.messages } else { 1 };
                let experiment = Experiment { quantity, messages, delay: Picos::ZERO, size };
                let length = times(self.expected(&experiment).0, STEP as u64);
                self.bisection_left = self.bisection_left.since(Picos(length));
                for _ in 0..STEP {
                    self.push(row, quantity);
                }
            }
        }
        self.shuffle();
    }
}

/// Halfway between two sizes; `None` for neighbours.
fn midway(low: u32, high: u32) -> Option<u32> {
    (high.saturating_sub(low) > 1).then(|| low.midpoint(high))
}
