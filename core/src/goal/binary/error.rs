//! What can be wrong with a binary schedule, and where.

use core::fmt;

use crate::goal::protocol::Misuse;
use crate::worded::{errors, worded};

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

worded! {
    /// What was wrong at one place of a binary schedule.
    pub enum BinaryErrorKind {
        /// The file ends here, but needs more bytes.
        Truncated {
            /// Bytes that the whole file needs at least.
            needed: u64,
        } => "the file is cut off: it needs at least {needed} bytes";
        /// Neither of the formats' first eight bytes.
        Magic {
            /// The bytes as a little-endian number.
            found: u64,
        } => "not a binary schedule (first eight bytes {found:#x}): \
                 if this is GOAL text, name the file .goal";
        /// Left behind by LogGOPSim's `--save-mem`, which counts the
        /// dependencies down in the file.
        Consumed => "this file was used up by a simulation with --save-mem: compile it again";
        /// The format version is unknown.
        Version {
            /// What the file says.
            found: u32,
        } => "format version {found} is unknown: this program reads 1 and 2";
        /// A schedule of no ranks.
        NoRanks => "a schedule of no ranks";
        /// A field differs from the value that all other fields imply.
        Field {
            /// Which.
            field: Field,
            /// The value implied.
            expected: u64,
            /// What the file says.
            found: u64,
        } => "{field} is {found} where {expected} is implied";
        /// The sizes in a block's head do not add up to the block.
        BlockSize {
            /// Bytes of the block.
            bytes: u64,
            /// Operations that it says it holds.
            ops: u64,
        } => "{ops} operations do not add up to a block of {bytes} bytes \
                 (LogGOPSim2 files have larger operations under the same first bytes)";
        /// An operation's type is unknown.
        OpType {
            /// What the file says.
            found: u8,
        } => "operation type {found} is unknown";
        /// A cpu or nic above the highest that the header announces.
        Unit {
            /// The header's highest.
            highest: u16,
            /// What the operation says.
            found: u16,
        } => "cpu or nic {found}, but the header says at most {highest}";
        /// A send has the wildcard as its peer.
        SendToAny => "a send to no particular rank";
        /// A calc longer than 2⁶⁴ ps.
        Duration {
            /// Nanoseconds.
            found: u64,
        } => "a calc of {found} ns: at most {} fit", u64::MAX / 1_000;
        /// A list of successors reaches beyond the block.
        List {
            /// Its first element.
            first: u32,
            /// Its length.
            length: u32,
            /// Elements in the block.
            available: u32,
        } => "successors {first} and {length} more, of {available}";
        /// An index that no operation of the rank has.
        OpIndex {
            /// The index.
            found: u32,
            /// Operations in the rank.
            ops: u32,
        } => "operation {found} of {ops}";
        /// The lent memory is too small.
        Memory {
            /// Elements that are enough.
            needed: usize,
        } => "memory lent is too small: lend {needed} elements";
    }
}

worded! {
    /// A field whose value others imply.
    pub enum Field {
        /// Where a rank's block starts.
        BlockStart => "start of the rank's block";
        /// Where a rank's block ends.
        BlockEnd => "end of the rank's block";
        /// The version that wide ranks, or their absence, imply.
        Version => "format version";
        /// Mark of a rank with tags of more than 32 bits, or cpus or nics of more than 8.
        Wide => "mark of a rank with tags above 32 bits or cpus or nics above 8";
        /// Length of the file.
        FileLength => "file length";
        /// Length of the header.
        HeaderLength => "header length";
        /// A field that must be zero.
        Reserved => "reserved field";
        /// Number of operations that wait for nothing.
        RootCount => "number of operations without dependencies";
        /// One of the operations that wait for nothing.
        Root => "operation without dependencies";
        /// How many dependencies an operation waits for.
        Dependencies => "number of dependencies of the operation";
        /// Number of successors in a block.
        Successors => "number of successors";
        /// Number of all operations.
        Ops => "number of operations";
        /// Number of all dependencies.
        Edges => "number of dependencies";
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
    /// Why a binary schedule did not reach its sink.
    pub enum BinaryReadError<E> {
        /// The file is wrong.
        File(error: BinaryError) => "{error}";
        /// The sink refused an element of this rank.
        Sink {
            /// The rank.
            rank: u32,
            /// Why.
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
    /// Why a schedule could not be written in a binary format.
    pub enum BinaryWriteError<E> {
        /// The output refused bytes.
        Output(error: E) => "{error}";
        /// Calls came in a wrong order.
        Misuse(misuse: Misuse) => "{misuse}";
        /// The memory lent for one rank is too small for this one.
        RankMemory {
            /// The rank.
            rank: u32,
        } => "rank {rank} does not fit into the memory lent for one rank";
        /// The format cannot say this operation.
        Op {
            /// The rank.
            rank: u32,
            /// The operation.
            op: u32,
            /// What it cannot say.
            why: Unsayable,
        } => "operation {op} of rank {rank} {why}";
        /// A rank holds more operations or dependencies than the format allows.
        RankTooLarge {
            /// The rank.
            rank: u32,
            /// The most that fit.
            most: u32,
        } => "rank {rank} has more than {most} operations or dependencies, \
                 which the format cannot hold";
    }
}

worded! {
    /// What a format cannot say of an operation.
    pub enum Unsayable {
        /// A fraction of a nanosecond.
        FractionOfNano => "lasts a fraction of a nanosecond: write the .lgs format";
        /// A cpu or nic above 254, the highest that LogGOPSim holds.
        Unit255 => "has a cpu or nic above 254, which LogGOPSim cannot hold: write the .lgs format";
        /// A send to no particular rank.
        SendToAny => "sends to no particular rank";
    }
}

impl<E> From<Misuse> for BinaryWriteError<E> {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

errors! {
    /// Why operations of a schedule cannot be looked up.
    pub enum LookupError {
        /// The file is wrong.
        File(error: BinaryError) => "{error}";
        /// The lent memory is too small.
        Full => "memory lent is too small to look operations up";
        /// The dependencies of one operation are found only by looking at many others.
        Scattered {
            /// The rank.
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
