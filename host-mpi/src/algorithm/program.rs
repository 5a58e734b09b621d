//! Algorithms of collective operations as the schedule of each rank: rounds of
//! sends and receives.
//!
//! As in `loggap::collective`, a rank begins a round when the previous one is
//! complete. The algorithms are those of Open MPI and MPICH, with the local
//! work that they do besides messages.

use loggap::collective::{Binomial, Message, Place, Round, doubled, power_of_two};
use loggap_core::units::Picos;

/// Message pattern of an algorithm.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// Broadcast down a binomial tree; a parent is its child without the highest bit.
    BroadcastNearFirst,
    /// Broadcast down a binomial tree; a parent is its child without the lowest bit.
    BroadcastFarFirst,
    /// Reduction up a binomial tree.
    Reduce,
    /// Allreduce by recursive doubling: exchanges of the whole vector at
    /// distances 1, 2, 4, …, combining. Ranks in excess of the largest power of
    /// two hand their vectors over first.
    Doubling,
    /// Dissemination: empty messages at distances 1, 2, 4, … around the ring.
    Dissemination,
    /// Gather up a binomial tree, in blocks of whole subtrees. Ranks that may
    /// have children first copy their own block into the message (Open MPI).
    GatherEvenCopy,
    /// As `GatherEvenCopy`, but below 1 KiB every rank first copies its block
    /// into a message, and from 1 KiB on the library packs it while it sends
    /// (MPICH).
    GatherSmallCopy,
    /// Scatter down a binomial tree, in blocks of whole subtrees, to the
    /// nearest child first. Ranks that may have children copy their own block
    /// before they send (Open MPI).
    ScatterNearFirst,
    /// As `ScatterNearFirst`, but to the farthest child first, and the own
    /// block last (MPICH).
    ScatterFarFirst,
    /// Allgather by recursive doubling: exchanges of all blocks so far, at
    /// distances 1, 2, 4, …
    AllgatherDoubling,
    /// Allgather along a ring: a block to the next rank in each round.
    AllgatherRing,
    /// All-to-all: an exchange in each round, at growing distances.
    Pairwise,
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
    /// Rounds of `rank`.
    #[must_use]
    pub fn rounds(&self, rank: u32) -> Vec<Round> {
        let mut rounds = match self.shape {
            Shape::BroadcastNearFirst => {
                self.down(rank, &Binomial::Near.place(rank, self.ranks), |_| self.size)
            }
            Shape::BroadcastFarFirst => {
                self.down(rank, &Binomial::Far.place(rank, self.ranks), |_| self.size)
            }
            Shape::ScatterFarFirst => {
                let place = Binomial::Far.place(rank, self.ranks);
                self.down(rank, &place, |child| self.blocks(child))
            }
            Shape::ScatterNearFirst => {
                let mut place = Binomial::Far.place(rank, self.ranks);
                place.children.reverse();
                self.down(rank, &place, |child| self.blocks(child))
            }
            Shape::Reduce => self.up(rank, |_| self.size),
            Shape::GatherEvenCopy | Shape::GatherSmallCopy => {
                self.up(rank, |child| self.blocks(child))
            }
            Shape::Doubling => self.doubling(rank),
            Shape::Dissemination => self.dissemination(rank),
            Shape::AllgatherDoubling => self.allgather_doubling(rank),
            Shape::AllgatherRing => self.ring(rank),
            Shape::Pairwise => self.pairwise(rank),
        };
        for round in rounds.iter_mut().filter(|round| round.exchanges()) {
            round.calc = self.post;
        }
        if let Some(place) = self.place_of_local(rank, rounds.len()) {
            rounds.insert(place, Round { calc: self.local, ..Round::default() });
        }
        rounds
    }

    /// Index of the round before which `rank` copies its own block, if it does.
    fn place_of_local(&self, rank: u32, rounds: usize) -> Option<usize> {
        let (is_root, is_even) = (rank == 0, rank.is_multiple_of(2));
        let (copies, place) = match self.shape {
            Shape::Reduce => (is_root, 0),
            Shape::GatherEvenCopy => (is_even, 0),
            Shape::GatherSmallCopy => (is_root || self.size < SMALL_BLOCK, 0),
            // After the message from the parent.
            Shape::ScatterNearFirst => (is_even, usize::from(!is_root)),
            Shape::ScatterFarFirst => (is_even, rounds),
            _ => (true, 0),
        };
        (copies && self.local > Picos::ZERO).then_some(place)
    }

    /// Direction of its messages.
    #[must_use]
    pub const fn way(&self) -> Way {
        match self.shape {
            Shape::BroadcastNearFirst
            | Shape::BroadcastFarFirst
            | Shape::ScatterNearFirst
            | Shape::ScatterFarFirst => Way::Away,
            Shape::Reduce | Shape::GatherEvenCopy | Shape::GatherSmallCopy => Way::Back,
            Shape::Doubling
            | Shape::Dissemination
            | Shape::AllgatherDoubling
            | Shape::AllgatherRing
            | Shape::Pairwise => Way::Both,
        }
    }

    /// Distinct message sizes, ascending.
    #[must_use]
    pub fn message_sizes(&self) -> Vec<u64> {
        // The root, the ranks next to it and the last rank have all sizes.
        let ranks = (0..self.ranks.min(MOST_LOOKED_AT)).chain(self.ranks.checked_sub(1));
        let rounds = ranks.flat_map(|rank| self.rounds(rank));
        let sizes = rounds.flat_map(|round| {
            round.sends.into_iter().chain(round.receives).map(|message| message.size)
        });
        let mut sizes: Vec<u64> = sizes.collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Maximum over the ranks of the number of rounds with an exchange.
    #[must_use]
    pub fn exchanges(&self) -> usize {
        let exchanges = |rank| {
            let rounds = self.rounds(rank);
            rounds.iter().filter(|round| round.exchanges()).count()
        };
        (0..self.ranks.min(MOST_LOOKED_AT)).map(exchanges).max().unwrap_or(0)
    }

    /// Maximum over the ranks of the number of messages sent, or received.
    #[must_use]
    pub fn busiest(&self) -> usize {
        let messages = |rank| {
            let rounds = self.rounds(rank);
            let sends: usize = rounds.iter().map(|round| round.sends.len()).sum();
            let receives: usize = rounds.iter().map(|round| round.receives.len()).sum();
            sends.max(receives)
        };
        (0..self.ranks.min(MOST_LOOKED_AT)).map(messages).max().unwrap_or(0)
    }

    /// Bytes of the blocks of `rank` and of its subtree, in a tree whose
    /// parents lack the lowest bit of their children.
    fn blocks(&self, rank: u32) -> u64 {
        let here = Binomial::subtree(rank, self.ranks);
        self.size.saturating_mul(here.into())
    }

    /// Receives from the parent, then sends to each child.
    fn down(&self, rank: u32, place: &Place, size: impl Fn(u32) -> u64) -> Vec<Round> {
        let from = place.parent.map(|parent| Round::receive(parent, size(rank)));
        let sends = place.children.iter().map(|&child| Message { peer: child, size: size(child) });
        let sends: Vec<_> = sends.collect();
        let to = (!sends.is_empty()).then(|| Round { sends, ..Round::default() });
        from.into_iter().chain(to).collect()
    }

    /// Receives from each child, the nearest first, then sends to the parent.
    fn up(&self, rank: u32, size: impl Fn(u32) -> u64) -> Vec<Round> {
        let place = Binomial::Far.place(rank, self.ranks);
        let combines = self.shape == Shape::Reduce;
        let mut rounds = Vec::new();
        for &child in place.children.iter().rev() {
            rounds.push(Round::receive(child, size(child)));
            if combines {
                rounds.push(self.combining());
            }
        }
        rounds.extend(place.parent.map(|parent| Round::send(parent, size(rank))));
        rounds
    }

    fn combining(&self) -> Round {
        Round::compute(self.combine)
    }

    /// Ranks below twice the excess over a power of two form pairs, in which
    /// the even rank hands its vector to the odd one.
    fn doubling(&self, rank: u32) -> Vec<Round> {
        let lower = power_of_two(self.ranks);
        let rest = self.ranks - lower;
        let shared = rank < 2 * rest;
        if shared && rank.is_multiple_of(2) {
            return vec![Round::send(rank + 1, self.size), Round::receive(rank + 1, self.size)];
        }
        let mut rounds = Vec::new();
        if shared {
            rounds.extend([Round::receive(rank - 1, self.size), self.combining()]);
        }
        let own = if shared { rank / 2 } else { rank - rest };
        let real = |place: u32| if place < rest { 2 * place + 1 } else { place + rest };
        for distance in doubled(lower) {
            let peer = Message { peer: real(own ^ distance), size: self.size };
            rounds.extend([Round::exchange(peer, peer), self.combining()]);
        }
        if shared {
            rounds.push(Round::send(rank - 1, self.size));
        }
        rounds
    }

    fn dissemination(&self, rank: u32) -> Vec<Round> {
        let message = |peer| Message { peer, size: 0 };
        let round = |distance| {
            Round::exchange(
                message(self.above(rank, distance)),
                message(self.below(rank, distance)),
            )
        };
        doubled(self.ranks).map(round).collect()
    }

    fn allgather_doubling(&self, rank: u32) -> Vec<Round> {
        let round = |distance: u32| {
            let size = self.size.saturating_mul(distance.into());
            let peer = Message { peer: rank ^ distance, size };
            Round::exchange(peer, peer)
        };
        doubled(power_of_two(self.ranks)).map(round).collect()
    }

    fn ring(&self, rank: u32) -> Vec<Round> {
        let message = |peer| Message { peer, size: self.size };
        let round = |_| Round::exchange(message(self.above(rank, 1)), message(self.below(rank, 1)));
        (1..self.ranks).map(round).collect()
    }

    fn pairwise(&self, rank: u32) -> Vec<Round> {
        let message = |peer| Message { peer, size: self.size };
        let round = |distance| {
            Round::exchange(
                message(self.above(rank, distance)),
                message(self.below(rank, distance)),
            )
        };
        (1..self.ranks).map(round).collect()
    }

    fn above(&self, rank: u32, distance: u32) -> u32 {
        (rank + distance) % self.ranks.max(1)
    }

    fn below(&self, rank: u32, distance: u32) -> u32 {
        (rank + self.ranks.max(1) - distance) % self.ranks.max(1)
    }
}

/// Default of `MPIR_CVAR_GATHER_VSMALL_MSG_SIZE`, bytes.
const SMALL_BLOCK: u64 = 1024;

/// Sizes and counts are enumerated on the ranks below this one, which have all of them.
const MOST_LOOKED_AT: u32 = 64;

#[cfg(test)]
mod tests;
