//! Ranks of a run in global order.

use core::ops::Range;

use crate::sim::in_order::clocks::ClockQueue;
use crate::sim::in_order::rank::Rank;
use crate::sim::in_order::waiting::Waiting;
use crate::sim::lent::Checked;
use crate::sim::memory::Memory;
use crate::sim::parameters::Receive;
use crate::sim::queues::heap::Heaps;
use crate::sim::queues::queue::Entry;
use crate::sim::records::Records;

/// Ranks of a run in global order: their records, their clocks, and what waits for these.
#[derive(Debug)]
pub(in crate::sim) struct Ranks<'m> {
    pub(in crate::sim) records: Records<'m>,
    pub(in crate::sim) states: States<'m>,
    /// Posted receives and unexpected messages.
    pub(in crate::sim) waiting: Waiting<'m>,
    /// For each rank: its processors, then the sending sides and the receiving sides of its
    /// interfaces. Empty if it has one of each.
    pub(in crate::sim) clocks: &'m mut [u64],
    /// For each clock: the queue of records that wait. Empty if `single`.
    pub(in crate::sim) clock_queues: &'m mut [ClockQueue],
    /// For each rank: heap of the clocks for which something waits.
    pub(in crate::sim) clock_heap: &'m mut [Entry],
    /// For each message: time of its next attempt to be received; or, if it claims a receive, that
    /// receive and the heap of its followers.
    pub(in crate::sim) next_attempts: &'m mut [u64],
    /// For each rank: time at which its last message was complete; with overlap.
    pub(in crate::sim) done: &'m mut [u64],
    pub(in crate::sim) heaps: Heaps<&'m mut [u64]>,
    pub(in crate::sim) cpus: usize,
    pub(in crate::sim) nics: usize,
    pub(in crate::sim) receive: Receive,
    /// True if all records of a class have the same time, so that each class is a list; otherwise
    /// they wait in heaps.
    pub(in crate::sim) single: bool,
    /// Time of the current event, ps.
    pub(in crate::sim) now: u64,
}

/// States of the ranks from a first one on, by rank.
#[derive(Debug)]
pub(in crate::sim) struct States<'m> {
    all: Checked<'m, Rank>,
    first: u32,
}

impl<'m> States<'m> {
    pub(in crate::sim) fn new(all: &'m mut [Rank], first: u32) -> Self {
        Self { all: Checked::new(all), first }
    }

    /// The ranks.
    #[allow(clippy::cast_possible_truncation, reason = "ranks were counted in a u32")]
    pub(in crate::sim) const fn ranks(&self) -> Range<u32> {
        self.first..self.first + self.all.len() as u32
    }

    /// Place of a rank among these.
    #[inline]
    pub(in crate::sim) const fn place(&self, rank: u32) -> u32 {
        rank.wrapping_sub(self.first)
    }

    /// Rank at a place.
    #[inline]
    pub(in crate::sim) const fn rank(&self, place: u32) -> u32 {
        place.wrapping_add(self.first)
    }

    /// True if a state was written that does not exist.
    pub(in crate::sim) const fn lost(&self) -> bool {
        self.all.lost()
    }

    #[inline]
    pub(in crate::sim) fn at(&self, rank: u32) -> &Rank {
        self.all.at(self.place(rank))
    }

    #[inline]
    pub(in crate::sim) fn get(&self, rank: u32) -> Option<&Rank> {
        self.all.get(self.place(rank))
    }

    #[inline]
    pub(in crate::sim) fn at_mut(&mut self, rank: u32) -> &mut Rank {
        self.all.at_mut(self.place(rank))
    }
}

impl<'m> Ranks<'m> {
    pub(in crate::sim) fn new(
        memory: Memory<'m>,
        first: u32,
        waiting: Waiting<'m>,
        [cpus, nics]: [usize; 2],
        receive: Receive,
    ) -> Self {
        let Memory { records, times, units, ranks, clocks, clock_queues, clock_heap, .. } = memory;
        let Memory { origins, history, next_attempts, links, done, .. } = memory;
        Self {
            records: Records::new(records, times, units, origins, history),
            states: States::new(ranks, first),
            waiting,
            clocks,
            clock_queues,
            clock_heap,
            next_attempts,
            done,
            heaps: Heaps::new(links),
            cpus,
            nics,
            receive,
            single: cpus == 1 && nics == 1 && receive == Receive::Hold,
            now: 0,
        }
    }
}
