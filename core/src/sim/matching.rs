//! Which message meets which receive.
//!
//! A posted receive is a slot with a hash of its sender and tag; slots of a
//! rank stand in the order of posting, and the first one that matches is
//! taken. The hash of an exact receive differs from that of most messages,
//! so that few records are looked at; a wildcard's is 0 and fits all.

use super::list::Records;
use super::rank::Rank;
use super::record::{NONE, Record, Slot};
use crate::goal::ANY;

/// The key of receives, and of messages, that need a closer look.
const WILD: u32 = 0;

/// A hash of sender and tag that is never [`WILD`].
#[inline]
const fn key(peer: u32, tag: u32) -> u32 {
    if peer == ANY || tag == ANY {
        return WILD;
    }
    let mixed = peer.wrapping_mul(0x9e37_79b1) ^ tag.wrapping_mul(0x85eb_ca77).rotate_left(15);
    mixed | 1
}

/// Rule: sender equal or either side a wildcard, and tag likewise.
#[inline]
const fn matches(receive: &Record, sender: u32, tag: u32) -> bool {
    (receive.peer == ANY || receive.peer == sender)
        && (receive.tag == tag || receive.tag == ANY || tag == ANY)
}

/// A posted receive that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) slot: u32,
    pub(super) op: u32,
}

/// The first posted receive of `rank` that a message from `sender` with
/// `tag` meets.
#[inline]
pub(super) fn posted(
    records: &Records<'_>,
    slots: &[Slot],
    rank: &Rank,
    (sender, tag): (u32, u32),
) -> Option<Found> {
    let [first, end] = rank.posted;
    let wanted = key(sender, tag);
    let live = slots.get(first as usize..end as usize)?;
    for (slot, at) in live.iter().zip(first..) {
        let candidate = slot.key == wanted || slot.key == WILD || wanted == WILD;
        if candidate && slot.op != NONE && matches(records.at(slot.op), sender, tag) {
            return Some(Found { slot: at, op: slot.op });
        }
    }
    None
}

/// Appends a receive to those posted on `rank`.
#[inline]
pub(super) fn post(records: &Records<'_>, slots: &mut [Slot], rank: &mut Rank, op: u32) {
    let receive = records.at(op);
    let [_, end] = &mut rank.posted;
    if let Some(slot) = slots.get_mut(*end as usize) {
        *slot = Slot { key: key(receive.peer, receive.tag), op };
        *end += 1;
    }
}

/// Takes a matched receive out.
#[inline]
pub(super) fn take(slots: &mut [Slot], rank: &mut Rank, found: Found) {
    if let Some(slot) = slots.get_mut(found.slot as usize) {
        *slot = Slot { key: 1, op: NONE };
    }
    let [first, end] = &mut rank.posted;
    while *first < *end && slots.get(*first as usize).is_none_or(|slot| slot.op == NONE) {
        *first += 1;
    }
}

/// The oldest unexpected message of `rank` that `receive` meets: the record
/// before it in the list, and its own.
pub(super) fn unexpected(
    records: &Records<'_>,
    rank: &Rank,
    receive: &Record,
) -> Option<(u32, u32)> {
    records.iter(rank.unexpected).find(|(_, message)| {
        let message = records.at(*message);
        matches(receive, message.peer, message.tag)
    })
}
