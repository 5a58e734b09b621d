//! A message on its way from one part of the ranks to another.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::pool::Item;
use super::rank::{halves, whole};
use crate::sim::mail;

/// What is sent from part to part in one window.
pub type Mail<'s> = mail::Mail<'s, Envelope>;

/// Where one sender puts what it sends in one window.
pub type Outbox<'s> = mail::Outbox<'s, Envelope>;

/// A message on its way to another part, in 28 bytes; times in halves, as not
/// every processor has atomic integers of 64 bits.
#[derive(Debug, Default)]
pub struct Envelope {
    created: [AtomicU32; 2],
    parent: [AtomicU32; 2],
    source: AtomicU32,
    target: AtomicU32,
    receive: AtomicU32,
}

fn set(place: &[AtomicU32; 2], time: u64) {
    for (place, half) in place.iter().zip(halves(time)) {
        place.store(half, Relaxed);
    }
}

fn get([low, high]: &[AtomicU32; 2]) -> u64 {
    whole([low.load(Relaxed), high.load(Relaxed)])
}

impl Envelope {
    /// Puts what a node says of a message to `target` into it.
    #[inline]
    pub(super) fn write(&self, target: u32, message: &Item) {
        set(&self.created, message.created);
        set(&self.parent, message.parent);
        self.source.store(message.first, Relaxed);
        self.target.store(target, Relaxed);
        self.receive.store(message.last, Relaxed);
    }

    /// The rank that it goes to.
    #[inline]
    pub(super) fn target(&self) -> u32 {
        self.target.load(Relaxed)
    }

    /// What a node says of it.
    #[inline]
    pub(super) fn read(&self) -> Item {
        Item {
            first: self.source.load(Relaxed),
            last: self.receive.load(Relaxed),
            kind: 0,
            created: get(&self.created),
            parent: get(&self.parent),
        }
    }
}
