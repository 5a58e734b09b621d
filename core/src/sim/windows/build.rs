//! Puts a schedule into lent memory, ready to be run in windows.

use super::memory::{Memory, Requirements, Unsuitable};
use super::price::Price;
use super::rank::WindowRank;
use super::record::{MOST_OF_RANK, NONE, Successors, WindowRecord};
use super::schedule::Schedule;
use super::shared::Shared;
use crate::goal::{ANY, Op, OpKind, Sink};
use crate::sim::parameters::Parameters;
use crate::sim::record::Slot;
use crate::sim::schedule::BuildError;
use crate::units::Picos;

/// Marks a dependency on the start, in the first word of a pending edge.
const START: u32 = 1 << 31;

/// The sink that builds a [`Schedule`].
#[derive(Debug)]
pub struct Builder<'m> {
    memory: Memory<'m>,
    requirements: Requirements,
    parameters: Parameters<'m>,
    ranks: u32,
    /// The rank that comes next, or after the open one.
    next: u32,
    ops: u32,
    /// First operation of the open rank.
    first: u32,
    edges: u32,
    receives: u32,
    sends: u32,
    /// Dependencies of the open rank.
    pending: usize,
    /// A size whose messages are eager.
    eager: u64,
    /// Handshakes, and those before the open rank.
    handshakes: [u32; 2],
}

impl<'m> Builder<'m> {
    /// Builds in `memory`, which has at least the elements of
    /// `requirements`, for a run with `parameters`.
    ///
    /// # Errors
    ///
    /// [`BuildError::Full`] when it has less.
    pub fn new(
        memory: Memory<'m>,
        requirements: Requirements,
        parameters: Parameters<'m>,
    ) -> Result<Self, BuildError> {
        Ok(Self {
            memory: memory.cut(&requirements).ok_or(BuildError::Full)?,
            requirements,
            parameters,
            ranks: 0,
            next: 0,
            ops: 0,
            first: 0,
            edges: 0,
            receives: 0,
            sends: 0,
            pending: 0,
            eager: 0,
            handshakes: [0; 2],
        })
    }

