//! Receives that are posted: of each rank its slots, in the order of posting.
//!
//! A slot has a hash of its receive's sender and tag. The hash of an exact receive
//! differs from that of most messages, so that few records are looked at; a
//! wildcard's is 0 and fits all.

use super::matching::{fits, key};
use super::record::{NONE, Slot};
use super::release::Operations;

/// The key of receives, and of messages, that need a closer look.
pub(super) const WILD: u32 = 0;

/// A posted receive that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) slot: u32,
    pub(super) op: u32,
}

/// The slots of some ranks. Each rank knows which are in use: the first that may be
/// unmatched, and the end.
#[derive(Debug)]
pub(super) struct Slots<'m> {
    all: &'m mut [Slot],
    /// Which of all slots is the first here.
    first: u32,
}

impl<'m> Slots<'m> {
    pub(super) const fn new(all: &'m mut [Slot], first: u32) -> Self {
        Self { all, first }
    }

    #[inline]
    pub(super) fn at(&mut self, slot: u32) -> Option<&mut Slot> {
        let place = slot.wrapping_sub(self.first) as usize;
        debug_assert!(place < self.all.len(), "no slot {slot}");
        self.all.get_mut(place)
    }

    /// Those in use, matched ones among them as [`NONE`].
    #[inline]
    pub(super) fn of(&self, posted: [u32; 2]) -> &[Slot] {
        let [first, end] = posted.map(|slot| slot.wrapping_sub(self.first) as usize);
        self.all.get(first..end).unwrap_or_default()
    }

    /// The receives that are posted.
    pub(super) fn receives(&self, posted: [u32; 2]) -> impl Iterator<Item = u32> + '_ {
        self.of(posted).iter().map(|slot| slot.op).filter(|&op| op != NONE)
    }

    /// The first posted receive that a message from `sender` with `tag` meets.
    #[inline]
    pub(super) fn find(
        &self,
        ops: &impl Operations,
        posted: [u32; 2],
        (sender, tag): (u32, u32),
    ) -> Option<Found> {
        let wanted = key(sender, tag);
        self.of(posted).iter().zip(posted[0]..).find_map(|(&Slot { key, op }, slot)| {
            let candidate = key == wanted || key == WILD || wanted == WILD;
            let fits = candidate && op != NONE && fits((ops.peer(op), ops.tag(op)), sender, tag);
            fits.then_some(Found { slot, op })
        })
    }

    /// Appends a receive to those that are posted. Returns its slot.
    #[inline]
    pub(super) fn post(&mut self, ops: &impl Operations, posted: &mut [u32; 2], op: u32) -> u32 {
        let [_, end] = posted;
        let newest = *end;
        if let Some(slot) = self.at(newest) {
            *slot = Slot { key: key(ops.peer(op), ops.tag(op)), op };
            *end += 1;
        }
        newest
    }

    /// Takes a receive out.
    #[inline]
    pub(super) fn take(&mut self, posted: &mut [u32; 2], found: Found) {
        let [first, end] = *posted;
        if found.slot > first {
            if let Some(slot) = self.at(found.slot) {
                *slot = Slot { key: 1, op: NONE };
            }
            return;
        }
        let mut first = first + 1;
        while first < end && self.at(first).is_none_or(|slot| slot.op == NONE) {
            first += 1;
        }
        *posted = [first, end];
    }
}

/// How many slots a search has looked at, but for the one that it found.
#[inline]
pub(super) fn looked_at([first, end]: [u32; 2], found: Option<Found>) -> u32 {
    found.map_or(end, |found| found.slot) - first
}
