//! Mail: messages between windows, binned by destination partition.
//!
//! Messages lie in chunks. Each sender (a thread) chains chunks by destination; all chunks of a
//! chain but the newest are full. There are two mails over the same chunks: each is written in one
//! window and read in the next, while the other is written. The reader of a partition's chunks
//! releases them for its own next messages; fresh ones come from its own part of the memory. The
//! type of a message must be atomic, because sender and receiver use it in turn; they never use it
//! in the same window.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Messages in a chunk.
pub const CHUNK: u32 = 32;

/// Partitions of one process of several: `each` from `first` on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Block {
    /// First partition.
    pub first: u32,
    /// Number of partitions of every process; the last ones may have fewer.
    pub each: u32,
}

impl Default for Block {
    fn default() -> Self {
        Self::ALL
    }
}

impl Block {
    /// Partitions of the only process.
    pub const ALL: Self = Self { first: 0, each: u32::MAX };

    /// Ranks of the process, of `ranks` in partitions of 2^`shift`.
    #[must_use]
    pub fn ranks(self, shift: u32, ranks: u32) -> Range<u32> {
        let at = |partition: u64| {
            u32::try_from(partition << shift).map_or(ranks, |rank| rank.min(ranks))
        };
        let (first, each) = (u64::from(self.first), u64::from(self.each));
        at(first)..at(first + each)
    }

    /// Chain of the mail for `partition`: that of the partition, or of the process that has it.
    #[inline]
    #[must_use]
    pub const fn chain(self, partition: u32) -> u32 {
        let local = partition.wrapping_sub(self.first);
        match partition.checked_div(self.each) {
            Some(process) if local >= self.each => self.each + process,
            _ => local,
        }
    }
}

/// A message that can be copied to another process.
pub trait Words {
    /// Number of words.
    const WORDS: usize;

    /// Appends the words of the message with `push`.
    fn read(&self, push: impl FnMut(u32));

    /// Sets the message to `words`, which [`Words::read`] gave.
    fn write(&self, words: &[u32]);

    /// Rank that receives the message with these words; `None` for a continuation of the message
    /// before it.
    fn target(words: &[u32]) -> Option<u32>;
}

/// Chain of chunks: messages of one sender to one partition.
#[derive(Debug, Default)]
pub struct ChunkList {
    /// Index of the newest chunk plus 1; 0 for an empty chain.
    newest: AtomicU32,
    /// Index of the oldest chunk, if the chain is not empty.
    oldest: AtomicU32,
    /// Number of chunks.
    length: AtomicU32,
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

