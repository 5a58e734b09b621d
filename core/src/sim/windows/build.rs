//! Builds a schedule in lent memory, for a run in windows.

use core::mem::take;

use super::memory::{Memory, Requirements, Unsuitable};
use super::rank::WindowRank;
use super::record::{MOST_OF_RANK, WindowRecord};
use super::schedule::Schedule;
use super::shared::{Frame, Shared};
use crate::goal::{Edge, Op, OpKind, Sink};
use crate::sim::build_error::BuildError;
use crate::sim::draft::{Dependent, Draft};
use crate::sim::mail::Block;
use crate::sim::parameters::Parameters;
use crate::sim::queues::heap::Heaps;
use crate::sim::rank::dependencies::Operations;
use crate::sim::rank::matching::slots::SlotRange;
use crate::sim::record::{NONE, Slot};
use crate::units::Picos;

/// Sink that builds a [`Schedule`].
#[derive(Debug)]
pub struct Builder<'m> {
    memory: Memory<'m>,
    requirements: Requirements,
    frame: Frame<'m>,
    draft: Draft,
    /// A message size known to be eager: a cache for `check`.
    eager: u64,
    /// Number of handshakes, and of those before the open rank.
    handshakes: [u32; 2],
    /// Memory between the parts that were built apart, bytes.
    unused: u64,
    /// True if it builds only a part.
    apart: bool,
}

/// A part of a schedule that was built apart.
#[derive(Clone, Copy, Debug)]
pub struct BuiltPart(Draft);

impl<'m> Builder<'m> {
    /// Creates a builder in `memory`, which needs at least the elements of `requirements`, for a
    /// run with `parameters`.
    ///
    /// # Errors
    ///
    /// [`BuildError::Full`] if it has fewer.
    pub fn new(
        memory: Memory<'m>,
        requirements: Requirements,
        parameters: Parameters<'m>,
    ) -> Result<Self, BuildError> {
        Ok(Self {
            memory: memory.cut(&requirements).ok_or(BuildError::Full)?,
            requirements,
            frame: Frame::new(parameters),
            draft: Draft::default(),
            eager: 0,
            handshakes: [0; 2],
            unused: 0,
            apart: false,
        })
    }

    /// Gives each rank the number by which it precedes others at equal times; by default its own.
    #[must_use]
    pub const fn named(self, names: &'m [u32]) -> Self {
        Self { frame: Frame { names, ..self.frame }, ..self }
    }

    /// Takes the memory for the next `ranks` ranks, which have `ops` operations and as many or fewer
    /// `edges`, at most `most` of one rank, for a builder of these. It refuses handshakes.
    /// `None` with overlap, or if too little memory is left.
    ///
    /// A new builder in all of the memory [joins](Self::join) the parts.
    pub fn split_off(&mut self, ranks: u32, [ops, edges, most]: [usize; 3]) -> Option<Self> {
        if !self.memory.links.is_empty() || self.requirements.block != Block::ALL {
            return None;
        }
        let count = ranks as usize;
        let requirements = Requirements {
            records: ops,
            ops,
            edges: 2 * edges,
            ranks: count,
            firsts: count,
            slots: ops,
            scratch: most,
            ..Requirements::default()
        };
        let memory = self.memory.split_off(&requirements)?;
        let mut draft = Draft::default();
        let first = self.draft.ranks;
        self.draft.ranks += ranks;
        draft.announce_some(0, first, self.draft.ranks);
        draft.before = self.draft.before;
        let [before, words] = &mut self.draft.before;
        *before += u32::try_from(ops).ok()?;
        *words += u32::try_from(2 * edges).ok()?;
        let (frame, apart) = (self.frame, true);
        let part = Self::new(memory, requirements, frame.parameters).ok()?;
        Some(Self { frame, draft, apart, ..part })
    }

    /// Ends a part of a schedule.
    ///
    /// # Errors
    ///
    /// [`BuildError::Order`] if operations are missing.
    pub fn end(self) -> Result<BuiltPart, BuildError> {
        if self.draft.ops as usize != self.requirements.ops {
            return Err(BuildError::Order { rank: self.draft.rank() });
        }
        Ok(BuiltPart(self.draft))
    }

