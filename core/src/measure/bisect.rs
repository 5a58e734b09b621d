//! Where to add sizes: around protocol changes, and in ranges with few sizes.

use super::ranges::{self, Span};
use super::{Curve, Planner, Quantity};
use crate::fit::MisfitLine;
use crate::model::Change;
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
    pub(super) fn bisect(&mut self, changes: &[Change], ends: Span) {
        // The value of the line before, at the first size of the next range.
        let mut before: Option<f64> = None;
        // Ascending: a row that is added moves none that is queued already.
        for span in ranges::spans(changes, ends) {
            let points = self.store.points(Curve::Gap, span, self.memory.points);
            let Some(line) = MisfitLine::fit(points) else { continue };
            if let Some(left) = before {
                let right = line.at(f64::from(span.0.saturating_sub(1)));
                self.bisect_at(span.0, (right - left).abs());
            }
            before = Some(line.at(f64::from(span.1)));
        }
        self.shuffle();
    }

    /// Queues a step for the change at size `at`, of height `jump`.
    fn bisect_at(&mut self, at: u32, jump: f64) {
        let Ok(upper) = self.store.find(at) else { return };
        let measured = |row: &usize| self.store.count(*row, Quantity::Gap) > 0;
        let lower =
            (0..upper).rev().find(measured).and_then(|row| Some((row, self.store.size(row)?)));
        let Some((lower, below)) = lower else { return };
        if self.store.header(upper).is_none_or(|header| header.plan.abandoned) {
            return;
        }
        let (mut clear, mut goes_on) = (true, false);
        for &row in &[lower, upper] {
            if self.is_blurred(row, jump) {
                clear = false;
                goes_on |= self.resample(row);
            }
        }
        if clear {
            let middle = below.midpoint(at);
            let added = self.store.add_size(middle);
            // Nothing is between neighbours.
            goes_on = middle == below || added.is_ok_and(|row| self.step(row));
        }
        if !goes_on && let Some(header) = self.store.header_of(at) {
            header.plan.abandoned = true;
        }
    }

    /// Whether the gap at a row does not tell the sides of a jump apart.
    fn is_blurred(&self, row: usize, jump: f64) -> bool {
        let gap = self.store.level(row, Curve::Gap);
        gap.is_none_or(|gap| gap.variance * (CLEAR * CLEAR) > jump * jump)
    }

    /// Queues more samples of a row unless it had enough of them or of time.
    fn resample(&mut self, row: usize) -> bool {
        self.store.count(row, Quantity::Gap) < MOST_SAMPLES
            && self.bisection_left > Picos::ZERO
            && self.step(row)
    }

    /// Queues samples of a row; `false` where it can have none.
    fn step(&mut self, row: usize) -> bool {
        let before = self.queued;
        for &quantity in &[Quantity::RoundTrip, Quantity::Gap] {
            let Some((_, length)) = self.round(row, quantity) else { continue };
            let length = Picos(times(length.0, STEP as u64));
            self.bisection_left = self.bisection_left.since(length);
            for _ in 0..STEP {
                self.push(row, quantity);
            }
        }
        self.queued > before
    }

    /// Makes each range measure everything at its ends and at a few sizes
    /// between, so that it has overheads of its own.
    pub(super) fn complete_ranges(&mut self, changes: &[Change], ends: Span) {
        if changes.is_empty() {
            return;
        }
        for span in ranges::spans(changes, ends) {
            let rows = self.store.rows_in(span);
            self.promote(rows.start);
            self.promote(rows.end.saturating_sub(1));
            for _ in 0..FULL_ROWS {
                if !self.complete_by_one(span) {
                    break;
                }
            }
        }
    }

    /// Promotes or adds one size in the widest hole between those that measure
    /// everything; `false` when the range has what it needs or can have.
    fn complete_by_one(&mut self, span: Span) -> bool {
        let (mut full, mut before, mut hole) = (0, u32::MAX, (0, 0));
        for row in self.store.rows_in(span) {
            let Some(header) = self.store.header(row) else { continue };
            if header.plan.full && !header.plan.parked {
                if header.size.saturating_sub(before) > hole.1 - hole.0 {
                    hole = (before, header.size);
                }
                before = header.size;
                full += 1;
            }
        }
        let (low, high) = hole;
        let middle = low.midpoint(high);
        if full >= FULL_ROWS || middle == low {
            return false;
        }
        let row = self.store.find(middle).unwrap_or_else(|row| row);
        let inside =
            |row: &usize| self.store.size(*row).is_some_and(|size| low < size && size < high);
        let known = [row, row.wrapping_sub(1)].into_iter().find(inside);
        let row = known.or_else(|| self.store.add_size(middle).ok());
        row.is_some_and(|row| self.promote(row))
    }

    fn promote(&mut self, row: usize) -> bool {
        let header = self.store.header_mut(row);
        header.is_some_and(|header| {
            header.plan.full = true;
            header.plan.parked = false;
            true
        })
    }
}
