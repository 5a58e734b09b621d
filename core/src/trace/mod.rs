//! Records of traced MPI calls as bytes.
//!
//! The file of a rank is a [`FileHeader`] and blocks, each a [`BlockHeader`] and coded [`Part`]s. A
//! record is a [`Part::Call`] and the parts behind it, up to the next one. Blocks are coded
//! independently of each other, so that a file is readable up to its last whole block; all blocks of
//! a thread together are its stream, in order of time. Blocks of [`DEFINITIONS`] hold communicators
//! only, and were written as these were created. `docs/tracing.md` gives the bytes.
//!
//! [`Encoder`] writes parts into lent memory, [`Decoder`] reads them from arbitrary bytes without
//! panicking.

mod coding;

pub use coding::{Decoder, Encoder, MAX_PART};

/// Version of the format.
pub const VERSION: u32 = 2;
/// Thread number of blocks that hold definitions of communicators in place of calls.
pub const DEFINITIONS: u32 = u32::MAX;
/// Most bytes of a call's name.
pub const MAX_NAME: usize = 64;
/// Peer of a receive from any source that did not match yet.
pub const ANY_PEER: i32 = -1;
/// Peer of a message that goes nowhere (`MPI_PROC_NULL`).
pub const NO_PEER: i32 = -2;
/// Peer that is not a rank of this job's `MPI_COMM_WORLD`.
pub const FOREIGN_PEER: i32 = -3;
/// Tag of a receive of any tag that did not match yet.
pub const ANY_TAG: i32 = -1;

/// Direction of data, seen from the rank.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Direction {
    /// From this rank.
    Send,
    /// To this rank.
    Receive,
}

/// Mode of a send.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Mode {
    /// `MPI_Send`; also of receives.
    #[default]
    Standard,
    /// `MPI_Bsend`.
    Buffered,
    /// `MPI_Ssend`.
    Synchronous,
    /// `MPI_Rsend`.
    Ready,
}

/// Peer, tag and length of a message.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Envelope {
    /// Rank in `MPI_COMM_WORLD`, or [`ANY_PEER`], [`NO_PEER`] or [`FOREIGN_PEER`].
    pub peer: i32,
    /// Tag, or [`ANY_TAG`].
    pub tag: i32,
    /// Length; of a receive that is not complete, that of its buffer.
    pub bytes: u64,
    /// Number of the communicator at this rank.
    pub communicator: u32,
}

/// A posted or blocking point-to-point operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Message {
    /// Send or receive.
    pub direction: Direction,
    /// Mode of a send.
    pub mode: Mode,
    /// Peer, tag, bytes and communicator; of a blocking receive, those of the received message.
    pub envelope: Envelope,
    /// Identity of the request, unique at the rank; `None` if complete when the call returns.
    pub request: Option<u64>,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Outcome {
    /// A send or a collective operation is complete.
    Done,
    /// A receive is complete: source, tag and length of the message.
    Received(Envelope),
    /// `MPI_Cancel` succeeded.
    Cancelled,
    /// The request was freed before its completion was seen.
    Freed,
}

/// An operation whose completion a call reported.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Completed {
    /// Identity of the request.
    pub request: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// A collective operation.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Collective {
    /// Number of the communicator at this rank.
    pub communicator: u32,
    /// Rank of the root in `MPI_COMM_WORLD`, or [`NO_PEER`]; `None` if the operation has no root.
    pub root: Option<i32>,
    /// Bytes of the send count, as the call has it: to each peer where it sends to each. 0 if the
    /// call has a list of counts, which follows in [`Part::Each`], and where it is not significant.
    pub sent: u64,
    /// Bytes of the receive count, likewise.
    pub received: u64,
    /// True if a buffer was `MPI_IN_PLACE`.
    pub in_place: bool,
    /// Identity of the request; `None` if complete when the call returns.
    pub request: Option<u64>,
}