    /// The finished schedule of consecutive parts, which were built in this builder's memory.
    ///
    /// # Errors
    ///
    /// [`BuildError::Order`] if ranks are missing.
    pub fn join(
        mut self,
        parts: impl IntoIterator<Item = BuiltPart>,
    ) -> Result<Schedule<'m>, BuildError> {
        let mut slots = 0;
        for BuiltPart(part) in parts {
            let [ops, words] = part.before;
            self.unused += u64::from(ops - slots) * size_of::<Slot>() as u64;
            self.unused += u64::from(words - self.draft.edges) * size_of::<u32>() as u64;
            slots = ops + part.receives;
            self.draft.append(&part)?;
        }
        self.finish_with(slots)
    }

    /// The finished schedule.
    ///
    /// # Errors
    ///
    /// [`BuildError::Order`] if ranks are missing.
    pub fn finish(self) -> Result<Schedule<'m>, BuildError> {
        let slots = self.draft.receives;
        self.finish_with(slots)
    }

    fn finish_with(self, slots: u32) -> Result<Schedule<'m>, BuildError> {
        let [handshakes, _] = self.handshakes;
        let Requirements { ops, stand_ins, records, .. } = self.requirements;
        let further = match records > ops + stand_ins && handshakes as usize + stand_ins > 0 {
            true => u32::try_from(ops + stand_ins).map_err(|_| BuildError::Full)?,
            false => NONE,
        };
        let Self { mut memory, requirements, draft, frame, unused, .. } = self;
        let Draft { ops, sends, .. } = draft;
        let Requirements { away, .. } = requirements;
        let at = |record: usize| u32::try_from(record).map_err(|_| BuildError::Full);
        let [first_foreign, end_foreign] = match requirements.block {
            Block::ALL => [NONE; 2],
            _ => [at(requirements.ops)?, at(requirements.ops + stand_ins)?],
        };
        let (firsts, edges) = (take(&mut memory.firsts), take(&mut memory.edges));
        let (firsts, edges) = draft.finish(firsts, edges)?;
        let requirements = Requirements {
            ops: ops as usize,
            edges: 0,
            ranks: firsts.len() - 1,
            firsts: 0,
            slots: slots as usize,
            scratch: 0,
            ..requirements
        };
        let memory = memory.cut(&requirements).ok_or(BuildError::Full)?;
        memory.ends.fill_with(Default::default);
        memory.taken.fill_with(Default::default);
        let first_rank = draft.first_rank();
        let frame =
            Frame { edges, firsts, further, first_foreign, end_foreign, away, first_rank, ..frame };
        Ok(Schedule { memory, frame, requirements, handshakes, sends, unused })
    }

    /// Releases the operations of the open rank that have no dependencies.
    fn release(&mut self) -> Option<()> {
        let records = &*self.memory.records;
        let mut shared = Shared::new(records, &*self.memory.times, self.frame);
        let Draft { first, ops, before: [before, _], .. } = self.draft;
        let mut ready = shared.roots(first..ops);
        let state = self.memory.ranks.get_mut(self.draft.place() as usize)?;
        let overlap = !self.memory.links.is_empty();
        let mut heaps = Heaps::new(&*self.memory.links);
        while let Some(op) = ready.take(&mut shared) {
            shared.at(op).release_root(before + first + state.released, state.released);
            shared.enlist(overlap.then_some(&mut heaps), state, op);
        }
        if before > 0 {
            let released = self.memory.records.get(first as usize..ops as usize)?.iter();
            for record in released.filter(|record| record.released()) {
                record.link.set(before + record.link.get());
            }
            let lists = [&mut state.sends, &mut state.receives, &mut state.calcs].into_iter();
            lists.filter(|last| **last != NONE).for_each(|last| *last += before);
        }
        Some(())
    }

    /// First of the three additional records of a handshake.
    fn further(&self, handshake: u32) -> Result<u32, BuildError> {
        let Requirements { ops, stand_ins, .. } = self.requirements;
        // Those of handshakes with other processes come first.
        let before = u32::try_from(ops + 4 * stand_ins).ok().zip(handshake.checked_mul(3));
        before.and_then(|(first, before)| first.checked_add(before)).ok_or(BuildError::Full)
    }

    /// Turns the last operation, a send to `peer`, into a handshake, with three additional records.
    fn add_handshake(&mut self, peer: u32, size: u64) -> Result<(), BuildError> {
        let further = self.further(self.handshakes[0])?;
        self.handshakes[0] += 1;
        let rank = self.draft.rank();
        let message = |peer, size| OpKind::Send { peer, size, tag: 0 };
        let known = OpKind::Calc { duration: Picos::ZERO };
        let records = [message(rank, 1), message(peer, size), known];
        for (kind, at) in records.into_iter().zip(further..) {
            let record = self.memory.records.get_mut(at as usize).ok_or(BuildError::Full)?;
            record.set(kind);
            record.set_send(self.draft.ops);
            if let Some(time) = self.memory.times.get_mut(at as usize) {
                *time = 0.into();
            }
        }
        let record =
            self.memory.records.get_mut(self.draft.ops as usize).ok_or(BuildError::Full)?;
        record.set_handshake(further);
        Ok(())
    }

    /// Moves the successors of sends with handshakes to their data messages.
    fn forward_ends(&mut self) -> Option<()> {
        let [end, first] = self.handshakes;
        self.handshakes[1] = end;
        if first == end {
            return Some(());
        }
        for op in self.draft.first..self.draft.ops {
            let record = self.memory.records.get(op as usize)?;
            if !record.is_handshake() {
                continue;
            }
            let (successors, next) = (record.successors(), record.next.get());
            let further = usize::try_from(record.time.get()).ok()?;
            self.memory.records.get_mut(further + 1)?.set_successors(successors, next);
        }
        Some(())
    }

    /// True if a send of `size` bytes to `peer` is a handshake.
    fn check(&mut self, peer: u32, size: u64) -> Result<bool, BuildError> {
        if size == self.eager && self.frame.parameters.levels() == 0 {
            return Ok(false);
        }
        if size >= u64::from(u32::MAX) {
            return Err(BuildError::Unsuitable(Unsuitable::Long { size }));
        }
        let level = self.frame.parameters.level(self.draft.rank(), peer);
        // An overflow of the costs is reported by the run.
        if self.frame.parameters.costs(level, size).is_ok_and(|costs| costs.rendezvous) {
            let Requirements { records, ops, stand_ins, .. } = self.requirements;
            if records > ops + stand_ins {
                return Ok(true);
            }
            return Err(BuildError::Unsuitable(Unsuitable::Rendezvous { size }));
        }
        self.eager = size;
        Ok(false)
    }
}

