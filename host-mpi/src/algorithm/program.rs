//! Algorithms of collective operations as what each rank does: rounds of
//! sends and receives.
//!
//! As in `loggap::collective`, a rank begins a round when the one before is
//! over. Here are two libraries, with what they do beside their messages.

use loggap::collective::{Binomial, Message, Place, Round, doubled, power_of_two};
use loggap_core::units::Picos;

/// What messages an algorithm sends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// Down a binomial tree whose parents lack the highest bit.
    BroadcastNearFirst,
    /// Down a binomial tree whose parents lack the lowest bit.
    BroadcastFarFirst,
    /// Up a binomial tree, combining.
    Reduce,
    /// Exchanges of everything at distances 1, 2, 4, …, combining; ranks beyond
    /// the largest power of two hand theirs over before.
    Doubling,
    /// Empty messages at distances 1, 2, 4, … around the ring.
    Dissemination,
    /// Up a binomial tree, blocks of whole subtrees. Ranks that may have some
    /// below them first put their own block into the message (Open MPI).
    GatherEvenCopy,
    /// The same, but below 1 KiB every rank puts its block into a
    /// message first, and from there on the library packs it as it sends (MPICH).
    GatherSmallCopy,
    /// Down a binomial tree, blocks of whole subtrees, the nearest rank first;
    /// ranks that may have some below them take their own block before (Open MPI).
    ScatterNearFirst,
    /// The same, the farthest rank first and the own block last (MPICH).
    ScatterFarFirst,
    /// Exchanges of all that is there, at distances 1, 2, 4, …
    AllgatherDoubling,
    /// A block each round to the next rank.
    AllgatherRing,
    /// One exchange a round, with ranks further and further away.
    Pairwise,
}

/// Which way messages go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// From rank 0.
    Away,
    /// To rank 0.
    Back,
    /// Both at once.
    Both,
}

/// An algorithm on so many ranks, with rank 0 at the root.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Program {
    /// What it does.
    pub shape: Shape,
    /// Ranks.
    pub ranks: u32,
    /// Bytes of a block or vector.
    pub size: u64,
    /// What the call takes on one rank alone, which is mostly to copy the own
    /// block: at the ranks, and at the place, where the algorithm copies it.
    pub local: Picos,
    /// What combining two vectors takes.
    pub combine: Picos,
    /// What posting a receive takes. A rank that only receives has done so
    /// before the message comes; who exchanges posts, and then sends.
    pub post: Picos,
}

impl Program {
    /// The rounds of `rank`.
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

    /// Before which of its `rounds` rounds `rank` copies its own block.
    fn place_of_local(&self, rank: u32, rounds: usize) -> Option<usize> {
        let (is_root, is_even) = (rank == 0, rank.is_multiple_of(2));
        let (copies, place) = match self.shape {
            Shape::Reduce => (is_root, 0),
            Shape::GatherEvenCopy => (is_even, 0),
            Shape::GatherSmallCopy => (is_root || self.size < SMALL_BLOCK, 0),
            // Behind what came from the parent.
            Shape::ScatterNearFirst => (is_even, usize::from(!is_root)),
            Shape::ScatterFarFirst => (is_even, rounds),
            _ => (true, 0),
        };
        (copies && self.local > Picos::ZERO).then_some(place)
    }

    /// Which way its messages go.
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

    /// Lengths of its messages, ascending, each once.
    #[must_use]
    pub fn message_sizes(&self) -> Vec<u64> {
        // The root, those next to it and the last one have all sizes.
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

    /// The most rounds with an exchange that a rank has.
    #[must_use]
    pub fn exchanges(&self) -> usize {
        let exchanges = |rank| {
            let rounds = self.rounds(rank);
            rounds.iter().filter(|round| round.exchanges()).count()
        };
        (0..self.ranks.min(MOST_LOOKED_AT)).map(exchanges).max().unwrap_or(0)
    }

    /// The most messages that a rank sends or receives in a row.
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

    /// Bytes of the blocks of `rank` and of those below it, in a tree whose
    /// parents lack the lowest bit.
    fn blocks(&self, rank: u32) -> u64 {
        let here = Binomial::subtree(rank, self.ranks);
        self.size.saturating_mul(here.into())
    }

    /// From the parent, then to each child.
    fn down(&self, rank: u32, place: &Place, size: impl Fn(u32) -> u64) -> Vec<Round> {
        let from = place.parent.map(|parent| Round::receive(parent, size(rank)));
        let sends = place.children.iter().map(|&child| Message { peer: child, size: size(child) });
        let sends: Vec<_> = sends.collect();
        let to = (!sends.is_empty()).then(|| Round { sends, ..Round::default() });
        from.into_iter().chain(to).collect()
    }

    /// From each child, the nearest first, then to the parent.
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

    /// Below twice the rest, even ranks leave their part to the next one.
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

/// `MPIR_CVAR_GATHER_VSMALL_MSG_SIZE`, unless somebody moves it.
const SMALL_BLOCK: u64 = 1024;

/// Ranks at which sizes and counts are looked for: every one occurs there.
const MOST_LOOKED_AT: u32 = 64;

#[cfg(test)]
mod tests;
