//! Linear collectives: between one rank and all others, or between all.

use super::place::Place;
use crate::sim::implicit::{Extent, Program, Release, Transfer};

/// Direction and order of the messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum LinearKind {
    /// The root sends to the others, in the order of virtual ranks.
    Scatter,
    /// The others send to the root, in the order of virtual ranks.
    Gather,
    /// Rank 0 receives from all, then sends to all.
    Barrier,
    /// All send to all, each beginning with the next rank.
    AllToAll,
    /// The root sends to the others, in the order of ranks.
    Outcast,
    /// The others send to the root, in the order of ranks.
    Incast,
    /// All send to all, each in the order of ranks.
    AllToAllByRank,
}

/// A linear collective.
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    pub(super) kind: LinearKind,
    pub(super) place: Place,
    pub(super) size: u64,
    /// Largest number of a rank's sends in flight; `u32::MAX` for no limit.
    pub(super) window: u32,
}

/// Numbers 0, 1, ... without `gap`: number at an index; `index_without` is the inverse.
const fn without(gap: u32, index: u32) -> u32 {
    if index < gap { index } else { index + 1 }
}

const fn index_without(gap: u32, rank: u32) -> u32 {
    if rank < gap { rank } else { rank.saturating_sub(1) }
}

impl Linear {
    fn others(&self) -> u32 {
        self.place.ranks.saturating_sub(1)
    }

    /// Rank that exchanges messages with all others.
    const fn hub(&self) -> u32 {
        if matches!(self.kind, LinearKind::Barrier) { 0 } else { self.place.root }
    }

    fn first_sends(&self) -> Release {
        Release::sends(0, self.others().min(self.window))
    }
}

impl Program for Linear {
    /// Barrier: number of messages that rank 0 still waits for.
    type State = u32;

    fn extent(&self) -> Extent {
        let (ranks, others) = (self.place.ranks, u64::from(self.others()));
        let all = u64::from(ranks);
        let (messages, waiting, busy) = match self.kind {
            LinearKind::AllToAll | LinearKind::AllToAllByRank => {
                (all, all.saturating_mul(others.saturating_add(2)), ranks)
            }
            // One rank handles the messages of all others in turn.
            LinearKind::Barrier => (2, 3 * all, 2),
            _ => (1, 3 * all, 2),
        };
        let messages = others.saturating_mul(messages);
        Extent { ranks, sizes: [self.size; 2], waiting, messages, busy, interchangeable: true }
    }

    fn start(&self, rank: u32, state: &mut u32) -> Release {
        let hub = rank == self.hub();
        let receive = Release::receives(1);
        match (self.kind, hub) {
            (LinearKind::Scatter | LinearKind::Outcast, true) => self.first_sends(),
            (LinearKind::Scatter | LinearKind::Outcast, false) => receive,
            (LinearKind::Gather | LinearKind::Incast, true) => Release::receives(self.others()),
            (LinearKind::Gather | LinearKind::Incast, false) => Release::send(0),
            (LinearKind::AllToAll | LinearKind::AllToAllByRank, _) => {
                self.first_sends().and_receives(self.others())
            }
            (LinearKind::Barrier, false) => Release::send(0).and_receives(1),
            (LinearKind::Barrier, true) => {
                *state = self.others();
                if *state == 0 { Release::calc(0) } else { Release::receives(*state) }
            }
        }
    }

    #[inline]
    fn sent(&self, _rank: u32, _state: &mut u32, send: u32) -> Release {
        let next = send.saturating_add(self.window);
        if next < self.others() { Release::send(next) } else { Release::NOTHING }
    }

    #[inline]
    fn received(&self, rank: u32, state: &mut u32, _receive: u32) -> Release {
        if self.kind != LinearKind::Barrier || rank != 0 {
            return Release::NOTHING;
        }
        *state = state.saturating_sub(1);
        if *state == 0 { Release::calc(0) } else { Release::NOTHING }
    }

    fn calculated(&self, _rank: u32, _state: &mut u32, _calc: u32) -> Release {
        self.first_sends()
    }

    #[inline]
    fn transfer(&self, rank: u32, send: u32) -> Transfer {
        let (place, hub) = (&self.place, self.hub());
        let (to, receive) = match self.kind {
            LinearKind::Scatter => (place.swapped(send + 1), 0),
            LinearKind::Gather => (hub, place.swapped(rank).saturating_sub(1)),
            LinearKind::Barrier if rank == hub => (send + 1, 0),
            LinearKind::Barrier => (hub, rank.saturating_sub(1)),
            LinearKind::AllToAll => (place.above(rank, send + 1), send),
            LinearKind::Outcast => (without(hub, send), 0),
            LinearKind::Incast => (hub, index_without(hub, rank)),
            LinearKind::AllToAllByRank => {
                let to = without(rank, send);
                (to, index_without(to, rank))
            }
        };
        Transfer { to, receive, size: self.size }
    }

    #[inline]
    fn expected(&self, _rank: u32, _receive: u32) -> u64 {
        self.size
    }
}