/// Unit of a rank's stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Part<'a> {
    /// Name of a call without `MPI_`; names of a block are numbered from 0 in their order.
    Name(&'a str),
    /// Start of a record: a call, entered and left at these nanoseconds of the rank's clock.
    Call {
        /// Number of the name in this block.
        name: u32,
        /// Time of entry.
        enter: u64,
        /// Time of return.
        leave: u64,
    },
    /// Point-to-point operation that the call posted or executed.
    Message(Message),
    /// Operation whose completion the call reported.
    Completed(Completed),
    /// Collective operation.
    Collective(Collective),
    /// Bytes to or from each of the next `peers` of a collective, in order of their ranks.
    Each {
        /// List that it belongs to.
        direction: Direction,
        /// Number of consecutive peers.
        peers: u64,
        /// Bytes of each.
        bytes: u64,
    },
    /// Message that a probe found.
    Probed(Envelope),
    /// Unsuccessful tests and probes of one kind, folded into this record.
    Tests {
        /// Number of the name in this block.
        name: u32,
        /// Number of calls.
        count: u64,
    },
    /// Shares of a folded record's span, in nanoseconds.
    Loop {
        /// Time inside the calls.
        inside: u64,
        /// What gaps between calls that were longer than twice the shortest exceed it by.
        computing: u64,
    },
    /// The call created (or with `freed`, freed) the communicator of this number.
    Communicator {
        /// Number at this rank.
        number: u32,
        /// True if it was freed.
        freed: bool,
    },
    /// Start of a definition: a communicator; numbers are never used twice.
    Define {
        /// Number at this rank.
        number: u32,
        /// Identity, the same at all its ranks.
        identity: u64,
    },
    /// Members of the communicator in order of their ranks, as a progression of ranks of
    /// `MPI_COMM_WORLD`; of the remote group if `remote`.
    Members {
        /// True for the other group of an intercommunicator.
        remote: bool,
        /// First rank of the progression.
        first: i32,
        /// Difference of consecutive ranks.
        stride: i32,
        /// Number of ranks.
        count: u32,
    },
    /// Next dimension of a Cartesian topology.
    Dimension {
        /// Number of ranks.
        extent: u32,
        /// True if it is a ring.
        periodic: bool,
    },
    /// Next neighbour in a graph topology.
    Neighbour {
        /// Whether this rank sends to it or receives from it.
        direction: Direction,
        /// Rank in `MPI_COMM_WORLD`.
        peer: i32,
    },
}

/// Start of a rank's file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct FileHeader {
    /// Random number of the run, the same in all its files.
    pub run: u64,
    /// Rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u32,
}

/// Start of a block.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BlockHeader {
    /// Number of the thread, from 0, or [`DEFINITIONS`].
    pub thread: u32,
    /// Bytes of coded parts.
    pub length: u32,
    /// Bytes that follow: the parts or, where they are fewer, a block of LZ4 that holds them.
    pub stored: u32,
    /// Checksum of these.
    pub checksum: u32,
    /// Time that the first times of the block are counted from.
    pub base: u64,
}

/// Position and kind of an error in a trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ParseError {
    /// Byte offset in the header or the block.
    pub at: usize,
    /// Kind of the error.
    pub kind: ParseErrorKind,
}

/// Kinds of errors in a trace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ParseErrorKind {
    /// The bytes end within a value.
    Truncated,
    /// The file does not begin as a trace, or a block not as a block.
    Magic,
    /// Unknown version of the format.
    Version(u32),
    /// Unknown kind of part.
    Part(u8),
    /// A value is out of its range.
    Value(&'static str),
}

impl core::fmt::Display for ParseError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let at = self.at;
        match self.kind {
            ParseErrorKind::Truncated => write!(f, "cut off at byte {at}"),
            ParseErrorKind::Magic => f.write_str("not a file that the tracer wrote"),
            ParseErrorKind::Version(found) => {
                write!(f, "version {found} of the format; this program reads {VERSION}")
            }
            ParseErrorKind::Part(kind) => write!(f, "unknown part {kind} at byte {at}"),
            ParseErrorKind::Value(what) => write!(f, "{what} out of range at byte {at}"),
        }
    }
}

impl core::error::Error for ParseError {}

impl FileHeader {
    /// Length in bytes.
    pub const LEN: usize = 32;
    const MAGIC: [u8; 8] = *b"loggapTR";

