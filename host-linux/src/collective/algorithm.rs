//! The algorithms of Open MPI 4.1's `tuned` component of which we know what
//! messages they send.
//!
//! Left out are those whose course a rules file does not fix (`knomial`,
//! `linear_sync`, and the ones that call other collective operations:
//! `nonoverlapping`, `allgather` 1), `split_binary_tree`, `segmented_ring`, and
//! `two_proc`, which fails for any number of ranks but two.

use super::operation::Operation;

/// What messages an algorithm sends.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Shape {
    /// The root sends everything to each rank.
    BroadcastLinear,
    /// Segments along so many chains that begin at the root.
    BroadcastChains {
        /// How many.
        chains: u32,
    },
    /// Segments down a binary tree.
    BroadcastBinary,
    /// Segments down a binomial tree, the nearest child first.
    BroadcastBinomial,
    /// Blocks down a binomial tree, then to all by recursive doubling.
    BroadcastScatterDoubling,
    /// Blocks down a binomial tree, then to all along a ring.
    BroadcastScatterRing,
    /// All vectors to rank 0, which combines them and sends the result to each.
    AllreduceLinear,
    /// Exchanges of whole vectors at distances 1, 2, 4, ….
    AllreduceDoubling,
    /// Blocks around a ring, twice.
    AllreduceRing,
    /// Reduce-scatter by recursive halving, allgather by recursive doubling.
    AllreduceRabenseifner,
    /// Twice as many blocks each round, at distances 1, 2, 4, …, any ranks.
    AllgatherBruck,
    /// Exchanges of all that is there, at distances 1, 2, 4, …
    AllgatherDoubling,
    /// A block each round to the next rank.
    AllgatherRing,
    /// Two blocks each round, with the neighbours in turn.
    AllgatherNeighbour,
    /// All messages at once.
    AlltoallLinear,
    /// One exchange a round, with ranks further and further away.
    AlltoallPairwise,
    /// ⌈log₂ P⌉ rounds, half of all blocks in each.
    AlltoallBruck,
    /// All to rank 0, and back.
    BarrierLinear,
    /// A message around the ring, twice.
    BarrierDoubleRing,
    /// Exchanges at distances 1, 2, 4, …
    BarrierDoubling,
    /// Messages at distances 1, 2, 4, … around the ring.
    BarrierDissemination,
    /// Up a binomial tree, and down again.
    BarrierTree,
    /// All to rank 0.
    GatherLinear,
    /// Up a binomial tree, blocks of whole subtrees.
    GatherBinomial,
    /// Rank 0 to all.
    ScatterLinear,
    /// Down a binomial tree, blocks of whole subtrees, the nearest first.
    ScatterBinomial,
}

/// For which numbers of ranks an algorithm does what it is called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Condition {
    /// All.
    Any,
    /// Powers of two: elsewhere the library takes another one, or adds steps
    /// that are not simulated.
    PowerOfTwo,
    /// Even ones; the library takes another one elsewhere.
    Even,
    /// More than so many.
    MoreThan(u32),
}

impl Condition {
    /// Whether it holds for `ranks`.
    #[must_use]
    pub const fn holds(self, ranks: u32) -> bool {
        match self {
            Self::Any => true,
            Self::PowerOfTwo => ranks.is_power_of_two(),
            Self::Even => ranks.is_multiple_of(2),
            Self::MoreThan(least) => ranks > least,
        }
    }

    /// Whether it holds for all numbers of ranks from `first` to `last`.
    #[must_use]
    pub const fn holds_from(self, first: u32, last: u32) -> bool {
        match self {
            Self::Any => true,
            // One of two numbers that follow each other is not; 1 and 2 are not asked for.
            Self::PowerOfTwo | Self::Even => first == last && self.holds(first),
            Self::MoreThan(_) => self.holds(first),
        }
    }
}

/// An algorithm of Open MPI's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Algorithm {
    /// What it is an algorithm of.
    pub operation: Operation,
    /// Its number there.
    pub number: u32,
    /// What Open MPI calls it.
    pub name: &'static str,
    /// What it sends.
    pub shape: Shape,
    /// For which numbers of ranks.
    pub condition: Condition,
    /// Whether it cuts messages into segments as a rule says.
    pub segments: bool,
    /// Whether the library quietly takes another one where there are fewer
    /// elements than ranks.
    pub wants_elements: bool,
    /// Whether it moves blocks in memory beside its messages, which is not
    /// counted.
    pub copies: bool,
    /// Whether results are wrong, without a word, where the operator does not
    /// commute.
    pub commutes: bool,
}

