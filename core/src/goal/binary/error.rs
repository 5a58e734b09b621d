//! What can be wrong with a binary schedule, and where.

use core::fmt;

use crate::goal::protocol::Misuse;

/// Why a binary schedule was refused, and where.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BinaryError {
    /// Byte offset in the file.
    pub at: u64,
    /// The rank concerned, if any.
    pub rank: Option<u32>,
    /// What was wrong there.
    pub kind: BinaryErrorKind,
}

/// What was wrong at one place of a binary schedule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BinaryErrorKind {
    /// The file ends here, but needs more bytes.
    Truncated {
        /// Bytes that the whole file needs at least.
        needed: u64,
    },
    /// Neither of the formats' first eight bytes.
    Magic {
        /// The bytes as a little-endian number.
        found: u64,
    },
    /// Left behind by LogGOPSim's `--save-mem`, which counts the
    /// dependencies down in the file.
    Consumed,
    /// The format version is unknown.
    Version {
        /// What the file says.
        found: u32,
    },
    /// A schedule of no ranks.
    NoRanks,
    /// A field differs from the value that all other fields imply.
    Field {
        /// Which.
        field: Field,
        /// The value implied.
        expected: u64,
        /// What the file says.
        found: u64,
    },
    /// The sizes in a block's head do not add up to the block.
    BlockSize {
        /// Bytes of the block.
        bytes: u64,
        /// Operations that it says it holds.
        ops: u64,
    },
    /// An operation's type is unknown.
    OpType {
        /// What the file says.
        found: u8,
    },
    /// A cpu or nic above the highest that the header announces.
    Unit {
        /// The header's highest.
        highest: u8,
        /// What the operation says.
        found: u8,
    },
    /// A send has the wildcard as its peer.
    SendToAny,
    /// A calc longer than 2⁶⁴ ps.
    Duration {
        /// Nanoseconds.
        found: u64,
    },
    /// A list of successors reaches beyond the block.
    List {
        /// Its first element.
        first: u32,
        /// Its length.
        length: u32,
        /// Elements in the block.
        available: u32,
    },
    /// An index that no operation of the rank has.
    OpIndex {
        /// The index.
        found: u32,
        /// Operations in the rank.
        ops: u32,
    },
    /// The lent memory is too small.
    Memory {
        /// Elements that are enough.
        needed: usize,
    },
}

/// A field whose value others imply.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Field {
    /// Where a rank's block starts.
    BlockStart,
    /// Where a rank's block ends.
    BlockEnd,
    /// Length of the file.
    FileLength,
    /// Length of the header.
    HeaderLength,
    /// A field that must be zero.
    Reserved,
    /// Number of operations that wait for nothing.
    RootCount,
    /// One of the operations that wait for nothing.
    Root,
    /// How many dependencies an operation waits for.
    Dependencies,
    /// Number of successors in a block.
    Successors,
    /// Number of all operations.
    Ops,
    /// Number of all dependencies.
    Edges,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BlockStart => "start of the rank's block",
            Self::BlockEnd => "end of the rank's block",
            Self::FileLength => "file length",
            Self::HeaderLength => "header length",
            Self::Reserved => "reserved field",
            Self::RootCount => "number of operations without dependencies",
            Self::Root => "operation without dependencies",
            Self::Dependencies => "number of dependencies of the operation",
            Self::Successors => "number of successors",
            Self::Ops => "number of operations",
            Self::Edges => "number of dependencies",
        })
    }
}

