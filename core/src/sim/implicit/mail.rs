//! A message on its way from one part of the ranks to another.

use super::pool::Item;
use super::rank::{halves, whole};
use crate::sim::mail;
use crate::sim::word::Word32;

/// What is sent from part to part in one window.
pub type Mail<'s> = mail::Mail<'s, Message>;

/// Where one sender puts what it sends in one window.
pub type Outbox<'s> = mail::Outbox<'s, Message>;

/// A message on its way to another part, in 28 bytes; times in halves, as not
/// every processor has atomic integers of 64 bits.
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
    /// Puts what a node says of a message to `target` into it.
    #[inline]
    pub(super) fn write(&self, target: u32, message: &Item) {
        set(&self.created, message.created);
        set(&self.parent, message.parent);
        self.source.set(message.first);
        self.target.set(target);
        self.receive.set(message.last);
    }

    /// The rank that it goes to.
    #[inline]
    pub(super) fn target(&self) -> u32 {
        self.target.get()
    }

    /// What a node says of it.
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
