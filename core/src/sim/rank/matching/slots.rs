//! Posted receives: the slots of each rank, in the order of posting.
//!
//! A slot has a hash of its receive's sender and tag. An exact receive's hash differs from that of
//! most other messages, so few records are inspected; a wildcard's hash is 0 and fits all.

use super::Envelope;
use crate::sim::rank::dependencies::Operations;
use crate::sim::record::{NONE, Slot};

/// Hash of receives, and of messages, with a wildcard: their records must be compared.
pub(in crate::sim) const WILD: u32 = 0;

/// A posted receive that matches, and its slot.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Found {
    pub(in crate::sim) slot: u32,
    pub(in crate::sim) op: u32,
}

/// Slots of one rank in use.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(in crate::sim) struct SlotRange {
    /// First slot that may be unmatched.
    pub(in crate::sim) first: u32,
    /// One past the newest slot.
    pub(in crate::sim) end: u32,
}

impl SlotRange {
    /// Empty range at the first slot of a rank.
    pub(in crate::sim) const fn at(first: u32) -> Self {
        Self { first, end: first }
    }

    pub(in crate::sim) const fn is_empty(self) -> bool {
        self.first == self.end
    }

    /// Number of slots that a search inspected, without the one that it found.
    #[inline]
    pub(in crate::sim) fn looked_at(self, found: Option<Found>) -> u32 {
        found.map_or(self.end, |found| found.slot) - self.first
    }
}

/// Slots of some ranks.
#[derive(Debug)]
pub(in crate::sim) struct Slots<'m> {
    all: &'m mut [Slot],
    /// Number of the first slot here, among those of all ranks.
    first: u32,
}

impl<'m> Slots<'m> {
    pub(in crate::sim) const fn new(all: &'m mut [Slot], first: u32) -> Self {
        Self { all, first }
    }

    pub(in crate::sim) fn copy_from(&mut self, other: &Slots<'_>) {
        self.all.copy_from_slice(other.all);
    }

    #[inline]
    pub(in crate::sim) fn at(&mut self, slot: u32) -> Option<&mut Slot> {
        let place = slot.wrapping_sub(self.first) as usize;
        debug_assert!(place < self.all.len(), "no slot {slot}");
        self.all.get_mut(place)
    }

    /// Slots in use; matched ones have [`NONE`].
    #[inline]
    pub(in crate::sim) fn of(&self, posted: SlotRange) -> &[Slot] {
        let [first, end] =
            [posted.first, posted.end].map(|slot| slot.wrapping_sub(self.first) as usize);
        self.all.get(first..end).unwrap_or_default()
    }

    /// Posted receives.
    pub(in crate::sim) fn receives(&self, posted: SlotRange) -> impl Iterator<Item = u32> + '_ {
        self.of(posted).iter().map(|slot| slot.op).filter(|&op| op != NONE)
    }

    /// First posted receive that matches a message.
    #[inline]
    pub(in crate::sim) fn find(
        &self,
        ops: &impl Operations,
        posted: SlotRange,
        message: Envelope,
    ) -> Option<Found> {
        let wanted = message.hash();
        self.of(posted).iter().zip(posted.first..).find_map(|(&Slot { key, op }, slot)| {
            let candidate = key == wanted || key == WILD || wanted == WILD;
            let takes = candidate && op != NONE && ops.envelope(op).takes(message);
            takes.then_some(Found { slot, op })
        })
    }

    /// Appends a posted receive. Returns its slot.
    #[inline]
    pub(in crate::sim) fn post(
        &mut self,
        ops: &impl Operations,
        posted: &mut SlotRange,
        op: u32,
    ) -> u32 {
        let newest = posted.end;
        if let Some(slot) = self.at(newest) {
            *slot = Slot { key: ops.envelope(op).hash(), op };
            posted.end += 1;
        }
        newest
    }

    /// Removes a posted receive.
    #[inline]
    pub(in crate::sim) fn take(&mut self, posted: &mut SlotRange, found: Found) {
        if found.slot > posted.first {
            if let Some(slot) = self.at(found.slot) {
                *slot = Slot { key: 1, op: NONE };
            }
            return;
        }
        posted.first += 1;
        while !posted.is_empty() && self.at(posted.first).is_none_or(|slot| slot.op == NONE) {
            posted.first += 1;
        }
    }
}
