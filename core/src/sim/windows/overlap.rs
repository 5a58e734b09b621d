//! Receiving with overlap: the interface takes a message by itself, and the
//! processor handles it later.
//!
//! Then what waits in one list has different times, so all of it is looked
//! at. A message waits in one list from its coming to its handling.

use super::partition::Partition;
use super::price::sum;
use super::rank::WindowRank;
use super::step::{Class, Next};
use crate::sim::hooks::Noise;
use crate::units::Overflow;

impl<N: Noise> Partition<'_, N> {
    /// The next event of a rank.
    pub(super) fn next_overlapping(&mut self, state: &WindowRank) -> Option<Next> {
        let lists = [
            (Class::Sends, state.sends, state.cpu.max(state.out)),
            (Class::Receives, state.receives, 0),
            (Class::Calcs, state.calcs, state.cpu),
            (Class::Waiting, state.waiting, 0),
        ];
        let mut best: Option<Next> = None;
        for (list, last, free) in lists {
            let mut first: Option<Next> = None;
            for (before, op) in self.shared.walk(last) {
                let record = self.shared.at(op);
                let known = self.shared.time_of(op);
                let (class, time) = match list {
                    Class::Receives => (list, record.time()),
                    Class::Waiting if !record.is_taken() => {
                        let arrival = self.arrival(record.time(), self.shared.kept_size(op));
                        (list, state.into.max(arrival))
                    }
                    Class::Waiting => (Class::Taken, state.cpu.max(known)),
                    _ => (list, free.max(known)),
                };
                // Of those with the same time, the first is the oldest.
                if first.is_none_or(|first| time < first.time) {
                    first = Some(Next { time, class, before, op });
                }
            }
            if let Some(first) = first
                && best.is_none_or(|best| self.comes_before(&first, &best))
            {
                best = Some(first);
            }
        }
        best
    }

    /// The interface takes a message, which stays where it is.
    pub(super) fn take(&mut self, state: &mut WindowRank, next: &Next) -> Result<(), Overflow> {
        let price = self.price(self.shared.kept_size(next.op))?;
        state.into = sum(next.time, price.gap?)?;
        self.shared.set_time_of(next.op, next.time);
        self.shared.at(next.op).set_taken();
        Ok(())
    }
}
