//! Permutations: each rank sends a message to one other, and receives one.

use crate::goal::pattern::Permutation;
use crate::sim::implicit::{Extent, Program, Release, Transfer};

/// One message from each rank to another.
#[derive(Clone, Copy, Debug)]
pub struct Permuted {
    pub(super) permutation: Permutation,
    pub(super) ranks: u32,
    pub(super) size: u64,
}

impl Program for Permuted {
    type State = ();

    fn extent(&self) -> Extent {
        let (ranks, all) = (self.ranks, u64::from(self.ranks));
        let messages = if ranks > 1 { all } else { 0 };
        let (sizes, waiting) = ([self.size; 2], all.saturating_mul(4));
        Extent { ranks, sizes, waiting, messages, busy: ranks, interchangeable: true }
    }

    fn start(&self, _rank: u32, _state: &mut ()) -> Release {
        if self.ranks > 1 { Release::send(0).and_receives(1) } else { Release::NOTHING }
    }

    fn transfer(&self, rank: u32, _send: u32) -> Transfer {
        Transfer { to: self.permutation.to(rank, self.ranks), receive: 0, size: self.size }
    }

    fn expected(&self, _rank: u32, _receive: u32) -> u64 {
        self.size
    }
}
