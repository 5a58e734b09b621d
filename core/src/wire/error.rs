//! Errors of parsing a control frame.

use core::fmt;

/// Position and kind of an error in a control frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ParseError {
    /// Byte offset of the wrong field.
    pub at: usize,
    /// Kind of the error.
    pub kind: ParseErrorKind,
}

/// Kinds of errors in a control frame.
// A 32-bit tag keeps the payload aligned, so that copies take few instructions.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ParseErrorKind {
    /// The frame is shorter than required by this number of bytes.
    Truncated(usize),
    /// The frame does not begin with the magic bytes.
    Magic,
    /// The body length exceeds that of a frame.
    BodyLength(u16),
    /// Checksum mismatch.
    Checksum {
        /// Checksum in the frame.
        found: u32,
        /// Checksum of its bytes.
        computed: u32,
    },
    /// Unknown kind of frame.
    Kind(u8),
    /// Unknown version.
    Version(u8),
    /// Field with a value out of range.
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
