//! Collective operations for which Open MPI reads rules.

use std::fmt;

use super::algorithm::{ALGORITHMS, Algorithm, STAND_INS};

/// A collective operation.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Operation {
    /// Vector of rank 0 to all ranks.
    Bcast,
    /// Combination of all vectors, on every rank.
    Allreduce,
    /// Blocks of all ranks, on every rank.
    Allgather,
    /// A block from each rank to each.
    Alltoall,
    /// No rank leaves before all have entered.
    Barrier,
    /// Blocks of all ranks, on rank 0.
    Gather,
    /// A block from rank 0 to each rank.
    Scatter,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 7] = [
        Self::Bcast,
        Self::Allreduce,
        Self::Allgather,
        Self::Alltoall,
        Self::Barrier,
        Self::Gather,
        Self::Scatter,
    ];

    /// MPI's name without the prefix `MPI_`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bcast => "bcast",
            Self::Allreduce => "allreduce",
            Self::Allgather => "allgather",
            Self::Alltoall => "alltoall",
            Self::Barrier => "barrier",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
        }
    }

    /// Operation with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }

    /// Its number in Open MPI's rules (`COLLTYPE_T` of `coll_base_functions.h`).
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Allgather => 0,
            Self::Allreduce => 2,
            Self::Alltoall => 3,
            Self::Barrier => 6,
            Self::Bcast => 7,
            Self::Gather => 9,
            Self::Scatter => 15,
        }
    }

    /// True if messages have a size.
    #[must_use]
    pub const fn has_size(self) -> bool {
        !matches!(self, Self::Barrier)
    }

    /// The size that Open MPI's rules use for a call whose count times type size is `size` bytes:
    /// that of the vector, or, for operations on blocks, that of all ranks' blocks.
    #[must_use]
    pub const fn rule_size(self, size: u64, ranks: u32) -> u64 {
        match self {
            Self::Bcast | Self::Allreduce => size,
            Self::Barrier => 0,
            Self::Allgather | Self::Alltoall | Self::Gather | Self::Scatter => {
                size.saturating_mul(ranks as u64)
            }
        }
    }

    /// Its algorithms, in the order of Open MPI's numbers.
    pub fn algorithms(self) -> impl Iterator<Item = &'static Algorithm> {
        ALGORITHMS.iter().filter(move |algorithm| algorithm.operation == self)
    }

    /// Its algorithms, and behind them those of [`STAND_INS`].
    pub fn with_stand_ins(self) -> impl Iterator<Item = &'static Algorithm> {
        let others = STAND_INS.iter().filter(move |algorithm| algorithm.operation == self);
        self.algorithms().chain(others)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