impl Sink for Builder<'_> {
    type Error = BuildError;

    fn ranks(&mut self, ranks: u32) -> Result<(), BuildError> {
        let Requirements { ranks: room, shift, block, .. } = self.requirements;
        if self.apart {
            self.draft.ranks = ranks;
            return Ok(());
        }
        if block == Block::ALL {
            return self.draft.announce(ranks, room);
        }
        let own = block.ranks(shift, ranks);
        self.draft.announce_some(ranks, own.start, own.end);
        Ok(())
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), BuildError> {
        self.draft.begin(rank, self.memory.firsts)?;
        let place = self.draft.place() as usize;
        let state = self.memory.ranks.get_mut(place).ok_or(BuildError::Full)?;
        let [before, _] = self.draft.before;
        let posted = SlotRange::at(before + self.draft.receives);
        *state = WindowRank { posted, ..WindowRank::default() };
        Ok(())
    }

    fn op(&mut self, op: Op) -> Result<u32, BuildError> {
        let index = self.draft.index();
        if op.cpu > 0 || op.nic > 0 {
            return Err(BuildError::Unsuitable(Unsuitable::Units));
        }
        if index >= MOST_OF_RANK {
            return Err(BuildError::Unsuitable(Unsuitable::TooManyOps));
        }
        self.draft.count_message(op.kind)?;
        if self.draft.receives as usize > self.memory.slots.len() {
            return Err(BuildError::Full);
        }
        let handshake = match op.kind {
            OpKind::Send { size, peer, .. } if self.check(peer, size)? => Some((peer, size)),
            _ => None,
        };
        let at = self.draft.ops as usize;
        if at >= self.requirements.ops {
            return Err(BuildError::Full);
        }
        if let Some(time) = self.memory.times.get_mut(at) {
            *time = 0.into();
        }
        let record: Option<&mut WindowRecord> = self.memory.records.get_mut(at);
        record.ok_or(BuildError::Full)?.set(op.kind);
        if let Some((peer, size)) = handshake {
            self.add_handshake(peer, size)?;
        }
        self.draft.ops += 1;
        Ok(index)
    }

    fn edge(&mut self, edge: Edge) -> Result<(), BuildError> {
        self.draft.depend(self.memory.scratch, edge)
    }

    fn end_rank(&mut self) -> Result<(), BuildError> {
        let Memory { records, edges, scratch, .. } = &mut self.memory;
        self.draft
            .group(records, edges, scratch)
            .and_then(|()| self.forward_ends())
            .and_then(|()| self.release())
            .ok_or(BuildError::Full)
    }
}
