//! Puts a schedule into lent memory.

use core::fmt;

use super::crowd::{Crowd, SHORT};
use super::list::Records;
use super::memory::{Memory, Requirements};
use super::queue::Entry;
use super::rank::Rank;
use super::record::{Record, Slot, Successors};
use super::unsuitable::Unsuitable;
use crate::goal::{ANY, Op, OpKind, Sink};

/// Why a schedule cannot be simulated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BuildError {
    /// 2³² − 1 or more operations, or 2³¹ or more dependencies.
    TooManyOps,
    /// Less memory was lent than the survey asked for, or the schedule is
    /// larger than the surveyed one.
    Full,
    /// Ranks did not come in ascending order, or not as many as announced.
    Order {
        /// The rank that was expected.
        rank: u32,
    },
    /// A dependency names an operation that the rank does not have.
    UnknownOp {
        /// The rank.
        rank: u32,
        /// The unknown operation.
        op: u32,
    },
    /// A message goes to or comes from a rank that does not exist.
    Peer {
        /// The rank that has the operation.
        rank: u32,
        /// The operation.
        op: u32,
        /// The rank that does not exist.
        peer: u32,
    },
    /// An operation is on a processor or interface beyond those that the
    /// survey found.
    Unit {
        /// The rank that has the operation.
        rank: u32,
        /// The operation.
        op: u32,
    },
    /// The schedule cannot run in time windows.
    Unsuitable(Unsuitable),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyOps => f.write_str(
                "a simulation holds less than 2^32 - 1 operations and 2^31 dependencies",
            ),
            Self::Full => f.write_str("the schedule does not fit into the memory lent for it"),
            Self::Order { rank } => write!(f, "rank {rank} is missing or out of order"),
            Self::UnknownOp { rank, op } => {
                write!(f, "rank {rank} has no operation {op} to depend on")
            }
            Self::Peer { rank, op, peer: ANY } => {
                write!(f, "operation {op} of rank {rank} sends to no rank in particular")
            }
            Self::Peer { rank, op, peer } => {
                write!(f, "operation {op} of rank {rank} names rank {peer}, which does not exist")
            }
            Self::Unit { rank, op } => write!(
                f,
                "operation {op} of rank {rank} has a cpu or nic that the survey did not see"
            ),
            Self::Unsuitable(why) => write!(f, "the schedule cannot run in windows: {why}"),
        }
    }
}

impl core::error::Error for BuildError {}

/// A schedule in lent memory, ready to run once.
#[derive(Debug)]
pub struct Schedule<'m> {
    pub(super) records: Records<'m>,
    pub(super) edges: &'m [u32],
    pub(super) ranks: &'m mut [Rank],
    pub(super) firsts: &'m [u32],
    pub(super) slots: &'m mut [Slot],
    pub(super) crowds: &'m mut [Crowd],
    pub(super) index: &'m mut [u32],
    pub(super) clocks: &'m mut [u64],
    pub(super) times: &'m mut [u64],
    pub(super) tries: &'m mut [u64],
    pub(super) done: &'m mut [u64],
    pub(super) queue: &'m mut [Entry],
    pub(super) places: &'m mut [u32],
    pub(super) cpus: usize,
    pub(super) nics: usize,
    sends: u32,
}

impl<'m> Schedule<'m> {
    /// Index of each rank's first operation, counted over the whole
    /// schedule as in the events that observers see, and at last the number
    /// of operations.
    #[must_use]
    pub const fn first_ops(&self) -> &'m [u32] {
        self.firsts
    }

    /// Events of a run that goes to its end without handshakes; each of
    /// those adds two.
    #[must_use]
    pub const fn events(&self) -> u64 {
        let ops = match self.firsts.last() {
            Some(ops) => *ops,
            None => 0,
        };
        ops as u64 + self.sends as u64
    }
}

/// The sink that builds a [`Schedule`].
#[derive(Debug)]
pub struct Builder<'m> {
    memory: Memory<'m>,
    requirements: Requirements,
    ranks: u32,
    /// The rank that comes next, or after the open one.
    next: u32,
    ops: u32,
    /// First operation of the open rank.
    first: u32,
    edges: u32,
    receives: u32,
    /// Receives before the open rank.
    receives_before: u32,
    crowds: u32,
    /// Words of the index that crowds have.
    index: u32,
    sends: u32,
    /// Dependencies of the open rank.
    pending: usize,
}

