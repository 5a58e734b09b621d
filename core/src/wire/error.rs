//! Why bytes are not a frame.

use core::fmt;

/// Why bytes were rejected, and where.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ParseError {
    /// Byte offset of the offending field.
    pub at: usize,
    /// What was wrong there.
    pub kind: ParseErrorKind,
}

/// What was wrong with one field.
// A word for the tag keeps the rest aligned: copies are a few instructions.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ParseErrorKind {
    /// This many more bytes were required.
    Truncated(usize),
    /// The frame does not begin with the magic bytes.
    Magic,
    /// The body claims to be this long, more than a frame holds.
    BodyLength(u16),
    /// The checksum over the bytes is another one.
    Checksum {
        /// What the frame carries.
        found: u32,
        /// What its bytes add up to.
        computed: u32,
    },
    /// This kind of frame is unknown.
    Kind(u8),
    /// The frame is of this version, which is unknown.
    Version(u8),
    /// This field's value is outside of its range.
    Field(&'static str, u64),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no control frame: at byte {}: ", self.at)?;
        match self.kind {
            ParseErrorKind::Truncated(missing) => write!(f, "{missing} more bytes were expected"),
            ParseErrorKind::Magic => f.write_str("not the magic bytes; the peer is not loggap"),
            ParseErrorKind::BodyLength(length) => write!(f, "body of {length} bytes is too long"),
            ParseErrorKind::Checksum { found, computed } => {
                write!(f, "checksum {found:#010x} instead of {computed:#010x}; corrupted")
            }
            ParseErrorKind::Kind(kind) => write!(f, "unknown kind {kind}"),
            ParseErrorKind::Version(version) => write!(f, "unknown version {version}"),
            ParseErrorKind::Field(name, value) => write!(f, "{name} {value} is out of range"),
        }
    }
}

impl core::error::Error for ParseError {}
