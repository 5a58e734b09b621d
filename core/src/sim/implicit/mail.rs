//! Messages between parts of the ranks.

use super::pool::Item;
use super::rank::{halves, whole};
use crate::sim::mail;
use crate::sim::word::Word32;

/// Messages between parts in one window.
pub type Mail<'s> = mail::Mail<'s, Message>;

/// Outbox of one sender for one window.
pub type Outbox<'s> = mail::Outbox<'s, Message>;

/// A message to another part, in 28 bytes. Times are split in halves, because not every target has
/// 64-bit atomics.
#[derive(Debug, Default)]
pub struct Message {
    created: [Word32; 2],
    parent: [Word32; 2],
    source: Word32,
    target: Word32,
    receive: Word32,
}

fn set(place: &[Word32; 2], time: u64) {
    for (place, half) in place.iter().zip(halves(time)) {
        place.set(half);
    }
}

fn get([low, high]: &[Word32; 2]) -> u64 {
    whole([low.get(), high.get()])
}

impl Message {
    /// Writes a message to rank `target`.
    #[inline]
    pub(super) fn write(&self, target: u32, message: &Item) {
        set(&self.created, message.created);
        set(&self.parent, message.parent);
        self.source.set(message.first);
        self.target.set(target);
        self.receive.set(message.last);
    }

    /// Rank that receives.
    #[inline]
    pub(super) fn target(&self) -> u32 {
        self.target.get()
    }

    /// Node contents for the message.
    #[inline]
    pub(super) fn read(&self) -> Item {
        Item {
            first: self.source.get(),
            last: self.receive.get(),
            kind: 0,
            created: get(&self.created),
            parent: get(&self.parent),
        }
    }
}
