//! Which message meets which receive, by the rules of
//! [`crate::sim::matching`].

use super::rank::WindowRank;
use super::record::WindowRecord;
use super::shared::Shared;
use crate::sim::chain::Chain;
use crate::sim::matching::{Found, first_fitting, fits, key};
use crate::sim::record::{NONE, Slot};

/// Slots in a row that are looked at in the time of a step in a history.
const SLOTS_OF_STEP: u64 = 32;

/// The same of messages, which lie anywhere.
const MESSAGES_OF_STEP: u64 = 2;

/// Whether a receive takes a message from `sender` with `tag`.
#[inline]
fn matches(receive: &WindowRecord, sender: u32, tag: u32) -> bool {
    fits((receive.peer.get(), receive.tag.get()), sender, tag)
}

/// Receives that are posted, of the ranks of a partition: of each rank its
/// slots, in the order of posting.
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
    fn at(&mut self, slot: u32) -> Option<&mut Slot> {
        let place = slot.wrapping_sub(self.first) as usize;
        debug_assert!(place < self.all.len(), "no slot {slot}");
        self.all.get_mut(place)
    }

    /// The posted receives of a rank, matched ones among them as
    /// [`NONE`].
    pub(super) fn of(&self, rank: &WindowRank) -> &[Slot] {
        let [first, end] = rank.posted.map(|slot| slot.wrapping_sub(self.first) as usize);
        self.all.get(first..end).unwrap_or_default()
    }

    /// Takes out the first posted receive that a message from `sender` with
    /// `tag` meets. Adds to `steps` what a long search takes.
    #[inline]
    pub(super) fn take(
        &mut self,
        shared: &Shared<'_>,
        rank: &mut WindowRank,
        (sender, tag): (u32, u32),
        steps: &mut u64,
    ) -> Option<u32> {
        let posted = self.of(rank);
        let envelope = |op| (shared.at(op).peer.get(), shared.at(op).tag.get());
        let found = first_fitting(posted, (sender, tag), envelope);
        let looks = found.map_or(posted.len() as u64, |found| found.slot.into());
        *steps += looks / SLOTS_OF_STEP;
        let Found { slot: offset, op } = found?;
        let [first, end] = rank.posted;
        if offset > 0 {
            if let Some(slot) = self.at(first + offset) {
                *slot = Slot { key: 1, op: NONE };
            }
            return Some(op);
        }
        let mut first = first + 1;
        while first < end && self.at(first).is_none_or(|slot| slot.op == NONE) {
            first += 1;
        }
        rank.posted = [first, end];
        Some(op)
    }

    /// Appends a receive to those posted on `rank`.
    #[inline]
    pub(super) fn post(&mut self, shared: &Shared<'_>, rank: &mut WindowRank, op: u32) {
        let receive = shared.at(op);
        let [_, end] = rank.posted;
        if let Some(slot) = self.at(end) {
            *slot = Slot { key: key(receive.peer.get(), receive.tag.get()), op };
            rank.posted[1] = end + 1;
        }
    }
}

/// The oldest unexpected message of `rank` that `receive` meets: the record
/// before it in the list, and its own. Adds to `steps` what a long search
/// takes.
pub(super) fn unexpected(
    shared: &Shared<'_>,
    rank: &WindowRank,
    receive: &WindowRecord,
    steps: &mut u64,
) -> Option<(u32, u32)> {
    let mut looks = 0;
    let found = shared.walk(rank.unexpected).find(|(_, message)| {
        looks += 1;
        let message = shared.at(*message);
        matches(receive, message.peer.get(), message.tag.get())
    });
    *steps += looks / MESSAGES_OF_STEP;
    found
}
