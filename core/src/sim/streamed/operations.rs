//! Operations of a streamed schedule.

use super::partly::Partly;
use crate::goal::{ANY, DependsOn, Lookup, Op, OpIndex, OpKind};
use crate::sim::Requirements;
use crate::sim::hooks::MessageKind;
use crate::sim::in_order::waiting::OnRank;
use crate::sim::outcome::SimError;
use crate::sim::queues::chain::Chain;
use crate::sim::rank::Units;
use crate::sim::rank::dependencies::{Operations, Reached, Ready};
use crate::sim::record::{Mark, NONE, Record};
use crate::sim::records::{Records, bounds, owner};
use crate::sim::storage::Storage;

/// Operations of a file.
///
/// A record's `next` is the index of its operation in the whole schedule, or in the part.
#[derive(Debug)]
pub struct Streamed<'m, F> {
    file: F,
    own: Own<'m>,
    /// Operations with both a fulfilled and an unfulfilled dependency.
    partly: Partly<'m>,
    /// One bit for each operation: set when it is ready, and so released.
    released: &'m mut [u64],
    /// First record of the free list.
    free: u32,
    /// Number of records that were ever in use.
    used: u32,
    cpus: usize,
    nics: usize,
    /// First error of a call that cannot return one; see `check`.
    stopped: Option<SimError>,
}

/// Ranks of a streamed schedule, or of a part of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own<'m> {
    /// First operation of each, then the number of operations.
    pub(super) firsts: &'m [u32],
    pub(super) first_rank: u32,
    /// Number of ranks of the whole schedule.
    pub(super) ranks: u32,
}

impl Own<'_> {
    /// First operation of a rank.
    fn first_of(&self, rank: u32) -> u32 {
        bounds(self.firsts, rank.wrapping_sub(self.first_rank)).0
    }
}

impl<'m, F: Lookup> Streamed<'m, F> {
    pub(super) fn new(
        file: F,
        own: Own<'m>,
        partly: Partly<'m>,
        released: &'m mut [u64],
        requirements: &Requirements,
    ) -> Self {
        released.fill(0);
        let &Requirements { cpus, nics, .. } = requirements;
        Self { file, own, partly, released, free: NONE, used: 0, cpus, nics, stopped: None }
    }

    fn stop(&mut self, error: SimError) {
        self.stopped.get_or_insert(error);
    }

    fn number_of(&self, OpIndex { rank, op }: OpIndex) -> u32 {
        self.own.first_of(rank).wrapping_add(op)
    }

    fn was_released(&self, number: u32) -> bool {
        let word = self.released.get((number / u64::BITS) as usize);
        word.is_some_and(|word| word >> (number % u64::BITS) & 1 != 0)
    }

    /// Reads an operation from the file, and checks it again.
    fn read(&self, index: OpIndex) -> Result<Op, SimError> {
        let sound = |op: &Op| {
            let peer = match op.kind {
                OpKind::Send { peer, .. } => Some(peer),
                OpKind::Receive { peer, .. } => Some(peer).filter(|&peer| peer != ANY),
                OpKind::Calc { .. } => None,
            };
            peer.is_none_or(|peer| peer < self.own.ranks)
                && usize::from(op.cpu) < self.cpus
                && usize::from(op.nic) < self.nics
        };
        self.file.op(index).filter(sound).ok_or_else(|| unreadable(index))
    }

    /// Marks an operation as released; this happens once, whatever the file says.
    fn note_ready(&mut self, records: &Records<'_>, at: u32) {
        let number = records.at(at).next;
        if let Some(word) = self.released.get_mut((number / u64::BITS) as usize) {
            *word |= 1 << (number % u64::BITS);
        }
    }

    /// Takes a record.
    #[inline]
    pub(in crate::sim) fn take(&mut self, records: &mut Records<'_>) -> Result<u32, SimError> {
        if self.free != NONE {
            let at = self.free;
            self.free = records.next(at);
            return Ok(at);
        }
        if self.used as usize >= records.len() {
            return Err(SimError::RecordsFull { records: records.len() });
        }
        self.used += 1;
        self.partly.grow(records, self.used);
        Ok(self.used - 1)
    }

    /// Index on its rank of an operation of `rank`, by its record.
    #[inline]
    pub(in crate::sim) fn index_of(&self, records: &Records<'_>, rank: u32, op: u32) -> u32 {
        records.at(op).next.wrapping_sub(self.own.first_of(rank))
    }

    /// Takes a record for an operation that is not released yet.
    fn begin(&mut self, records: &mut Records<'_>, index: OpIndex) -> Result<u32, SimError> {
        let (op, number) = (self.read(index)?, self.number_of(index));
        if self.was_released(number) {
            return Err(unreadable(index));
        }
        let at = self.take(records)?;
        *records.at_mut(at) = Record { next: number, ..Record::new(op) };
        records.set_units(at, Units { cpu: op.cpu, nic: op.nic });
        records.set_time(at, 0);
        Ok(at)
    }