/// Marks a dependency on the start, in the first word of a pending edge.
const START: u32 = 1 << 31;

impl<'m> Builder<'m> {
    /// Builds in `memory`, which has at least the elements of
    /// `requirements`.
    ///
    /// # Errors
    ///
    /// [`BuildError::Full`] when it has less.
    pub fn new(memory: Memory<'m>, requirements: Requirements) -> Result<Self, BuildError> {
        let enough = memory.records.len() >= requirements.records
            && memory.edges.len() >= requirements.edges
            && memory.ranks.len() >= requirements.ranks
            && memory.firsts.len() >= requirements.firsts
            && memory.slots.len() >= requirements.slots
            && memory.crowds.len() >= requirements.crowds
            && memory.index.len() >= requirements.index
            && memory.clocks.len() >= requirements.clocks
            && memory.times.len() >= requirements.times
            && memory.tries.len() >= requirements.tries
            && memory.done.len() >= requirements.done
            && memory.queue.len() >= requirements.queue
            && memory.places.len() >= requirements.places
            && memory.scratch.len() >= requirements.scratch;
        if !enough {
            return Err(BuildError::Full);
        }
        Ok(Self {
            memory,
            requirements,
            ranks: 0,
            next: 0,
            ops: 0,
            first: 0,
            edges: 0,
            receives: 0,
            receives_before: 0,
            crowds: 0,
            index: 0,
            sends: 0,
            pending: 0,
        })
    }

