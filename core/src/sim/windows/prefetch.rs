//! Looks at memory some time before it is needed.
//!
//! What a rank does is a chain of records that lead to each other, each far
//! from the last: most of the time would be spent on waiting for memory. So
//! the beginnings of the chains of several ranks are looked at together, one
//! link at a time, and their waits overlap.

use core::hint::black_box;

use super::mail::Mail;
use super::partition::Partition;
use crate::sim::hooks::{Noise, Observer};
use crate::sim::queues::wheel::Sweep;
use crate::sim::record::NONE;

/// Ranks that are looked at together.
pub(super) const BATCH: usize = 16;
/// Fewer than this are quicker without.
const WORTHWHILE: usize = 4;

/// Ranks that have their turn next.
pub(super) struct Batch {
    ranks: [u32; BATCH],
    len: usize,
}

impl Batch {
    /// The ranks.
    pub(super) fn ranks(&self) -> &[u32] {
        self.ranks.get(..self.len).unwrap_or_default()
    }
}

impl<N: Noise, O: Observer> Partition<'_, N, O> {
    /// The next ranks of a walk.
    #[inline]
    pub(super) fn batch(&mut self, sweep: &mut Sweep) -> Batch {
        let mut batch = Batch { ranks: [0; BATCH], len: 0 };
        for place in &mut batch.ranks {
            let Some(local) = self.wheel.take(sweep) else { break };
            *place = local;
            batch.len += 1;
        }
        batch
    }

    /// Looks at what the ranks will need.
    #[inline]
    pub(super) fn prefetch(&self, batch: &Batch, inbox: &Mail<'_>) {
        if batch.len < WORTHWHILE {
            return;
        }
        let mut receives = [NONE; BATCH];
        let mut lists = [NONE; BATCH];
        let mut seen = 0u32;
        for ((local, receive), list) in batch.ranks().iter().zip(&mut receives).zip(&mut lists) {
            let Some(state) = self.ranks.get(*local as usize) else { continue };
            if let Some(message) = inbox.message(state.incoming) {
                seen ^= message.tag.get();
                *receive = self.slots.of(state.posted).first().map_or(NONE, |slot| slot.op);
            }
            // A list that is empty is NONE, the greatest.
            *list = state.sends.min(state.calcs).min(state.receives).min(state.waiting);
        }
        for (receive, list) in receives.iter_mut().zip(&mut lists) {
            if *receive != NONE {
                *receive = self
                    .shared
                    .records
                    .get(*receive as usize)
                    .map_or(NONE, |record| record.next.get());
            }
            if *list != NONE {
                *list = self.shared.at(*list).link.get();
            }
        }
        for index in receives.into_iter().chain(lists) {
            // It may be no record, but a place in a list of edges.
            if let Some(record) = self.shared.records.get(index as usize) {
                seen ^= record.link.get();
            }
        }
        black_box(seen);
    }
}
