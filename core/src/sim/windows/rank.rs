//! State of one rank.

use crate::sim::rank::Clocks;
use crate::sim::rank::matching::slots::SlotRange;
use crate::sim::record::NONE;

/// State of one rank: 64 bytes, one cache line. Lists of operations and of waiting messages are
/// circular, known by their last record.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct WindowRank {
    /// Clocks of processor and interface.
    pub(super) free: Clocks,
    /// Released sends.
    pub(super) sends: u32,
    /// Released receives that are not posted yet.
    pub(super) receives: u32,
    /// Released calculations.
    pub(super) calcs: u32,
    /// Messages of earlier windows that are not handled yet.
    pub(super) waiting: u32,
    /// Unexpected messages.
    pub(super) unexpected: u32,
    /// First message of this window, in the mail.
    pub(super) incoming: u32,
    /// First message that did not fit in the mail, as the record of its send.
    pub(super) spilled: u32,
    /// Slots of posted receives.
    pub(super) posted: SlotRange,
    /// Number of operations released.
    pub(super) released: u32,
}

/// A rank during its turn.
#[derive(Debug)]
pub(in crate::sim) struct Active {
    pub(super) number: u32,
    pub(super) state: WindowRank,
}

const _: () = assert!(size_of::<WindowRank>() == 64, "one cache line");

impl Default for WindowRank {
    fn default() -> Self {
        Self {
            free: Clocks::default(),
            sends: NONE,
            receives: NONE,
            calcs: NONE,
            waiting: NONE,
            unexpected: NONE,
            incoming: NONE,
            spilled: NONE,
            posted: SlotRange::at(0),
            released: 0,
        }
    }
}
