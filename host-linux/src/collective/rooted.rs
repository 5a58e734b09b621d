//! Rounds of gather and scatter.

use super::call::Call;
use super::rounds::{Binomial, Round};

impl Call {
    /// Rank 0 receives `size` bytes from each other rank, in any order.
    pub(super) fn root_receives(&self, rank: u32, size: u64) -> Vec<Round> {
        self.root_sends(rank, size).into_iter().map(Round::reversed).collect()
    }

    /// Bytes of the blocks of a rank's subtree, its own included.
    fn subtree_size(&self, rank: u32) -> u64 {
        self.size.saturating_mul(Binomial::subtree(rank, self.ranks).into())
    }

    /// Receives from each child, nearest first, then sends to the parent.
    pub(super) fn gather_binomial(&self, rank: u32) -> Vec<Round> {
        let place = Binomial::Far.place(rank, self.ranks);
        let children = place.children.iter().rev();
        let receives = children.map(|&child| Round::receive(child, self.subtree_size(child)));
        let send = place.parent.map(|parent| Round::send(parent, self.subtree_size(rank)));
        receives.chain(send).collect()
    }

    /// Receives from the parent, then sends to each child, nearest first.
    pub(super) fn scatter_binomial(&self, rank: u32) -> Vec<Round> {
        let place = Binomial::Far.place(rank, self.ranks);
        let receive = place.parent.map(|parent| Round::receive(parent, self.subtree_size(rank)));
        let children = place.children.iter().rev();
        let sends = children.map(|&child| Round::send(child, self.subtree_size(child)));
        receive.into_iter().chain(sends).collect()
    }
}
