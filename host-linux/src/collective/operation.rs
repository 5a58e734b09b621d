//! Collective operations that have rules in Open MPI.

use std::fmt;

use super::algorithm::{ALGORITHMS, Algorithm};

/// A collective operation.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Operation {
    /// From rank 0 to all.
    Bcast,
    /// The combination of all vectors, on every rank.
    Allreduce,
    /// The blocks of all ranks, on every rank.
    Allgather,
    /// A block from each rank to each.
    Alltoall,
    /// Nobody goes on before all have come.
    Barrier,
    /// The blocks of all ranks, on rank 0.
    Gather,
    /// A block from rank 0 to each rank.
    Scatter,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Bcast,
        Self::Allreduce,
        Self::Allgather,
        Self::Alltoall,
        Self::Barrier,
        Self::Gather,
        Self::Scatter,
    ];

    /// As MPI calls it, without its prefix.
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

    /// Whether messages have a size.
    #[must_use]
    pub const fn has_size(self) -> bool {
        !matches!(self, Self::Barrier)
    }

    /// What `size`, the bytes of a call's count times its type, is in Open
    /// MPI's rules: whole vectors count once, blocks once for each rank.
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
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
