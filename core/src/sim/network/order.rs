//! Messages of one rank to another arrive in the order in which they left: one
//! that is through the network while an earlier one is not is held until that
//! is through as well.

use super::memory::{Flow, Hop, NONE};
use super::rates::Rates;
use super::told::FlowObserver;

impl<T: FlowObserver> Rates<'_, T> {
    /// Holds a message without bytes until an earlier one of its pair of ranks
    /// is through; `false` where there is none. `first` is the first link of
    /// its route. The caller sees to it that not all flows are taken.
    pub(super) fn hold_behind(&mut self, message: Flow, first: u32) -> bool {
        let newest = self.links.get(first as usize).map_or(NONE, |link| link.first);
        let Some(earlier) = self.earlier(newest, message.pair) else { return false };
        let Some(at) = self.take() else { return false };
        if let Some(place) = self.flows.get_mut(at as usize) {
            *place = message;
        }
        self.hold_message(at, earlier);
        true
    }

    /// The newest flow of a pair of ranks among those of a link from the one of
    /// this hop on; newer ones come first.
    pub(super) fn earlier(&self, mut at: u32, pair: u64) -> Option<u32> {
        while let Some(&Hop { flow, next, .. }) = self.hops.get(at as usize) {
            if self.flows.get(flow as usize).is_some_and(|flow| flow.pair == pair) {
                return Some(flow);
            }
            at = next;
        }
        None
    }

    /// Holds a message, and what it holds, until `earlier` is through.
    pub(super) fn hold_message(&mut self, at: u32, earlier: u32) {
        let Some(&Flow { behind, .. }) = self.flows.get(at as usize) else { return };
        // Circular lists, known by their last element.
        let last = if behind == NONE { at } else { behind };
        let first = self.flows.get(behind as usize).map_or(NONE, |last| last.next_held);
        self.set_next(at, if behind == NONE { at } else { first });
        let Some(state) = self.flows.get_mut(earlier as usize) else { return };
        let before = core::mem::replace(&mut state.behind, last);
        if before == NONE {
            self.set_next(last, at);
        } else {
            let oldest = self.flows.get(before as usize).map_or(NONE, |last| last.next_held);
            self.set_next(before, at);
            self.set_next(last, oldest);
        }
    }

    fn set_next(&mut self, at: u32, next: u32) {
        if let Some(flow) = self.flows.get_mut(at as usize) {
            flow.next_held = next;
        }
    }

    /// Frees a message that is through, and all that it holds; tells each, in
    /// the order in which they left.
    pub(super) fn let_through(&mut self, at: u32, mut through: impl FnMut(&Flow)) {
        let Some(&flow) = self.flows.get(at as usize) else { return };
        through(&flow);
        self.free(at);
        let mut next = self.flows.get(flow.behind as usize).map_or(NONE, |last| last.next_held);
        while let Some(&held) = self.flows.get(next as usize) {
            through(&held);
            self.free(next);
            if next == flow.behind {
                break;
            }
            next = held.next_held;
        }
    }
}
