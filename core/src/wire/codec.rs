//! Reading and writing little-endian fields one after the other.

use super::{ParseError, ParseErrorKind};

/// Takes fields off the front of a body. Beyond its end all fields are 0, and
/// [`Reader::check`] fails: one test for all fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    body: &'a [u8],
    /// Offset of the body in the frame.
    start: usize,
    /// Bytes taken, past the end of a body that is too short.
    taken: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(body: &'a [u8], start: usize) -> Self {
        Self { body, start, taken: 0 }
    }

    #[inline(never)]
    fn byte(&mut self) -> u8 {
        let byte = self.body.get(self.taken).copied().unwrap_or_default();
        self.taken += 1;
        byte
    }

    fn take(&mut self, width: u32) -> u32 {
        (0..width).fold(0, |field, place| field | u32::from(self.byte()) << (8 * place))
    }

    #[allow(clippy::cast_possible_truncation, reason = "one byte")]
    pub(super) fn u8(&mut self) -> u8 {
        self.byte()
    }

    #[inline(never)]
    #[allow(clippy::cast_possible_truncation, reason = "two bytes")]
    pub(super) fn u16(&mut self) -> u16 {
        self.take(2) as u16
    }

    #[inline(never)]
    pub(super) fn u32(&mut self) -> u32 {
        self.take(4)
    }

    #[inline(never)]
    pub(super) fn u64(&mut self) -> u64 {
        u64::from(self.take(4)) | u64::from(self.take(4)) << 32
    }

    /// Whether all fields taken were there.
    pub(super) const fn check(&self) -> Result<(), ParseError> {
        match self.taken.checked_sub(self.body.len()) {
            None | Some(0) => Ok(()),
            Some(missing) => {
                let at = self.start + self.body.len();
                Err(ParseError { at, kind: ParseErrorKind::Truncated(missing) })
            }
        }
    }

    /// Rejects the field just read, of `width` bytes, or that it is not there.
    #[cold]
    #[inline(never)]
    pub(super) fn reject(&self, name: &'static str, value: u64, width: usize) -> ParseError {
        let at = self.start + self.taken.saturating_sub(width);
        let kind = ParseErrorKind::Field(name, value);
        self.check().err().unwrap_or(ParseError { at, kind })
    }
}

/// Puts fields one after the other. What does not fit is not written, and
/// [`Writer::at`] stays where it was.
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

    #[inline(never)]
    pub(super) fn u8(&mut self, value: u8) {
        let slot = self.bytes.get_mut(self.at);
        debug_assert!(slot.is_some(), "a body longer than a frame");
        if let Some(slot) = slot {
            *slot = value;
            self.at += 1;
        }
    }

    fn put(&mut self, field: &[u8]) {
        field.iter().for_each(|byte| self.u8(*byte));
    }

    #[inline(never)]
    pub(super) fn u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    #[inline(never)]
    pub(super) fn u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    #[inline(never)]
    pub(super) fn u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }
}