    /// The finished schedule.
    ///
    /// # Errors
    ///
    /// [`BuildError::Order`] when ranks are missing.
    pub fn finish(self) -> Result<Schedule<'m>, BuildError> {
        let Self { memory, requirements, ranks, next, ops, edges, receives, sends, .. } = self;
        if next != ranks {
            return Err(BuildError::Order { rank: next });
        }
        let Memory { records, edges: words, ranks: states, firsts, slots, crowds, index, .. } =
            memory;
        let Memory { clocks, times, tries, done, queue, places, .. } = memory;
        let firsts = firsts.get_mut(..=ranks as usize).ok_or(BuildError::Full)?;
        if let Some(end) = firsts.last_mut() {
            *end = ops;
        }
        let clocks = clocks.get_mut(..requirements.clocks).ok_or(BuildError::Full)?;
        clocks.fill(0);
        let times = times.get_mut(..requirements.times).ok_or(BuildError::Full)?;
        times.fill(0);
        let tries = tries.get_mut(..requirements.tries).ok_or(BuildError::Full)?;
        let done = done.get_mut(..requirements.done).ok_or(BuildError::Full)?;
        done.fill(0);
        let places = places.get_mut(..ranks as usize).ok_or(BuildError::Full)?;
        Ok(Schedule {
            records: Records::new(records.get_mut(..ops as usize).ok_or(BuildError::Full)?),
            edges: words.get(..edges as usize).ok_or(BuildError::Full)?,
            ranks: states.get_mut(..ranks as usize).ok_or(BuildError::Full)?,
            firsts,
            slots: slots.get_mut(..receives as usize).ok_or(BuildError::Full)?,
            crowds,
            index,
            clocks,
            times,
            tries,
            done,
            queue,
            places,
            cpus: requirements.cpus,
            nics: requirements.nics,
            sends,
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

    /// Gives the open rank, which has so many receives, a [`Crowd`].
    fn crowd(&mut self, receives: u32) -> Result<(), BuildError> {
        let crowd = Crowd::new(self.index, receives).ok_or(BuildError::TooManyOps)?;
        let place = self.memory.crowds.get_mut(self.crowds as usize).ok_or(BuildError::Full)?;
        let rank = self.memory.ranks.get_mut(self.next.wrapping_sub(1) as usize);
        rank.ok_or(BuildError::Full)?.crowd = self.crowds;
        *place = crowd;
        self.index = crowd.end();
        self.crowds += 1;
        if self.index as usize > self.memory.index.len() {
            return Err(BuildError::Full);
        }
        Ok(())
    }

    /// The records of the open rank, and its dependencies.
    fn open(&mut self) -> Option<(&mut [Record], &[[u32; 2]])> {
        let records = self.memory.records.get_mut(self.first as usize..self.ops as usize)?;
        Some((records, self.memory.scratch.get(..self.pending)?))
    }

    /// Groups the dependencies by the operation waited for. While that goes
    /// on, a record's `next` and `seq` count those that wait for its end and
    /// its start, and `created` says where the next of each is written.
    fn group(&mut self) -> Option<()> {
        let (records, pending) = self.open()?;
        for [op, on] in pending {
            records.get_mut((op & !START) as usize)?.link += 1;
            let on = records.get_mut(*on as usize)?;
            *(if op & START == 0 { &mut on.next } else { &mut on.seq }) += 1;
        }
        self.reserve()?;
        let first = self.first;
        let words = &mut *self.memory.edges;
        let records = self.memory.records.get_mut(first as usize..self.ops as usize)?;
        for [op, on] in self.memory.scratch.get(..self.pending)? {
            let target = first + (op & !START);
            let on = records.get_mut(*on as usize)?;
            if on.successors() != Successors::Listed {
                on.next = target;
                continue;
            }
            let shift = if op & START == 0 { 0 } else { 32 };
            let place = usize::try_from(on.created >> shift & u64::from(u32::MAX)).ok()?;
            *words.get_mut(place)? = target;
            on.created += 1 << shift;
        }
        for record in records {
            record.created = 0;
        }
        Some(())
    }

    /// Gives every operation that others wait for its place.
    fn reserve(&mut self) -> Option<()> {
        let mut edges = self.edges;
        let words = &mut *self.memory.edges;
        let records = self.memory.records.get_mut(self.first as usize..self.ops as usize)?;
        for record in records {
            let (ends, starts) = (record.next, record.seq);
            record.seq = 0;
            match (ends, starts) {
                (0, 0) => record.set_successors(Successors::None, 0),
                (1, 0) => record.set_successors(Successors::Ends, 0),
                (0, 1) => record.set_successors(Successors::Starts, 0),
                _ => {
                    record.set_successors(Successors::Listed, edges);
                    *words.get_mut(edges as usize)? = ends;
                    *words.get_mut(edges as usize + 1)? = starts;
                    let first = u64::from(edges) + 2;
                    record.created = first | (first + u64::from(ends)) << 32;
                    edges = edges.checked_add(2)?.checked_add(ends)?.checked_add(starts)?;
                }
            }
        }
        self.edges = edges;
        Some(())
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
        self.receives_before = self.receives;
        let first = self.memory.firsts.get_mut(rank as usize).ok_or(BuildError::Full)?;
        *first = self.ops;
        let state = self.memory.ranks.get_mut(rank as usize).ok_or(BuildError::Full)?;
        *state = Rank { posted: [self.receives; 2], ..Rank::default() };
        Ok(())
    }

    fn op(&mut self, op: Op) -> Result<u32, BuildError> {
        let index = self.ops - self.first;
        let rank = self.next.wrapping_sub(1);
        let Requirements { cpus, nics, .. } = self.requirements;
        if usize::from(op.cpu) >= cpus || usize::from(op.nic) >= nics {
            return Err(BuildError::Unit { rank, op: index });
        }
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
            OpKind::Send { .. } => self.sends += 1,
            OpKind::Calc { .. } => {}
        }
        let record = self.memory.records.get_mut(self.ops as usize).ok_or(BuildError::Full)?;
        *record = Record { next: 0, ..Record::new(op) };
        self.ops = self.ops.checked_add(1).ok_or(BuildError::TooManyOps)?;
        Ok(index)
    }

    fn requires(&mut self, op: u32, on: u32) -> Result<(), BuildError> {
        self.add(op, on, 0)
    }

    fn requires_start(&mut self, op: u32, on: u32) -> Result<(), BuildError> {
        self.add(op, on, START)
    }

    fn end_rank(&mut self) -> Result<(), BuildError> {
        let receives = self.receives - self.receives_before;
        if receives > SHORT {
            self.crowd(receives)?;
        }
        self.group().ok_or(BuildError::Full)
    }
}
