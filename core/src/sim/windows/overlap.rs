//! Receiving with overlap: the interface takes a message by itself, and the processor handles it
//! later.
//!
//! The records of a class then have different times, so they wait in heaps. An operation with an
//! earliest time in the future waits by that time in the rank's `receives`; otherwise it waits with
//! its class for the processor, by number. Messages are numbered in the order of their stamps, in
//! which they are collected. A message that arrives after the interface is free waits in `waiting`,
//! by arrival; otherwise in [`Receiving`], by number.
//!
//! Functions called from the path without overlap are marked cold, to keep that path small.

use super::partition::Partition;
use super::rank::{Active, WindowRank};
use super::shared::{HeapLinks, Shared};
use super::step::Next;
use crate::sim::hooks::{Noise, Observer};
use crate::sim::parameters::Receive;
use crate::sim::rank::Class;
use crate::sim::rank::dependencies::Operations;
use crate::sim::record::{Kind, NONE};

/// State of a rank that receives with overlap.
#[derive(Clone, Copy, Debug)]
pub struct Receiving {
    /// Time at which the last message was complete, ps.
    pub(super) done: u64,
    /// Heap of messages that the interface takes next.
    arrived: u32,
    /// Heap of messages that it has taken, for the processor.
    taken: u32,
}

impl Default for Receiving {
    fn default() -> Self {
        Self { done: 0, arrived: NONE, taken: NONE }
    }
}

/// Members of a heap: operations or messages.
const OPS: bool = false;
const MESSAGES: bool = true;

/// Order of the members of a heap.
impl Shared<'_> {
    /// Earliest time of a waiting operation, ps.
    fn due(&self, at: u32) -> u64 {
        match self.at(at).kind() {
            Kind::Receive => self.at(at).time.get(),
            Kind::Send | Kind::Calc => self.time_of(at),
        }
    }

    #[inline]
    fn number_of<const MEMBERS: bool>(&self, at: u32) -> u32 {
        if MEMBERS == OPS { self.at(at).number() } else { self.at(at).link.get() }
    }

    #[inline]
    fn by_number<const MEMBERS: bool>(&self) -> impl Fn(u32, u32) -> bool {
        |a, b| self.number_of::<MEMBERS>(a) < self.number_of::<MEMBERS>(b)
    }

    #[inline]
    fn by_time<const MEMBERS: bool>(&self) -> impl Fn(u32, u32) -> bool {
        let key = |at| (self.due(at), self.number_of::<MEMBERS>(at));
        move |a, b| key(a) < key(b)
    }

    /// Queues a released operation until its turn.
    #[cold]
    pub(super) fn await_turn(&self, heaps: &mut HeapLinks<'_>, state: &mut WindowRank, op: u32) {
        let class = Class::of(self.at(op).kind());
        let root = match class {
            Class::Sends => &mut state.sends,
            Class::Calcs => &mut state.calcs,
            _ => return heaps.push(&mut state.receives, op, self.by_time::<OPS>()),
        };
        if self.time_of(op) <= state.free.begin(class, Receive::Overlap) {
            heaps.push(root, op, self.by_number::<OPS>());
        } else {
            heaps.push(&mut state.receives, op, self.by_time::<OPS>());
        }
    }

    /// First of some events; those without a record are ignored.
    #[inline]
    fn first_of<const MEMBERS: bool>(&self, events: [Next; 3]) -> Option<Next> {
        let number = |next: &Next| self.number_of::<MEMBERS>(next.op);
        let mut first: Option<Next> = None;
        for next in events {
            let earlier = |first: &Next| (next.time, number(&next)) < (first.time, number(first));
            if next.op != NONE && first.as_ref().is_none_or(earlier) {
                first = Some(next);
            }
        }
        first
    }
}

/// Parts of a partition that the heaps need, with the receiving state of a rank.
struct Heaped<'p, 's> {
    shared: &'p Shared<'s>,
    heaps: &'p mut HeapLinks<'s>,
    receiving: &'p mut Receiving,
}