impl fmt::Display for BinaryErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed } => {
                write!(f, "the file is cut off: it needs at least {needed} bytes")
            }
            Self::Magic { found } => write!(
                f,
                "not a binary schedule (first eight bytes {found:#x}): \
                 if this is GOAL text, name the file .goal"
            ),
            Self::Consumed => f.write_str(
                "this file was used up by a simulation with --save-mem: compile it again",
            ),
            Self::Version { found } => {
                write!(f, "format version {found} is unknown: this program reads version 1")
            }
            Self::NoRanks => f.write_str("a schedule of no ranks"),
            Self::Field { field, expected, found } => {
                write!(f, "{field} is {found} where {expected} is implied")
            }
            Self::BlockSize { bytes, ops } => write!(
                f,
                "{ops} operations do not add up to a block of {bytes} bytes \
                 (LogGOPSim2 files have larger operations under the same first bytes)"
            ),
            Self::OpType { found } => write!(f, "operation type {found} is unknown"),
            Self::Unit { highest, found } => {
                write!(f, "cpu or nic {found}, but the header says at most {highest}")
            }
            Self::SendToAny => f.write_str("a send to no particular rank"),
            Self::Duration { found } => {
                write!(f, "a calc of {found} ns: at most {} fit", u64::MAX / 1_000)
            }
            Self::List { first, length, available } => {
                write!(f, "successors {first} and {length} more, of {available}")
            }
            Self::OpIndex { found, ops } => write!(f, "operation {found} of {ops}"),
            Self::Memory { needed } => {
                write!(f, "memory lent is too small: lend {needed} elements")
            }
        }
    }
}

impl fmt::Display for BinaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}", self.at)?;
        if let Some(rank) = self.rank {
            write!(f, ", rank {rank}")?;
        }
        write!(f, ": {}", self.kind)
    }
}

impl core::error::Error for BinaryError {}

/// Why a binary schedule did not reach its sink.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BinaryReadError<E> {
    /// The file is wrong.
    File(BinaryError),
    /// The sink refused an element of this rank.
    Sink {
        /// The rank.
        rank: u32,
        /// Why.
        error: E,
    },
}

impl<E: fmt::Display> fmt::Display for BinaryReadError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Sink { rank, error } => write!(f, "rank {rank}: {error}"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for BinaryReadError<E> {}

impl<E> From<BinaryError> for BinaryReadError<E> {
    fn from(error: BinaryError) -> Self {
        Self::File(error)
    }
}

/// Why a schedule could not be written in a binary format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BinaryWriteError<E> {
    /// The output refused bytes.
    Output(E),
    /// Calls came in a wrong order.
    Misuse(Misuse),
    /// The memory lent for one rank is too small for this one.
    RankMemory {
        /// The rank.
        rank: u32,
    },
    /// The format cannot say this operation.
    Op {
        /// The rank.
        rank: u32,
        /// The operation.
        op: u32,
        /// What it cannot say.
        why: Unsayable,
    },
    /// A rank holds more operations or dependencies than the format allows.
    RankTooLarge {
        /// The rank.
        rank: u32,
        /// The most that fit.
        most: u32,
    },
}

/// What a format cannot say of an operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Unsayable {
    /// A fraction of a nanosecond.
    FractionOfNano,
    /// cpu or nic 255, which makes LogGOPSim crash.
    Unit255,
    /// A send to no particular rank.
    SendToAny,
}

impl fmt::Display for Unsayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FractionOfNano => "lasts a fraction of a nanosecond: write the .lgs format",
            Self::Unit255 => {
                "has cpu or nic 255, which LogGOPSim cannot hold: write the .lgs format"
            }
            Self::SendToAny => "sends to no particular rank",
        })
    }
}

impl<E: fmt::Display> fmt::Display for BinaryWriteError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(error) => error.fmt(f),
            Self::Misuse(misuse) => misuse.fmt(f),
            Self::RankMemory { rank } => {
                write!(f, "rank {rank} does not fit into the memory lent for one rank")
            }
            Self::Op { rank, op, why } => write!(f, "operation {op} of rank {rank} {why}"),
            Self::RankTooLarge { rank, most } => write!(
                f,
                "rank {rank} has more than {most} operations or dependencies, \
                 which the format cannot hold"
            ),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for BinaryWriteError<E> {}

impl<E> From<Misuse> for BinaryWriteError<E> {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}