    /// The finished schedule.
    ///
    /// # Errors
    ///
    /// [`BuildError::Order`] when ranks are missing.
    pub fn finish(self) -> Result<Schedule<'m>, BuildError> {
        let [handshakes, _] = self.handshakes;
        let further = if handshakes > 0 { self.further(0)? } else { NONE };
        let Self { memory, requirements, ranks, next, ops, edges, sends, receives, .. } = self;
        if next != ranks {
            return Err(BuildError::Order { rank: next });
        }
        let Memory { records, edges: words, ranks: states, firsts, slots, .. } = memory;
        let firsts = firsts.get_mut(..=ranks as usize).ok_or(BuildError::Full)?;
        if let Some(end) = firsts.last_mut() {
            *end = ops;
        }
        Ok(Schedule {
            records,
            ops,
            handshakes,
            further,
            edges: words.get(..edges as usize).ok_or(BuildError::Full)?,
            ranks: states.get_mut(..ranks as usize).ok_or(BuildError::Full)?,
            firsts,
            slots,
            words: memory.words,
            times: memory.times,
            done: memory.done,
            parameters: self.parameters,
            shift: requirements.shift,
            sends,
            receives,
        })
    }

    fn add(&mut self, op: u32, on: u32, start: u32) -> Result<(), BuildError> {
        let count = self.ops - self.first;
        for named in [op, on] {
            if named >= count {
                return Err(BuildError::UnknownOp { rank: self.next.wrapping_sub(1), op: named });
            }
        }
        let edge = self.memory.scratch.get_mut(self.pending).ok_or(BuildError::Full)?;
        *edge = [op | start, on];
        self.pending += 1;
        Ok(())
    }

    /// Groups the dependencies by the operation waited for. While that goes
    /// on, two words of each record count those that wait for its end and
    /// its start, and say where the next of them is written.
    fn group(&mut self) -> Option<()> {
        let first = self.first;
        let records = self.memory.records.get_mut(first as usize..self.ops as usize)?;
        let pending = self.memory.scratch.get(..self.pending)?;
        for [op, on] in pending {
            *records.get_mut((op & !START) as usize)?.waits() += 1;
            let [ends, starts] = records.get_mut(*on as usize)?.counts();
            *(if op & START == 0 { ends } else { starts }) += 1;
        }
        let words = &mut *self.memory.edges;
        for record in &mut *records {
            let [ends, starts] = record.counts().map(|count| *count);
            match (ends, starts) {
                (0, 0) => record.set_successors(Successors::None, 0),
                (1, 0) => record.set_successors(Successors::Ends, 0),
                (0, 1) => record.set_successors(Successors::Starts, 0),
                _ => {
                    *words.get_mut(self.edges as usize)? = ends;
                    *words.get_mut(self.edges as usize + 1)? = starts;
                    record.set_successors(Successors::Listed, self.edges);
                    let [_, place] = record.counts();
                    *place = self.edges + 2;
                    self.edges = self.edges.checked_add(2 + ends)?.checked_add(starts)?;
                }
            }
        }
        // Those that wait for the end come first in each list.
        for wanted in [0, START] {
            for [op, on] in pending.iter().filter(|[op, _]| op & START == wanted) {
                let target = first + (op & !START);
                let on = records.get_mut(*on as usize)?;
                let listed = on.successors() == Successors::Listed;
                let [next, place] = on.counts();
                if listed {
                    *words.get_mut(*place as usize)? = target;
                    *place += 1;
                } else {
                    *next = target;
                }
            }
        }
        Some(())
    }

    /// Releases what waits for nothing on the open rank.
    fn release(&mut self) -> Option<()> {
        let records = &*self.memory.records;
        let shared = Shared::new((records, &[]), &[], (self.parameters, &[]));
        let mut ready = [NONE; 3];
        for op in self.first..self.ops {
            let record = shared.at(op);
            if record.link() == 0 {
                shared.push(ready.get_mut(record.kind() as usize)?, op);
            }
        }
        let state = self.memory.ranks.get_mut(self.next.checked_sub(1)? as usize)?;
        shared.each_ready(ready, |op| {
            shared.at(op).release_root(self.first + state.released, state.released);
            shared.enlist(state, op);
        });
        Some(())
    }

    /// The first further record of a handshake.
    fn further(&self, handshake: u32) -> Result<u32, BuildError> {
        let all = u32::try_from(self.requirements.ops).ok().zip(handshake.checked_mul(3));
        all.and_then(|(ops, before)| ops.checked_add(before)).ok_or(BuildError::Full)
    }

    /// Makes the last operation, a send to `peer`, begin a handshake.
    fn shake_hands(&mut self, (peer, size): (u32, u64)) -> Result<(), BuildError> {
        let further = self.further(self.handshakes[0])?;
        self.handshakes[0] += 1;
        let rank = self.next.wrapping_sub(1);
        let message = |peer, size| Op { kind: OpKind::Send { peer, size, tag: 0 }, cpu: 0, nic: 0 };
        let calc = OpKind::Calc { duration: Picos::ZERO };
        let known = Op { kind: calc, cpu: 0, nic: 0 };
        let records = [message(rank, 1), message(peer, size), known];
        for (op, at) in records.iter().zip(further..) {
            let record = self.memory.records.get_mut(at as usize).ok_or(BuildError::Full)?;
            record.set(op);
            if let Some(time) = self.memory.times.get_mut(at as usize) {
                *time = 0.into();
            }
        }
        let record = self.memory.records.get_mut(self.ops as usize).ok_or(BuildError::Full)?;
        record.set_handshake(further);
        Ok(())
    }

    /// The ends of sends that begin handshakes are those of their data.
    fn hand_on(&mut self) -> Option<()> {
        let [end, first] = self.handshakes;
        self.handshakes[1] = end;
        if first == end {
            return Some(());
        }
        for op in self.first..self.ops {
            let record = self.memory.records.get(op as usize)?;
            if !record.is_handshake() {
                continue;
            }
            let (successors, next) = (record.successors(), record.next());
            let further = usize::try_from(record.time()).ok()?;
            self.memory.records.get_mut(further + 1)?.set_successors(successors, next);
        }
        Some(())
    }

    /// Whether a send of `size` bytes is a handshake.
    fn check(&mut self, size: u64) -> Result<bool, BuildError> {
        if size == self.eager {
            return Ok(false);
        }
        if size >= u64::from(u32::MAX) {
            return Err(BuildError::Unsuitable(Unsuitable::Long { size }));
        }
        // What costs too much is found out by the run.
        if Price::of(&self.parameters, size).is_ok_and(|price| price.rendezvous) {
            if self.requirements.records > self.requirements.ops {
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
        if ranks as usize > self.requirements.ranks {
            return Err(BuildError::Full);
        }
        self.ranks = ranks;
        Ok(())
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), BuildError> {
        if rank != self.next || rank >= self.ranks {
            return Err(BuildError::Order { rank: self.next });
        }
        self.next += 1;
        self.first = self.ops;
        self.pending = 0;
        let first = self.memory.firsts.get_mut(rank as usize).ok_or(BuildError::Full)?;
        *first = self.ops;
        let state = self.memory.ranks.get_mut(rank as usize).ok_or(BuildError::Full)?;
        *state = WindowRank { posted: [self.receives; 2], ..WindowRank::default() };
        Ok(())
    }

    fn op(&mut self, op: Op) -> Result<u32, BuildError> {
        let index = self.ops - self.first;
        let rank = self.next.wrapping_sub(1);
        if op.cpu > 0 || op.nic > 0 {
            return Err(BuildError::Unsuitable(Unsuitable::Units));
        }
        if index >= MOST_OF_RANK {
            return Err(BuildError::Unsuitable(Unsuitable::TooManyOps));
        }
        let mut handshake = None;
        match op.kind {
            OpKind::Send { peer, .. } if peer >= self.ranks => {
                return Err(BuildError::Peer { rank, op: index, peer });
            }
            OpKind::Receive { peer, .. } if peer >= self.ranks && peer != ANY => {
                return Err(BuildError::Peer { rank, op: index, peer });
            }
            OpKind::Receive { .. } => {
                let slot = self.memory.slots.get_mut(self.receives as usize);
                *slot.ok_or(BuildError::Full)? = Slot::default();
                self.receives += 1;
            }
            OpKind::Send { size, peer, .. } => {
                handshake = self.check(size)?.then_some((peer, size));
                self.sends += 1;
            }
            OpKind::Calc { .. } => {}
        }
        if self.ops as usize >= self.requirements.ops {
            return Err(BuildError::Full);
        }
        if let Some(time) = self.memory.times.get_mut(self.ops as usize) {
            *time = 0.into();
        }
        let record: Option<&mut WindowRecord> = self.memory.records.get_mut(self.ops as usize);
        record.ok_or(BuildError::Full)?.set(&op);
        if let Some(message) = handshake {
            self.shake_hands(message)?;
        }
        self.ops += 1;
        Ok(index)
    }

    fn requires(&mut self, op: u32, on: u32) -> Result<(), BuildError> {
        self.add(op, on, 0)
    }

    fn requires_start(&mut self, op: u32, on: u32) -> Result<(), BuildError> {
        self.add(op, on, START)
    }

    fn end_rank(&mut self) -> Result<(), BuildError> {
        self.group()
            .and_then(|()| self.hand_on())
            .and_then(|()| self.release())
            .ok_or(BuildError::Full)
    }
}