impl<'s, N: Noise, O: Observer> Partition<'s, N, O> {
    fn heaped(&mut self, rank: &Active) -> Heaped<'_, 's> {
        let local = rank.number.wrapping_sub(self.first) as usize;
        debug_assert!(local < self.receiving.len(), "every rank has one");
        let receiving = self.receiving.get_mut(local).unwrap_or(&mut self.nowhere);
        Heaped { shared: &self.shared, heaps: &mut self.heaps, receiving }
    }

    /// Queues an incoming message for the interface and numbers it; called in the order of stamps.
    #[cold]
    pub(super) fn await_interface(&mut self, rank: &mut Active, send: u32) {
        self.shared.at(send).link.set(self.came);
        self.came += 1;
        let arrival = self.arrival(rank.number, send);
        self.shared.set_time(send, arrival);
        let before = self.shared.by_time::<MESSAGES>();
        self.heaps.push(&mut rank.state.waiting, send, before);
    }

    /// Queues a message that the interface has taken for the processor.
    #[cold]
    pub(super) fn await_processor(&mut self, rank: &Active, send: u32) {
        let Heaped { shared, heaps, receiving } = self.heaped(rank);
        heaps.push(&mut receiving.taken, send, shared.by_number::<MESSAGES>());
    }

    /// Next event of a rank.
    #[cold]
    pub(super) fn next_overlapping(&mut self, rank: &mut Active) -> Option<Next> {
        let Heaped { shared, heaps, receiving } = self.heaped(rank);
        let state = &mut rank.state;
        let [send, cpu, into] = [Class::Sends, Class::Calcs, Class::Arrived]
            .map(|class| state.free.begin(class, Receive::Overlap));
        let (mut class, mut due) = (Class::Receives, 0);
        while state.receives != NONE {
            let op = state.receives;
            due = shared.due(op);
            let (own, root, free) = match shared.at(op).kind() {
                Kind::Send => (Class::Sends, &mut state.sends, send),
                Kind::Calc => (Class::Calcs, &mut state.calcs, cpu),
                Kind::Receive => {
                    class = Class::Receives;
                    break;
                }
            };
            if due > free {
                class = own;
                break;
            }
            heaps.pop(&mut state.receives, shared.by_time::<OPS>());
            heaps.push(root, op, shared.by_number::<OPS>());
        }
        while state.waiting != NONE && shared.time_of(state.waiting) <= into {
            let message = state.waiting;
            heaps.pop(&mut state.waiting, shared.by_time::<MESSAGES>());
            heaps.push(&mut receiving.arrived, message, shared.by_number::<MESSAGES>());
        }
        let next = |class, op, time| Next { time, class, before: NONE, op };
        let op = shared.first_of::<OPS>([
            next(class, state.receives, due),
            next(Class::Sends, state.sends, send),
            next(Class::Calcs, state.calcs, cpu),
        ]);
        let &mut Receiving { arrived, taken, .. } = receiving;
        let message = shared.first_of::<MESSAGES>([
            next(Class::Arrived, state.waiting, shared.time_of(state.waiting)),
            next(Class::Arrived, arrived, into),
            next(Class::Taken, taken, cpu.max(shared.time_of(taken))),
        ]);
        match (op, message) {
            (Some(op), Some(message)) if self.comes_before(&op, &message) => Some(op),
            (op, message) => message.or(op),
        }
    }

    /// Removes the record of an event from its heap.
    #[cold]
    pub(super) fn leave_heap(&mut self, rank: &mut Active, next: &Next) {
        let Heaped { shared, heaps, receiving } = self.heaped(rank);
        let state = &mut rank.state;
        if next.op == state.receives {
            return heaps.pop(&mut state.receives, shared.by_time::<OPS>());
        }
        if next.op == state.waiting {
            return heaps.pop(&mut state.waiting, shared.by_time::<MESSAGES>());
        }
        match next.class {
            Class::Sends => heaps.pop(&mut state.sends, shared.by_number::<OPS>()),
            Class::Receives | Class::Calcs => {
                heaps.pop(&mut state.calcs, shared.by_number::<OPS>());
            }
            Class::Arrived => heaps.pop(&mut receiving.arrived, shared.by_number::<MESSAGES>()),
            Class::Taken | Class::Mailed => {
                heaps.pop(&mut receiving.taken, shared.by_number::<MESSAGES>());
            }
        }
    }
}
