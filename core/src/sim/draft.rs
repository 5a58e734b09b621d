//! Common part of the schedule builders: counts, checks and grouping of dependencies.

use super::build_error::BuildError;
use super::record::{NONE, Slot, Successors};
use crate::goal::{ANY, ANY_TAG, Edge, OpKind};

/// Words of a record that grouping dependencies uses.
pub(super) trait Dependent {
    /// Number of operations that this one waits for.
    fn waits(&mut self) -> &mut u32;

    /// Two words that are free while a rank is built. The first becomes the `next` of
    /// [`Dependent::set_successors`]; the final value of the second does not matter.
    fn counts(&mut self) -> [&mut u32; 2];

    /// Storage form of the successors, the operations that wait for this one.
    fn successors(&self) -> Successors;

    /// Sets the storage form, and the only successor or the place of the list.
    fn set_successors(&mut self, successors: Successors, next: u32);
}

/// Flag of a dependency on the start, in the first word of a pending edge.
const START: u32 = 1 << 31;

/// Counts of a schedule while it is built, and its open rank.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Draft {
    /// Number of ranks, and those that are built.
    pub(super) ranks: u32,
    first_rank: u32,
    end_rank: u32,
    /// Rank that must come next, or after the open one.
    next: u32,
    pub(super) ops: u32,
    /// First operation of the open rank.
    pub(super) first: u32,
    pub(super) edges: u32,
    pub(super) receives: u32,
    pub(super) sends: u32,
    /// Operations and words of edges of the parts before this one.
    pub(super) before: [u32; 2],
    /// Number of dependencies of the open rank.
    pending: usize,
}

impl Draft {
    /// Takes the number of ranks; at most `room`.
    pub(super) const fn announce(&mut self, ranks: u32, room: usize) -> Result<(), BuildError> {
        if ranks as usize > room {
            return Err(BuildError::Full);
        }
        self.announce_some(ranks, 0, ranks);
        Ok(())
    }

    /// Takes the number of ranks, of which those from `first` to before `end` are built.
    pub(super) const fn announce_some(&mut self, ranks: u32, first: u32, end: u32) {
        self.ranks = ranks;
        (self.next, self.first_rank, self.end_rank) = (first, first, end);
    }

    /// Opens a rank and notes its first operation.
    pub(super) fn begin(&mut self, rank: u32, firsts: &mut [u32]) -> Result<(), BuildError> {
        if rank != self.next || rank >= self.end_rank {
            return Err(BuildError::Order { rank: self.next });
        }
        self.next += 1;
        self.first = self.ops;
        self.pending = 0;
        let [ops, _] = self.before;
        *firsts.get_mut(self.place() as usize).ok_or(BuildError::Full)? = ops + self.ops;
        Ok(())
    }

    /// The open rank.
    pub(super) const fn rank(&self) -> u32 {
        self.next.wrapping_sub(1)
    }

    /// First of the ranks that are built.
    pub(super) const fn first_rank(&self) -> u32 {
        self.first_rank
    }

    /// The open rank among those that are built.
    pub(super) const fn place(&self) -> u32 {
        self.rank().wrapping_sub(self.first_rank)
    }

    /// Number of operations of the open rank so far.
    pub(super) const fn index(&self) -> u32 {
        self.ops - self.first
    }

    /// Checks the next operation and counts its message; a receive also gets an empty slot.
    pub(super) fn count(&mut self, kind: OpKind, slots: &mut [Slot]) -> Result<(), BuildError> {
        let slot = self.receives as usize;
        self.count_message(kind)?;
        if let OpKind::Receive { .. } = kind {
            *slots.get_mut(slot).ok_or(BuildError::Full)? = Slot::default();
        }
        Ok(())
    }

    /// As `count`, without slots.
    pub(super) fn count_message(&mut self, kind: OpKind) -> Result<(), BuildError> {
        if let OpKind::Send { tag, .. } | OpKind::Receive { tag, .. } = kind
            && tag >= u64::from(ANY)
            && tag != ANY_TAG
        {
            return Err(BuildError::Tag { rank: self.rank(), op: self.index() });
        }
        match kind {
            OpKind::Send { peer, .. } if peer >= self.ranks => return Err(self.no_peer(peer)),
            OpKind::Receive { peer, .. } if peer >= self.ranks && peer != ANY => {
                return Err(self.no_peer(peer));
            }
            OpKind::Receive { .. } => self.receives += 1,
            OpKind::Send { .. } => self.sends += 1,
            OpKind::Calc { .. } => {}
        }
        Ok(())
    }

