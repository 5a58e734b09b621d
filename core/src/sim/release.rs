//! Dependencies, and the release of operations.
//!
//! Until an operation is ready, its link counts its unfulfilled dependencies; from then on the link
//! belongs to a list.

use core::ops::Range;

use super::engine::{Engine, SimError};
use super::hooks::{MessageKind, Noise, Observer, Released};
use super::matching::Envelope;
use super::network::Network;
use super::queues::chain::Chain;
use super::rank::{Class, Clock, Units};
use super::record::{Kind, NONE, Successors};
use super::rules::Rules;
use super::storage::Storage;

/// Operations of a stored schedule, for either driver.
pub(super) trait Operations: Chain {
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
pub(super) struct Reached {
    pub(super) start: Option<u64>,
    pub(super) end: Option<u64>,
}

impl Reached {
    pub(super) const fn start(time: u64) -> Self {
        Self { start: Some(time), end: None }
    }

    pub(super) const fn end(time: u64) -> Self {
        Self { start: None, end: Some(time) }
    }
}

/// Operations of one rank that became ready in an event: lists of sends, receives and calculations,
/// each in the order of becoming ready.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    lists: [u32; 3],
}

impl Default for Ready {
    fn default() -> Self {
        Self { lists: [NONE; 3] }
    }
}

impl Ready {
    #[inline]
    pub(super) fn add(&mut self, ops: &mut (impl Operations + ?Sized), op: u32) {
        if let Some(last) = self.lists.get_mut(ops.kind(op) as usize) {
            ops.push(last, op);
        }
    }

    /// Removes the operation that is released next.
    #[inline]
    pub(super) fn take(&mut self, ops: &mut impl Operations) -> Option<u32> {
        let last = self.lists.iter_mut().find(|last| **last != NONE)?;
        let (before, op) = (*last, ops.next(*last));
        ops.remove(last, before, op);
        Some(op)
    }
}

/// Ready operations of one of the ranks that an event touches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touched {
    pub(super) rank: u32,
    pub(super) ready: Ready,
}

impl Default for Touched {
    fn default() -> Self {
        Self { rank: NONE, ready: Ready::default() }
    }
}

impl Touched {
    /// Notes that an event touches `rank`: its own, or at most one other.
    #[inline]
    pub(super) fn note([own, other]: &mut [Self; 2], rank: u32) -> &mut Ready {
        let place = if own.rank == NONE || own.rank == rank { own } else { other };
        debug_assert!(place.rank == NONE || place.rank == rank, "an event touches two ranks");
        place.rank = rank;
        &mut place.ready
    }
}

impl<N: Noise, O: Observer, W: Network, S: Storage> Engine<'_, '_, N, O, W, S> {
    /// Releases the ready operations of a rank, and updates its entry in the queue.
    #[inline]
    pub(super) fn release(&mut self, touched: Touched) -> Result<(), SimError> {
        let Touched { rank, mut ready } = touched;
        while let Some(op) = ready.take(&mut self.ranks.records) {
            self.release_op(rank, op)?;
        }
        self.refresh(rank);
        Ok(())
    }

    /// Draws a stamp for an operation and appends it to its list.
    #[inline]
    fn release_op(&mut self, rank: u32, op: u32) -> Result<(), SimError> {
        let seq = self.draw()?;
        let (kind, cpu) = (self.ranks.records.at(op).kind(), self.ranks.records.units_of(op).cpu);
        let number = self.op_number(op);
        self.charges.observer.released(&Released { rank, op: number, cpu });
        let posting = (kind == Kind::Receive).then(|| {
            self.ranks.clock_of(rank, Clock::Cpu(cpu)).max(self.ranks.records.time_of(op))
        });
        let record = self.ranks.records.at_mut(op);
        record.created = self.ranks.now;
        record.seq = seq;
        if let Some(time) = posting {
            record.amount = time;
        }
        self.storage.note_released(&mut self.ranks.records, op);
        self.ranks.enlist(rank, Class::of(kind), op);
        Ok(())
    }
}
