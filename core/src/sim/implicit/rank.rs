//! State of one rank.

use super::pool::NONE;
use crate::halves::{halves, whole};
use crate::sim::rank::Clocks;

/// State of one rank in memory: 44 bytes, plus the state of its program. Zeroed memory is the
/// initial state.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct RankState<S> {
    /// [`Rank::free`], split in halves to avoid an alignment of 8.
    times: [[u32; 2]; 3],
    lists: [u32; 4],
    /// [`Rank::posted`] plus 1; 0 before the first event.
    posted: u32,
    state: S,
}

const _: () = assert!(size_of::<RankState<()>>() == 44, "the figures in the docs assume it");
const _: () = assert!(NONE == 0, "the default is the state at the start");

/// [`Rank::posted`] of a rank whose operations without dependencies are not released yet.
pub(super) const UNSTARTED: u32 = u32::MAX;

/// State of one rank during its turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rank<S> {
    /// Clocks of processor and interface.
    pub(super) free: Clocks,
    /// Released operations, oldest first: last node of the list.
    pub(super) work: u32,
    /// Messages sent to this rank since its last turn, unordered: last node of the list.
    pub(super) incoming: u32,
    /// Arrived messages that are not handled, in the order of handling: last node of the list.
    pub(super) inbox: u32,
    /// Unexpected messages: last node of the list.
    pub(super) unexpected: u32,
    /// Number of receives posted; [`UNSTARTED`] before the first event.
    pub(super) posted: u32,
    pub(super) state: S,
}

impl<S: Copy> RankState<S> {
    #[inline]
    pub(super) const fn load(&self) -> Rank<S> {
        let [cpu, out, into] = self.times;
        let [work, incoming, inbox, unexpected] = self.lists;
        Rank {
            free: Clocks { cpu: whole(cpu), out: whole(out), into: whole(into) },
            work,
            incoming,
            inbox,
            unexpected,
            posted: self.posted.wrapping_sub(1),
            state: self.state,
        }
    }

    #[inline]
    pub(super) const fn store(&mut self, rank: &Rank<S>) {
        let Clocks { cpu, out, into } = rank.free;
        *self = Self {
            times: [halves(cpu), halves(out), halves(into)],
            lists: [rank.work, rank.incoming, rank.inbox, rank.unexpected],
            posted: rank.posted.wrapping_add(1),
            state: rank.state,
        };
    }

    /// Time at which the processor is free, ps.
    pub(super) const fn cpu(&self) -> u64 {
        whole(self.times[0])
    }

    /// List of messages sent to the rank since its last turn.
    #[inline]
    pub(super) const fn incoming_mut(&mut self) -> &mut u32 {
        &mut self.lists[1]
    }
}
