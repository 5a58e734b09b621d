//! Prefetches what the next events need, where the storage does so.
//!
//! Each event is of another rank, whose state and records are far from those of the last one in
//! memory. With many ranks, whose states do not fit into the second cache, a run would wait for
//! them most of the time.

use crate::sim::hooks::{Noise, Observer};
use crate::sim::in_order::engine::Engine;
use crate::sim::network::Network;
use crate::sim::queues::queue::Entry;
use crate::sim::record::NONE;
use crate::sim::storage::Storage;

impl<N: Noise, O: Observer, W: Network, S: Storage> Engine<'_, '_, N, O, W, S> {
    /// Prefetches for the ranks one of which has the next event: the states of all, the last record
    /// of each list of the earliest, which leads to the first, and what its operation needs.
    #[inline]
    pub(super) fn prefetch_events(&mut self) {
        if !S::PREFETCHES || !self.ranks.single {
            return;
        }
        if let Some(record) = self.ranks.records.get(self.soon) {
            self.storage.prefetch_op(record);
        }
        let mut first: Option<&Entry> = None;
        for entry in self.order.queue.after_root() {
            let rank = self.ranks.states.rank(entry.index);
            S::prefetch(self.ranks.rank(rank));
            self.storage.prefetch_rank(rank);
            if first.is_none_or(|first| entry.before(first)) {
                first = Some(entry);
            }
        }
        self.soon = NONE;
        for last in first
            .map_or([NONE; 5], |first| self.ranks.rank(self.ranks.states.rank(first.index)).lists)
        {
            if let Some(record) = self.ranks.records.get(last) {
                S::prefetch(record);
                self.soon = last;
            }
        }
    }

    /// Prefetches the receiver of the message that arrives after `message` in a flat network, and
    /// the message after that.
    #[inline]
    pub(super) fn prefetch_arrivals(&self, message: u32) {
        if !S::PREFETCHES || W::SHARED {
            return;
        }
        let records = &self.ranks.records;
        let Some(second) = records.get(records.at(message).link) else { return };
        if let Some(state) = self.ranks.states.get(second.peer) {
            S::prefetch(state);
        }
        if let Some(third) = records.get(second.link) {
            S::prefetch(third);
        }
    }
}
