//! Memory of a simulation.

use super::lent::lent_memory;

/// Calls the macro `$then` with the tokens that follow it, then the parts of
/// [`Memory`](crate::sim::Memory), each as `name: element,` after its documentation.
#[macro_export]
macro_rules! with_memory_parts {
    ($then:ident $($first:tt)*) => {
        $then! {
            $($first)*
            /// Records of operations.
            records: $crate::sim::Record,
            /// Lists of dependants.
            edges: u32,
            /// States of ranks.
            ranks: $crate::sim::Rank,
            /// Index of each rank's first operation.
            firsts: u32,
            /// Slots of posted receives.
            slots: $crate::sim::Slot,
            /// Buckets of posted receives and unexpected messages, where many wait.
            buckets: u32,
            /// Buckets of operations with both a fulfilled and an unfulfilled dependency; of a streamed
            /// schedule.
            partly: u32,
            /// Clocks of processors and interfaces, if ranks have several.
            clocks: u64,
            /// Queue of each clock, where records wait in heaps: with several processors or interfaces,
            /// or with overlap.
            clock_queues: $crate::sim::ClockQueue,
            /// Heap of each rank's clocks for which something waits.
            clock_heap: $crate::sim::Entry,
            /// Processor and interface of each operation, if one is above 255.
            units: u32,
            /// Origins of operations and messages; where the ranks run in parts.
            origins: $crate::sim::Origin,
            /// Events that were executed last, a power of two; where the ranks run in parts.
            history: $crate::sim::Ancestor,
            /// A time for each operation; with several processors or interfaces, or with overlap.
            times: u64,
            /// Time of each message's next attempt to be received, or the receive that it claims; with
            /// several processors or interfaces.
            next_attempts: u64,
            /// Links of the heaps of waiting records; with several processors or interfaces, or with
            /// overlap.
            links: u64,
            /// Time at which the last message of each rank was complete; with overlap, where that can
            /// be later than the time at which the processor is free.
            done: u64,
            /// One bit for each operation, set when it is released; of a streamed schedule.
            released: u64,
            /// Event queue.
            queue: $crate::sim::Entry,
            /// Position of each rank's entry in the event queue.
            places: u32,
            /// Dependencies of one rank, while the schedule is built.
            scratch: [u32; 2],
        }
    };
}

with_memory_parts! {
    lent_memory
    further {
        /// Processors of each rank.
        cpus: usize,
        /// Interfaces of each rank.
        nics: usize,
    }
}

impl Requirements {
    /// True if ranks have several processors or interfaces.
    pub(super) const fn several(&self) -> bool {
        self.cpus > 1 || self.nics > 1
    }
}
