//! Trees: binomial broadcast and reduction, binary broadcast.

use super::place::Place;
use crate::goal::pattern::{TreeKind, first_round};
use crate::sim::implicit::{Extent, Program, Release, Transfer};

/// Broadcast along a tree.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    pub(super) kind: TreeKind,
    pub(super) place: Place,
    pub(super) size: u64,
}

/// Reduction along the binomial tree.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    pub(super) place: Place,
    pub(super) size: u64,
}

impl Tree {
    fn fan_out(&self, own: u32) -> u32 {
        self.kind.fan_out(own, self.place.ranks)
    }
}

impl Program for Tree {
    type State = ();

    fn extent(&self) -> Extent {
        self.place.tree(self.size)
    }

    #[inline]
    fn start(&self, rank: u32, _state: &mut ()) -> Release {
        let own = self.place.swapped(rank);
        if own == 0 { Release::sends(0, self.fan_out(0)) } else { Release::receives(1) }
    }

    #[inline]
    fn received(&self, rank: u32, _state: &mut (), _receive: u32) -> Release {
        Release::sends(0, self.fan_out(self.place.swapped(rank)))
    }

    #[inline]
    fn transfer(&self, rank: u32, send: u32) -> Transfer {
        let own = self.place.swapped(rank);
        let to = self.kind.child(own, send);
        Transfer { to: self.place.swapped(to), receive: 0, size: self.size }
    }

    #[inline]
    fn expected(&self, _rank: u32, _receive: u32) -> u64 {
        self.size
    }
}

impl Program for Reduction {
    /// Number of receives without a message.
    type State = u32;

    fn extent(&self) -> Extent {
        self.place.tree(self.size)
    }

    #[inline]
    fn start(&self, rank: u32, state: &mut u32) -> Release {
        let own = self.place.swapped(rank);
        *state = TreeKind::Binomial.fan_out(own, self.place.ranks);
        match (*state, own) {
            (0, 1..) => Release::send(0),
            (receives, _) => Release::receives(receives),
        }
    }

    #[inline]
    fn received(&self, rank: u32, state: &mut u32, _receive: u32) -> Release {
        *state = state.saturating_sub(1);
        let passes = *state == 0 && self.place.swapped(rank) > 0;
        if passes { Release::send(0) } else { Release::NOTHING }
    }

    #[inline]
    fn transfer(&self, rank: u32, _send: u32) -> Transfer {
        let own = self.place.swapped(rank);
        let round = first_round(own).saturating_sub(1);
        let parent = own & !1u32.wrapping_shl(round);
        let receive = round.saturating_sub(first_round(parent));
        Transfer { to: self.place.swapped(parent), receive, size: self.size }
    }

    #[inline]
    fn expected(&self, _rank: u32, _receive: u32) -> u64 {
        self.size
    }
}
