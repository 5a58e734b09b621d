//! Reading and writing little-endian fields one after the other.

use super::{ParseError, ParseErrorKind};

/// Takes fields off the front of a body.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    /// Offset of `rest` in the frame.
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(body: &'a [u8], at: usize) -> Self {
        Self { rest: body, at }
    }

    /// Offset in the frame of the field that is read next.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let Some((field, rest)) = self.rest.split_first_chunk::<N>() else {
            let missing = N - self.rest.len();
            return Err(ParseError { at: self.at, kind: ParseErrorKind::Truncated(missing) });
        };
        self.rest = rest;
        self.at += N;
        Ok(*field)
    }

    pub(super) fn u8(&mut self) -> Result<u8, ParseError> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, ParseError> {
        self.take().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, ParseError> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, ParseError> {
        self.take().map(u64::from_le_bytes)
    }

    /// Rejects the field just read, of `width` bytes.
    pub(super) fn reject(&self, name: &'static str, value: u64, width: usize) -> ParseError {
        ParseError { at: self.at.saturating_sub(width), kind: ParseErrorKind::Field(name, value) }
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

    fn put<const N: usize>(&mut self, field: [u8; N]) {
        let slot = self.bytes.get_mut(self.at..).and_then(<[u8]>::first_chunk_mut::<N>);
        debug_assert!(slot.is_some(), "a body longer than a frame");
        if let Some(slot) = slot {
            *slot = field;
            self.at += N;
        }
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.put([value]);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.put(value.to_le_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.put(value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.put(value.to_le_bytes());
    }
}
