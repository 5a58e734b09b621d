//! The memory that a simulation is lent.

use super::pool::Node;
use super::program::Program;
use super::rank::RankState;
use crate::sim::queues::queue::Entry;
use crate::sim::queues::wheel;

/// Elements of each part of [`Memory`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Requirements {
    /// [`Memory::ranks`].
    pub ranks: usize,
    /// [`Memory::words`].
    pub words: usize,
    /// [`Memory::nodes`], as far as can be foreseen.
    pub nodes: usize,
    /// [`Memory::nodes`] that are always enough.
    pub nodes_most: usize,
    /// Bytes of a rank.
    rank_bytes: usize,
}

impl Requirements {
    /// What `program` needs.
    #[must_use]
    pub fn of<P: Program>(program: &P) -> Self {
        Self::of_ranks(program, program.ranks() as usize)
    }

    /// What a [part](super::RankRange) of `program` with so many ranks needs.
    #[must_use]
    pub fn of_ranks<P: Program>(program: &P, ranks: usize) -> Self {
        let nodes_most = usize::try_from(program.waiting().saturating_add(1)).unwrap_or(usize::MAX);
        Self {
            ranks,
            words: wheel::words(ranks),
            nodes: nodes_most.min(ranks.saturating_mul(2).saturating_add(1 << 12)),
            nodes_most,
            rank_bytes: size_of::<RankState<P::State>>(),
        }
    }

    /// Bytes of all parts together, with the foreseen number of nodes;
    /// saturating.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes_with(self.nodes)
    }

    /// Bytes of all parts together, with this many nodes; saturating.
    #[must_use]
    pub const fn bytes_with(&self, nodes: usize) -> u64 {
        let ranks = (self.ranks as u64).saturating_mul(self.rank_bytes as u64);
        let nodes = (nodes as u64).saturating_mul(size_of::<Node>() as u64);
        ranks.saturating_add(nodes).saturating_add((self.words as u64).saturating_mul(8))
    }

    /// Bytes of all parts of [`OrderedMemory`] together, with this many nodes;
    /// saturating.
    #[must_use]
    pub const fn ordered_bytes_with(&self, nodes: usize) -> u64 {
        let rank = self.rank_bytes + 2 * size_of::<Entry>() + size_of::<u32>();
        let ranks = (self.ranks as u64).saturating_mul(rank as u64);
        ranks.saturating_add((nodes as u64).saturating_mul(size_of::<Node>() as u64))
    }
}

/// Memory for a simulation; see [`Requirements`] for how much of each part. Ranks
/// are in their default state on entry; what the others hold does not
/// matter.
#[derive(Debug)]
pub struct Memory<'m, S> {
    /// Ranks.
    pub ranks: &'m mut [RankState<S>],
    /// Which ranks are due when.
    pub words: &'m mut [u64],
    /// Messages and operations that wait; used from the first on.
    pub nodes: &'m mut [Node],
}

/// Memory for a simulation in global order, as [`Memory`].
#[derive(Debug)]
pub struct OrderedMemory<'m, S> {
    /// Ranks: [`Requirements::ranks`].
    pub ranks: &'m mut [RankState<S>],
    /// The next event of each of them: two for each, one of them for those that are
    /// put there in their order.
    pub queue: &'m mut [Entry],
    /// Where in the queue: as many.
    pub places: &'m mut [u32],
    /// As [`Memory::nodes`].
    pub nodes: &'m mut [Node],
}