    /// Fulfils one dependency of an operation, which may not begin before `time`. Returns its
    /// record if it was the last.
    fn count_down(
        &mut self,
        records: &mut Records<'_>,
        index: OpIndex,
        time: u64,
    ) -> Result<Option<u32>, SimError> {
        let waits = self.file.dependencies(index).filter(|&waits| waits > 0);
        let waits = waits.ok_or_else(|| unreadable(index))?;
        // An operation with one dependency begins here: it is in no table.
        let found = if waits > 1 { self.partly.find(records, self.number_of(index)) } else { None };
        let at = match found {
            Some(at) => at,
            None => {
                let at = self.begin(records, index)?;
                records.set_next(at, waits);
                if waits > 1 {
                    self.partly.insert(records, at);
                }
                at
            }
        };
        if !records.count_down(at, time) {
            return Ok(None);
        }
        if found.is_some() {
            self.partly.remove(records, at);
        }
        self.note_ready(records, at);
        Ok(Some(at))
    }
}

/// Fixed-size buffer of operations, which counts those that do not fit.
#[derive(Clone, Copy, Debug, Default)]
struct Few {
    first: [u32; 8],
    count: usize,
}

impl Few {
    fn add(&mut self, op: u32) {
        if let Some(place) = self.first.get_mut(self.count) {
            *place = op;
        }
        self.count += 1;
    }

    /// All operations; `None` if some did not fit.
    fn all(&self) -> Option<&[u32]> {
        self.first.get(..self.count)
    }
}

const fn unreadable(OpIndex { rank, op }: OpIndex) -> SimError {
    SimError::Unreadable { rank, op }
}

#[allow(private_interfaces, reason = "as of the trait")]
impl<F: Lookup> Storage for Streamed<'_, F> {
    const PREFETCHES: bool = true;

    fn most_records(&self) -> Option<u32> {
        Some(self.used)
    }

    fn satisfy(
        &mut self,
        records: &mut Records<'_>,
        OnRank { rank, op }: OnRank,
        reached: Reached,
        ready: &mut Ready,
        mut satisfied: impl FnMut(u32, bool),
    ) {
        if reached == Reached::default() {
            return;
        }
        let (first, file) = (self.own.first_of(rank), self.file);
        let on = OpIndex { rank, op: self.index_of(records, rank, op) };
        let mut fulfil = |op: u32, depends_on, time| {
            satisfied(first.wrapping_add(op), depends_on == DependsOn::End);
            match self.count_down(records, OpIndex { rank, op }, time) {
                Ok(Some(at)) => ready.add(records, at),
                Ok(None) => {}
                Err(error) => self.stop(error),
            }
        };
        // Operations that wait for the end come after all that wait for the start.
        let mut later = Few::default();
        let read = file.dependents(on, |op, depends_on| match (depends_on, reached.start) {
            (DependsOn::Start, Some(time)) => fulfil(op, depends_on, time),
            (DependsOn::Start, None) => {}
            (DependsOn::End, _) => later.add(op),
        });
        let again = reached.end.and_then(|time| match later.all() {
            Some(all) => {
                all.iter().for_each(|&op| fulfil(op, DependsOn::End, time));
                Some(())
            }
            None => file.dependents(on, |op, depends_on| {
                if depends_on == DependsOn::End {
                    fulfil(op, depends_on, time);
                }
            }),
        });
        if read.is_none() || reached.end.is_some() && again.is_none() {
            self.stop(unreadable(on));
        }
    }

    fn roots(&mut self, records: &mut Records<'_>, _firsts: &[u32], rank: u32) -> Ready {
        let (mut ready, file) = (Ready::default(), self.file);
        let read = file.roots(rank, |op| match self.begin(records, OpIndex { rank, op }) {
            Ok(at) => {
                self.note_ready(records, at);
                ready.add(records, at);
            }
            Err(error) => self.stop(error),
        });
        if read.is_none() {
            self.stop(unreadable(OpIndex { rank, op: 0 }));
        }
        ready
    }

    #[inline]
    fn number(&self, records: &Records<'_>, op: u32) -> u32 {
        records.at(op).next
    }

    #[inline]
    fn note_released(&mut self, _records: &mut Records<'_>, _op: u32) {}

    fn is_released(&self, _records: &Records<'_>, number: u32) -> bool {
        self.was_released(number)
    }

    #[inline]
    fn note_sender(record: &mut Record, _rank: u32) {
        record.mark(Mark::Started);
    }

    fn sender(&self, records: &Records<'_>, firsts: &[u32], op: u32) -> u32 {
        let record = records.at(op);
        let by = if record.message_kind() == MessageKind::Cts { record.tag } else { op };
        owner(firsts, records.at(by).next).wrapping_add(self.own.first_rank)
    }

    #[inline]
    fn retire(&mut self, records: &mut Records<'_>, op: u32) {
        records.set_next(op, self.free);
        self.free = op;
    }

    #[inline]
    fn prefetch<T>(place: &T) {
        F::prefetch(place);
    }

    #[inline]
    fn prefetch_rank(&self, rank: u32) {
        self.file.prefetch_rank(rank);
    }

    #[inline]
    fn prefetch_op(&self, record: &Record) {
        if let Some(word) = self.released.get((record.next / u64::BITS) as usize) {
            F::prefetch(word);
        }
    }

    #[inline]
    fn check(&self) -> Result<(), SimError> {
        self.stopped.map_or(Ok(()), Err)
    }
}
