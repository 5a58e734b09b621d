//! Errors of GOAL text, with their position.

use crate::worded::{errors, worded};
use core::fmt;

/// Name from the text, truncated to what an error carries.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Name {
    bytes: [u8; Self::LENGTH],
    length: u8,
    cut: bool,
}

impl Name {
    /// Length of the longest name that is not truncated.
    pub const LENGTH: usize = 30;

    /// Copies the first bytes of `name`.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "at most LENGTH, which fits")]
    pub fn new(name: &[u8]) -> Self {
        let mut bytes = [0; Self::LENGTH];
        let mut length = 0;
        for (to, from) in bytes.iter_mut().zip(name) {
            *to = *from;
            length += 1;
        }
        Self { bytes, length, cut: name.len() > Self::LENGTH }
    }

    /// The name, or its beginning if truncated.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or(&[])
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bytes().escape_ascii())?;
        f.write_str(if self.cut { "..." } else { "" })
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Name {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=[u8]:a}{=str}", self.bytes(), if self.cut { "..." } else { "" });
    }
}

worded! {
    /// Tokens that the grammar allows at the position of an error.
    pub enum Wanted {
        /// Outside of all ranks.
        RankOrCount => "\"num_ranks N\" or \"rank N {{\"";
        /// `{` after `rank N`.
        OpeningBrace => "\"{{\" on the same line";
        /// Inside a rank, where a statement may start.
        Statement => "a label, \"send\", \"recv\", \"calc\" or \"}}\"";
        /// After a label that starts a statement.
        AfterLabel => "\":\", \"requires\" or \"irequires\"";
        /// After `label:`.
        Operation => "\"send\", \"recv\" or \"calc\"";
        /// The label on the right of `requires`.
        Label => "a label";
        /// A whole number.
        Number => "a whole number";
        /// A whole number or -1.
        NumberOrAny => "a whole number or -1 for any";
        /// `b` after a message size.
        ByteUnit => "\"b\" after the size";
        /// `to` of a send.
        To => "\"to\"";
        /// `from` of a receive.
        From => "\"from\"";
        /// After the peer.
        TagCpuNicOrEnd => "\"tag\", \"cpu\", \"nic\" or the end of the line";
        /// After the tag.
        CpuNicOrEnd => "\"cpu\", \"nic\" or the end of the line";
        /// After the cpu of a message.
        NicOrEnd => "\"nic\" or the end of the line";
        /// After the duration of a calc.
        CpuOrEnd => "\"cpu\" or the end of the line";
        /// The end of the line, or a comment.
        End => "the end of the line";
    }
}

worded! {
    /// Quantity with a range.
    pub enum Quantity {
        /// Number of ranks.
        Ranks => "number of ranks";
        /// Number of a rank.
        Rank => "rank";
        /// Message length in bytes.
        Size => "message size in bytes";
        /// Duration of a calc in nanoseconds.
        Duration => "calc duration in nanoseconds";
        /// Peer of a message.
        Peer => "peer";
        /// Tag of a message.
        Tag => "tag";
        /// Processor.
        Cpu => "cpu";
        /// Network interface.
        Nic => "nic";
    }
}

worded! {
    /// Dialect of GOAL of another project, recognised by an operation that only it has.
    pub enum Dialect {
        /// LogGOPSim2.
        Portals => "a Portals 4 operation of LogGOPSim2";
        /// ATLAHS with collectives of NCCL, and its forks with collectives of switches.
        Collectives => "a collective that ATLAHS or its generators expand to send, recv and calc";
    }
}

impl Dialect {
    /// Dialect with an operation of this name.
    #[must_use]
    pub const fn of(operation: &[u8]) -> Option<Self> {
        match operation {
            b"append" | b"put" | b"get" | b"tappend" | b"tput" | b"tget" | b"test"
            | b"calcgem5" => Some(Self::Portals),
            b"coll" | b"AllReduce" | b"AllGather" | b"ReduceScatter" | b"Broadcast" | b"Reduce"
            | b"AllToAll" | b"Send" | b"Recv" | b"SendRecv" => Some(Self::Collectives),
            _ => None,
        }
    }
}

/// Formats a word in quotes, or the end of the text.
struct Found(Option<Name>);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(word) => write!(f, "\"{word}\""),
            None => f.write_str("the end of the text"),
        }
    }
}

