//! Owned memory for runs in windows.

use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::{io, mem};

use loggap_core::sim::mail::{Block, CHUNK, ChunkList, Chunks, Mail, Outbox};
use loggap_core::sim::windows::{Memory, Requirements};

use super::parts::lock;
use crate::simulation::Processes;
use crate::simulation::memory::owned_memory;
use crate::sys::pages::{Integers, Pages};

loggap_core::with_window_memory_parts! {
    owned_memory
    /// Owner of the parts of [`Memory`], each as long as a simulation requires.
    pub struct WindowMemory;
}

/// Two mails over the same chunks: one is read while the other is written.
#[derive(Debug)]
pub(super) struct Mails<M> {
    messages: Pages<M>,
    before: Pages<AtomicU32>,
    chains: [Pages<ChunkList>; 2],
    partitions: usize,
    /// Number of chunks that begin as those of each sender.
    each: u32,
    /// Chunks of each sender that hold no message.
    chunks: Vec<Mutex<Chunks>>,
}

/// Released chunks that a sender may have beyond another, which takes unused ones instead.
const EXCESS: u32 = 1 << 6;

/// Limits on the messages of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct MailRoom {
    /// Largest number of messages of one sender.
    pub(super) messages: u32,
    /// Total memory, bytes.
    pub(super) bytes: u64,
}

/// Chains of the mail of a process with `parts` partitions: one for each, and one for each process
/// if there are several.
pub(super) fn chains(parts: usize, block: Block, processes: &dyn Processes) -> usize {
    match processes.count() {
        1 => parts,
        count => block.each as usize + count as usize,
    }
}

impl<M: Integers> Mails<M> {
    /// Allocates as much as the limits allow; pages cost nothing until they are used.
    pub(super) fn new(senders: usize, partitions: usize, room: MailRoom) -> io::Result<Self> {
        let MailRoom { messages, bytes } = room;
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        // The last chunk of every chain may be partly full.
        let partly = u32::try_from(partitions).map_err(|_| too_large())?.min(messages);
        let wanted = u64::from(messages / CHUNK) + 2 * u64::from(partly) + 1;
        let chunk = u64::from(CHUNK) * size_of::<M>() as u64;
        let most = (bytes / chunk).min(u64::from(u32::MAX / CHUNK)) / senders as u64;
        let each = u32::try_from(wanted.min(most)).map_err(|_| too_large())?;
        let all = senders * each as usize;
        let chains = || Pages::zeroed(senders * partitions);
        let of = |sender: u32| Mutex::new(Chunks::new(sender * each, (sender + 1) * each));
        Ok(Self {
            messages: Pages::zeroed(all * CHUNK as usize)?,
            before: Pages::zeroed(all)?,
            chains: [chains()?, chains()?],
            partitions,
            each,
            chunks: (0u32..).map(of).take(senders).collect(),
        })
    }

    /// Both mails.
    pub(super) fn both(&self) -> [Mail<'_, M>; 2] {
        let Self { messages, before, chains, partitions, .. } = self;
        chains.each_ref().map(|chains| Mail::new(messages, before, chains, *partitions))
    }

    /// Number of senders.
    pub(super) const fn senders(&self) -> usize {
        self.chunks.len()
    }

    /// Outbox of a sender for a window, whose messages go to `mail`.
    pub(super) fn outbox<'m>(&self, mail: Mail<'m, M>, sender: usize) -> Outbox<'m, M> {
        let chunks = self.chunks.get(sender).map(|chunks| mem::take(&mut *lock(chunks)));
        let chunks = chunks.unwrap_or_default();
        Outbox::new(mail, sender, chunks)
    }

    /// Keeps the chunks of a sender for its next outbox.
    pub(super) fn keep(&self, sender: usize, outbox: Outbox<'_, M>) {
        if let Some(chunks) = self.chunks.get(sender) {
            *lock(chunks) = outbox.into_chunks();
        }
    }

    /// Evens out the chunks between windows: a thread may release many more than it takes.
    pub(super) fn balance(&self) {
        let released = |chunks: &&Mutex<Chunks>| lock(chunks).count();
        let most = self.chunks.iter().max_by_key(released);
        let fewest = self.chunks.iter().min_by_key(released);
        let Some((most, fewest)) = most.zip(fewest) else { return };
        let excess = released(&most) - released(&fewest);
        if excess > EXCESS.min(self.each / 4) {
            let [mail, _] = self.both();
            lock(most).give(&mut lock(fewest), excess / 2, &mail);
        }
    }

    /// Memory used, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let used = |chunks: &Mutex<Chunks>| u64::from(self.each - lock(chunks).unused());
        let chunk = u64::from(CHUNK) * size_of::<M>() as u64 + 4;
        let [chains, _] = &self.chains;
        let chains = 2 * (chains.len() * size_of::<ChunkList>()) as u64;
        self.chunks.iter().map(used).sum::<u64>() * chunk + chains
    }
}
