//! Dependencies, and the release of operations.
//!
//! Until an operation is ready, its link counts its unfulfilled dependencies; from then on the link
//! belongs to a list.

use core::ops::Range;

use crate::sim::hooks::MessageKind;
use crate::sim::queues::chain::Chain;
use crate::sim::rank::Units;
use crate::sim::rank::matching::Envelope;
use crate::sim::record::{Kind, NONE, Successors};

/// Operations of a stored schedule, for either driver.
pub(in crate::sim) trait Operations: Chain {
    fn kind(&self, op: u32) -> Kind;

    /// Message of its send that the record is, or will be.
    fn message_kind(&self, op: u32) -> MessageKind;

    /// Processor and interface; for a CTS that leaves, those of its receive.
    fn units(&self, op: u32) -> Units;

    fn peer(&self, op: u32) -> u32;
    fn tag(&self, op: u32) -> u32;

    /// Envelope of a receive, or of a message after its arrival.
    #[inline]
    fn envelope(&self, op: u32) -> Envelope {
        Envelope { sender: self.peer(op), tag: self.tag(op) }
    }

    /// Send and receive: bytes; calculation: ps.
    fn amount(&self, op: u32) -> u64;

    /// Time kept for an operation, ps: before the release, its earliest start; for a message, when
    /// an interface took it, then when it was completely handled. 0 where no times are stored.
    fn time_of(&self, op: u32) -> u64;
    fn set_time(&mut self, op: u32, time: u64);

    /// Storage form of the successors of `op`.
    fn successors(&self, op: u32) -> Successors;

    /// The only operation that waits for `op`, or the place of its list of edges.
    fn successor(&self, op: u32) -> u32;

    /// Delays the start of an operation to `time` at the earliest.
    #[inline]
    fn delay(&mut self, op: u32, time: u64) {
        self.set_time(op, self.time_of(op).max(time));
    }

    /// Fulfils the dependency of the only operation that waits for `on`, if `on` has `reached` the
    /// moment that it waits for. `satisfied` is called with that operation and true if it waited
    /// for the end. Returns the operation if it is ready now.
    #[inline]
    fn satisfy_one(
        &mut self,
        on: u32,
        reached: Reached,
        mut satisfied: impl FnMut(u32, bool),
    ) -> Option<u32> {
        let (time, end) = match self.successors(on) {
            Successors::Ends => (reached.end?, true),
            Successors::Starts => (reached.start?, false),
            Successors::None | Successors::Listed => return None,
        };
        let next = self.successor(on);
        satisfied(next, end);
        self.count_down(next, time).then_some(next)
    }

    /// Fulfils the dependencies listed for `on`, those on its start first. Operations that are
    /// ready now are added to `ready`.
    fn satisfy_listed(
        &mut self,
        on: u32,
        edges: &[u32],
        reached: Reached,
        ready: &mut Ready,
        mut satisfied: impl FnMut(u32, bool),
    ) {
        let [ends, starts] = listed(edges, self.successor(on)).unwrap_or_default();
        for (ops, time, end) in [(starts, reached.start, false), (ends, reached.end, true)] {
            let Some(time) = time else { continue };
            for &op in ops {
                satisfied(op, end);
                if self.count_down(op, time) {
                    ready.add(self, op);
                }
            }
        }
    }

    /// Fulfils one dependency of `op`, which may not begin before `time`. True if it was the last.
    #[inline]
    fn count_down(&mut self, op: u32, time: u64) -> bool {
        self.delay(op, time);
        let left = self.next(op);
        debug_assert!(left > 0, "it waits for one more");
        self.set_next(op, left.wrapping_sub(1));
        left == 1
    }

    /// Operations in a range that have no dependencies.
    fn roots(&mut self, ops: Range<u32>) -> Ready {
        let mut ready = Ready::default();
        for op in ops {
            if self.next(op) == 0 {
                ready.add(self, op);
            }
        }
        ready
    }
}

/// List of edges at a place: the operations that wait for the end, and those that wait for the
/// start.
fn listed(edges: &[u32], place: u32) -> Option<[&[u32]; 2]> {
    let (&[ends, starts], all) = edges.get(place as usize..)?.split_first_chunk()?;
    let (ends, rest) = all.split_at_checked(ends as usize)?;
    Some([ends, rest.get(..starts as usize)?])
}

/// Start and end of an operation, ps, as far as they are known in an event.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::sim) struct Reached {
    pub(in crate::sim) start: Option<u64>,
    pub(in crate::sim) end: Option<u64>,
}

impl Reached {
    pub(in crate::sim) const fn start(time: u64) -> Self {
        Self { start: Some(time), end: None }
    }

    pub(in crate::sim) const fn end(time: u64) -> Self {
        Self { start: None, end: Some(time) }
    }
}

/// Operations of one rank that became ready in an event: lists of sends, receives and calculations,
/// each in the order of becoming ready.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Ready {
    lists: [u32; 3],
}

impl Default for Ready {
    fn default() -> Self {
        Self { lists: [NONE; 3] }
    }
}

impl Ready {
    #[inline]
    pub(in crate::sim) fn add(&mut self, ops: &mut (impl Operations + ?Sized), op: u32) {
        if let Some(last) = self.lists.get_mut(ops.kind(op) as usize) {
            ops.push(last, op);
        }
    }

    /// Removes the operation that is released next.
    #[inline]
    pub(in crate::sim) fn take(&mut self, ops: &mut impl Operations) -> Option<u32> {
        let last = self.lists.iter_mut().find(|last| **last != NONE)?;
        let (before, op) = (*last, ops.next(*last));
        ops.remove(last, before, op);
        Some(op)
    }
}
