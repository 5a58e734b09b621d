//! Builds a schedule in lent memory.

use core::mem::take;

use super::build_error::BuildError;
use super::draft::{Dependent, Draft};
use super::in_order::clocks::ClockQueue;
use super::in_order::rank::Rank;
use super::in_order::waiting::{Part, Waiting, Wildcards};
use super::memory::{Memory, Requirements};
use super::rank::Units;
use super::rank::matching::slots::SlotRange;
use super::record::{NONE, Record, Successors};
use super::storage::Stored;
use crate::goal::{ANY_TAG, Edge, Op, OpKind, Sink};

/// A schedule in lent memory. It can run once; [`Schedule::copy`] it first to run it again.
#[derive(Debug)]
pub struct Schedule<'m, S = Stored<'m>> {
    /// Lent memory without edges and first operations, which copies share.
    pub(super) memory: Memory<'m>,
    pub(super) waiting: Waiting<'m>,
    pub(super) storage: S,
    pub(super) firsts: &'m [u32],
    /// Rank of the first of them.
    pub(super) first_rank: u32,
    /// Requirements of `memory`.
    pub(super) requirements: Requirements,
    pub(super) sends: u32,
}

impl<'m> Schedule<'m> {
    /// Memory for [`Schedule::copy`], without the parts that copies share with the original.
    #[must_use]
    pub const fn copy_requirements(&self) -> Requirements {
        self.requirements
    }

    /// Copies the schedule into `memory`; the copy can run once. Dependencies are shared. The cost
    /// is that of copying its memory. `None` if `memory` is smaller than
    /// [`Schedule::copy_requirements`].
    #[must_use]
    pub fn copy<'n>(&'n self, memory: Memory<'n>) -> Option<Schedule<'n>> {
        let edges = self.storage.edges;
        let mut copy = Schedule::stored(memory, self.requirements, edges, self.firsts, self.sends)?;
        copy.memory.records.copy_from_slice(self.memory.records);
        copy.memory.ranks.copy_from_slice(self.memory.ranks);
        copy.memory.units.copy_from_slice(self.memory.units);
        copy.waiting.copy_from(&self.waiting);
        Some(copy)
    }
}

impl<'m> Schedule<'m> {
    /// A stored schedule with the records and ranks of `memory`.
    fn stored(
        memory: Memory<'m>,
        requirements: Requirements,
        edges: &'m [u32],
        firsts: &'m [u32],
        sends: u32,
    ) -> Option<Self> {
        let mut memory = memory.cut(&requirements)?;
        let waiting = Waiting::new(take(&mut memory.slots), take(&mut memory.buckets));
        Some(Self::in_memory(memory, requirements, firsts, waiting, Stored { edges }, sends))
    }
}

impl<'m, S> Schedule<'m, S> {
    /// A schedule with the records and ranks of `memory`, whose parts have the required lengths.
    pub(super) fn in_memory(
        memory: Memory<'m>,
        requirements: Requirements,
        firsts: &'m [u32],
        waiting: Waiting<'m>,
        storage: S,
        sends: u32,
    ) -> Self {
        memory.clocks.fill(0);
        memory.clock_queues.fill(ClockQueue::default());
        memory.times.fill(0);
        memory.done.fill(0);
        Self { memory, waiting, storage, firsts, first_rank: 0, requirements, sends }
    }

    /// Index of each rank's first operation in the whole schedule, as observers see it, then the
    /// number of operations.
    #[must_use]
    pub const fn first_ops(&self) -> &'m [u32] {
        self.firsts
    }

    /// Number of sends: an upper bound of the messages under way at a time.
    #[must_use]
    pub const fn sends(&self) -> u32 {
        self.sends
    }

    /// Network interfaces of a rank.
    #[must_use]
    pub const fn interfaces(&self) -> usize {
        self.requirements.nics
    }

    /// Events of a complete run without handshakes; each handshake adds four, as in
    /// [`Finished::events`](crate::sim::Finished::events).
    #[must_use]
    pub const fn events(&self) -> u64 {
        let ops = match self.firsts.last() {
            Some(ops) => *ops,
            None => 0,
        };
        ops as u64 + self.sends as u64
    }
}

/// Sink that builds a [`Schedule`].
#[derive(Debug)]
pub struct Builder<'m> {
    memory: Memory<'m>,
    requirements: Requirements,
    draft: Draft,
    /// Number of receives of the ranks before the open one.
    receives_before: u32,
    /// Wildcards of the receives of the open rank.
    wildcards: Wildcards,
    /// True if a message has any tag, which leaves the tag open on all ranks.
    any_tag: bool,
    /// Buckets of the ranks before the open one.
    buckets: u32,
}

impl Dependent for Record {
    fn waits(&mut self) -> &mut u32 {
        &mut self.link
    }

    fn counts(&mut self) -> [&mut u32; 2] {
        [&mut self.next, &mut self.seq]
    }

    fn successors(&self) -> Successors {
        self.successors()
    }

    fn set_successors(&mut self, successors: Successors, next: u32) {
        self.set_successors(successors, next);
    }
}

