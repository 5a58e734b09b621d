//! Rounds of allreduce, reduction and scan.

use loggap_core::units::Picos;

use super::call::Call;
use super::rounds::{Binomial, Message, Place, Round, doubled, power_of_two};

/// Mapping of ranks to places 0, 1, … below a power of two, between which the main rounds take
/// place. Surplus ranks only take part before and after them.
struct Core {
    /// Number of places: the largest power of two up to the number of ranks.
    ranks: u32,
    /// Number of surplus ranks. Of the first `2 * rest` ranks, each even one shares a place with the
    /// odd one above it.
    rest: u32,
}

impl Core {
    fn of(ranks: u32) -> Self {
        let core = power_of_two(ranks);
        Self { ranks: core, rest: ranks - core }
    }

    const fn is_shared(&self, rank: u32) -> bool {
        rank < 2 * self.rest
    }

    const fn place(&self, rank: u32) -> u32 {
        if self.is_shared(rank) { rank / 2 } else { rank - self.rest }
    }

    /// The rank at a place; the even one if two share it.
    const fn even_rank(&self, place: u32) -> u32 {
        if place < self.rest { 2 * place } else { place + self.rest }
    }

    /// The rank at a place; the odd one if two share it.
    const fn odd_rank(&self, place: u32) -> u32 {
        if place < self.rest { 2 * place + 1 } else { place + self.rest }
    }
}

impl Call {
    /// Round that combines `size` bytes; saturating.
    pub(super) fn combining(&self, size: u64) -> Round {
        Round::compute(self.combine_time(size).unwrap_or(Picos(u64::MAX)))
    }

    pub(super) fn allreduce_linear(&self, rank: u32) -> Vec<Round> {
        if rank > 0 {
            return vec![Round::send(0, self.size), Round::receive(0, self.size)];
        }
        let mut rounds = self.reduce_linear(rank);
        rounds.extend(self.root_sends(rank, self.size));
        rounds
    }

    pub(super) fn reduce_linear(&self, rank: u32) -> Vec<Round> {
        if rank > 0 {
            return vec![Round::send(0, self.size)];
        }
        let combined = |peer| [Round::receive(peer, self.size), self.combining(self.size)];
        (1..self.ranks).rev().flat_map(combined).collect()
    }

    /// Up a binomial tree, the nearest child first.
    pub(super) fn reduce_binomial(&self, rank: u32) -> Vec<Round> {
        let mut place = Binomial::Far.place(rank, self.ranks);
        place.children.reverse();
        self.reduce_tree(&place)
    }

    /// Up a tree; a rank combines the vectors of its children.
    pub(super) fn reduce_tree(&self, place: &Place) -> Vec<Round> {
        let mut rounds = Vec::new();
        for size in self.segment_lengths() {
            for &child in &place.children {
                rounds.extend([Round::receive(child, size), self.combining(size)]);
            }
            rounds.extend(place.parent.map(|parent| Round::send(parent, size)));
        }
        rounds
    }

    pub(super) fn scan(&self, rank: u32) -> Vec<Round> {
        let mut rounds = Vec::new();
        if let Some(below) = rank.checked_sub(1) {
            rounds.extend([Round::receive(below, self.size), self.combining(self.size)]);
        }
        let above = rank.saturating_add(1);
        rounds.extend((above < self.ranks).then(|| Round::send(above, self.size)));
        rounds
    }

    /// Recursive doubling; of two ranks that share a place, the even one passes its vector to the
    /// odd one.
    pub(super) fn allreduce_doubling(&self, rank: u32) -> Vec<Round> {
        let core = Core::of(self.ranks);
        let shared = core.is_shared(rank);
        if shared && rank.is_multiple_of(2) {
            return vec![Round::send(rank + 1, self.size), Round::receive(rank + 1, self.size)];
        }
        let mut rounds = Vec::new();
        if shared {
            rounds.extend([Round::receive(rank - 1, self.size), self.combining(self.size)]);
        }
        for distance in doubled(core.ranks) {
            let peer = core.odd_rank(core.place(rank) ^ distance);
            let message = Message { peer, size: self.size };
            rounds.extend([Round::exchange(message, message), self.combining(self.size)]);
        }
        if shared {
            rounds.push(Round::send(rank - 1, self.size));
        }
        rounds
    }

    /// Ring; all blocks are counted at the size of the longest.
    pub(super) fn allreduce_ring(&self, rank: u32) -> Vec<Round> {
        let to = Message { peer: self.above(rank, 1), size: self.block() };
        let from = Message { peer: self.below(rank, 1), size: self.block() };
        let mut rounds = Vec::new();
        for step in 1..=2 * u64::from(self.ranks.saturating_sub(1)) {
            rounds.push(Round::exchange(to, from));
            if step < self.ranks.into() {
                rounds.push(self.combining(self.block()));
            }
        }
        rounds
    }

    /// Rabenseifner's algorithm. Of two ranks that share a place, each combines one half, and the
    /// even one takes part in the main rounds. Halves of odd lengths are rounded up.
    pub(super) fn rabenseifner(&self, rank: u32) -> Vec<Round> {
        let core = Core::of(self.ranks);
        let half = self.size.div_ceil(2);
        let mut rounds = Vec::new();
        if core.is_shared(rank) {
            let even = rank.is_multiple_of(2);
            let message = Message { peer: rank ^ 1, size: half };
            rounds.extend([Round::exchange(message, message), self.combining(half)]);
            if !even {
                rounds.extend([
                    Round::send(message.peer, half),
                    Round::receive(message.peer, self.size),
                ]);
                return rounds;
            }
            rounds.push(Round::receive(message.peer, half));
        }
        let mut part = self.size;
        let peer = |distance: u32| core.even_rank(core.place(rank) ^ distance);
        let exchange = |distance: u32, size: u64| {
            let message = Message { peer: peer(distance), size };
            Round::exchange(message, message)
        };
        let mut parts = Vec::new();
        for distance in doubled(core.ranks) {
            part = part.div_ceil(2);
            rounds.extend([exchange(distance, part), self.combining(part)]);
            parts.push((distance, part));
        }
        rounds.extend(parts.into_iter().rev().map(|(distance, part)| exchange(distance, part)));
        if core.is_shared(rank) {
            rounds.push(Round::send(rank ^ 1, self.size));
        }
        rounds
    }
}