worded! {
    /// Kind of an error in GOAL text.
    pub enum TextErrorKind {
        /// The grammar allows something else here.
        Expected {
            /// Tokens that the grammar allows.
            wanted: Wanted,
            /// The word, number or other byte found instead, `None` at the end of the text.
            found: Option<Name>,
        } => "expected {wanted}, found {}", Found(*found);
        /// An operation that this grammar does not have.
        OtherDialect {
            /// Name of the operation.
            name: Name,
            /// Dialect that has it.
            dialect: Dialect,
        } => "\"{name}\" is {dialect}; expected \"send\", \"recv\" or \"calc\"";
        /// A number is above its range.
        TooLarge {
            /// Quantity that is too large.
            what: Quantity,
            /// Largest value allowed.
            most: u64,
        } => "{what} too large: at most {most}";
        /// `num_ranks 0`.
        NoRanks => "num_ranks must be at least 1";
        /// A second `num_ranks`.
        CountTwice => "num_ranks is given a second time: remove one";
        /// The text ends without any `num_ranks`.
        CountMissing => "no num_ranks: start the text with \"num_ranks N\"";
        /// A rank has two blocks.
        DuplicateRank {
            /// Rank of the blocks.
            rank: u32,
            /// Line of its first block, from 1.
            first_line: usize,
        } => "rank {rank} has a second block (first in line {first_line})";
        /// A block's rank is not below the number of ranks.
        RankOutOfRange {
            /// Rank of the block.
            rank: u32,
            /// Number of ranks announced.
            ranks: u32,
        } => "rank {rank} is out of range: num_ranks is {ranks}";
        /// A rank has no block.
        MissingRank {
            /// Lowest such rank.
            rank: u32,
            /// Number of ranks announced.
            ranks: u32,
        } => "rank {rank} of {ranks} has no block: add \"rank {rank} {{ }}\" or correct num_ranks";
        /// A label is defined twice in one rank.
        DuplicateLabel {
            /// The label.
            name: Name,
            /// Line of its first definition, from 1.
            first_line: usize,
        } => "label {name} is defined a second time (first in line {first_line})";
        /// A word of the grammar is used as a label.
        ReservedLabel {
            /// The word.
            name: Name,
        } => "{name} cannot be a label: it is a word of the grammar";
        /// A dependency names a label that no line above it defines.
        UndefinedLabel {
            /// The label.
            name: Name,
        } => "label {name} is not defined above this line in this rank";
        /// `/*` without `*/`.
        UnterminatedComment => "comment without \"*/\"";
        /// The text ends inside a rank's block.
        UnterminatedRank {
            /// Rank of the block.
            rank: u32,
        } => "the text ends inside rank {rank}: \"}}\" is missing, or the file is cut off";
        /// A rank has more operations than a `u32` can count.
        TooManyOps => "more than 4294967295 operations in one rank";
        /// The label memory lent is too small.
        LabelMemory {
            /// Number of entries and of buckets that suffices for this text.
            needed: usize,
        } => "label memory too small: lend {needed} entries and buckets";
        /// The block memory lent is too small.
        BlockMemory {
            /// Number of entries that suffices for this text.
            needed: usize,
        } => "block memory too small: lend {needed} entries";
        /// The text is not the one that was surveyed.
        OtherText => "the text changed while it was being read";
    }
}

/// Error in GOAL text, with its position.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TextError {
    /// Byte offset in the text.
    pub at: usize,
    /// Line, from 1.
    pub line: usize,
    /// Byte within the line, from 1.
    pub column: usize,
    /// Kind of the error.
    pub kind: TextErrorKind,
}

impl TextError {
    /// Creates an error at byte `at` of `text`. Takes time linear in `at`.
    #[cold]
    #[must_use]
    pub fn new(text: &[u8], at: usize, kind: TextErrorKind) -> Self {
        let (line, column) = line_and_column(text, at);
        Self { at, line, column, kind }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {} (byte {}): {}", self.line, self.column, self.at, self.kind)
    }
}

impl core::error::Error for TextError {}

/// Line, and byte within the line, of byte `at` of `text`; both from 1.
#[must_use]
pub fn line_and_column(text: &[u8], at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
    let column = 1 + before.iter().rev().take_while(|&&byte| byte != b'\n').count();
    (line, column)
}

errors! {
    /// Reason why a schedule could not be read.
    pub enum ReadError<E> {
        /// The text has an error.
        Text(error: TextError) => "{error}";
        /// The sink refused an element at this position.
        Sink {
            /// Byte offset in the text.
            at: usize,
            /// Line, from 1.
            line: usize,
            /// Error of the sink.
            error: E,
        } => "line {line}: {error}";
    }
}
