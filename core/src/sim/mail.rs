//! Messages between windows, binned by the partition that they go to.
//!
//! Messages lie in chunks. Each sender (a thread) takes chunks of its own
//! part and chains them by destination; all but the newest chunk of a chain
//! are full. What is sent in one window is read in the next, while the other
//! one of two mails is written. What a message says is its kind's affair; it
//! has to be atomic, because sender and receiver take turns with it. They
//! never use it in the same window.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Messages of a chunk.
pub const CHUNK: u32 = 32;

/// A chain of chunks: the messages of one sender to one partition.
#[derive(Debug, Default)]
pub struct ChunkList {
    /// Index of the newest chunk plus 1; 0 if there is none.
    newest: AtomicU32,
    /// Messages in that.
    fill: AtomicU32,
    /// The last send whose message found no room, plus 1; 0 if there is none.
    spilled: AtomicU32,
}

/// The messages of one window.
#[derive(Debug)]
pub struct Mail<'s, M> {
    messages: &'s [M],
    /// Of each chunk the index of the one before plus 1; 0 if there is none.
    before: &'s [AtomicU32],
    /// Of each sender, of each partition.
    chains: &'s [ChunkList],
    partitions: usize,
}

impl<M> Clone for Mail<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Mail<'_, M> {}

impl<'s, M> Mail<'s, M> {
    /// A mail for `chains.len() / partitions` senders, all of whose chains
    /// are new.
    #[must_use]
    pub const fn new(
        messages: &'s [M],
        before: &'s [AtomicU32],
        chains: &'s [ChunkList],
        partitions: usize,
    ) -> Self {
        Self { messages, before, chains, partitions }
    }

    #[inline]
    pub(in crate::sim) fn message(&self, at: u32) -> Option<&'s M> {
        self.messages.get(at as usize)
    }

    /// Calls `take` with the last send to a partition of each sender that
    /// found no room, and empties those chains.
    pub(in crate::sim) fn collect_spilled(&self, partition: u32, mut take: impl FnMut(u32)) {
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
    pub(in crate::sim) fn collect(&self, partition: u32, mut take: impl FnMut(u32, &'s M)) {
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
pub struct Outbox<'s, M> {
    mail: Mail<'s, M>,
    sender: usize,
    /// Its chunks: the first, the next unused one, the end.
    first: u32,
    next: u32,
    end: u32,
    sent: u64,
}

impl<'s, M> Outbox<'s, M> {
    /// An outbox of `sender`, which has the chunks from the first of
    /// `chunks` to before the second for itself.
    #[must_use]
    pub const fn new(mail: Mail<'s, M>, sender: usize, chunks: [u32; 2]) -> Self {
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

    /// Sends a message to a partition: the place to write it to; `None`
    /// without room.
    #[inline]
    pub(in crate::sim) fn send(&mut self, partition: u32) -> Option<&'s M> {
        let at = self.sender * self.mail.partitions + partition as usize;
        let chain = self.mail.chains.get(at)?;
        let mut newest = chain.newest.load(Relaxed);
        let mut fill = chain.fill.load(Relaxed);
        if newest == 0 || fill == CHUNK {
            if self.next >= self.end {
                return None;
            }
            let before = self.mail.before.get(self.next as usize)?;
            before.store(newest, Relaxed);
            self.next += 1;
            newest = self.next;
            fill = 0;
            chain.newest.store(newest, Relaxed);
        }
        let place = (newest - 1) * CHUNK + fill;
        let message = self.mail.messages.get(place as usize)?;
        chain.fill.store(fill + 1, Relaxed);
        self.sent += 1;
        Some(message)
    }

    /// Sends the message that the record of `send` keeps; returns the send to
    /// chain it to, if there is one.
    #[cold]
    pub(in crate::sim) fn spill(&mut self, partition: u32, send: u32) -> Option<u32> {
        let at = self.sender * self.mail.partitions + partition as usize;
        let chain = self.mail.chains.get(at)?;
        let before = chain.spilled.load(Relaxed);
        chain.spilled.store(send + 1, Relaxed);
        self.sent += 1;
        before.checked_sub(1)
    }
}
