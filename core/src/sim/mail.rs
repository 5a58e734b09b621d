//! Mail: messages between windows, binned by destination partition.
//!
//! Messages lie in chunks. Each sender (a thread) takes chunks from its own part of the memory and
//! chains them by destination; all chunks of a chain but the newest are full. There are two mails:
//! each is written in one window and read in the next, while the other is written. The type of a
//! message must be atomic, because sender and receiver use it in turn; they never use it in the
//! same window.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Messages in a chunk.
pub const CHUNK: u32 = 32;

/// Chain of chunks: messages of one sender to one partition.
#[derive(Debug, Default)]
pub struct ChunkList {
    /// Index of the newest chunk plus 1; 0 for an empty chain.
    newest: AtomicU32,
    /// Messages in the newest chunk.
    fill: AtomicU32,
    /// Last send whose message did not fit, plus 1; 0 if all did.
    spilled: AtomicU32,
}

/// Messages of one window.
#[derive(Debug)]
pub struct Mail<'s, M> {
    messages: &'s [M],
    /// Index of the preceding chunk plus 1, for each chunk; 0 for the first of a chain.
    before: &'s [AtomicU32],
    /// Chains by sender, then by partition.
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
    /// Creates a mail for `chains.len() / partitions` senders. All chains must be new.
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

    /// Calls `take` with the last overflowed send of each sender to a partition, and empties those
    /// chains.
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

    /// Calls `take` with all messages to a partition, those of each sender from last to first, and
    /// empties its chains.
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

    /// True if there are messages for a partition.
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

/// Outbox of one sender for one window.
#[derive(Debug)]
pub struct Outbox<'s, M> {
    mail: Mail<'s, M>,
    sender: usize,
    /// Chunks of this sender: the first, the next unused one, the end.
    first: u32,
    next: u32,
    end: u32,
    sent: u64,
}

impl<'s, M> Outbox<'s, M> {
    /// Outbox of `sender`, which owns the chunks `chunks[0]..chunks[1]`.
    #[must_use]
    pub const fn new(mail: Mail<'s, M>, sender: usize, chunks: [u32; 2]) -> Self {
        let [first, end] = chunks;
        Self { mail, sender, first, next: first, end, sent: 0 }
    }

    /// Number of messages sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Number of chunks in use.
    #[must_use]
    pub const fn chunks(&self) -> u32 {
        self.next - self.first
    }

    /// Reserves a message to a partition, for the caller to write; `None` if there is no room.
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

    /// Sends an overflowed message, which stays in the record of `send`. Returns the previous
    /// overflowed send to that partition, to be linked behind this one.
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
