//! Owned memory for a simulation.

use std::io;

use loggap_core::sim::{ClockQueue, Entry, Memory, Rank, Record, Requirements, Slot};

use crate::sys::pages::Pages;

/// Declares a struct that owns each part of the `Memory` that it lends.
macro_rules! owned_memory {
    ($(#[$doc:meta])* $vis:vis struct $name:ident { $($part:ident: $element:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug)]
        $vis struct $name {
            $($part: Pages<$element>,)*
        }

        impl $name {
            /// Allocates as much as `requirements` say.
            ///
            /// # Errors
            ///
            /// The kernel's, if it has not enough memory.
            $vis fn new(requirements: &Requirements) -> io::Result<Self> {
                Ok(Self { $($part: Pages::zeroed(requirements.$part)?,)* })
            }

            /// Lends all parts.
            $vis fn lend(&mut self) -> Memory<'_> {
                Memory { $($part: &mut self.$part,)* }
            }
        }
    };
}

pub(super) use owned_memory;

owned_memory! {
    /// Owner of the parts of [`Memory`], each as long as a simulation requires.
    pub struct OwnedMemory {
        records: Record,
        edges: u32,
        ranks: Rank,
        firsts: u32,
        slots: Slot,
        buckets: u32,
        clocks: u64,
        clock_queues: ClockQueue,
        clock_heap: Entry,
        units: u32,
        times: u64,
        next_attempts: u64,
        links: u64,
        done: u64,
        queue: Entry,
        places: u32,
        scratch: [u32; 2],
    }
}
