//! Receiving with overlap: the interface takes a message by itself, and the
//! processor handles it later.
//!
//! Then what waits in one class has different times, so it waits in heaps: an
//! operation that has a time of its own by that time, in `receives` of its
//! rank; else, until the processor is free, with its class, by number.
//! Messages have numbers in the order of their stamps, which they come in. One
//! that arrives later than the interface is free is in `waiting`, by arrival;
//! else in [`Receiving`], by number.
//!
//! What the usual way of receiving calls from here is marked cold, so that it
//! does not grow the code of that way.

use super::partition::Partition;
use super::rank::WindowRank;
use super::shared::{HeapLinks, Shared};
use super::step::{Class, Next};
use crate::sim::hooks::{Noise, Observer, Taken};
use crate::sim::record::{Kind, NONE};
use crate::units::{Overflow, Picos};

/// What a rank needs to receive with overlap.
#[derive(Clone, Copy, Debug)]
pub struct Receiving {
    /// When the last message was all there.
    pub(super) done: u64,
    /// Messages that the interface takes next: their heap.
    arrived: u32,
    /// Messages that it has taken, for the processor.
    taken: u32,
}

impl Default for Receiving {
    fn default() -> Self {
        Self { done: 0, arrived: NONE, taken: NONE }
    }
}

/// The earliest time for an operation that waits.
fn due(shared: &Shared<'_>, op: u32) -> u64 {
    match shared.at(op).kind() {
        Kind::Receive => shared.at(op).time.get(),
        Kind::Send | Kind::Calc => shared.time_of(op),
    }
}

impl Shared<'_> {
    /// Lets a released operation wait for its turn.
    #[cold]
    pub(super) fn await_turn(&self, heaps: &mut HeapLinks<'_>, state: &mut WindowRank, op: u32) {
        let free = match self.at(op).kind() {
            Kind::Send => Some(state.cpu.max(state.out)),
            Kind::Calc => Some(state.cpu),
            Kind::Receive => None,
        };
        let number = |op| self.at(op).number();
        if free.is_some_and(|free| self.time_of(op) <= free) {
            let kind = self.at(op).kind();
            let root = if kind == Kind::Send { &mut state.sends } else { &mut state.calcs };
            heaps.push(root, op, |a, b| number(a) < number(b));
        } else {
            let key = |op| (due(self, op), number(op));
            heaps.push(&mut state.receives, op, |a, b| key(a) < key(b));
        }
    }
}