impl<'m> Builder<'m> {
    /// Creates a builder in `memory`, which needs at least the elements of `requirements`.
    ///
    /// # Errors
    ///
    /// [`BuildError::Full`] if it has fewer.
    pub fn new(memory: Memory<'m>, requirements: Requirements) -> Result<Self, BuildError> {
        Ok(Self {
            memory: memory.cut(&requirements).ok_or(BuildError::Full)?,
            requirements,
            draft: Draft::default(),
            receives_before: 0,
            wildcards: Wildcards::default(),
            any_tag: false,
            buckets: 0,
        })
    }

    /// The finished schedule.
    ///
    /// # Errors
    ///
    /// [`BuildError::Order`] if ranks are missing.
    pub fn finish(self) -> Result<Schedule<'m>, BuildError> {
        let Self { mut memory, requirements, draft, any_tag, buckets, .. } = self;
        let Draft { ranks, ops, receives, sends, .. } = draft;
        let firsts = take(&mut memory.firsts);
        let edges = take(&mut memory.edges);
        let requirements = Requirements {
            records: ops as usize,
            edges: 0,
            ranks: ranks as usize,
            firsts: 0,
            slots: receives as usize,
            buckets: buckets as usize,
            places: ranks as usize,
            scratch: 0,
            ..requirements
        };
        let (firsts, edges) = draft.finish(firsts, edges)?;
        if any_tag {
            memory.ranks.iter_mut().for_each(|rank| rank.part.wildcards.add_tag());
        }
        Schedule::stored(memory, requirements, edges, firsts, sends).ok_or(BuildError::Full)
    }
}

/// Notes the processor and interface on which messages of an operation of `rank` may be handled, and
/// which messages a receive takes.
pub(super) fn note_messages(ranks: &mut [Rank], rank: u32, op: &Op) {
    let receiver = match op.kind {
        OpKind::Send { peer, .. } => peer,
        OpKind::Receive { .. } => rank,
        OpKind::Calc { .. } => return,
    };
    if let Some(state) = ranks.get_mut(receiver as usize) {
        state.note_units(Units { cpu: op.cpu, nic: op.nic });
        if let OpKind::Receive { peer, tag, .. } = op.kind {
            state.note_receive(peer, tag);
        }
    }
}

impl Sink for Builder<'_> {
    type Error = BuildError;

    fn ranks(&mut self, ranks: u32) -> Result<(), BuildError> {
        self.draft.announce(ranks, self.requirements.ranks)?;
        if self.requirements.several() {
            let states = self.memory.ranks.get_mut(..ranks as usize).ok_or(BuildError::Full)?;
            states.fill(Rank::default());
        }
        Ok(())
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), BuildError> {
        self.draft.begin(rank, self.memory.firsts)?;
        self.receives_before = self.draft.receives;
        self.wildcards = Wildcards::default();
        let state = self.memory.ranks.get_mut(rank as usize).ok_or(BuildError::Full)?;
        // Sends to this rank may have been noted before.
        let lists = if self.requirements.several() { state.lists } else { [NONE; 5] };
        *state = Rank { posted: SlotRange::at(self.draft.receives), lists, ..Rank::default() };
        Ok(())
    }

    fn op(&mut self, op: Op) -> Result<u32, BuildError> {
        let (rank, index) = (self.draft.rank(), self.draft.index());
        let Requirements { cpus, nics, .. } = self.requirements;
        if usize::from(op.cpu) >= cpus || usize::from(op.nic) >= nics {
            return Err(BuildError::Unit { rank, op: index });
        }
        self.draft.count(op.kind, self.memory.slots)?;
        if self.requirements.several() {
            note_messages(self.memory.ranks, rank, &op);
        }
        let ops = &mut self.draft.ops;
        let record = self.memory.records.get_mut(*ops as usize).ok_or(BuildError::Full)?;
        *record = Record { next: 0, ..Record::new(op) };
        match op.kind {
            OpKind::Send { tag: ANY_TAG, .. } => self.any_tag = true,
            OpKind::Receive { .. } => self.wildcards.add(record.envelope()),
            _ => {}
        }
        if let Some(units) = self.memory.units.get_mut(*ops as usize) {
            *units = Units { cpu: op.cpu, nic: op.nic }.wide();
        }
        *ops = ops.checked_add(1).ok_or(BuildError::TooManyOps)?;
        Ok(index)
    }

    fn edge(&mut self, edge: Edge) -> Result<(), BuildError> {
        self.draft.depend(self.memory.scratch, edge)
    }

    fn end_rank(&mut self) -> Result<(), BuildError> {
        let receives = self.draft.receives - self.receives_before;
        let state =
            self.memory.ranks.get_mut(self.draft.rank() as usize).ok_or(BuildError::Full)?;
        let part = Part::new(self.buckets, receives, self.wildcards);
        (state.part, self.buckets) = part.ok_or(BuildError::TooManyOps)?;
        if self.buckets as usize > self.memory.buckets.len() {
            return Err(BuildError::Full);
        }
        let Memory { records, edges, scratch, .. } = &mut self.memory;
        self.draft.group(records, edges, scratch).ok_or(BuildError::Full)
    }
}
