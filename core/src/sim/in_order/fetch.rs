//! Fetches what the next events need into the processor's cache, where the storage does so.
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
    /// Fetches what events of the ranks need one of which comes next: first the states of all, then
    /// the records of the earliest, then what its operation needs.
    #[inline]
    pub(super) fn fetch_events(&mut self) {
        if let Some(record) = self.ranks.records.get(self.soon) {
            self.storage.fetch_op(record);
        }
        let mut first: Option<&Entry> = None;
        for entry in self.order.queue.seconds() {
            S::fetch(self.ranks.rank(entry.index));
            self.storage.fetch_rank(entry.index);
            if first.is_none_or(|first| entry.before(first)) {
                first = Some(entry);
            }
        }
        self.soon = NONE;
        for last in first.map_or([NONE; 5], |first| self.ranks.rank(first.index).lists) {
            if let Some(record) = self.ranks.records.get(last) {
                S::fetch(record);
                self.soon = last;
            }
        }
    }

    /// Fetches what the message needs that arrives behind `message`, and the message behind that.
    #[inline]
    pub(super) fn fetch_arrivals(&self, message: u32) {
        let records = &self.ranks.records;
        let Some(second) = records.get(records.at(message).link) else { return };
        if let Some(state) = self.ranks.states.get(second.peer) {
            S::fetch(state);
        }
        if let Some(third) = records.get(second.link) {
            S::fetch(third);
        }
    }
}