    /// Bytes of the header.
    #[must_use]
    pub fn emit(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let words = [VERSION, self.rank, self.ranks, 0];
        let fields = Self::MAGIC.into_iter().chain(self.run.to_le_bytes());
        let fields = fields.chain(words.into_iter().flat_map(u32::to_le_bytes));
        bytes.iter_mut().zip(fields).for_each(|(place, byte)| *place = byte);
        bytes
    }

    /// Reads a header from the start of `bytes`.
    ///
    /// # Errors
    ///
    /// [`ParseError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let error = |at, kind| Err(ParseError { at, kind });
        if bytes.get(..8) != Some(&Self::MAGIC) {
            return error(0, ParseErrorKind::Magic);
        }
        let (Some(run), Some(version), Some(rank), Some(ranks)) =
            (long(bytes, 8), word(bytes, 16), word(bytes, 20), word(bytes, 24))
        else {
            return error(bytes.len(), ParseErrorKind::Truncated);
        };
        if version != VERSION {
            return error(16, ParseErrorKind::Version(version));
        }
        if rank >= ranks {
            return error(20, ParseErrorKind::Value("rank"));
        }
        Ok(Self { run, rank, ranks })
    }
}

impl BlockHeader {
    /// Length in bytes.
    pub const LEN: usize = 28;
    /// Most bytes of parts that are compressed.
    pub const MAX_COMPRESSED: usize = 1 << 20;
    const MAGIC: u32 = u32::from_le_bytes(*b"blk\n");

    /// Header of a block of `parts` as they are.
    ///
    /// `parts` are shorter than 4 GiB.
    #[must_use]
    pub fn of(thread: u32, base: u64, parts: &[u8]) -> Self {
        let length = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        Self { thread, length, stored: length, checksum: checksum(parts), base }
    }

    /// Header of a block of `length` bytes of parts, stored compressed.
    #[must_use]
    pub fn compressed(thread: u32, base: u64, length: u32, stored: &[u8]) -> Self {
        Self { length, ..Self::of(thread, base, stored) }
    }

    /// True if what is stored is compressed.
    #[must_use]
    pub const fn is_compressed(&self) -> bool {
        self.stored < self.length
    }

    /// Bytes of the header.
    #[must_use]
    pub fn emit(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let words = [Self::MAGIC, self.thread, self.length, self.stored, self.checksum];
        let fields = words.into_iter().flat_map(u32::to_le_bytes).chain(self.base.to_le_bytes());
        bytes.iter_mut().zip(fields).for_each(|(place, byte)| *place = byte);
        bytes
    }

    /// Reads a header from the start of `bytes`.
    ///
    /// # Errors
    ///
    /// [`ParseError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let error = |at, kind| Err(ParseError { at, kind });
        let field = |number: usize| word(bytes, 4 * number);
        let (Some(magic), Some(thread), Some(length), Some(stored), Some(checksum), Some(base)) =
            (field(0), field(1), field(2), field(3), field(4), long(bytes, 20))
        else {
            return error(bytes.len(), ParseErrorKind::Truncated);
        };
        if magic != Self::MAGIC {
            return error(0, ParseErrorKind::Magic);
        }
        let header = Self { thread, length, stored, checksum, base };
        let is_long = length as usize > Self::MAX_COMPRESSED;
        if stored > length || header.is_compressed() && is_long {
            return error(8, ParseErrorKind::Value("length"));
        }
        Ok(header)
    }

    /// True if `stored` are the bytes that were written behind this header.
    #[must_use]
    pub fn fits(&self, stored: &[u8]) -> bool {
        stored.len() as u64 == u64::from(self.stored) && checksum(stored) == self.checksum
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// FNV-1a over words of 8 bytes, folded to 32 bits.
fn checksum(bytes: &[u8]) -> u32 {
    const PRIME: u64 = 0x0100_0000_01b3;
    let (words, rest) = bytes.as_chunks::<8>();
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(PRIME).rotate_left(23);
    let hash = words.iter().fold(bytes.len() as u64, |hash, w| mix(hash, u64::from_le_bytes(*w)));
    let hash = rest.iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)));
    #[allow(clippy::cast_possible_truncation, reason = "the halves are folded")]
    let folded = (hash ^ (hash >> 32)) as u32;
    folded
}

#[cfg(test)]
mod tests;
