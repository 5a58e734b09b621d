//! Owned memory for runs in windows.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use loggap_core::sim::Slot;
use loggap_core::sim::mail::{CHUNK, ChunkList, Mail};
use loggap_core::sim::windows::{Memory, Receiving, Requirements, WindowRank, WindowRecord};

use crate::simulation::memory::owned_memory;
use crate::sys::pages::{Integers, Pages};

owned_memory! {
    /// Owner of the parts of [`Memory`], each as long as a simulation requires.
    pub struct WindowMemory {
        records: WindowRecord,
        edges: u32,
        ranks: WindowRank,
        firsts: u32,
        slots: Slot,
        words: u64,
        times: AtomicU64,
        links: AtomicU64,
        receiving: Receiving,
        scratch: [u32; 2],
    }
}

/// Double-buffered mail: one half is read while the other is written.
#[derive(Debug)]
pub(super) struct Mails<M> {
    halves: [Half<M>; 2],
    partitions: usize,
    /// Number of chunks of each sender, in each half.
    chunks: u32,
    /// Largest number of chunks that a sender has used at a time.
    used: AtomicU32,
}

#[derive(Debug)]
struct Half<M> {
    messages: Pages<M>,
    before: Pages<AtomicU32>,
    chains: Pages<ChunkList>,
}

/// Limits on the messages of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct MailRoom {
    /// Largest number of messages of one sender.
    pub(super) messages: u32,
    /// Total memory, bytes.
    pub(super) bytes: u64,
}

impl<M: Integers> Mails<M> {
    /// Allocates as much as the limits allow; pages cost nothing until they are used.
    pub(super) fn new(senders: usize, partitions: usize, room: MailRoom) -> io::Result<Self> {
        let MailRoom { messages, bytes } = room;
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        // The last chunk of every chain may be partly full.
        let partly = u32::try_from(partitions).map_err(|_| too_large())?.min(messages);
        let wanted = u64::from(messages / CHUNK) + u64::from(partly) + 1;
        let each = 2 * u64::from(CHUNK) * size_of::<M>() as u64;
        let most = (bytes / each).min(u64::from(u32::MAX / CHUNK)) / senders as u64;
        let chunks = u32::try_from(wanted.min(most)).map_err(|_| too_large())?;
        let all = senders * chunks as usize;
        let half = || -> io::Result<Half<M>> {
            Ok(Half {
                messages: Pages::zeroed(all * CHUNK as usize)?,
                before: Pages::zeroed(all)?,
                chains: Pages::zeroed(senders * partitions)?,
            })
        };
        Ok(Self { halves: [half()?, half()?], partitions, chunks, used: AtomicU32::new(0) })
    }

    /// Both halves.
    pub(super) fn both(&self) -> [Mail<'_, M>; 2] {
        self.halves
            .each_ref()
            .map(|half| Mail::new(&half.messages, &half.before, &half.chains, self.partitions))
    }

    /// Number of senders.
    pub(super) fn senders(&self) -> usize {
        let [half, _] = &self.halves;
        half.chains.len() / self.partitions.max(1)
    }

    /// Range of chunks of a sender.
    pub(super) fn chunks(&self, sender: usize) -> [u32; 2] {
        let first = u32::try_from(sender).unwrap_or_default() * self.chunks;
        [first, first + self.chunks]
    }

    /// Records the number of chunks that a sender has used in a window.
    pub(super) fn note_used(&self, chunks: u32) {
        self.used.fetch_max(chunks, Ordering::Relaxed);
    }

    /// Memory used, in bytes; an upper bound if senders used different numbers of chunks.
    pub(super) fn bytes(&self) -> u64 {
        let [half, _] = &self.halves;
        let senders = self.senders();
        let chunk = u64::from(CHUNK) * size_of::<M>() as u64 + 4;
        let chains = 2 * (half.chains.len() * size_of::<ChunkList>()) as u64;
        2 * u64::from(self.used.load(Ordering::Relaxed)) * chunk * senders as u64 + chains
    }
}
