//! Settings that make a library use a certain algorithm for a collective
//! operation, for the algorithms whose messages are known.
//!
//! Sources: Open MPI 4.1, `ompi_info --param coll tuned --level 9`; MPICH 4.0,
//! the descriptions of its control variables, whose values are numbered in the
//! order listed there.

use super::program::Shape;
use crate::collective::operation::Collective;
use crate::library::Implementation;

/// An algorithm of a library.
#[derive(Debug, Eq, PartialEq)]
pub struct Known {
    /// Library that has it.
    pub library: Implementation,
    /// Operation that it implements.
    pub collective: Collective,
    /// Name of the algorithm in the library.
    pub name: &'static str,
    /// Value of the variable that selects the algorithm.
    pub number: i64,
    /// Message pattern.
    pub shape: Shape,
}

impl Known {
    /// Variable that selects the algorithm, as the tool interface names it.
    #[must_use]
    pub fn variable(&self) -> String {
        let operation = self.collective.name();
        match self.library {
            OpenMpi => format!("coll_tuned_{operation}_algorithm"),
            _ => format!("MPIR_CVAR_{}_INTRA_ALGORITHM", operation.to_uppercase()),
        }
    }

    /// Environment variable that selects the algorithm, and its value.
    pub(super) fn assignment(&self) -> (String, String) {
        let variable = self.variable();
        match self.library {
            OpenMpi => (format!("OMPI_MCA_{variable}"), self.number.to_string()),
            _ => (variable, self.name.to_owned()),
        }
    }

    /// True if the library uses the algorithm for this number of ranks, and not another one.
    pub(super) const fn holds(&self, ranks: u32) -> bool {
        match self.shape {
            S::Tuned(T::AllgatherDoubling | T::BarrierDoubling) => ranks.is_power_of_two(),
            _ => true,
        }
    }
}

const fn known(
    library: Implementation,
    collective: Collective,
    name: &'static str,
    number: i64,
    shape: Shape,
) -> Known {
    Known { library, collective, name, number, shape }
}

use Collective as C;
use Implementation::{Mpich, OpenMpi};
use Shape as S;
use loggap::collective::Shape as T;

/// Of several entries for one operation, the first that holds is forced.
pub(super) static KNOWN: [Known; 19] = [
    known(OpenMpi, C::Bcast, "binomial", 6, S::Tuned(T::BroadcastBinomial)),
    known(OpenMpi, C::Allreduce, "recursive_doubling", 3, S::Tuned(T::AllreduceDoubling)),
    known(OpenMpi, C::Reduce, "binomial", 5, S::Tuned(T::ReduceBinomial)),
    known(OpenMpi, C::Barrier, "bruck", 4, S::Tuned(T::BarrierDissemination)),
    known(OpenMpi, C::Barrier, "recursive_doubling", 3, S::Tuned(T::BarrierDoubling)),
    known(OpenMpi, C::Gather, "binomial", 2, S::Tuned(T::GatherBinomial)),
    known(OpenMpi, C::Scatter, "binomial", 2, S::Tuned(T::ScatterBinomial)),
    known(OpenMpi, C::Allgather, "recursive_doubling", 3, S::Tuned(T::AllgatherDoubling)),
    known(OpenMpi, C::Allgather, "ring", 4, S::Tuned(T::AllgatherRing)),
    known(OpenMpi, C::Alltoall, "pairwise", 2, S::Tuned(T::AlltoallPairwise)),
    known(Mpich, C::Bcast, "binomial", 1, S::BroadcastFarFirst),
    known(Mpich, C::Allreduce, "recursive_doubling", 3, S::Tuned(T::AllreduceDoubling)),
    known(Mpich, C::Reduce, "binomial", 1, S::Tuned(T::ReduceBinomial)),
    known(Mpich, C::Barrier, "dissemination", 3, S::Tuned(T::BarrierDissemination)),
    known(Mpich, C::Gather, "binomial", 1, S::GatherSmallCopy),
    known(Mpich, C::Scatter, "binomial", 1, S::ScatterFarFirst),
    known(Mpich, C::Allgather, "recursive_doubling", 3, S::Tuned(T::AllgatherDoubling)),
    known(Mpich, C::Allgather, "ring", 4, S::Tuned(T::AllgatherRing)),
    known(Mpich, C::Alltoall, "pairwise", 3, S::Tuned(T::AlltoallPairwise)),
];