impl<N: Noise, O: Observer> Partition<'_, N, O> {
    fn receiving(&mut self, rank: u32) -> &mut Receiving {
        let local = rank.wrapping_sub(self.first) as usize;
        debug_assert!(local < self.receiving.len(), "every rank has one");
        self.receiving.get_mut(local).unwrap_or(&mut self.nowhere)
    }

    /// Takes a message among those that wait; they come in the order of their
    /// stamps.
    #[cold]
    pub(super) fn await_interface(&mut self, (rank, state): (u32, &mut WindowRank), send: u32) {
        let shared = &self.shared;
        let record = shared.at(send);
        record.link.set(self.came);
        self.came += 1;
        let arrival = self.arrival(rank, (send, record.time.get()));
        shared.set_time_of(send, arrival);
        let key = |send| (shared.time_of(send), shared.at(send).link.get());
        self.heaps.push(&mut state.waiting, send, |a, b| key(a) < key(b));
    }

    /// The next event of a rank.
    #[cold]
    pub(super) fn next_overlapping(
        &mut self,
        (rank, state): (u32, &mut WindowRank),
    ) -> Option<Next> {
        let op = self.next_op(state);
        let message = self.next_message(rank, state);
        match (op, message) {
            (Some(op), Some(message)) => {
                Some(if self.comes_before(&op, &message) { op } else { message })
            }
            (op, message) => op.or(message),
        }
    }

    fn next_op(&mut self, state: &mut WindowRank) -> Option<Next> {
        let Self { shared, heaps, .. } = self;
        let number = |op| shared.at(op).number();
        let key = |op| (due(shared, op), number(op));
        let mut best = None;
        while state.receives != NONE {
            let op = state.receives;
            let time = due(shared, op);
            let (class, root, free) = match shared.at(op).kind() {
                Kind::Send => (Class::Sends, &mut state.sends, state.cpu.max(state.out)),
                Kind::Calc => (Class::Calcs, &mut state.calcs, state.cpu),
                Kind::Receive => {
                    best = Some(Next { time, class: Class::Receives, before: NONE, op });
                    break;
                }
            };
            if time > free {
                best = Some(Next { time, class, before: NONE, op });
                break;
            }
            heaps.pop(&mut state.receives, |a, b| key(a) < key(b));
            heaps.push(root, op, |a, b| number(a) < number(b));
        }
        let ready = [
            (Class::Sends, state.sends, state.cpu.max(state.out)),
            (Class::Calcs, state.calcs, state.cpu),
        ];
        for (class, op, time) in ready {
            let earlier = |best: &Next| (time, number(op)) < (best.time, number(best.op));
            if op != NONE && best.as_ref().is_none_or(earlier) {
                best = Some(Next { time, class, before: NONE, op });
            }
        }
        best
    }

    fn next_message(&mut self, rank: u32, state: &mut WindowRank) -> Option<Next> {
        let into = state.into;
        while state.waiting != NONE && self.shared.time_of(state.waiting) <= into {
            let send = self.leave_waiting(state);
            let mut arrived = self.receiving(rank).arrived;
            self.push_message(&mut arrived, send);
            self.receiving(rank).arrived = arrived;
        }
        let Receiving { arrived, taken, .. } = *self.receiving(rank);
        let first = [
            (Class::Waiting, state.waiting, self.shared.time_of(state.waiting)),
            (Class::Waiting, arrived, into),
            (Class::Taken, taken, state.cpu.max(self.shared.time_of(taken))),
        ];
        let mut best: Option<Next> = None;
        for (class, send, time) in first {
            if send == NONE {
                continue;
            }
            let came = |send| self.shared.at(send).link.get();
            if best.is_none_or(|best| (time, came(send)) < (best.time, came(best.op))) {
                best = Some(Next { time, class, before: NONE, op: send });
            }
        }
        best
    }

    /// Takes the message that arrives first out of those that arrive later.
    fn leave_waiting(&mut self, state: &mut WindowRank) -> u32 {
        let Self { shared, heaps, .. } = self;
        let key = |send| (shared.time_of(send), shared.at(send).link.get());
        let send = state.waiting;
        heaps.pop(&mut state.waiting, |a, b| key(a) < key(b));
        send
    }

    fn push_message(&mut self, root: &mut u32, send: u32) {
        let Self { shared, heaps, .. } = self;
        heaps.push(root, send, |a, b| shared.at(a).link.get() < shared.at(b).link.get());
    }

    fn pop_message(&mut self, root: &mut u32) {
        let Self { shared, heaps, .. } = self;
        heaps.pop(root, |a, b| shared.at(a).link.get() < shared.at(b).link.get());
    }

    /// Takes what an event is about out of its heap.
    #[cold]
    pub(super) fn leave_heap(&mut self, (rank, state): (u32, &mut WindowRank), next: &Next) {
        let number = |shared: &Shared<'_>, op| shared.at(op).number();
        match next.class {
            Class::Waiting if next.op == state.waiting => _ = self.leave_waiting(state),
            Class::Waiting => {
                let mut arrived = self.receiving(rank).arrived;
                self.pop_message(&mut arrived);
                self.receiving(rank).arrived = arrived;
            }
            Class::Taken | Class::Incoming => {
                let mut taken = self.receiving(rank).taken;
                self.pop_message(&mut taken);
                self.receiving(rank).taken = taken;
            }
            Class::Sends | Class::Receives | Class::Calcs => {
                let Self { shared, heaps, .. } = self;
                if next.op == state.receives {
                    let key = |op| (due(shared, op), number(shared, op));
                    heaps.pop(&mut state.receives, |a, b| key(a) < key(b));
                    return;
                }
                let sends = next.class == Class::Sends;
                let root = if sends { &mut state.sends } else { &mut state.calcs };
                heaps.pop(root, |a, b| number(shared, a) < number(shared, b));
            }
        }
    }

    /// The interface takes a message.
    #[cold]
    pub(super) fn take(
        &mut self,
        (rank, state): (u32, &mut WindowRank),
        next: &Next,
    ) -> Result<(), Overflow> {
        let price = self.prices.between(
            rank,
            self.shared.at(next.op).peer.get(),
            self.shared.kept_size(next.op),
        )?;
        state.into = price.take(next.time)?;
        self.shared.set_time_of(next.op, next.time);
        let (op, time) = (self.shared.send_of(next.op), Picos(next.time));
        self.observer.taken(&Taken { rank, op, nic: 0, time });
        let mut taken = self.receiving(rank).taken;
        self.push_message(&mut taken, next.op);
        self.receiving(rank).taken = taken;
        Ok(())
    }
}
