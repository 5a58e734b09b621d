//! Collective operations, and the data that each of them moves.

use std::fmt;

use loggap::flags::parse::SizeError;

/// A collective operation of MPI.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Collective {
    /// `MPI_Bcast`.
    Bcast,
    /// `MPI_Reduce`.
    Reduce,
    /// `MPI_Allreduce`.
    Allreduce,
    /// `MPI_Gather`.
    Gather,
    /// `MPI_Gatherv`.
    Gatherv,
    /// `MPI_Scatter`.
    Scatter,
    /// `MPI_Scatterv`.
    Scatterv,
    /// `MPI_Allgather`.
    Allgather,
    /// `MPI_Allgatherv`.
    Allgatherv,
    /// `MPI_Alltoall`.
    Alltoall,
    /// `MPI_Alltoallv`.
    Alltoallv,
    /// `MPI_Reduce_scatter_block`.
    ReduceScatterBlock,
    /// `MPI_Scan`.
    Scan,
    /// `MPI_Exscan`.
    Exscan,
    /// `MPI_Barrier`.
    Barrier,
}

use Collective as C;

/// Names on the command line.
const NAMES: [(&str, Collective); 15] = [
    ("bcast", C::Bcast),
    ("reduce", C::Reduce),
    ("allreduce", C::Allreduce),
    ("gather", C::Gather),
    ("gatherv", C::Gatherv),
    ("scatter", C::Scatter),
    ("scatterv", C::Scatterv),
    ("allgather", C::Allgather),
    ("allgatherv", C::Allgatherv),
    ("alltoall", C::Alltoall),
    ("alltoallv", C::Alltoallv),
    ("reduce_scatter_block", C::ReduceScatterBlock),
    ("scan", C::Scan),
    ("exscan", C::Exscan),
    ("barrier", C::Barrier),
];

impl Collective {
    /// MPI's name without the prefix `MPI_`.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }
}

/// A collective operation, blocking or immediate.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Operation {
    /// The collective.
    pub collective: Collective,
    /// True for the immediate form: one call starts it, another one waits.
    pub immediate: bool,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.immediate { "i" } else { "" })?;
        f.pad(self.collective.name())
    }
}

/// Number of elements in a rank's two buffers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Extent {
    /// Elements of the send buffer.
    pub send: u64,
    /// Elements of the receive buffer.
    pub receive: u64,
}

impl Operation {
    /// Every operation, blocking ones first.
    pub fn all() -> impl Iterator<Item = Self> {
        [false, true].into_iter().flat_map(|immediate| {
            NAMES.iter().map(move |&(_, collective)| Self { collective, immediate })
        })
    }

    fn parse(name: &str) -> Result<Self, OperationError> {
        if name.contains("neighbor") || name.contains("neighbour") {
            return Err(OperationError::Neighbour(name.to_owned()));
        }
        // No name of a blocking operation begins with an i.
        let found = Self::all().find(|operation| operation.to_string() == name);
        found.ok_or_else(|| OperationError::Unknown(name.to_owned()))
    }

    /// True if the operation has a root.
    #[must_use]
    pub const fn has_root(self) -> bool {
        matches!(
            self.collective,
            C::Bcast | C::Reduce | C::Gather | C::Gatherv | C::Scatter | C::Scatterv
        )
    }

    /// True if it reduces: sums of 32-bit words. All others move bytes.
    #[must_use]
    pub const fn reduces(self) -> bool {
        matches!(
            self.collective,
            C::Reduce | C::Allreduce | C::ReduceScatterBlock | C::Scan | C::Exscan
        )
    }

    /// Size of an element, in bytes.
    #[must_use]
    pub const fn element(self) -> u64 {
        if self.reduces() { 4 } else { 1 }
    }

    /// Number of elements that hold `bytes`; 0 for a barrier.
    #[must_use]
    pub const fn elements(self, bytes: u64) -> u64 {
        match self.collective {
            C::Barrier => 0,
            _ => bytes.div_ceil(self.element()),
        }
    }

    /// Elements of a rank's buffers for a size of `elements`, with `ranks`
    /// ranks; the root's if there is one.
    #[must_use]
    pub const fn extent(self, elements: u64, ranks: u64) -> Extent {
        let all = elements.saturating_mul(ranks);
        let (send, receive) = match self.collective {
            C::Barrier => (0, 0),
            C::Bcast => (0, elements),
            C::Reduce | C::Allreduce | C::Scan | C::Exscan => (elements, elements),
            C::Gather | C::Gatherv | C::Allgather | C::Allgatherv => (elements, all),
            C::Scatter | C::Scatterv | C::ReduceScatterBlock => (all, elements),
            C::Alltoall | C::Alltoallv => (all, all),
        };
        Extent { send, receive }
    }
}

