//! Errors of binary schedules, with their position.

use core::fmt;

use crate::goal::protocol::Misuse;
use crate::worded::{errors, worded};

/// Error in a binary schedule, with its position.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BinaryError {
    /// Byte offset in the file.
    pub at: u64,
    /// Rank concerned, if any.
    pub rank: Option<u32>,
    /// Kind of the error.
    pub kind: BinaryErrorKind,
}

worded! {
    /// Kind of an error in a binary schedule.
    pub enum BinaryErrorKind {
        /// The file ends here, but needs more bytes.
        Truncated {
            /// Least length of the whole file, bytes.
            needed: u64,
        } => "the file is cut off: it needs at least {needed} bytes";
        /// The first eight bytes are those of neither format.
        Magic {
            /// These bytes as a little-endian number.
            found: u64,
        } => "not a binary schedule (first eight bytes {found:#x}): \
                 if this is GOAL text, name the file .goal";
        /// The file was used by LogGOPSim's `--save-mem`, which counts down the dependencies in it.
        Consumed => "this file was used up by a simulation with --save-mem: compile it again";
        /// The format version is unknown.
        Version {
            /// Version in the file.
            found: u32,
        } => "format version {found} is unknown: this program reads 1 and 2";
        /// The schedule has no ranks.
        NoRanks => "a schedule of no ranks";
        /// A field differs from the value that all other fields imply.
        Field {
            /// Field that differs.
            field: Field,
            /// Value implied.
            expected: u64,
            /// Value in the file.
            found: u64,
        } => "{field} is {found} where {expected} is implied";
        /// The sizes in a block's head do not add up to the length of the block.
        BlockSize {
            /// Length of the block, bytes.
            bytes: u64,
            /// Number of operations in its head.
            ops: u64,
        } => "{ops} operations do not add up to a block of {bytes} bytes \
                 (LogGOPSim2 files have larger operations under the same first bytes)";
        /// An operation's type is unknown.
        OpType {
            /// Type in the file.
            found: u8,
        } => "operation type {found} is unknown";
        /// A cpu or nic exceeds the highest in the header.
        Unit {
            /// Highest in the header.
            highest: u16,
            /// Value in the operation.
            found: u16,
        } => "cpu or nic {found}, but the header says at most {highest}";
        /// The peer of a send is the wildcard.
        SendToAny => "a send to no particular rank";
        /// A calculation exceeds 2⁶⁴ ps.
        Duration {
            /// Duration, ns.
            found: u64,
        } => "a calc of {found} ns: at most {} fit", u64::MAX / 1_000;
        /// A list of successors reaches beyond the block.
        List {
            /// Its first element.
            first: u32,
            /// Its length.
            length: u32,
            /// Number of elements in the block.
            available: u32,
        } => "successors {first} and {length} more, of {available}";
        /// An index exceeds the operations of the rank.
        OpIndex {
            /// The index.
            found: u32,
            /// Number of operations of the rank.
            ops: u32,
        } => "operation {found} of {ops}";
        /// The lent memory is too small.
        Memory {
            /// Number of elements that suffices.
            needed: usize,
        } => "memory lent is too small: lend {needed} elements";
    }
}

worded! {
    /// Field whose value is implied by others.
    pub enum Field {
        /// Start of a rank's block.
        BlockStart => "start of the rank's block";
        /// Format version, which is implied by the presence of wide ranks.
        Version => "format version";
        /// Flag of a rank with tags of more than 32 bits, or cpus or nics of more than 8.
        Wide => "mark of a rank with tags above 32 bits or cpus or nics above 8";
        /// Length of the file.
        FileLength => "file length";
        /// Length of the header.
        HeaderLength => "header length";
        /// A field that must be zero.
        Reserved => "reserved field";
        /// Number of operations without dependencies.
        RootCount => "number of operations without dependencies";
        /// An operation without dependencies.
        Root => "operation without dependencies";
        /// Number of dependencies of an operation.
        Dependencies => "number of dependencies of the operation";
        /// Number of successors in a block.
        Successors => "number of successors";
        /// Number of operations of all ranks.
        Ops => "number of operations";
        /// Number of dependencies of all ranks.
        Edges => "number of dependencies";
    }
}

impl Field {
    /// Check that it has the value that other fields imply.
    pub(super) fn implied(self, expected: impl Into<u64>, found: impl Into<u64>) -> Implied {
        Implied { field: self, expected: expected.into(), found: found.into() }
    }
}

/// Field, with the value found and the value that others imply.
pub(super) struct Implied {
    field: Field,
    expected: u64,
    found: u64,
}

impl Implied {
    /// Error at byte `at` if the two differ.
    pub(super) fn at(self, at: u64, rank: Option<u32>) -> Result<(), BinaryError> {
        let Self { field, expected, found } = self;
        if expected == found {
            return Ok(());
        }
        Err(BinaryError { at, rank, kind: BinaryErrorKind::Field { field, expected, found } })
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

errors! {
    /// Reason why a binary schedule could not be read.
    pub enum BinaryReadError<E> {
        /// The file has an error.
        File(error: BinaryError) => "{error}";
        /// The sink refused an element of this rank.
        Sink {
            /// Rank of the element.
            rank: u32,
            /// Error of the sink.
            error: E,
        } => "rank {rank}: {error}";
    }
}

impl<E> From<BinaryError> for BinaryReadError<E> {
    fn from(error: BinaryError) -> Self {
        Self::File(error)
    }
}

errors! {
    /// Reason why a schedule could not be written in a binary format.
    pub enum BinaryWriteError<E> {
        /// The output refused bytes.
        Output(error: E) => "{error}";
        /// The calls came in a wrong order.
        Misuse(misuse: Misuse) => "{misuse}";
        /// A rank is too large for the memory lent.
        RankMemory {
            /// Rank that is too large.
            rank: u32,
        } => "rank {rank} does not fit into the memory lent for one rank";
        /// The format cannot express an operation.
        Op {
            /// Rank of the operation.
            rank: u32,
            /// Index of the operation on its rank.
            op: u32,
            /// Property that the format cannot express.
            why: Unsayable,
        } => "operation {op} of rank {rank} {why}";
        /// A rank has more operations or dependencies than the format allows.
        RankTooLarge {
            /// Rank that is too large.
            rank: u32,
            /// Largest number allowed.
            most: u32,
        } => "rank {rank} has more than {most} operations or dependencies, \
                 which the format cannot hold";
    }
}

worded! {
    /// Property of an operation that a format cannot express.
    pub enum Unsayable {
        /// A duration with a fraction of a nanosecond.
        FractionOfNano => "lasts a fraction of a nanosecond: write the .lgs format";
        /// A cpu or nic above 254, LogGOPSim's highest.
        Unit255 => "has a cpu or nic above 254, which LogGOPSim cannot hold: write the .lgs format";
        /// A send with the wildcard as its peer.
        SendToAny => "sends to no particular rank";
    }
}

impl<E> From<Misuse> for BinaryWriteError<E> {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

errors! {
    /// Reason why there is no random access to a schedule.
    pub enum LookupError {
        /// The file has an error.
        File(error: BinaryError) => "{error}";
        /// The lent memory is too small.
        Full => "memory lent is too small to look operations up";
        /// The dependencies of an operation are scattered, so that finding them would be slow.
        Scattered {
            /// Rank with the scattered dependencies.
            rank: u32,
        } => "rank {rank}: its dependencies stand in an order in which those of one operation \
                 are far apart; LogGOPSim's format groups them";
    }
}

impl From<BinaryError> for LookupError {
    fn from(error: BinaryError) -> Self {
        Self::File(error)
    }
}
