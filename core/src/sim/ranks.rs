//! Ranks of a run in global order.

use super::clocks::ClockQueue;
use super::lent::Checked;
use super::matching::Waiting;
use super::memory::Memory;
use super::parameters::Receive;
use super::queues::heap::Heaps;
use super::queues::queue::Entry;
use super::rank::Rank;
use super::records::Records;

/// Ranks of a run in global order: their records, their clocks, and what waits for these.
#[derive(Debug)]
pub(super) struct Ranks<'m> {
    pub(super) records: Records<'m>,
    pub(super) states: Checked<'m, Rank>,
    /// Posted receives and unexpected messages.
    pub(super) waiting: Waiting<'m>,
    /// For each rank: its processors, then the sending sides and the receiving sides of its
    /// interfaces. Empty if it has one of each.
    pub(super) clocks: &'m mut [u64],
    /// For each clock: the queue of records that wait. Empty if `single`.
    pub(super) clock_queues: &'m mut [ClockQueue],
    /// For each rank: heap of the clocks for which something waits.
    pub(super) clock_heap: &'m mut [Entry],
    /// For each message: time of its next attempt to be received; or, if it claims a receive, that
    /// receive and the heap of its followers.
    pub(super) next_attempts: &'m mut [u64],
    /// For each rank: time at which its last message was complete; with overlap.
    pub(super) done: &'m mut [u64],
    pub(super) heaps: Heaps<&'m mut [u64]>,
    pub(super) cpus: usize,
    pub(super) nics: usize,
    pub(super) receive: Receive,
    /// True if all records of a class have the same time, so that each class is a list; otherwise
    /// they wait in heaps.
    pub(super) single: bool,
    /// Time of the current event, ps.
    pub(super) now: u64,
}

impl<'m> Ranks<'m> {
    pub(super) fn new(
        memory: Memory<'m>,
        waiting: Waiting<'m>,
        [cpus, nics]: [usize; 2],
        receive: Receive,
    ) -> Self {
        let Memory { records, times, units, ranks, clocks, clock_queues, clock_heap, .. } = memory;
        let Memory { next_attempts, links, done, .. } = memory;
        Self {
            records: Records::new(records, times, units),
            states: Checked::new(ranks),
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
