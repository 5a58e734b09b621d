//! The state of one rank.

use super::matching::slots::SlotRange;
use super::record::{Kind, NONE};

/// As what a record waits on a rank. Where ranks have one processor and one
/// interface and hold the processor to receive, each class is a list, which is
/// circular, known by its last record, and in the order of stamps; otherwise
/// see [`super::pending`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Class {
    /// Released sends, and later messages of handshakes that leave from here.
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
    /// That of a released operation.
    pub(super) const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Send => Self::Sends,
            Kind::Receive => Self::Receives,
            Kind::Calc => Self::Calcs,
        }
    }
}

/// The state of one rank; 64 bytes, one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Rank {
    /// When the first processor is free.
    pub(super) cpu: u64,
    /// When the first interface can send.
    pub(super) out: u64,
    /// When the first interface can receive.
    pub(super) into: u64,
    /// The last record of each list, by [`Class`]; or four words of
    /// [`super::pending`].
    pub(super) lists: [u32; 5],
    /// Handled messages without a receive: the last record of their list.
    pub(super) unexpected: u32,
    /// Slots of posted receives.
    pub(super) posted: SlotRange,
    /// Of a schedule that is read while it runs, in place of slots: the last of its
    /// posted receives.
    pub(super) receives: u32,
    /// Its [`MatchIndex`](super::matching::match_index::MatchIndex); [`NONE`] where there are few
    /// receives.
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
