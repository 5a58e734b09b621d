//! What can be wrong with GOAL text, and where.

use core::fmt;

/// A name from the text, cut to what an error message can carry.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Name {
    bytes: [u8; Self::LENGTH],
    length: u8,
    cut: bool,
}

impl Name {
    /// The longest name that is carried whole.
    pub const LENGTH: usize = 30;

    /// The first bytes of `name`.
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
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.bytes.get(..usize::from(self.length)).unwrap_or(&[]);
        write!(f, "{}", shown.escape_ascii())?;
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
        let shown = self.bytes.get(..usize::from(self.length)).unwrap_or(&[]);
        defmt::write!(f, "{=[u8]:a}{=str}", shown, if self.cut { "..." } else { "" });
    }
}

/// What the grammar allows at the place of an error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Wanted {
    /// Outside of all ranks.
    RankOrCount,
    /// `{` after `rank N`.
    OpeningBrace,
    /// Inside a rank, where a statement may start.
    Statement,
    /// After a label that starts a statement.
    AfterLabel,
    /// After `label:`.
    Operation,
    /// The label on the right of `requires`.
    Label,
    /// A whole number.
    Number,
    /// A whole number or -1.
    NumberOrAny,
    /// `b` after a message size.
    ByteUnit,
    /// `to` of a send.
    To,
    /// `from` of a receive.
    From,
    /// After the peer.
    TagCpuNicOrEnd,
    /// After the tag.
    CpuNicOrEnd,
    /// After the cpu of a message.
    NicOrEnd,
    /// After the duration of a calc.
    CpuOrEnd,
    /// The end of the line, or a comment.
    End,
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RankOrCount => "\"num_ranks N\" or \"rank N {\"",
            Self::OpeningBrace => "\"{\" on the same line",
            Self::Statement => "a label, \"send\", \"recv\", \"calc\" or \"}\"",
            Self::AfterLabel => "\":\", \"requires\" or \"irequires\"",
            Self::Operation => "\"send\", \"recv\" or \"calc\"",
            Self::Label => "a label",
            Self::Number => "a whole number",
            Self::NumberOrAny => "a whole number or -1 for any",
            Self::ByteUnit => "\"b\" after the size",
            Self::To => "\"to\"",
            Self::From => "\"from\"",
            Self::TagCpuNicOrEnd => "\"tag\", \"cpu\", \"nic\" or the end of the line",
            Self::CpuNicOrEnd => "\"cpu\", \"nic\" or the end of the line",
            Self::NicOrEnd => "\"nic\" or the end of the line",
            Self::CpuOrEnd => "\"cpu\" or the end of the line",
            Self::End => "the end of the line",
        })
    }
}

/// A quantity with a range.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Quantity {
    /// Number of ranks.
    Ranks,
    /// A rank's number.
    Rank,
    /// Message length in bytes.
    Size,
    /// Duration of a calc in nanoseconds.
    Duration,
    /// Peer of a message.
    Peer,
    /// Tag of a message.
    Tag,
    /// Processor.
    Cpu,
    /// Network interface.
    Nic,
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ranks => "number of ranks",
            Self::Rank => "rank",
            Self::Size => "message size in bytes",
            Self::Duration => "calc duration in nanoseconds",
            Self::Peer => "peer",
            Self::Tag => "tag",
            Self::Cpu => "cpu",
            Self::Nic => "nic",
        })
    }
}

