//! Memory of a simulation of a program.

use super::pool::Node;
use super::program::Program;
use super::rank::RankState;
use crate::sim::queues::queue::Entry;
use crate::sim::queues::wheel;

/// Number of elements of each part of [`Memory`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Requirements {
    /// [`Memory::ranks`].
    pub ranks: usize,
    /// [`Memory::words`].
    pub words: usize,
    /// [`Memory::nodes`], estimate.
    pub nodes: usize,
    /// [`Memory::nodes`], upper bound.
    pub nodes_most: usize,
    /// Size of the state of a rank, bytes.
    rank_bytes: usize,
}

impl Requirements {
    /// Requirements of `program`.
    #[must_use]
    pub fn of<P: Program>(program: &P) -> Self {
        Self::of_ranks(program, program.extent().ranks as usize)
    }

    /// Requirements of a [part](super::RankRange) of `program` with `ranks` ranks.
    #[must_use]
    pub fn of_ranks<P: Program>(program: &P, ranks: usize) -> Self {
        let waiting = program.extent().waiting;
        let nodes_most = usize::try_from(waiting.saturating_add(1)).unwrap_or(usize::MAX);
        Self {
            ranks,
            words: wheel::words(ranks),
            nodes: nodes_most.min(ranks.saturating_mul(2).saturating_add(1 << 12)),
            nodes_most,
            rank_bytes: size_of::<RankState<P::State>>(),
        }
    }

    /// Size of all parts with the estimated number of nodes, bytes; saturating.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes_with(self.nodes)
    }

    /// Size of all parts with `nodes` nodes, bytes; saturating.
    #[must_use]
    pub const fn bytes_with(&self, nodes: usize) -> u64 {
        let ranks = (self.ranks as u64).saturating_mul(self.rank_bytes as u64);
        let nodes = (nodes as u64).saturating_mul(size_of::<Node>() as u64);
        ranks.saturating_add(nodes).saturating_add((self.words as u64).saturating_mul(8))
    }

    /// Size of all parts of [`OrderedMemory`] with `nodes` nodes, bytes; saturating.
    #[must_use]
    pub const fn ordered_bytes_with(&self, nodes: usize) -> u64 {
        let rank = self.rank_bytes + 2 * size_of::<Entry>() + size_of::<u32>();
        let ranks = (self.ranks as u64).saturating_mul(rank as u64);
        ranks.saturating_add((nodes as u64).saturating_mul(size_of::<Node>() as u64))
    }
}

/// Lent memory of a simulation, of the sizes in [`Requirements`]. Ranks must be in their default
/// state on entry; the content of the other parts does not matter.
#[derive(Debug)]
pub struct Memory<'m, S> {
    /// States of ranks.
    pub ranks: &'m mut [RankState<S>],
    /// Timing wheel of the windows in which ranks are due.
    pub words: &'m mut [u64],
    /// Nodes of waiting messages and operations; used from the first on.
    pub nodes: &'m mut [Node],
}

/// Lent memory of a simulation in global order, as [`Memory`].
#[derive(Debug)]
pub struct OrderedMemory<'m, S> {
    /// States of ranks: [`Requirements::ranks`].
    pub ranks: &'m mut [RankState<S>],
    /// Event queue: two entries for each rank, one for the heap and one for the ring.
    pub queue: &'m mut [Entry],
    /// Position of each rank's entry in the queue.
    pub places: &'m mut [u32],
    /// As [`Memory::nodes`].
    pub nodes: &'m mut [Node],
}
