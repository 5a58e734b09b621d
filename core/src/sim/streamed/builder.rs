//! Prepares the memory of a streamed schedule.

use super::operations::{Own, Streamed};
use super::partly::Partly;
use core::mem::take;
use core::ops::Range;

use crate::goal::{Edge, Lookup, Op, OpKind, Sink};
use crate::sim::build_error::BuildError;
use crate::sim::draft::Draft;
use crate::sim::in_order::rank::Rank;
use crate::sim::in_order::waiting::{Part, Waiting, Wildcards};
use crate::sim::memory::{Memory, Requirements};
use crate::sim::record::Record;
use crate::sim::schedule::{Schedule, note_messages};

/// Sink that checks a schedule and builds the parts that a streamed run keeps in memory.
#[derive(Debug)]
pub struct Builder<'m> {
    memory: Memory<'m>,
    requirements: Requirements,
    draft: Draft,
    /// Wildcards of all receives and messages.
    wildcards: Wildcards,
}

impl<'m> Builder<'m> {
    /// Creates a builder in `memory`, which needs at least the elements of `requirements`.
    ///
    /// # Errors
    ///
    /// [`BuildError::Full`] if it has fewer.
    pub fn new(memory: Memory<'m>, requirements: Requirements) -> Result<Self, BuildError> {
        let memory = memory.cut(&requirements).ok_or(BuildError::Full)?;
        Ok(Self { memory, requirements, draft: Draft::default(), wildcards: Wildcards::default() })
    }

    /// Announces `ranks` ranks, of which the schedule has only `own`, for a
    /// [`Part`](crate::sim::streamed::Part).
    ///
    /// # Errors
    ///
    /// [`BuildError::Full`] if they are more than required.
    pub fn part(&mut self, ranks: u32, own: Range<u32>) -> Result<(), BuildError> {
        let states = &mut *self.memory.ranks;
        if own.len() > states.len() {
            return Err(BuildError::Full);
        }
        self.draft.announce_some(ranks, own.start, own.end);
        states.fill(Rank::default());
        Ok(())
    }

    /// Adds a rank by its numbers of sends, receives and calculations, in place of passing these. They
    /// must be on its first processor and interface, and without wildcards.
    ///
    /// # Errors
    ///
    /// [`BuildError`], if it is not the next rank, or there are too many operations.
    pub fn counted_rank(
        &mut self,
        rank: u32,
        [sends, receives, calcs]: [u32; 3],
    ) -> Result<(), BuildError> {
        self.draft.begin(rank, self.memory.firsts)?;
        let mut all = [sends, receives, calcs].into_iter();
        let ops = all.try_fold(self.draft.ops, u32::checked_add);
        self.draft.ops = ops.ok_or(BuildError::TooManyOps)?;
        // No more than the operations.
        self.draft.sends += sends;
        self.draft.receives += receives;
        Ok(())
    }

    /// The schedule; `file` is the one that was fed to this sink.
    ///
    /// # Errors
    ///
    /// [`BuildError::Order`] if ranks are missing.
    pub fn finish<F: Lookup>(self, file: F) -> Result<Schedule<'m, Streamed<'m, F>>, BuildError> {
        let Self { mut memory, draft, wildcards, requirements } = self;
        let (firsts, _) = draft.finish(take(&mut memory.firsts), &[])?;
        let (first_rank, ranks) = (draft.first_rank(), draft.ranks);
        memory.ranks.iter_mut().for_each(|rank| rank.part = Part::shared(wildcards));
        let waiting = Waiting::shared(take(&mut memory.buckets));
        let partly = Partly::new(take(&mut memory.partly));
        let released = take(&mut memory.released);
        let own = Own { firsts, first_rank, ranks };
        let storage = Streamed::new(file, own, partly, released, &requirements);
        let requirements =
            Requirements { firsts: 0, buckets: 0, partly: 0, released: 0, ..requirements };
        let sends = draft.sends;
        let schedule = Schedule::in_memory(memory, requirements, firsts, waiting, storage, sends);
        Ok(Schedule { first_rank, ..schedule })
    }
}

impl Sink for Builder<'_> {
    type Error = BuildError;

    fn ranks(&mut self, ranks: u32) -> Result<(), BuildError> {
        self.part(ranks, 0..ranks)
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), BuildError> {
        self.draft.begin(rank, self.memory.firsts)
    }

    fn op(&mut self, op: Op) -> Result<u32, BuildError> {
        let (rank, index) = (self.draft.rank(), self.draft.index());
        let Requirements { cpus, nics, .. } = self.requirements;
        if usize::from(op.cpu) >= cpus || usize::from(op.nic) >= nics {
            return Err(BuildError::Unit { rank, op: index });
        }
        self.draft.count_message(op.kind)?;
        if let OpKind::Send { .. } | OpKind::Receive { .. } = op.kind {
            self.wildcards.add(Record::new(op).envelope());
        }
        if self.requirements.several() {
            note_messages(self.memory.ranks, rank, &op);
        }
        self.draft.ops = self.draft.ops.checked_add(1).ok_or(BuildError::TooManyOps)?;
        Ok(index)
    }

    fn edge(&mut self, _edge: Edge) -> Result<(), BuildError> {
        Ok(())
    }
}