/// What was wrong at one place of GOAL text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TextErrorKind {
    /// The grammar allows something else here.
    Expected {
        /// What it allows.
        wanted: Wanted,
        /// The byte found instead, `None` at the end of the text.
        found: Option<u8>,
    },
    /// A number is above its range.
    TooLarge {
        /// What it counts.
        what: Quantity,
        /// The largest number allowed.
        most: u64,
    },
    /// `num_ranks 0`.
    NoRanks,
    /// A second `num_ranks`.
    CountTwice,
    /// The text ends without any `num_ranks`.
    CountMissing,
    /// A rank has two blocks.
    DuplicateRank {
        /// The rank.
        rank: u32,
        /// Line of its first block, from 1.
        first_line: usize,
    },
    /// A block's rank is not below the number of ranks.
    RankOutOfRange {
        /// The rank.
        rank: u32,
        /// The number of ranks announced.
        ranks: u32,
    },
    /// A rank has no block.
    MissingRank {
        /// The lowest such rank.
        rank: u32,
        /// The number of ranks announced.
        ranks: u32,
    },
    /// A label is defined twice in one rank.
    DuplicateLabel {
        /// The label.
        name: Name,
        /// Line of its first definition, from 1.
        first_line: usize,
    },
    /// A word of the grammar is used as a label.
    ReservedLabel {
        /// The word.
        name: Name,
    },
    /// A dependency names a label that no line above it defines.
    UndefinedLabel {
        /// The label.
        name: Name,
    },
    /// `/*` without `*/`.
    UnterminatedComment,
    /// The text ends inside a rank's block.
    UnterminatedRank {
        /// The rank.
        rank: u32,
    },
    /// A rank has more operations than a `u32` counts.
    TooManyOps,
    /// The label memory lent is too small.
    LabelMemory {
        /// Entries and buckets that are enough for this text.
        needed: usize,
    },
    /// The block memory lent is too small.
    BlockMemory {
        /// Entries that are enough for this text.
        needed: usize,
    },
    /// The text is not the one that was surveyed.
    OtherText,
}

impl fmt::Display for TextErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expected { wanted, found: Some(byte) } => {
                write!(f, "expected {wanted}, found \"{}\"", byte.escape_ascii())
            }
            Self::Expected { wanted, found: None } => {
                write!(f, "expected {wanted}, found the end of the text")
            }
            Self::TooLarge { what, most } => write!(f, "{what} too large: at most {most}"),
            Self::NoRanks => f.write_str("num_ranks must be at least 1"),
            Self::CountTwice => f.write_str("num_ranks is given a second time: remove one"),
            Self::CountMissing => f.write_str("no num_ranks: start the text with \"num_ranks N\""),
            Self::DuplicateRank { rank, first_line } => {
                write!(f, "rank {rank} has a second block (first in line {first_line})")
            }
            Self::RankOutOfRange { rank, ranks } => {
                write!(f, "rank {rank} is out of range: num_ranks is {ranks}")
            }
            Self::MissingRank { rank, ranks } => write!(
                f,
                "rank {rank} of {ranks} has no block: add \"rank {rank} {{ }}\" or correct num_ranks"
            ),
            Self::DuplicateLabel { name, first_line } => {
                write!(f, "label {name} is defined a second time (first in line {first_line})")
            }
            Self::ReservedLabel { name } => {
                write!(f, "{name} cannot be a label: it is a word of the grammar")
            }
            Self::UndefinedLabel { name } => {
                write!(f, "label {name} is not defined above this line in this rank")
            }
            Self::UnterminatedComment => f.write_str("comment without \"*/\""),
            Self::UnterminatedRank { rank } => {
                write!(
                    f,
                    "the text ends inside rank {rank}: \"}}\" is missing, or the file is cut off"
                )
            }
            Self::TooManyOps => f.write_str("more than 4294967295 operations in one rank"),
            Self::LabelMemory { needed } => {
                write!(f, "label memory too small: lend {needed} entries and buckets")
            }
            Self::BlockMemory { needed } => {
                write!(f, "block memory too small: lend {needed} entries")
            }
            Self::OtherText => f.write_str("the text changed while it was being read"),
        }
    }
}

/// Why GOAL text was refused, and where.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TextError {
    /// Byte offset in the text.
    pub at: usize,
    /// Line, from 1.
    pub line: usize,
    /// Byte within the line, from 1.
    pub column: usize,
    /// What was wrong there.
    pub kind: TextErrorKind,
}

impl TextError {
    /// `kind` at byte `at` of `text`. Takes time proportional to `at`.
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

/// Line and byte within the line, both from 1, of byte `at` of `text`.
#[must_use]
pub fn line_and_column(text: &[u8], at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
    let column = 1 + before.iter().rev().take_while(|&&byte| byte != b'\n').count();
    (line, column)
}

/// Why a schedule did not reach its sink.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ReadError<E> {
    /// The text is wrong.
    Text(TextError),
    /// The sink refused what the text says at this place.
    Sink {
        /// Byte offset in the text.
        at: usize,
        /// Line, from 1.
        line: usize,
        /// Why.
        error: E,
    },
}

impl<E: fmt::Display> fmt::Display for ReadError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(error) => error.fmt(f),
            Self::Sink { line, error, .. } => write!(f, "line {line}: {error}"),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for ReadError<E> {}