    const fn no_peer(&self, peer: u32) -> BuildError {
        BuildError::Peer { rank: self.rank(), op: self.index(), peer }
    }

    /// Stores a dependency of the open rank.
    pub(super) fn depend(
        &mut self,
        scratch: &mut [[u32; 2]],
        Edge { op, on, start }: Edge,
    ) -> Result<(), BuildError> {
        for named in [op, on] {
            if named >= self.index() {
                return Err(BuildError::UnknownOp { rank: self.rank(), op: named });
            }
        }
        let edge = scratch.get_mut(self.pending).ok_or(BuildError::Full)?;
        *edge = [if start { op | START } else { op }, on];
        self.pending += 1;
        Ok(())
    }

    /// Groups the dependencies of the open rank by the operation waited for. A single one is stored
    /// in the record, several as a list in `words`, after their two counts. Meanwhile the two free
    /// words of a record hold first the counts of those that wait for its end and its start, then
    /// the position at which the next of them is written.
    pub(super) fn group<R: Dependent>(
        &mut self,
        records: &mut [R],
        words: &mut [u32],
        scratch: &[[u32; 2]],
    ) -> Option<()> {
        let records = records.get_mut(self.first as usize..self.ops as usize)?;
        let [ops, lists] = self.before;
        let pending = scratch.get(..self.pending)?;
        for [op, on] in pending {
            *records.get_mut((op & !START) as usize)?.waits() += 1;
            let [ends, starts] = records.get_mut(*on as usize)?.counts();
            *(if op & START == 0 { ends } else { starts }) += 1;
        }
        for record in &mut *records {
            let [ends, starts] = record.counts().map(|count| *count);
            match (ends, starts) {
                (0, 0) => record.set_successors(Successors::None, NONE),
                (1, 0) => record.set_successors(Successors::Ends, 0),
                (0, 1) => record.set_successors(Successors::Starts, 0),
                _ => {
                    *words.get_mut(self.edges as usize)? = ends;
                    *words.get_mut(self.edges as usize + 1)? = starts;
                    record.set_successors(Successors::Listed, lists + self.edges);
                    let [_, place] = record.counts();
                    *place = self.edges + 2;
                    self.edges = self.edges.checked_add(2 + ends)?.checked_add(starts)?;
                }
            }
        }
        // Those that wait for the end come first in each list.
        for wanted in [0, START] {
            for [op, on] in pending.iter().filter(|[op, _]| op & START == wanted) {
                let target = ops + self.first + (op & !START);
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

    /// Appends a part that was built apart.
    pub(super) fn append(&mut self, part: &Self) -> Result<(), BuildError> {
        if part.next != part.end_rank || part.first_rank != self.next {
            return Err(BuildError::Order { rank: self.next });
        }
        let [ops, words] = part.before;
        (self.ranks, self.next, self.end_rank) = (part.ranks, part.end_rank, part.ranks);
        (self.ops, self.edges) = (ops + part.ops, words + part.edges);
        self.receives += part.receives;
        self.sends += part.sends;
        Ok(())
    }

    /// Ends the schedule. Returns the first operations of all ranks, followed by the number of
    /// operations, and the lists of edges.
    pub(super) fn finish<'m>(
        &self,
        firsts: &'m mut [u32],
        words: &'m [u32],
    ) -> Result<(&'m [u32], &'m [u32]), BuildError> {
        if self.next != self.end_rank {
            return Err(BuildError::Order { rank: self.next });
        }
        let count = self.end_rank - self.first_rank;
        let firsts = firsts.get_mut(..=count as usize).ok_or(BuildError::Full)?;
        if let Some(end) = firsts.last_mut() {
            *end = self.ops;
        }
        Ok((firsts, words.get(..self.edges as usize).ok_or(BuildError::Full)?))
    }
}
