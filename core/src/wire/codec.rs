//! Reading and writing little-endian fields one after the other.
//!
//! A reader remembers the first thing that is wrong and gives zeros from there
//! on, so that a frame is read without a branch for each field: a third of the
//! code, which matters to a responder in firmware.

use super::{ParseError, ParseErrorKind};

/// Takes fields off the front of a body.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    /// Offset of `rest` in the frame.
    at: usize,
    /// The first thing that was wrong.
    wrong: Option<ParseError>,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(body: &'a [u8], at: usize) -> Self {
        Self { rest: body, at, wrong: None }
    }

    /// Offset in the frame of the field that is read next.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// Whether something was wrong.
    pub(super) const fn has_failed(&self) -> bool {
        self.wrong.is_some()
    }

    /// `value`, unless something was wrong on the way to it.
    pub(super) fn finish<T>(self, value: T) -> Result<T, ParseError> {
        self.wrong.map_or(Ok(value), Err)
    }

    /// The next `width` bytes, at most 8, as a number.
    #[inline(never)]
    fn number(&mut self, width: usize) -> u64 {
        let Some((field, rest)) = self.rest.split_at_checked(width) else {
            let missing = width - self.rest.len();
            self.fail(ParseError { at: self.at, kind: ParseErrorKind::Truncated(missing) });
            return 0;
        };
        self.rest = rest;
        self.at += width;
        field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }

    pub(super) fn u8(&mut self) -> u8 {
        self.number(1).to_le_bytes()[0]
    }

    #[allow(clippy::cast_possible_truncation, reason = "of two bytes")]
    pub(super) fn u16(&mut self) -> u16 {
        self.number(2) as u16
    }

    #[allow(clippy::cast_possible_truncation, reason = "of four bytes")]
    pub(super) fn u32(&mut self) -> u32 {
        self.number(4) as u32
    }

    pub(super) fn u64(&mut self) -> u64 {
        self.number(8)
    }

    /// Rejects the field just read, of `width` bytes.
    pub(super) fn reject(&mut self, name: &'static str, value: u64, width: usize) {
        let at = self.at.saturating_sub(width);
        self.fail(ParseError { at, kind: ParseErrorKind::Field(name, value) });
    }

    /// Takes note of what is wrong, and reads nothing more.
    #[inline(never)]
    pub(super) fn fail(&mut self, error: ParseError) {
        self.wrong.get_or_insert(error);
        self.rest = &[];
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

    /// The lowest `width` bytes of `value`.
    #[inline(never)]
    fn put(&mut self, value: u64, width: usize) {
        let slot = self.bytes.get_mut(self.at..).and_then(|rest| rest.get_mut(..width));
        debug_assert!(slot.is_some(), "a body longer than a frame");
        if let Some(slot) = slot {
            for (place, byte) in slot.iter_mut().zip(value.to_le_bytes()) {
                *place = byte;
            }
            self.at += width;
        }
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.put(value.into(), 1);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.put(value.into(), 2);
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.put(value.into(), 4);
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.put(value, 8);
    }
}
