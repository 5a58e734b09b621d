//! Messages between windows, binned by the partition that they go to.
//!
//! Messages lie in chunks. Each sender (a thread) takes chunks of its own
//! part and chains them by destination; all but the newest chunk of a chain
//! are full. What is sent in one window is read in the next, while the other
//! one of two mails is written. Where a sender has no chunks left, messages
//! stay in the records of their sends, which are chained instead.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::sim::record::NONE;

/// Messages of a chunk.
pub const CHUNK: u32 = 32;

/// A message on its way, in 32 bytes. Atomic because sender and receiver
/// take turns with it; they never use it in the same window.
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
    fn write(&self, letter: &Letter) {
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

/// A chain of chunks: the messages of one sender to one partition.
#[derive(Debug, Default)]
pub struct Chain {
    /// Its newest chunk and one, or 0.
    newest: AtomicU32,
    /// Messages in that.
    fill: AtomicU32,
    /// The last send whose message found no room and one, or 0.
    spilled: AtomicU32,
}

/// The messages of one window.
#[derive(Clone, Copy, Debug)]
pub struct Mail<'s> {
    messages: &'s [Message],
    /// Of each chunk the one before and one, or 0.
    before: &'s [AtomicU32],
    /// Of each sender, of each partition.
    chains: &'s [Chain],
    partitions: usize,
}

impl<'s> Mail<'s> {
    /// A mail for `chains.len() / partitions` senders, all of whose chains
    /// are new.
    #[must_use]
    pub const fn new(
        messages: &'s [Message],
        before: &'s [AtomicU32],
        chains: &'s [Chain],
        partitions: usize,
    ) -> Self {
        Self { messages, before, chains, partitions }
    }

    #[inline]
    pub(super) fn message(&self, at: u32) -> Option<&'s Message> {
        self.messages.get(at as usize)
    }

    /// Calls `take` with the last send to a partition of each sender that
    /// found no room, and empties those chains.
    pub(super) fn collect_spilled(&self, partition: u32, mut take: impl FnMut(u32)) {
        let mut at = partition as usize;
        while let Some(chain) = self.chains.get(at) {
            at += self.partitions;
            if let Some(last) = chain.spilled.load(Relaxed).checked_sub(1) {
                chain.spilled.store(0, Relaxed);
                take(last);
            }
        }
    }

    /// Calls `take` with all messages to a partition, those of each sender
    /// from the last to the first, and empties its chains.
    pub(super) fn collect(&self, partition: u32, mut take: impl FnMut(u32, &'s Message)) {
        let mut at = partition as usize;
        while let Some(chain) = self.chains.get(at) {
            at += self.partitions;
            let mut chunk = chain.newest.load(Relaxed);
            if chunk == 0 {
                continue;
            }
            chain.newest.store(0, Relaxed);
            let mut fill = chain.fill.load(Relaxed);
            while let Some(index) = chunk.checked_sub(1) {
                let first = index * CHUNK;
                let some = self.messages.get(first as usize..(first + fill) as usize);
                let mut at = first + fill;
                for message in some.unwrap_or_default().iter().rev() {
                    at -= 1;
                    take(at, message);
                }
                fill = CHUNK;
                chunk = self.before.get(index as usize).map_or(0, |before| before.load(Relaxed));
            }
        }
    }

    /// Whether there is something for a partition.
    #[must_use]
    pub fn any(&self, partition: u32) -> bool {
        let mut at = partition as usize;
        while let Some(chain) = self.chains.get(at) {
            if chain.newest.load(Relaxed) != 0 || chain.spilled.load(Relaxed) != 0 {
                return true;
            }
            at += self.partitions;
        }
        false
    }
}

/// Where one sender puts its messages of one window.
#[derive(Debug)]
pub struct Outbox<'s> {
    mail: Mail<'s>,
    sender: usize,
    /// Its chunks: the first, the next unused one, the end.
    first: u32,
    next: u32,
    end: u32,
    sent: u64,
}

impl<'s> Outbox<'s> {
    /// An outbox of `sender`, which has the chunks from the first of
    /// `chunks` to before the second for itself.
    #[must_use]
    pub const fn new(mail: Mail<'s>, sender: usize, chunks: [u32; 2]) -> Self {
        let [first, end] = chunks;
        Self { mail, sender, first, next: first, end, sent: 0 }
    }

    /// Messages put into it.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Chunks that it has begun.
    #[must_use]
    pub const fn chunks(&self) -> u32 {
        self.next - self.first
    }

    /// Sends a letter to a partition; `false` without room.
    #[inline]
    pub(super) fn push(&mut self, partition: u32, letter: &Letter) -> bool {
        let at = self.sender * self.mail.partitions + partition as usize;
        let Some(chain) = self.mail.chains.get(at) else { return false };
        let mut newest = chain.newest.load(Relaxed);
        let mut fill = chain.fill.load(Relaxed);
        if newest == 0 || fill == CHUNK {
            if self.next >= self.end {
                return false;
            }
            let Some(before) = self.mail.before.get(self.next as usize) else { return false };
            before.store(newest, Relaxed);
            self.next += 1;
            newest = self.next;
            fill = 0;
            chain.newest.store(newest, Relaxed);
        }
        let place = (newest - 1) * CHUNK + fill;
        let Some(message) = self.mail.messages.get(place as usize) else { return false };
        message.write(letter);
        chain.fill.store(fill + 1, Relaxed);
        self.sent += 1;
        true
    }

    /// Sends the message that the record of `send` keeps; returns the one to
    /// chain it to, or [`END`].
    #[cold]
    pub(super) fn spill(&mut self, partition: u32, send: u32) -> u32 {
        let at = self.sender * self.mail.partitions + partition as usize;
        let Some(chain) = self.mail.chains.get(at) else { return END };
        let before = chain.spilled.load(Relaxed);
        chain.spilled.store(send + 1, Relaxed);
        self.sent += 1;
        before.checked_sub(1).unwrap_or(END)
    }
}

/// End of a list of messages.
pub(super) const END: u32 = NONE;
