//! Trees: binomial broadcast and reduction, binary broadcast.

use super::place::Place;
use crate::sim::implicit::{Extent, Program, Release, Transfer};

/// Kind of a tree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TreeKind {
    /// Binomial.
    Binomial,
    /// Binary.
    Binary,
}

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

/// First round in which the virtual rank `own` has the data.
const fn first_round(own: u32) -> u32 {
    u32::BITS - own.leading_zeros()
}

/// Number of children of the virtual rank `own` in the binomial tree: 2ᵏ above it, for the rounds k
/// from [`first_round`] on.
fn children(own: u32, ranks: u32) -> u32 {
    let above = ranks.saturating_sub(1).saturating_sub(own);
    let rounds = above.checked_ilog2().map_or(0, |last| last + 1);
    rounds.saturating_sub(first_round(own))
}

/// Number of children of `own` in the binary tree.
fn binary_children(own: u32, ranks: u32) -> u32 {
    let first = 2 * u64::from(own) + 1;
    match u64::from(ranks).saturating_sub(first) {
        0 => 0,
        1 => 1,
        _ => 2,
    }
}

impl Tree {
    fn fan_out(&self, own: u32) -> u32 {
        match self.kind {
            TreeKind::Binary => binary_children(own, self.place.ranks),
            TreeKind::Binomial => children(own, self.place.ranks),
        }
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
        let to = match self.kind {
            TreeKind::Binomial => own.wrapping_add(1u32.wrapping_shl(first_round(own) + send)),
            TreeKind::Binary => own.wrapping_mul(2).wrapping_add(1 + send),
        };
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
        *state = children(own, self.place.ranks);
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
