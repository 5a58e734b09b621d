//! Builds a schedule in lent memory, for a run in windows.

use core::mem::take;

use super::memory::{Memory, Requirements, Unsuitable};
use super::rank::WindowRank;
use super::record::{MOST_OF_RANK, WindowRecord};
use super::schedule::Schedule;
use super::shared::Shared;
use crate::goal::{Edge, Op, OpKind, Sink};
use crate::sim::build_error::BuildError;
use crate::sim::draft::{Dependent, Draft};
use crate::sim::mail::Block;
use crate::sim::parameters::Parameters;
use crate::sim::queues::heap::Heaps;
use crate::sim::rank::dependencies::Operations;
use crate::sim::rank::matching::slots::SlotRange;
use crate::sim::record::NONE;
use crate::units::Picos;

/// Sink that builds a [`Schedule`].
#[derive(Debug)]
pub struct Builder<'m> {
    memory: Memory<'m>,
    requirements: Requirements,
    parameters: Parameters<'m>,
    draft: Draft,
    names: &'m [u32],
    /// A message size known to be eager: a cache for `check`.
    eager: u64,
    /// Number of handshakes, and of those before the open rank.
    handshakes: [u32; 2],
}

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
            parameters,
            draft: Draft::default(),
            names: &[],
            eager: 0,
            handshakes: [0; 2],
        })
    }

    /// Gives each rank the number by which it precedes others at equal times; by default its own.
    #[must_use]
    pub const fn named(self, names: &'m [u32]) -> Self {
        Self { names, ..self }
    }

    /// The finished schedule.
    ///
    /// # Errors
    ///
    /// [`BuildError::Order`] if ranks are missing.
    pub fn finish(self) -> Result<Schedule<'m>, BuildError> {
        let [handshakes, _] = self.handshakes;
        let Requirements { ops, stand_ins, records, .. } = self.requirements;
        let further = match records > ops + stand_ins && handshakes as usize + stand_ins > 0 {
            true => u32::try_from(ops + stand_ins).map_err(|_| BuildError::Full)?,
            false => NONE,
        };
        let Self { mut memory, requirements, draft, parameters, names, .. } = self;
        let Draft { ops, receives, sends, .. } = draft;
        let first_foreign = match requirements.block {
            Block::ALL => NONE,
            _ => u32::try_from(requirements.ops).map_err(|_| BuildError::Full)?,
        };
        let (firsts, edges) = (take(&mut memory.firsts), take(&mut memory.edges));
        let (firsts, edges) = draft.finish(firsts, edges)?;
        let requirements = Requirements {
            ops: ops as usize,
            edges: 0,
            ranks: firsts.len() - 1,
            firsts: 0,
            slots: receives as usize,
            scratch: 0,
            ..requirements
        };
        let memory = memory.cut(&requirements).ok_or(BuildError::Full)?;
        memory.ends.fill_with(Default::default);
        memory.taken.fill_with(Default::default);
        let first_rank = draft.first_rank();
        Ok(Schedule {
            memory,
            edges,
            firsts,
            parameters,
            requirements,
            further,
            first_foreign,
            first_rank,
            names,
            handshakes,
            sends,
        })
    }

    /// Releases the operations of the open rank that have no dependencies.
    fn release(&mut self) -> Option<()> {
        let records = &*self.memory.records;
        let mut shared = Shared::new(records, &[], &[], self.parameters, &*self.memory.times);
        let mut ready = shared.roots(self.draft.first..self.draft.ops);
        let state = self.memory.ranks.get_mut(self.draft.place() as usize)?;
        let overlap = !self.memory.links.is_empty();
        let mut heaps = Heaps::new(&*self.memory.links);
        while let Some(op) = ready.take(&mut shared) {
            shared.at(op).release_root(self.draft.first + state.released, state.released);
            shared.enlist(overlap.then_some(&mut heaps), state, op);
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
        if size == self.eager && self.parameters.levels() == 0 {
            return Ok(false);
        }
        if size >= u64::from(u32::MAX) {
            return Err(BuildError::Unsuitable(Unsuitable::Long { size }));
        }
        let level = self.parameters.level(self.draft.rank(), peer);
        // An overflow of the costs is reported by the run.
        if self.parameters.costs(level, size).is_ok_and(|costs| costs.rendezvous) {
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
        *state = WindowRank { posted: SlotRange::at(self.draft.receives), ..WindowRank::default() };
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
        self.draft.count(op.kind, self.memory.slots)?;
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
