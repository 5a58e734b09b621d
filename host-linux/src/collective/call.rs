//! One call of a collective operation.

use loggap_core::goal::Sink;
use loggap_core::units::{Bytes, Overflow, PerByte, Picos};

use super::algorithm::Shape;
use super::rounds::{Round, around, feed};

/// One call of a collective operation with a given algorithm; rank 0 is the root.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Call {
    /// Communication pattern of the algorithm.
    pub shape: Shape,
    /// Number of ranks, at least one.
    pub ranks: u32,
    /// Bytes of the vector, or of each block.
    pub size: u64,
    /// Bytes of a segment, if the algorithm has segments; 0 for whole messages.
    pub segment: u64,
    /// Time to combine a byte of two vectors.
    pub combine: PerByte,
}

/// Messages that depend on each other, one after the other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Chain {
    /// Number of messages.
    pub messages: u64,
    /// Bytes of each.
    pub size: u64,
}

impl Call {
    /// The rounds of `rank`.
    #[must_use]
    pub fn rounds(&self, rank: u32) -> Vec<Round> {
        match self.shape {
            Shape::BroadcastLinear | Shape::ScatterLinear => self.root_sends(rank, self.size),
            Shape::BroadcastChains { chains } => {
                self.broadcast_segments(self.chains_place(rank, chains))
            }
            Shape::BroadcastBinary => self.broadcast_segments(self.binary_place(rank)),
            Shape::BroadcastBinomial => self.broadcast_segments(self.binomial_place(rank)),
            Shape::BroadcastKnomial => self.broadcast_segments(self.knomial_place(rank)),
            Shape::BroadcastScatterDoubling => self.broadcast_scatter_doubling(rank),
            Shape::BroadcastScatterRing => self.broadcast_scatter_ring(rank),
            Shape::AllreduceLinear => self.allreduce_linear(rank),
            Shape::AllreduceDoubling => self.allreduce_doubling(rank),
            Shape::AllreduceRing => self.allreduce_ring(rank),
            Shape::AllreduceRabenseifner => self.rabenseifner(rank),
            Shape::AllgatherBruck => self.allgather_bruck(rank),
            Shape::AllgatherDoubling => self.allgather_doubling(rank),
            Shape::AllgatherRing => self.allgather_ring(rank),
            Shape::AllgatherNeighbour => self.allgather_neighbour(rank),
            Shape::AlltoallLinear => self.alltoall_linear(rank),
            Shape::AlltoallPairwise => self.alltoall_pairwise(rank),
            Shape::AlltoallBruck => self.alltoall_bruck(rank),
            Shape::BarrierLinear => self.barrier_linear(rank),
            Shape::BarrierDoubleRing => self.barrier_double_ring(rank),
            Shape::BarrierDoubling => self.barrier_doubling(rank),
            Shape::BarrierDissemination => self.barrier_dissemination(rank),
            Shape::BarrierTree => self.barrier_tree(rank),
            Shape::GatherLinear => self.root_receives(rank, self.size),
            Shape::GatherBinomial => self.gather_binomial(rank),
            Shape::ScatterBinomial => self.scatter_binomial(rank),
            Shape::ReduceLinear => self.reduce_linear(rank),
            Shape::ReduceBinomial => self.reduce_binomial(rank),
            Shape::ReduceBinary => self.reduce_tree(&self.binary_place(rank)),
            Shape::ReduceChain => self.reduce_tree(&self.chains_place(rank, 1)),
            Shape::Scan => self.scan(rank),
        }
    }

    /// True if all ranks do the same at the same time, so that the simulation of one rank that
    /// sends to itself gives the makespan of all.
    #[must_use]
    pub const fn is_symmetric(&self) -> bool {
        match self.shape {
            Shape::AllreduceRing
            | Shape::AllgatherBruck
            | Shape::AllgatherDoubling
            | Shape::AllgatherRing
            | Shape::AllgatherNeighbour
            | Shape::AlltoallLinear
            | Shape::AlltoallPairwise
            | Shape::AlltoallBruck
            | Shape::BarrierDissemination => true,
            Shape::AllreduceDoubling | Shape::AllreduceRabenseifner | Shape::BarrierDoubling => {
                self.ranks.is_power_of_two()
            }
            _ => false,
        }
    }

    /// The longest chain of dependent, equal messages that is known without the rounds.
    #[must_use]
    pub fn chain(&self) -> Chain {
        let hops = u64::from(self.ranks.saturating_sub(1));
        match self.shape {
            Shape::BroadcastChains { chains } => {
                let size = if self.segment == 0 { self.size } else { self.size.min(self.segment) };
                Chain { messages: hops.div_ceil(chains.max(1).into()), size }
            }
            // The first block reaches each rank in turn.
            Shape::BroadcastScatterRing => Chain { messages: hops, size: self.block() },
            _ => Chain { messages: 0, size: 0 },
        }
    }

    /// Writes the call into `sink`; for a symmetric call only one rank, which sends to itself.
    ///
    /// # Errors
    ///
    /// Errors of `sink`.
    pub fn feed<S: Sink>(&self, sink: &mut S) -> Result<(), S::Error> {
        if !self.is_symmetric() {
            return self.feed_all(sink);
        }
        let alone = |rank| {
            let mut rounds = self.rounds(rank);
            for round in &mut rounds {
                for message in round.sends.iter_mut().chain(&mut round.receives) {
                    message.peer = 0;
                }
            }
            rounds
        };
        feed(1, alone, sink)
    }

    /// Writes all ranks of the call into `sink`.
    ///
    /// # Errors
    ///
    /// Errors of `sink`.
    pub fn feed_all<S: Sink>(&self, sink: &mut S) -> Result<(), S::Error> {
        feed(self.ranks, |rank| self.rounds(rank), sink)
    }

    /// Time to combine `size` bytes.
    ///
    /// # Errors
    ///
    /// [`Overflow`] past 2⁶⁴ ps.
    pub fn combine_time(&self, size: u64) -> Result<Picos, Overflow> {
        self.combine.times(Bytes(size))
    }

    /// Block size when the vector is cut into one block for each rank, in bytes; the last blocks
    /// may be shorter or empty.
    pub(super) fn block(&self) -> u64 {
        self.size.div_ceil(self.ranks.max(1).into())
    }

    /// Bytes of the `count` blocks that begin with the one of rank `first`.
    pub(super) fn blocks(&self, first: u32, count: u32) -> u64 {
        let place = |rank: u64| self.block().saturating_mul(rank).min(self.size);
        place(u64::from(first) + u64::from(count)) - place(first.into())
    }

    pub(super) fn above(&self, rank: u32, distance: u32) -> u32 {
        around(rank, distance, self.ranks)
    }

    pub(super) fn below(&self, rank: u32, distance: u32) -> u32 {
        self.above(rank, self.ranks - distance % self.ranks.max(1))
    }
}
