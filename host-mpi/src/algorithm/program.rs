//! Algorithms of collective operations as the schedule of each rank: rounds of
//! sends and receives.
//!
//! Messages of Open MPI's algorithms are those of `loggap::collective`. Here
//! are those of MPICH that differ, and the local work besides messages.

use std::collections::BTreeSet;

use loggap::collective::{Binomial, Call, Round, Shape as Tuned};
use loggap_core::units::{PerByte, Picos};

/// Message pattern of an algorithm.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// That of an algorithm of Open MPI's `tuned` component.
    Tuned(Tuned),
    /// Broadcast down a binomial tree, to the farthest child first (MPICH).
    BroadcastFarFirst,
    /// Gather up a binomial tree. Below 1 KiB every rank first copies its block
    /// into a message, and from 1 KiB on the library packs it while it sends
    /// (MPICH); with Open MPI ranks that may have children copy their blocks.
    GatherSmallCopy,
    /// Scatter down a binomial tree, in blocks of whole subtrees, to the
    /// farthest child first, and the own block last (MPICH); with Open MPI
    /// ranks that may have children copy their blocks before they send.
    ScatterFarFirst,
}

/// Direction of messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// From rank 0.
    Away,
    /// To rank 0.
    Back,
    /// In both directions at once.
    Both,
}

/// An algorithm on `ranks` ranks, with rank 0 as the root.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Program {
    /// Message pattern.
    pub shape: Shape,
    /// Number of ranks.
    pub ranks: u32,
    /// Size of a block or vector, bytes.
    pub size: u64,
    /// Duration of the call on one rank alone, mostly a copy of its own block.
    /// Spent on the ranks, and before the round, where the algorithm makes that
    /// copy.
    pub local: Picos,
    /// Duration of combining two vectors.
    pub combine: Picos,
    /// Duration of posting a receive. A rank that only receives has posted it
    /// before the message arrives; a rank that exchanges first posts, then
    /// sends.
    pub post: Picos,
}

impl Program {
    /// A program whose local work takes no time.
    #[must_use]
    pub const fn new(shape: Shape, ranks: u32, size: u64) -> Self {
        let none = Picos::ZERO;
        Self { shape, ranks, size, local: none, combine: none, post: none }
    }

    /// Rounds of `rank`.
    #[must_use]
    pub fn rounds(&self, rank: u32) -> Vec<Round> {
        let mut rounds = match self.shape {
            Shape::Tuned(shape) => self.tuned(shape, rank),
            Shape::BroadcastFarFirst => self.down(rank, |_| self.size),
            Shape::GatherSmallCopy => self.tuned(Tuned::GatherBinomial, rank),
            Shape::ScatterFarFirst => self.down(rank, |child| {
                self.size.saturating_mul(Binomial::subtree(child, self.ranks).into())
            }),
        };
        for round in &mut rounds {
            if round.exchanges() {
                round.calc = self.post;
            } else if round.sends.is_empty() && round.receives.is_empty() {
                round.calc = self.combine;
            }
        }
        if let Some(place) = self.place_of_local(rank, rounds.len()) {
            rounds.insert(place, Round::compute(self.local));
        }
        rounds
    }

    /// Index of the round before which `rank` copies its own block, if it does.
    fn place_of_local(&self, rank: u32, rounds: usize) -> Option<usize> {
        let (is_root, is_even) = (rank == 0, rank.is_multiple_of(2));
        let (copies, place) = match self.shape {
            Shape::Tuned(Tuned::ReduceBinomial) => (is_root, 0),
            Shape::Tuned(Tuned::GatherBinomial) => (is_even, 0),
            Shape::GatherSmallCopy => (is_root || self.size < SMALL_BLOCK, 0),
            // After the message from the parent.
            Shape::Tuned(Tuned::ScatterBinomial) => (is_even, usize::from(!is_root)),
            Shape::ScatterFarFirst => (is_even, rounds),
            _ => (true, 0),
        };
        (copies && self.local > Picos::ZERO).then_some(place)
    }

    /// Direction of its messages.
    #[must_use]
    pub const fn way(&self) -> Way {
        match self.shape {
            Shape::BroadcastFarFirst
            | Shape::ScatterFarFirst
            | Shape::Tuned(Tuned::BroadcastBinomial | Tuned::ScatterBinomial) => Way::Away,
            Shape::GatherSmallCopy
            | Shape::Tuned(Tuned::GatherBinomial | Tuned::ReduceBinomial) => Way::Back,
            Shape::Tuned(_) => Way::Both,
        }
    }

    /// Distinct message sizes, ascending.
    #[must_use]
    pub fn message_sizes(&self) -> Vec<u64> {
        // The root, the ranks next to it and the last rank have all sizes.
        let ranks = (0..self.ranks.min(MOST_LOOKED_AT)).chain(self.ranks.checked_sub(1));
        let rounds = ranks.flat_map(|rank| self.rounds(rank));
        let messages = rounds.flat_map(|round| round.sends.into_iter().chain(round.receives));
        messages.map(|message| message.size).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Maximum over the ranks of the number of rounds with an exchange.
    #[must_use]
    pub fn exchanges(&self) -> usize {
        self.most(|rounds| rounds.iter().filter(|round| round.exchanges()).count())
    }

    /// Maximum over the ranks of the number of messages sent, or received.
    #[must_use]
    pub fn busiest(&self) -> usize {
        self.most(|rounds| {
            let sends: usize = rounds.iter().map(|round| round.sends.len()).sum();
            let receives: usize = rounds.iter().map(|round| round.receives.len()).sum();
            sends.max(receives)
        })
    }

    fn most(&self, count: impl Fn(&[Round]) -> usize) -> usize {
        let ranks = 0..self.ranks.min(MOST_LOOKED_AT);
        ranks.map(|rank| count(&self.rounds(rank))).max().unwrap_or(0)
    }

    /// Rounds of an algorithm of Open MPI.
    fn tuned(&self, shape: Tuned, rank: u32) -> Vec<Round> {
        let Self { ranks, size, .. } = *self;
        Call { shape, ranks, size, segment: 0, combine: PerByte::ZERO }.rounds(rank)
    }

    /// Receives from the parent, then sends to each child, the farthest first.
    fn down(&self, rank: u32, size: impl Fn(u32) -> u64) -> Vec<Round> {
        let place = Binomial::Far.place(rank, self.ranks);
        let receive = place.parent.map(|parent| Round::receive(parent, size(rank)));
        let sends = place.children.iter().map(|&child| Round::send(child, size(child)));
        receive.into_iter().chain(sends).collect()
    }
}

/// Default of `MPIR_CVAR_GATHER_VSMALL_MSG_SIZE`, bytes.
const SMALL_BLOCK: u64 = 1024;

/// Sizes and counts are enumerated on the ranks below this one, which have all of them.
const MOST_LOOKED_AT: u32 = 64;

#[cfg(test)]
mod tests;
