//! Prefetch of memory for the ranks of a batch.
//!
//! An event follows a chain of records that are far apart in memory, so most of the time would be
//! spent on cache misses. The first links of the chains of several ranks are therefore read
//! together, one link at a time, which overlaps their misses.

use core::hint::black_box;

use super::mail::Mail;
use super::partition::Partition;
use crate::sim::hooks::{Noise, Observer};
use crate::sim::queues::wheel::Sweep;
use crate::sim::record::NONE;

/// Ranks in a batch.
pub(super) const BATCH: usize = 16;
/// Smallest batch for which prefetching pays.
const WORTHWHILE: usize = 4;

/// Ranks to run next.
pub(super) struct Batch {
    ranks: [u32; BATCH],
    len: usize,
}

impl Batch {
    /// Ranks of the batch.
    pub(super) fn ranks(&self) -> &[u32] {
        self.ranks.get(..self.len).unwrap_or_default()
    }
}

impl<N: Noise, O: Observer> Partition<'_, N, O> {
    /// Takes the next ranks from a sweep.
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

    /// Reads the memory that the ranks of a batch will need.
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
            // An empty list is NONE, the greatest value.
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
            // It may be a position in a list of edges instead of a record.
            if let Some(record) = self.shared.records.get(index as usize) {
                seen ^= record.link.get();
            }
        }
        black_box(seen);
    }
}
