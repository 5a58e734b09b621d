//! State of one rank.

use super::matching::slots::SlotRange;
use super::record::{Kind, NONE};

/// Class of a waiting record on its rank. With one processor, one interface and
/// [`Receive::Hold`](super::parameters::Receive::Hold) each class is a circular list in stamp
/// order, known by its last record; otherwise see [`super::pending`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Class {
    /// Released sends, and CTS and data messages that are ready to leave.
    Sends = 0,
    /// Released receives that are not posted yet.
    Receives = 1,
    /// Released calculations.
    Calcs = 2,
    /// Messages that have arrived and wait for an interface.
    Arrived = 3,
    /// Messages that an interface has taken and that wait for a processor.
    Taken = 4,
}

impl Class {
    /// Class of a released operation.
    pub(super) const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Send => Self::Sends,
            Kind::Receive => Self::Receives,
            Kind::Calc => Self::Calcs,
        }
    }
}

/// State of one rank: 64 bytes, one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Rank {
    /// Time at which the first processor is free, ps.
    pub(super) cpu: u64,
    /// Time at which the first interface can send, ps.
    pub(super) out: u64,
    /// Time at which the first interface can receive, ps.
    pub(super) into: u64,
    /// Last record of each list, by [`Class`]; or five words of [`super::pending`].
    pub(super) lists: [u32; 5],
    /// Unexpected messages: the last record of their list.
    pub(super) unexpected: u32,
    /// Slots of posted receives.
    pub(super) posted: SlotRange,
    /// Posted receives of a streamed schedule with wildcards, in place of slots: the last record of
    /// their list.
    pub(super) receives: u32,
    /// Index of the rank's [`MatchIndex`](super::matching::match_index::MatchIndex); [`NONE`] for a
    /// rank with few receives.
    pub(super) match_index: u32,
}

const _: () = assert!(size_of::<Rank>() == 64, "one cache line");

impl Default for Rank {
    fn default() -> Self {
        Self {
            cpu: 0,
            out: 0,
            into: 0,
            lists: [NONE; 5],
            unexpected: NONE,
            posted: SlotRange::at(0),
            receives: NONE,
            match_index: NONE,
        }
    }
}

impl Rank {
    #[inline]
    pub(super) const fn list_mut(&mut self, class: Class) -> &mut u32 {
        let [sends, receives, calcs, arrived, taken] = &mut self.lists;
        match class {
            Class::Sends => sends,
            Class::Receives => receives,
            Class::Calcs => calcs,
            Class::Arrived => arrived,
            Class::Taken => taken,
        }
    }
}
