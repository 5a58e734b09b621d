//! The memory that a simulation is lent.

use super::crowd::Crowd;
use super::queue::Entry;
use super::rank::Rank;
use super::record::{Record, Slot};

/// Elements of each part of [`Memory`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Requirements {
    /// [`Memory::records`].
    pub records: usize,
    /// [`Memory::edges`].
    pub edges: usize,
    /// [`Memory::ranks`].
    pub ranks: usize,
    /// [`Memory::firsts`].
    pub firsts: usize,
    /// [`Memory::slots`].
    pub slots: usize,
    /// [`Memory::crowds`].
    pub crowds: usize,
    /// [`Memory::index`].
    pub index: usize,
    /// [`Memory::clocks`].
    pub clocks: usize,
    /// [`Memory::times`].
    pub times: usize,
    /// [`Memory::next_attempts`].
    pub next_attempts: usize,
    /// [`Memory::links`].
    pub links: usize,
    /// [`Memory::done`].
    pub done: usize,
    /// [`Memory::queue`].
    pub queue: usize,
    /// [`Memory::places`].
    pub places: usize,
    /// [`Memory::scratch`].
    pub scratch: usize,
    /// Processors of a rank.
    pub cpus: usize,
    /// Interfaces of a rank.
    pub nics: usize,
}

impl Requirements {
    /// Whether ranks have several processors or interfaces.
    pub(super) const fn several(&self) -> bool {
        self.cpus > 1 || self.nics > 1
    }

    /// Bytes of all parts together; saturating.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        let parts = [
            (self.records, size_of::<Record>()),
            (self.edges, size_of::<u32>()),
            (self.ranks, size_of::<Rank>()),
            (self.firsts, size_of::<u32>()),
            (self.slots, size_of::<Slot>()),
            (self.crowds, size_of::<Crowd>()),
            (self.index, size_of::<u32>()),
            (self.clocks, size_of::<u64>()),
            (self.times, size_of::<u64>()),
            (self.next_attempts, size_of::<u64>()),
            (self.links, size_of::<u64>()),
            (self.done, size_of::<u64>()),
            (self.queue, size_of::<Entry>()),
            (self.places, size_of::<u32>()),
            (self.scratch, size_of::<[u32; 2]>()),
        ];
        let mut bytes = 0u64;
        let mut rest: &[(usize, usize)] = &parts;
        while let Some(((count, size), next)) = rest.split_first() {
            bytes = bytes.saturating_add((*count as u64).saturating_mul(*size as u64));
            rest = next;
        }
        bytes
    }
}

/// Memory for a simulation; see [`Requirements`] for how much of each part.
/// Content on entry does not matter.
#[derive(Debug, Default)]
pub struct Memory<'m> {
    /// Operations.
    pub records: &'m mut [Record],
    /// Lists of dependants.
    pub edges: &'m mut [u32],
    /// Ranks.
    pub ranks: &'m mut [Rank],
    /// Index of each rank's first operation.
    pub firsts: &'m mut [u32],
    /// Posted receives.
    pub slots: &'m mut [Slot],
    /// Ranks that have more than a hundred receives.
    pub crowds: &'m mut [Crowd],
    /// By which these find receives and messages, where many wait.
    pub index: &'m mut [u32],
    /// Processors and interfaces but the first ones.
    pub clocks: &'m mut [u64],
    /// A time of each operation, where one is needed.
    pub times: &'m mut [u64],
    /// When each message next tries to be received, where ranks have several
    /// processors or interfaces.
    pub next_attempts: &'m mut [u64],
    /// The heaps of what waits, where ranks have several processors or
    /// interfaces, or messages are received with overlap.
    pub links: &'m mut [u64],
    /// When the last message of each rank was all there, where that can be
    /// later than its processor is free.
    pub done: &'m mut [u64],
    /// Events to come.
    pub queue: &'m mut [Entry],
    /// Where each rank's is among them.
    pub places: &'m mut [u32],
    /// Dependencies of one rank, while the schedule is built.
    pub scratch: &'m mut [[u32; 2]],
}
