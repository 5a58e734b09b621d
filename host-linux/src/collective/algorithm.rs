//! Algorithms of Open MPI 4.1's `tuned` component whose messages are known.
//!
//! [`ALGORITHMS`] lacks those that a rules file does not fully determine (`knomial`, `linear_sync`),
//! those that call other collective operations (`nonoverlapping`, `allgather` 1),
//! `split_binary_tree`, `segmented_ring`, and `two_proc`, which fails for any rank count but two.

use super::operation::Operation;

/// Communication pattern of an algorithm.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Shape {
    /// The root sends everything to each rank.
    BroadcastLinear,
    /// Segments along chains that begin at the root.
    BroadcastChains {
        /// Number of chains.
        chains: u32,
    },
    /// Segments down a binary tree.
    BroadcastBinary,
    /// Segments down a binomial tree; a rank sends to its nearest child first.
    BroadcastBinomial,
    /// Whole messages down a tree in which a rank sends to up to three children at distances 1, 4,
    /// 16, …, the farthest first.
    BroadcastKnomial,
    /// Scatter of blocks down a binomial tree, then allgather by recursive doubling.
    BroadcastScatterDoubling,
    /// Scatter of blocks down a binomial tree, then allgather along a ring.
    BroadcastScatterRing,
    /// All vectors go to rank 0, which combines them and sends the result to each.
    AllreduceLinear,
    /// Exchanges of whole vectors at distances 1, 2, 4, ….
    AllreduceDoubling,
    /// Reduce-scatter and allgather, both along a ring.
    AllreduceRing,
    /// Reduce-scatter by recursive halving, allgather by recursive doubling.
    AllreduceRabenseifner,
    /// Twice as many blocks each round, at distances 1, 2, 4, …, for any rank count.
    AllgatherBruck,
    /// Exchanges of all blocks held so far, at distances 1, 2, 4, …
    AllgatherDoubling,
    /// Each rank passes a block a round to the next rank.
    AllgatherRing,
    /// Exchanges of two blocks a round with the two neighbours alternately.
    AllgatherNeighbour,
    /// All messages at once.
    AlltoallLinear,
    /// One exchange a round, at increasing distances.
    AlltoallPairwise,
    /// ⌈log₂ P⌉ rounds, each with about half of all blocks.
    AlltoallBruck,
    /// All ranks send to rank 0, which answers each.
    BarrierLinear,
    /// A message goes around the ring twice.
    BarrierDoubleRing,
    /// Exchanges at distances 1, 2, 4, …
    BarrierDoubling,
    /// Messages at distances 1, 2, 4, … around the ring.
    BarrierDissemination,
    /// Up a binomial tree, and down again.
    BarrierTree,
    /// All ranks send to rank 0.
    GatherLinear,
    /// Up a binomial tree, with the blocks of whole subtrees.
    GatherBinomial,
    /// Rank 0 sends to all.
    ScatterLinear,
    /// Down a binomial tree, with the blocks of whole subtrees, nearest child first.
    ScatterBinomial,
    /// All vectors go to rank 0, which combines them.
    ReduceLinear,
    /// Segments up a binomial tree, combined at each rank.
    ReduceBinomial,
    /// Segments up a binary tree.
    ReduceBinary,
    /// Segments along a chain that ends at the root.
    ReduceChain,
    /// Each rank combines the vector of the rank below and passes the result on.
    Scan,
}

/// Rank counts for which Open MPI runs the algorithm as such.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Condition {
    /// All rank counts.
    Any,
    /// Powers of two: for others the library takes another algorithm, or adds steps that are not
    /// simulated.
    PowerOfTwo,
    /// Even rank counts; for odd ones the library takes another algorithm.
    Even,
    /// More ranks than this.
    MoreThan(u32),
}

impl Condition {
    /// True if it holds for `ranks`.
    #[must_use]
    pub const fn holds(self, ranks: u32) -> bool {
        match self {
            Self::Any => true,
            Self::PowerOfTwo => ranks.is_power_of_two(),
            Self::Even => ranks.is_multiple_of(2),
            Self::MoreThan(least) => ranks > least,
        }
    }

    /// True if it holds for every rank count from `first` to `last`.
    #[must_use]
    pub const fn holds_from(self, first: u32, last: u32) -> bool {
        match self {
            Self::Any => true,
            // Of two consecutive rank counts only one is even, or a power of two (except 1 and 2,
            // which callers never pass together).
            Self::PowerOfTwo | Self::Even => first == last && self.holds(first),
            Self::MoreThan(_) => self.holds(first),
        }
    }
}

