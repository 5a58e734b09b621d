//! Bisection: sizes added around protocol changes, and overheads measured at the ends of ranges.

use super::planner::{Planner, round};
use crate::measure::Quantity;
use crate::measure::assess::ranges::{Ranges, narrow};
use crate::model::{Change, Curve};
use crate::units::Picos;
use crate::wide::times;

/// Samples of each quantity queued for a size at a time.
const STEP: usize = 6;
/// Most samples of a size, to determine its side of a change.
const MOST_SAMPLES: usize = 48;
/// Distance of a change's two sides, in standard errors, from which on a point can be assigned to
/// one.
const CLEAR: f64 = 5.0;

impl<const N: usize> Planner<'_, N> {
    /// Queues the next step towards the exact size of each change: more samples at the two sizes
    /// next to it until they differ clearly, then a size midway between them. If the curve only
    /// bends, the added sizes show that and the change disappears. A change whose sides cannot be
    /// distinguished is abandoned, as are all once bisection has used a third of the time.
    pub(in crate::measure) fn bisect<const M: usize>(&mut self, ranges: &Ranges<M>) {
        // In ascending order: an added row then does not shift rows that are already queued.
        for change in ranges.changes.iter().filter(|change| change.splits) {
            self.bisect_at(change);
        }
        self.shuffle();
    }

    fn bisect_at(&mut self, change: &Change) {
        let at = narrow(change.at.0);
        let curve = Curve::of(change.parameter);
        let Ok(upper) = self.store.find(at) else { return };
        let measured = |row: &usize| self.store.level(*row, curve).is_some();
        let lower =
            (0..upper).rev().find(measured).and_then(|row| Some((row, self.store.size(row)?)));
        let Some((lower, below)) = lower else { return };
        if self.store.header(upper).is_none_or(|header| header.plan.abandoned) {
            return;
        }
        let before = self.store.level(lower, curve).unwrap_or(0.0);
        let jump = before * f64::from(change.jump_ppm) * 1e-6;
        let (mut clear, mut goes_on) = (true, false);
        for &row in &[lower, upper] {
            if self.store.variance(row, curve) * (CLEAR * CLEAR) > jump * jump {
                clear = false;
                goes_on |= self.resample(row, curve);
            }
        }
        if clear {
            let middle = below.midpoint(at);
            // No size lies between adjacent integers.
            let may_add = self.bisection_left > Picos::ZERO;
            goes_on = middle == below || may_add && self.add(middle, curve);
        }
        if !goes_on && let Some(header) = self.store.header_of(at) {
            header.plan.abandoned = true;
        }
    }

    /// Adds a size with the plan of the next larger one, and queues its first samples.
    fn add(&mut self, size: u32, curve: Curve) -> bool {
        let Ok(row) = self.store.add_size(size) else { return false };
        let above = self.store.header(row + 1).map(|header| header.plan).unwrap_or_default();
        if let Some(header) = self.store.header_mut(row) {
            header.plan.base = above.base;
            header.plan.messages = above.messages.max(2);
            header.plan.paced_messages = above.paced_messages.max(2);
            header.plan.full = matches!(curve, Curve::SendOverhead | Curve::RecvOverhead);
        }
        self.step(row, Quantity::Gap)
    }

    /// Queues more samples of a row, unless it has enough of them or the time is spent.
    fn resample(&mut self, row: usize, curve: Curve) -> bool {
        let quantity = curve.parts().0;
        self.store.count(row, quantity) < MOST_SAMPLES
            && self.bisection_left > Picos::ZERO
            && self.step(row, quantity)
    }

    /// Queues samples of a row; false if it takes none.
    fn step(&mut self, row: usize, quantity: Quantity) -> bool {
        let before = self.queued;
        for &quantity in &[Quantity::RoundTrip, quantity] {
            let Some((_, length)) = round(&self.store, &self.warmup, row, quantity) else {
                continue;
            };
            let length = Picos(times(length.0, STEP as u64));
            self.bisection_left = self.bisection_left.since(length);
            for _ in 0..STEP {
                self.push(row, quantity);
            }
        }
        self.queued > before
    }

    /// Makes each range measure overheads at its first and last size, even if that was added for
    /// the gap only.
    pub(in crate::measure) fn complete_ranges<const M: usize>(&mut self, ranges: &Ranges<M>) {
        for span in ranges.spans() {
            let rows = self.store.rows_in(span);
            for row in [rows.start, rows.end.saturating_sub(1)] {
                if let Some(header) = self.store.header_mut(row) {
                    // Not if overheads were too expensive from the start.
                    header.plan.full |= header.plan.base >= super::budget::BASE_SAMPLES;
                }
            }
        }
    }
}
