//! Settings that make a library use a certain algorithm for a collective
//! operation, for the algorithms whose messages are known.
//!
//! Sources: Open MPI 4.1, `ompi_info --param coll tuned --level 9`; MPICH 4.0,
//! the descriptions of its control variables, whose values are numbered in the
//! order listed there.

use super::program::Shape;
use crate::collective::operation::Collective;
use crate::library::Implementation;

/// Numbers of ranks for which the library uses the algorithm.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Condition {
    /// All.
    Any,
    /// Powers of two; otherwise the library uses another algorithm.
    PowerOfTwo,
}

impl Condition {
    pub(super) const fn holds(self, ranks: u32) -> bool {
        match self {
            Self::Any => true,
            Self::PowerOfTwo => ranks.is_power_of_two(),
        }
    }
}

/// An algorithm of a library.
#[derive(Debug, Eq, PartialEq)]
pub struct Known {
    /// Library that has it.
    pub library: Implementation,
    /// Operation that it implements.
    pub collective: Collective,
    /// Variable that selects the algorithm, as the tool interface names it.
    pub variable: &'static str,
    /// Name of the algorithm in the library.
    pub name: &'static str,
    /// Value of the variable that selects the algorithm.
    pub number: i64,
    /// Message pattern.
    pub shape: Shape,
    pub(super) condition: Condition,
}

impl Known {
    /// Environment variable that selects the algorithm, and its value.
    pub(super) fn assignment(&self) -> (String, String) {
        match self.library {
            Implementation::OpenMpi => {
                (format!("OMPI_MCA_{}", self.variable), self.number.to_string())
            }
            _ => (self.variable.to_owned(), self.name.to_owned()),
        }
    }
}

const fn open_mpi(
    collective: Collective,
    (variable, name, number): (&'static str, &'static str, i64),
    (shape, condition): (Shape, Condition),
) -> Known {
    let library = Implementation::OpenMpi;
    Known { library, collective, variable, name, number, shape, condition }
}

const fn mpich(
    collective: Collective,
    (variable, name, number): (&'static str, &'static str, i64),
    (shape, condition): (Shape, Condition),
) -> Known {
    let library = Implementation::Mpich;
    Known { library, collective, variable, name, number, shape, condition }
}

use Collective as C;
use Condition::{Any, PowerOfTwo};
use Shape as S;

/// Of several entries for one operation, the first whose condition holds is forced.
pub(super) static KNOWN: [Known; 19] = [
    open_mpi(C::Bcast, ("coll_tuned_bcast_algorithm", "binomial", 6), (S::BroadcastNearFirst, Any)),
    open_mpi(
        C::Allreduce,
        ("coll_tuned_allreduce_algorithm", "recursive_doubling", 3),
        (S::Doubling, Any),
    ),
    open_mpi(C::Reduce, ("coll_tuned_reduce_algorithm", "binomial", 5), (S::Reduce, Any)),
    open_mpi(C::Barrier, ("coll_tuned_barrier_algorithm", "bruck", 4), (S::Dissemination, Any)),
    open_mpi(
        C::Barrier,
        ("coll_tuned_barrier_algorithm", "recursive_doubling", 3),
        (S::Dissemination, PowerOfTwo),
    ),
    open_mpi(C::Gather, ("coll_tuned_gather_algorithm", "binomial", 2), (S::GatherEvenCopy, Any)),
    open_mpi(
        C::Scatter,
        ("coll_tuned_scatter_algorithm", "binomial", 2),
        (S::ScatterNearFirst, Any),
    ),
    open_mpi(
        C::Allgather,
        ("coll_tuned_allgather_algorithm", "recursive_doubling", 3),
        (S::AllgatherDoubling, PowerOfTwo),
    ),
    open_mpi(C::Allgather, ("coll_tuned_allgather_algorithm", "ring", 4), (S::AllgatherRing, Any)),
    open_mpi(C::Alltoall, ("coll_tuned_alltoall_algorithm", "pairwise", 2), (S::Pairwise, Any)),
    mpich(
        C::Bcast,
        ("MPIR_CVAR_BCAST_INTRA_ALGORITHM", "binomial", 1),
        (S::BroadcastFarFirst, Any),
    ),
    mpich(
        C::Allreduce,
        ("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "recursive_doubling", 3),
        (S::Doubling, Any),
    ),
    mpich(C::Reduce, ("MPIR_CVAR_REDUCE_INTRA_ALGORITHM", "binomial", 1), (S::Reduce, Any)),
    mpich(
        C::Barrier,
        ("MPIR_CVAR_BARRIER_INTRA_ALGORITHM", "dissemination", 3),
        (S::Dissemination, Any),
    ),
    mpich(
        C::Gather,
        ("MPIR_CVAR_GATHER_INTRA_ALGORITHM", "binomial", 1),
        (S::GatherSmallCopy, Any),
    ),
    mpich(
        C::Scatter,
        ("MPIR_CVAR_SCATTER_INTRA_ALGORITHM", "binomial", 1),
        (S::ScatterFarFirst, Any),
    ),
    mpich(
        C::Allgather,
        ("MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM", "recursive_doubling", 3),
        (S::AllgatherDoubling, PowerOfTwo),
    ),
    mpich(
        C::Allgather,
        ("MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM", "ring", 4),
        (S::AllgatherRing, Any),
    ),
    mpich(C::Alltoall, ("MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM", "pairwise", 3), (S::Pairwise, Any)),
];
