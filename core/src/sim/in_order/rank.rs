//! State of one rank.

use crate::sim::in_order::waiting::Part;
use crate::sim::rank::matching::slots::SlotRange;
use crate::sim::rank::{Class, Clocks};
use crate::sim::record::NONE;

/// State of one rank: 64 bytes, one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Rank {
    /// Clocks of the first processor and interface.
    pub(in crate::sim) free: Clocks,
    /// Last record of each list, by [`Class`]; or five words of [`super::pending`].
    pub(in crate::sim) lists: [u32; 5],
    /// Slots of posted receives.
    pub(in crate::sim) posted: SlotRange,
    /// Unexpected messages; in a part, messages on their way; at the end of a run, also receives of
    /// the table: the last record of their list.
    pub(in crate::sim) unexpected: u32,
    /// Its part of the table of posted receives and unexpected messages.
    pub(in crate::sim) part: Part,
}

const _: () = assert!(size_of::<Rank>() == 64, "one cache line");

impl Default for Rank {
    fn default() -> Self {
        Self {
            free: Clocks::default(),
            lists: [NONE; 5],
            posted: SlotRange::at(0),
            unexpected: NONE,
            part: Part::default(),
        }
    }
}

impl Rank {
    #[inline]
    pub(in crate::sim) const fn list_mut(&mut self, class: Class) -> &mut u32 {
        let [sends, receives, calcs, arrived, taken] = &mut self.lists;
        match class {
            Class::Sends => sends,
            Class::Receives => receives,
            Class::Calcs => calcs,
            Class::Arrived => arrived,
            Class::Taken | Class::Mailed => taken,
        }
    }
}
