//! What a message says that is on its way between two windows.
//!
//! Where a sender has no room left in the [mail](crate::sim::mail), messages
//! stay in the records of their sends, which are chained instead.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::sim::mail;
use crate::sim::record::NONE;

/// The messages of one window.
pub type Mail<'s> = mail::Mail<'s, Message>;

/// Where one sender puts its messages of one window.
pub type Outbox<'s> = mail::Outbox<'s, Message>;

/// A message on its way, in 32 bytes.
#[derive(Debug, Default)]
#[repr(C, align(32))]
pub struct Message {
    created: AtomicU64,
    send: AtomicU32,
    source: AtomicU32,
    target: AtomicU32,
    tag: AtomicU32,
    size: AtomicU32,
    link: AtomicU32,
}

const _: () = assert!(size_of::<Message>() == 32, "two in a cache line");

/// What a message says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Letter {
    /// When it was sent.
    pub(super) created: u64,
    /// The send.
    pub(super) send: u32,
    /// The rank that sent it.
    pub(super) source: u32,
    /// The rank that it goes to.
    pub(super) target: u32,
    pub(super) tag: u32,
    /// Bytes.
    pub(super) size: u32,
}

impl Message {
    pub(super) fn write(&self, letter: &Letter) {
        self.created.store(letter.created, Relaxed);
        self.send.store(letter.send, Relaxed);
        self.source.store(letter.source, Relaxed);
        self.target.store(letter.target, Relaxed);
        self.tag.store(letter.tag, Relaxed);
        self.size.store(letter.size, Relaxed);
    }

    #[inline]
    pub(super) fn read(&self) -> Letter {
        Letter {
            created: self.created.load(Relaxed),
            send: self.send.load(Relaxed),
            source: self.source.load(Relaxed),
            target: self.target.load(Relaxed),
            tag: self.tag.load(Relaxed),
            size: self.size.load(Relaxed),
        }
    }

    #[inline]
    pub(super) fn created(&self) -> u64 {
        self.created.load(Relaxed)
    }

    #[inline]
    pub(super) fn send(&self) -> u32 {
        self.send.load(Relaxed)
    }

    #[inline]
    pub(super) fn source(&self) -> u32 {
        self.source.load(Relaxed)
    }

    #[inline]
    pub(super) fn tag(&self) -> u32 {
        self.tag.load(Relaxed)
    }

    #[inline]
    pub(super) fn target(&self) -> u32 {
        self.target.load(Relaxed)
    }

    #[inline]
    pub(super) fn link(&self) -> u32 {
        self.link.load(Relaxed)
    }

    #[inline]
    pub(super) fn set_link(&self, link: u32) {
        self.link.store(link, Relaxed);
    }
}

/// End of a list of messages.
pub(super) const END: u32 = NONE;
