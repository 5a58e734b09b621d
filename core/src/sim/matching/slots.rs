//! Receives that are posted: of each rank its slots, in the order of posting.
//!
//! A slot has a hash of its receive's sender and tag. The hash of an exact receive
//! differs from that of most messages, so that few records are looked at; a
//! wildcard's is 0 and fits all.

use super::Envelope;
use crate::sim::record::{NONE, Slot};
use crate::sim::release::Operations;

/// The key of receives, and of messages, that need a closer look.
pub(in crate::sim) const WILD: u32 = 0;

/// A posted receive that was found.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Found {
    pub(in crate::sim) slot: u32,
    pub(in crate::sim) op: u32,
}

/// The slots of one rank that are in use.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(in crate::sim) struct SlotRange {
    /// The first that may be unmatched.
    pub(in crate::sim) first: u32,
    /// One past the newest.
    pub(in crate::sim) end: u32,
}

impl SlotRange {
    /// None, where the slots of the rank begin.
    pub(in crate::sim) const fn at(first: u32) -> Self {
        Self { first, end: first }
    }

    pub(in crate::sim) const fn is_empty(self) -> bool {
        self.first == self.end
    }

    /// How many a search has looked at, but for the one that it found.
    #[inline]
    pub(in crate::sim) fn looked_at(self, found: Option<Found>) -> u32 {
        found.map_or(self.end, |found| found.slot) - self.first
    }
}

/// The slots of some ranks.
#[derive(Debug)]
pub(in crate::sim) struct Slots<'m> {
    all: &'m mut [Slot],
    /// Which of all slots is the first here.
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

    /// Those in use, matched ones among them as [`NONE`].
    #[inline]
    pub(in crate::sim) fn of(&self, posted: SlotRange) -> &[Slot] {
        let [first, end] =
            [posted.first, posted.end].map(|slot| slot.wrapping_sub(self.first) as usize);
        self.all.get(first..end).unwrap_or_default()
    }

    /// The receives that are posted.
    pub(in crate::sim) fn receives(&self, posted: SlotRange) -> impl Iterator<Item = u32> + '_ {
        self.of(posted).iter().map(|slot| slot.op).filter(|&op| op != NONE)
    }

    /// The first posted receive that takes a message.
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

    /// Appends a receive to those that are posted. Returns its slot.
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

    /// Takes a receive out.
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