/// An algorithm of Open MPI.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Algorithm {
    /// The collective operation.
    pub operation: Operation,
    /// Its number in Open MPI's rules.
    pub number: u32,
    /// Its name in Open MPI.
    pub name: &'static str,
    /// Its communication pattern.
    pub shape: Shape,
    /// Rank counts for which Open MPI runs it.
    pub condition: Condition,
    /// True if a rule may set its segment size.
    pub segments: bool,
    /// True if the library silently takes another algorithm where there are fewer elements than
    /// ranks.
    pub wants_elements: bool,
    /// True if it also moves blocks in memory, which the simulation does not count.
    pub copies: bool,
    /// True if it silently returns wrong results where the operator does not commute.
    pub commutes: bool,
}

impl Algorithm {
    /// Value of the fan-out column in its rule.
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
    number: u32,
    name: &'static str,
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

/// Number of chains of Open MPI's `chain` algorithm, its own default.
const CHAINS: u32 = 4;

use Condition::{Any, Even, MoreThan, PowerOfTwo};
use Operation as O;
use Shape as S;

/// All algorithms; those of an operation are in the order of Open MPI's numbers (`ompi_info --param
/// coll tuned --level 9`).
pub static ALGORITHMS: [Algorithm; 27] = [
    known(O::Bcast, 1, "basic_linear", S::BroadcastLinear, Any),
    known(O::Bcast, 2, "chain", S::BroadcastChains { chains: CHAINS }, MoreThan(CHAINS + 1)),
    known(O::Bcast, 3, "pipeline", S::BroadcastChains { chains: 1 }, Any),
    known(O::Bcast, 5, "binary_tree", S::BroadcastBinary, Any),
    known(O::Bcast, 6, "binomial", S::BroadcastBinomial, Any),
    known(O::Bcast, 8, "scatter_allgather", S::BroadcastScatterDoubling, PowerOfTwo),
    known(O::Bcast, 9, "scatter_allgather_ring", S::BroadcastScatterRing, Any),
    known(O::Allreduce, 1, "basic_linear", S::AllreduceLinear, Any),
    known(O::Allreduce, 3, "recursive_doubling", S::AllreduceDoubling, Any),
    known(O::Allreduce, 4, "ring", S::AllreduceRing, Any),
    known(O::Allreduce, 6, "rabenseifner", S::AllreduceRabenseifner, Any),
    known(O::Allgather, 2, "bruck", S::AllgatherBruck, Any),
    known(O::Allgather, 3, "recursive_doubling", S::AllgatherDoubling, PowerOfTwo),
    known(O::Allgather, 4, "ring", S::AllgatherRing, Any),
    known(O::Allgather, 5, "neighbor", S::AllgatherNeighbour, Even),
    known(O::Alltoall, 1, "linear", S::AlltoallLinear, Any),
    known(O::Alltoall, 2, "pairwise", S::AlltoallPairwise, Any),
    known(O::Alltoall, 3, "modified_bruck", S::AlltoallBruck, Any),
    known(O::Barrier, 1, "linear", S::BarrierLinear, Any),
    known(O::Barrier, 2, "double_ring", S::BarrierDoubleRing, Any),
    known(O::Barrier, 3, "recursive_doubling", S::BarrierDoubling, Any),
    known(O::Barrier, 4, "bruck", S::BarrierDissemination, Any),
    known(O::Barrier, 6, "tree", S::BarrierTree, Any),
    known(O::Gather, 1, "basic_linear", S::GatherLinear, Any),
    known(O::Gather, 2, "binomial", S::GatherBinomial, Any),
    known(O::Scatter, 1, "basic_linear", S::ScatterLinear, Any),
    known(O::Scatter, 2, "binomial", S::ScatterBinomial, Any),
];

/// Further algorithms that libraries take. [`super::Chosen::is_stand_in`] tells for which of them a
/// similar pattern stands.
pub static STAND_INS: [Algorithm; 9] = [
    known(O::Bcast, 4, "split_binary_tree", S::BroadcastBinary, Any),
    known(O::Bcast, 7, "knomial", S::BroadcastKnomial, Any),
    known(O::Allreduce, 2, "nonoverlapping", S::AllreduceDoubling, Any),
    known(O::Allreduce, 5, "segmented_ring", S::AllreduceRing, Any),
    known(O::Allgather, 6, "two_proc", S::AllgatherRing, Any),
    known(O::Alltoall, 4, "linear_sync", S::AlltoallLinear, Any),
    known(O::Alltoall, 5, "two_proc", S::AlltoallPairwise, Any),
    known(O::Gather, 3, "linear_sync", S::GatherLinear, Any),
    known(O::Scatter, 3, "linear_nb", S::ScatterLinear, Any),
];