    /// Calls `take` with all messages to a partition, those of each sender from last to first. They
    /// stay until [`Outbox::release`].
    pub fn collect(&self, partition: u32, mut take: impl FnMut(u32, &'s M)) {
        let mut at = partition as usize;
        while let Some(chain) = self.chains.get(at) {
            at += self.partitions;
            let mut chunk = chain.newest.load(Relaxed);
            if chunk == 0 {
                continue;
            }
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

/// Chunks of a sender that hold no message. Not to be copied: two owners would write the same ones.
#[derive(Debug, Default)]
pub struct Chunks {
    /// Index of the first released chunk plus 1, chained as those of messages; 0 without any.
    released: u32,
    /// Number of released chunks.
    length: u32,
    /// Range of chunks that were never used.
    fresh: [u32; 2],
}

impl Chunks {
    /// Chunks from `first` to before `end`.
    #[must_use]
    pub const fn new(first: u32, end: u32) -> Self {
        Self { released: 0, length: 0, fresh: [first, end] }
    }

    /// Number of chunks that were never used.
    #[must_use]
    pub const fn unused(&self) -> u32 {
        let [next, end] = self.fresh;
        end - next
    }

    /// Number of released chunks.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.length
    }

    /// Gives `count` released chunks of `mail` to `other`, or all if there are fewer.
    pub fn give<M>(&mut self, other: &mut Self, count: u32, mail: &Mail<'_, M>) {
        let next = |chunk: u32| mail.before.get((chunk as usize).wrapping_sub(1));
        let count = count.min(self.length);
        let first = self.released;
        let mut last = first;
        for _ in 1..count {
            last = next(last).map_or(0, |before| before.load(Relaxed));
        }
        if let Some(before) = next(last).filter(|_| count > 0) {
            self.released = before.load(Relaxed);
            before.store(other.released, Relaxed);
            other.released = first;
            self.length -= count;
            other.length += count;
        }
    }

    /// Takes a chunk: its index plus 1.
    fn take(&mut self, before: &[AtomicU32]) -> Option<u32> {
        let [next, end] = self.fresh;
        if let Some(index) = self.released.checked_sub(1) {
            let taken = self.released;
            self.released = before.get(index as usize)?.load(Relaxed);
            self.length -= 1;
            return Some(taken);
        }
        (next < end).then(|| {
            self.fresh = [next + 1, end];
            next + 1
        })
    }
}

/// Outbox of one sender for one window.
#[derive(Debug)]
pub struct Outbox<'s, M> {
    mail: Mail<'s, M>,
    sender: usize,
    chunks: Chunks,
    sent: u64,
}

impl<'s, M> Outbox<'s, M> {
    /// Creates an outbox of `sender`, which owns `chunks`.
    #[must_use]
    pub const fn new(mail: Mail<'s, M>, sender: usize, chunks: Chunks) -> Self {
        Self { mail, sender, chunks, sent: 0 }
    }

    /// Number of messages sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Chunks that the sender owns after the window.
    #[must_use]
    pub const fn into_chunks(self) -> Chunks {
        self.chunks
    }

    /// Takes over the chunks of all messages to a partition in `inbox`, a mail over the same
    /// chunks, and empties its chains.
    pub fn release(&mut self, inbox: &Mail<'_, M>, partition: u32) {
        let mut at = partition as usize;
        while let Some(chain) = inbox.chains.get(at) {
            at += inbox.partitions;
            let newest = chain.newest.load(Relaxed);
            let oldest = chain.oldest.load(Relaxed) as usize;
            if let Some(last) = inbox.before.get(oldest).filter(|_| newest != 0) {
                last.store(self.chunks.released, Relaxed);
                self.chunks.released = newest;
                self.chunks.length += chain.length.load(Relaxed);
                chain.newest.store(0, Relaxed);
            }
        }
    }

    /// Reads the newest chunk of messages to a partition in `mail`, a mail over the same chunks, from
    /// last to first, and takes the chunk over. False without messages.
    pub fn take(&mut self, mail: &Mail<'_, M>, partition: u32, mut read: impl FnMut(&M)) -> bool {
        let chains = mail.chains.iter().skip(partition as usize).step_by(mail.partitions);
        for chain in chains {
            let newest = chain.newest.load(Relaxed);
            let Some(before) = mail.before.get((newest as usize).wrapping_sub(1)) else { continue };
            let first = (newest - 1) * CHUNK;
            let some =
                mail.messages.get(first as usize..(first + chain.fill.load(Relaxed)) as usize);
            some.unwrap_or_default().iter().rev().for_each(&mut read);
            chain.newest.store(before.load(Relaxed), Relaxed);
            chain.fill.store(CHUNK, Relaxed);
            chain.length.store(chain.length.load(Relaxed) - 1, Relaxed);
            before.store(self.chunks.released, Relaxed);
            self.chunks.released = newest;
            self.chunks.length += 1;
            return true;
        }
        false
    }

    /// Reserves a message to a partition, for the caller to write; `None` if there is no room.
    #[inline]
    pub fn send(&mut self, partition: u32) -> Option<&'s M> {
        let at = self.sender * self.mail.partitions + partition as usize;
        let chain = self.mail.chains.get(at)?;
        let mut newest = chain.newest.load(Relaxed);
        let mut fill = chain.fill.load(Relaxed);
        if newest == 0 || fill == CHUNK {
            let taken = self.chunks.take(self.mail.before)?;
            self.mail.before.get(taken as usize - 1)?.store(newest, Relaxed);
            let length = if newest == 0 {
                chain.oldest.store(taken - 1, Relaxed);
                0
            } else {
                chain.length.load(Relaxed)
            };
            chain.length.store(length + 1, Relaxed);
            newest = taken;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn words(count: usize) -> Vec<AtomicU32> {
        (0..count).map(|_| AtomicU32::new(0)).collect()
    }

    #[test]
    fn chunks_that_were_read_are_written_again_before_fresh_ones() {
        let (messages, before) = (words(8 * CHUNK as usize), words(8));
        let chains = [(); 2].map(|()| [ChunkList::default(), ChunkList::default()]);
        let [first, second] =
            chains.each_ref().map(|chains| Mail::new(&messages, &before, chains, 1));
        let mut outbox = Outbox::new(first, 0, Chunks::new(0, 4));
        for number in 0..CHUNK + 8 {
            outbox.send(0).unwrap().store(number, Relaxed);
        }
        let mut sender = outbox.into_chunks();
        let mut reader = Outbox::new(second, 1, Chunks::new(4, 8));
        let mut read = Vec::new();
        first.collect(0, |_, message| read.push(message.load(Relaxed)));
        assert!(read.iter().copied().eq((0..CHUNK + 8).rev()));
        reader.release(&first, 0);
        assert!(!first.any(0));
        for _ in 0..CHUNK {
            reader.send(0).unwrap();
        }
        let mut reader = reader.into_chunks();
        assert_eq!((reader.count(), reader.unused()), (1, 4));
        reader.give(&mut sender, 5, &second);
        assert_eq!((reader.count(), sender.count(), sender.unused()), (0, 1, 2));
        let mut outbox = Outbox::new(first, 0, sender);
        let sent = (0..4 * CHUNK).map_while(|_| outbox.send(0)).count();
        assert_eq!(sent, 3 * CHUNK as usize, "one chunk given, two fresh ones");
    }

    /// Messages of many windows, among which chunks change their owners.
    #[test]
    fn no_message_is_lost_or_doubled_where_chunks_are_given_away() {
        const SENDERS: usize = 3;
        const EACH: u32 = 12;
        let all = SENDERS * EACH as usize;
        let (messages, before) = (words(all * CHUNK as usize), words(all));
        let chains = [(); 2].map(|()| [(); 2 * SENDERS].map(|()| ChunkList::default()));
        let mut mails = chains.each_ref().map(|chains| Mail::new(&messages, &before, chains, 2));
        let mut owned = [0, 1, 2].map(|sender| Chunks::new(sender * EACH, (sender + 1) * EACH));
        let mut random = crate::random::Random::new(7);
        let mut below = |most: u32| u32::try_from(random.below(most.into())).unwrap();
        let (mut sent, mut number) = (Vec::new(), 0);
        for _ in 0..400 {
            let [inbox, sending] = mails;
            let mut read = Vec::new();
            let reader = below(3) as usize;
            for (sender, chunks) in owned.iter_mut().enumerate() {
                let mut outbox = Outbox::new(sending, sender, core::mem::take(chunks));
                for partition in 0..2 {
                    if sender != (reader + partition as usize) % SENDERS {
                        continue;
                    }
                    // Some chunks one by one, the others at once.
                    let mut read = |message: &AtomicU32| read.push(message.load(Relaxed));
                    for _ in 0..below(8) {
                        outbox.take(&inbox, partition, &mut read);
                    }
                    inbox.collect(partition, |_, message| read(message));
                    outbox.release(&inbox, partition);
                }
                *chunks = outbox.into_chunks();
            }
            read.sort_unstable();
            assert_eq!(read, sent);
            sent.clear();
            let [from, to] = [below(3) as usize, below(3) as usize];
            if from != to {
                let mut given = core::mem::take(&mut owned[from]);
                let some = below(1 + given.count());
                let left = |of: [&Chunks; 2]| of.map(|some| some.count() + some.unused());
                let whole: u32 = left([&given, &owned[to]]).iter().sum();
                given.give(&mut owned[to], some, &sending);
                assert_eq!(left([&given, &owned[to]]).iter().sum::<u32>(), whole);
                owned[from] = given;
            }
            for (sender, chunks) in owned.iter_mut().enumerate() {
                let mut outbox = Outbox::new(sending, sender, core::mem::take(chunks));
                for _ in 0..below(150) {
                    if let Some(place) = outbox.send(below(2)) {
                        place.store(number, Relaxed);
                        sent.push(number);
                        number += 1;
                    }
                }
                *chunks = outbox.into_chunks();
            }
            mails.reverse();
        }
        assert!(number > 10_000, "{number}");
    }
}
