//! The memory that a simulation is lent.

use super::clocks::ClockQueue;
use super::lent::lent_memory;
use super::matching::match_index::MatchIndex;
use super::queues::queue::Entry;
use super::rank::Rank;
use super::record::{Record, Slot};

lent_memory! {
    parts {
        /// Operations.
        records: Record,
        /// Lists of dependants.
        edges: u32,
        /// Ranks.
        ranks: Rank,
        /// Index of each rank's first operation.
        firsts: u32,
        /// Posted receives.
        slots: Slot,
        /// Ranks that have more than a hundred receives.
        match_indexes: MatchIndex,
        /// By which these find receives and messages, where many wait.
        index_words: u32,
        /// Processors and interfaces but the first ones.
        clocks: u64,
        /// What waits for each processor and side of an interface, where something does not
        /// wait in lists: with several of them, or with overlap.
        clock_queues: ClockQueue,
        /// Those of each rank that something waits for.
        clock_heap: Entry,
        /// Processor and interface of each operation, where one is above 255.
        units: u32,
        /// A time of each operation, where one is needed.
        times: u64,
        /// When each message next tries to be received, where ranks have several
        /// processors or interfaces; of a message that claims a receive, that receive.
        next_attempts: u64,
        /// The heaps of what waits, where ranks have several processors or
        /// interfaces, or messages are received with overlap.
        links: u64,
        /// When the last message of each rank was all there, where that can be
        /// later than its processor is free.
        done: u64,
        /// Events to come.
        queue: Entry,
        /// Where each rank's is among them.
        places: u32,
        /// Dependencies of one rank, while the schedule is built.
        scratch: [u32; 2],
    }
    further {
        /// Processors of a rank.
        cpus: usize,
        /// Interfaces of a rank.
        nics: usize,
    }
}

impl Requirements {
    /// Whether ranks have several processors or interfaces.
    pub(super) const fn several(&self) -> bool {
        self.cpus > 1 || self.nics > 1
    }
}