/// Error in the names or sizes of operations.
#[derive(Debug, thiserror::Error)]
pub enum OperationError {
    /// A neighbourhood collective.
    #[error(
        "'{0}' is not measured: neighbour collectives depend on the topology of an application, \
         and there is none here"
    )]
    Neighbour(String),
    /// An unknown name.
    #[error("'{0}' is no operation; expected all, or names among {names}", names = names())]
    Unknown(String),
    /// A name that is given twice.
    #[error("'{0}' is named twice")]
    Twice(String),
    /// Buffers that exceed the limit of a rank.
    #[error(
        "{operation} of {bytes} bytes needs {needed} bytes on a rank, more than {most}; use smaller sizes"
    )]
    TooLarge {
        /// Operation.
        operation: Operation,
        /// Requested size, in bytes.
        bytes: u64,
        /// Size of both buffers, in bytes.
        needed: u64,
        /// Limit of both buffers, in bytes.
        most: u64,
    },
    /// Invalid sizes.
    #[error(transparent)]
    Size(#[from] SizeError),
}

fn names() -> String {
    let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    format!("{}, each also with an i before it", names.join(", "))
}

/// Operations in the requested order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Operations {
    /// Operations, each once.
    pub list: Vec<Operation>,
    /// True if all were requested: those that do not fit are left out then.
    pub all: bool,
}

/// Parses `NAME[,NAME…]` or `all`; case, a prefix `MPI_`, and hyphens instead
/// of underscores do not matter.
///
/// # Errors
///
/// [`OperationError`] with the name.
pub fn operations(text: &str) -> Result<Operations, OperationError> {
    if text == "all" {
        return Ok(Operations { list: Operation::all().collect(), all: true });
    }
    let mut list = Vec::new();
    for name in text.split(',').map(str::trim) {
        let lower = name.to_lowercase().replace('-', "_");
        let operation = Operation::parse(lower.strip_prefix("mpi_").unwrap_or(&lower))?;
        if list.contains(&operation) {
            return Err(OperationError::Twice(name.to_owned()));
        }
        list.push(operation);
    }
    Ok(Operations { list, all: false })
}

/// An operation and a size to be measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cell {
    /// Operation.
    pub operation: Operation,
    /// Size in elements.
    pub elements: u64,
}

impl Cell {
    /// Size in bytes, a multiple of the element.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.elements.saturating_mul(self.operation.element())
    }
}

/// All cells of `list` and `sizes`, in this order. Consecutive sizes with the
/// same number of elements make one cell.
///
/// # Errors
///
/// [`OperationError::TooLarge`].
pub fn cells(list: &[Operation], sizes: &[u64], ranks: u64) -> Result<Vec<Cell>, OperationError> {
    const MOST: u64 = 1 << 30;
    let mut cells: Vec<Cell> = Vec::new();
    for &operation in list {
        for &bytes in sizes {
            let cell = Cell { operation, elements: operation.elements(bytes) };
            let Extent { send, receive } = operation.extent(cell.elements, ranks);
            let needed = send.saturating_add(receive).saturating_mul(operation.element());
            if needed > MOST {
                return Err(OperationError::TooLarge { operation, bytes, needed, most: MOST });
            }
            if cells.last() != Some(&cell) {
                cells.push(cell);
            }
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str) -> Operation {
        operations(name).unwrap().list[0]
    }

    #[test]
    fn names_are_read_as_they_are_printed() {
        for operation in Operation::all() {
            assert_eq!(one(&operation.to_string()), operation);
        }
        assert_eq!(operations("all").unwrap().list.len(), 30);
        for name in ["MPI_Reduce_scatter_block", "reduce-scatter-block", "MPI_REDUCE_SCATTER_BLOCK"]
        {
            assert_eq!(one(name), one("reduce_scatter_block"));
        }
        assert_eq!(operations("MPI_Bcast,MPI_Iallreduce").unwrap().list[1], one("iallreduce"));
        let two = operations("ibcast,allreduce").unwrap();
        assert_eq!(two.list, [one("ibcast"), one("allreduce")]);
    }

    #[test]
    fn what_is_not_measured_is_refused_by_name() {
        let refused = |text: &str| operations(text).unwrap_err().to_string();
        assert!(refused("bcast,neighbor_alltoall").contains("'neighbor_alltoall' is not measured"));
        assert!(refused("broadcast").contains("'broadcast' is no operation"));
        assert!(refused("bcast,bcast").contains("twice"));
        assert!(refused("").contains("expected all"));
    }

    #[test]
    fn sizes_are_whole_elements_each_once() {
        let list = [one("allreduce"), one("bcast"), one("barrier")];
        let cells = cells(&list, &[1, 2, 4, 5], 3).unwrap();
        let sizes: Vec<u64> = cells.iter().map(Cell::bytes).collect();
        assert_eq!(sizes, [4, 8, 1, 2, 4, 5, 0]);
    }

    #[test]
    fn what_no_rank_could_hold_is_refused() {
        let refused = cells(&[one("alltoall")], &[1 << 20], 1 << 10).unwrap_err().to_string();
        assert!(refused.contains("alltoall of 1048576 bytes"), "{refused}");
    }
}