impl Algorithm {
    /// What its rule has in the column of fan-outs.
    #[must_use]
    pub const fn fanout(&self) -> u32 {
        match self.shape {
            Shape::BroadcastChains { chains } if chains > 1 => chains,
            _ => 0,
        }
    }
}

const fn known(
    operation: Operation,
    (number, name): (u32, &'static str),
    shape: Shape,
    condition: Condition,
) -> Algorithm {
    Algorithm {
        operation,
        number,
        name,
        shape,
        condition,
        segments: matches!(
            shape,
            Shape::BroadcastChains { .. } | Shape::BroadcastBinary | Shape::BroadcastBinomial
        ),
        wants_elements: matches!(
            shape,
            Shape::BroadcastScatterDoubling
                | Shape::BroadcastScatterRing
                | Shape::AllreduceRing
                | Shape::AllreduceRabenseifner
        ),
        copies: matches!(shape, Shape::AllgatherBruck | Shape::AlltoallBruck),
        commutes: matches!(shape, Shape::AllreduceRing),
    }
}

/// Chains of Open MPI's algorithm of that name: its own default.
const CHAINS: u32 = 4;

use Condition::{Any, Even, MoreThan, PowerOfTwo};
use Operation as O;
use Shape as S;

/// All, those of an operation in the order of Open MPI's numbers (`ompi_info
/// --param coll tuned --level 9`).
pub static ALGORITHMS: [Algorithm; 27] = [
    known(O::Bcast, (1, "basic_linear"), S::BroadcastLinear, Any),
    known(O::Bcast, (2, "chain"), S::BroadcastChains { chains: CHAINS }, MoreThan(CHAINS + 1)),
    known(O::Bcast, (3, "pipeline"), S::BroadcastChains { chains: 1 }, Any),
    known(O::Bcast, (5, "binary_tree"), S::BroadcastBinary, Any),
    known(O::Bcast, (6, "binomial"), S::BroadcastBinomial, Any),
    known(O::Bcast, (8, "scatter_allgather"), S::BroadcastScatterDoubling, PowerOfTwo),
    known(O::Bcast, (9, "scatter_allgather_ring"), S::BroadcastScatterRing, Any),
    known(O::Allreduce, (1, "basic_linear"), S::AllreduceLinear, Any),
    known(O::Allreduce, (3, "recursive_doubling"), S::AllreduceDoubling, Any),
    known(O::Allreduce, (4, "ring"), S::AllreduceRing, Any),
    known(O::Allreduce, (6, "rabenseifner"), S::AllreduceRabenseifner, Any),
    known(O::Allgather, (2, "bruck"), S::AllgatherBruck, Any),
    known(O::Allgather, (3, "recursive_doubling"), S::AllgatherDoubling, PowerOfTwo),
    known(O::Allgather, (4, "ring"), S::AllgatherRing, Any),
    known(O::Allgather, (5, "neighbor"), S::AllgatherNeighbour, Even),
    known(O::Alltoall, (1, "linear"), S::AlltoallLinear, Any),
    known(O::Alltoall, (2, "pairwise"), S::AlltoallPairwise, Any),
    known(O::Alltoall, (3, "modified_bruck"), S::AlltoallBruck, Any),
    known(O::Barrier, (1, "linear"), S::BarrierLinear, Any),
    known(O::Barrier, (2, "double_ring"), S::BarrierDoubleRing, Any),
    known(O::Barrier, (3, "recursive_doubling"), S::BarrierDoubling, Any),
    known(O::Barrier, (4, "bruck"), S::BarrierDissemination, Any),
    known(O::Barrier, (6, "tree"), S::BarrierTree, Any),
    known(O::Gather, (1, "basic_linear"), S::GatherLinear, Any),
    known(O::Gather, (2, "binomial"), S::GatherBinomial, Any),
    known(O::Scatter, (1, "basic_linear"), S::ScatterLinear, Any),
    known(O::Scatter, (2, "binomial"), S::ScatterBinomial, Any),
];
