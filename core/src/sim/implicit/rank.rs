//! The state of one rank.

use super::pool::NONE;

/// The state of one rank as it is kept: 44 bytes and what its program
/// remembers. Zeroed memory is the state at the start.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct RankState<S> {
    /// Times of [`Rank`], in halves, so that they need no alignment of 8.
    times: [[u32; 2]; 3],
    lists: [u32; 4],
    posted: u32,
    state: S,
}

const _: () = assert!(size_of::<RankState<()>>() == 44, "the figures in the docs assume it");
const _: () = assert!(NONE == 0, "the default is the state at the start");

/// The same while the rank is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rank<S> {
    /// When the processor is free.
    pub(super) cpu: u64,
    /// When the interface can send.
    pub(super) out: u64,
    /// When the interface can receive.
    pub(super) into: u64,
    /// The last node of the released operations, oldest first.
    pub(super) work: u32,
    /// The last node of the messages that were sent since this rank was run,
    /// in no order.
    pub(super) incoming: u32,
    /// The last node of the messages that are there and not handled, in the
    /// order of handling.
    pub(super) inbox: u32,
    /// The last node of the messages that were handled before their
    /// receives were posted.
    pub(super) unexpected: u32,
    /// Receives that are posted.
    pub(super) posted: u32,
    pub(super) state: S,
}

pub(super) const fn whole([low, high]: [u32; 2]) -> u64 {
    low as u64 | (high as u64) << 32
}

#[allow(clippy::cast_possible_truncation, reason = "the halves are meant")]
pub(super) const fn halves(time: u64) -> [u32; 2] {
    [time as u32, (time >> 32) as u32]
}

impl<S: Copy> RankState<S> {
    #[inline]
    pub(super) const fn load(&self) -> Rank<S> {
        let [cpu, out, into] = self.times;
        let [work, incoming, inbox, unexpected] = self.lists;
        Rank {
            cpu: whole(cpu),
            out: whole(out),
            into: whole(into),
            work,
            incoming,
            inbox,
            unexpected,
            posted: self.posted,
            state: self.state,
        }
    }

    #[inline]
    pub(super) const fn store(&mut self, rank: &Rank<S>) {
        *self = Self {
            times: [halves(rank.cpu), halves(rank.out), halves(rank.into)],
            lists: [rank.work, rank.incoming, rank.inbox, rank.unexpected],
            posted: rank.posted,
            state: rank.state,
        };
    }

    /// When the processor is free.
    pub(super) const fn cpu(&self) -> u64 {
        whole(self.times[0])
    }

    /// The list of messages that were sent since the rank was run.
    #[inline]
    pub(super) const fn incoming_mut(&mut self) -> &mut u32 {
        &mut self.lists[1]
    }
}
