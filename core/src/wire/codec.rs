//! Sequential reading and writing of little-endian fields.

use super::{ParseError, ParseErrorKind};

/// Reads fields from the front of a body. Past its end all fields are 0 and [`Reader::check`]
/// fails, so that one test covers all fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    body: &'a [u8],
    /// Offset of the body in the frame.
    start: usize,
    /// Bytes read; exceeds the length of a body that is too short.
    taken: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(body: &'a [u8], start: usize) -> Self {
        Self { body, start, taken: 0 }
    }

    /// The next field of `width` bytes, at most 8.
    #[inline(never)]
    fn field(&mut self, width: usize) -> u64 {
        let bytes = self.body.get(self.taken..self.taken + width).unwrap_or_default();
        self.taken += width;
        bytes.iter().rev().fold(0, |field, byte| field << 8 | u64::from(*byte))
    }

    #[allow(clippy::cast_possible_truncation, reason = "one byte")]
    pub(super) fn u8(&mut self) -> u8 {
        self.field(1) as u8
    }

    #[allow(clippy::cast_possible_truncation, reason = "two bytes")]
    pub(super) fn u16(&mut self) -> u16 {
        self.field(2) as u16
    }

    #[allow(clippy::cast_possible_truncation, reason = "four bytes")]
    pub(super) fn u32(&mut self) -> u32 {
        self.field(4) as u32
    }

    pub(super) fn u64(&mut self) -> u64 {
        self.field(8)
    }

    /// Skips `bytes` bytes.
    pub(super) const fn skip(&mut self, bytes: usize) {
        self.taken += bytes;
    }

    /// Checks that all fields read were present.
    pub(super) const fn check(&self) -> Result<(), ParseError> {
        match self.taken.checked_sub(self.body.len()) {
            None | Some(0) => Ok(()),
            Some(missing) => {
                let at = self.start + self.body.len();
                Err(ParseError { at, kind: ParseErrorKind::Truncated(missing) })
            }
        }
    }

    /// Error for the field just read, of `width` bytes: its value is invalid, or it is missing.
    #[cold]
    #[inline(never)]
    pub(super) fn reject(&self, name: &'static str, value: u64, width: usize) -> ParseError {
        let at = self.start + self.taken.saturating_sub(width);
        let kind = ParseErrorKind::Field(name, value);
        self.check().err().unwrap_or(ParseError { at, kind })
    }
}

/// Writes fields one after the other. A field that does not fit is not written, and [`Writer::at`]
/// does not advance.
pub(super) struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(super) const fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes written so far.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// Writes the lowest `width` bytes of `value`.
    #[inline(never)]
    fn field(&mut self, width: usize, mut value: u64) {
        let end = self.at + width;
        let slots = self.bytes.get_mut(self.at..end);
        debug_assert!(slots.is_some(), "a body longer than a frame");
        for slot in slots.unwrap_or_default() {
            *slot = value.to_le_bytes()[0];
            value >>= 8;
            self.at = end;
        }
    }

    #[inline(never)]
    pub(super) fn u8(&mut self, value: u8) {
        self.field(1, value.into());
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.field(2, value.into());
    }

    #[inline(never)]
    pub(super) fn u32(&mut self, value: u32) {
        self.field(4, value.into());
    }

    #[inline(never)]
    pub(super) fn u64(&mut self, value: u64) {
        self.field(8, value);
    }
}
