//! The records of a schedule for the global order.

use super::chain::Chain;
use super::record::{Kind, NONE, Record, Successors};
use super::release::Operations;

/// The records of a schedule. Every index in a list, an edge or a slot is one
/// of theirs; where one were not, reads give an empty record and writes are
/// lost, so that no index can stop the program.
#[derive(Debug)]
pub(super) struct Records<'m> {
    all: &'m mut [Record],
    /// Of each operation: before its release, the earliest time for it; of a
    /// message, when it was taken, then when it was handled. Empty where the
    /// processor's clock says as much.
    pub(super) times: &'m mut [u64],
    sentinel: Record,
}

impl<'m> Records<'m> {
    pub(super) fn new(all: &'m mut [Record], times: &'m mut [u64]) -> Self {
        Self { all, times, sentinel: Record::default() }
    }

    #[inline]
    pub(super) fn at(&self, index: u32) -> &Record {
        debug_assert!((index as usize) < self.all.len(), "no record {index}");
        self.all.get(index as usize).unwrap_or(&self.sentinel)
    }

    #[inline]
    pub(super) fn at_mut(&mut self, index: u32) -> &mut Record {
        debug_assert!((index as usize) < self.all.len(), "no record {index}");
        match self.all.get_mut(index as usize) {
            Some(record) => record,
            None => &mut self.sentinel,
        }
    }

    /// See [`Records::times`]; 0 where none are kept.
    #[inline]
    pub(super) fn time_of(&self, op: u32) -> u64 {
        self.times.get(op as usize).copied().unwrap_or_default()
    }

    #[inline]
    pub(super) fn set_time(&mut self, op: u32, time: u64) {
        if let Some(place) = self.times.get_mut(op as usize) {
            *place = time;
        }
    }

    /// Puts a record where its stamp belongs; at the end as a rule.
    pub(super) fn insert(&mut self, last: &mut u32, index: u32) {
        let stamp = self.at(index).stamp();
        if *last == NONE || self.at(*last).stamp() < stamp {
            self.push(last, index);
            return;
        }
        let mut before = *last;
        let mut next = self.at(before).link;
        while self.at(next).stamp() < stamp {
            before = next;
            next = self.at(before).link;
        }
        self.at_mut(index).link = next;
        self.at_mut(before).link = index;
    }
}

impl Chain for Records<'_> {
    const END: u32 = NONE;

    #[inline]
    fn next(&self, at: u32) -> u32 {
        self.at(at).link
    }

    #[inline]
    fn set_next(&mut self, at: u32, next: u32) {
        self.at_mut(at).link = next;
    }
}

impl Operations for Records<'_> {
    #[inline]
    fn kind(&self, op: u32) -> Kind {
        self.at(op).kind()
    }

    #[inline]
    fn successors(&self, op: u32) -> (Successors, u32) {
        (self.at(op).successors(), self.at(op).next)
    }

    #[inline]
    fn delay(&mut self, op: u32, time: u64) {
        if let Some(not_before) = self.times.get_mut(op as usize) {
            *not_before = time.max(*not_before);
        }
    }
}

/// The rank that has an operation, by the first operations of all ranks.
#[allow(clippy::cast_possible_truncation, reason = "at most one for each rank")]
pub(super) fn owner(firsts: &[u32], op: u32) -> u32 {
    firsts.partition_point(|&first| first <= op).saturating_sub(1) as u32
}

/// First operation of a rank, and the one after its last.
pub(super) fn bounds(firsts: &[u32], rank: u32) -> (u32, u32) {
    let at = |rank: usize| firsts.get(rank).copied().unwrap_or_default();
    (at(rank as usize), at(rank as usize + 1))
}
