//! Little-endian numbers at any offset in the bytes of a file.

use super::error::{BinaryError, BinaryErrorKind};

/// Bytes of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'b>(pub(super) &'b [u8]);

impl<'b> Bytes<'b> {
    /// Length in bytes.
    pub(super) const fn length(&self) -> u64 {
        self.0.len() as u64
    }

    /// Slice of `length` bytes at offset `at`.
    #[inline]
    pub(super) fn part(&self, at: u64, length: u64) -> Result<&'b [u8], BinaryError> {
        let place = usize::try_from(at).ok().zip(usize::try_from(length).ok());
        place
            .and_then(|(at, length)| self.0.get(at..at.checked_add(length)?))
            .ok_or(self.truncated(at.saturating_add(length)))
    }

    pub(super) fn u32(&self, at: u64) -> Result<u32, BinaryError> {
        Ok(u32_in(self.part(at, 4)?, 0))
    }

    pub(super) fn u64(&self, at: u64) -> Result<u64, BinaryError> {
        Ok(u64_in(self.part(at, 8)?, 0))
    }

    /// Error: the file needs `needed` bytes.
    pub(super) const fn truncated(&self, needed: u64) -> BinaryError {
        let kind = BinaryErrorKind::Truncated { needed };
        BinaryError { at: self.length(), rank: None, kind }
    }
}

/// Number at byte `at` of `record`; 0 out of range.
#[inline]
pub(super) fn u32_in(record: &[u8], at: usize) -> u32 {
    record.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b))
}

/// Number at byte `at` of `record`; 0 out of range.
#[inline]
pub(super) fn u64_in(record: &[u8], at: usize) -> u64 {
    record.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
}

/// Byte `at` of `record`; 0 out of range.
#[inline]
pub(super) fn u8_in(record: &[u8], at: usize) -> u8 {
    record.get(at).copied().unwrap_or(0)
}

/// Record under construction.
#[derive(Debug)]
pub(super) struct Record<const LENGTH: usize> {
    bytes: [u8; LENGTH],
    used: usize,
}

impl<const LENGTH: usize> Record<LENGTH> {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; LENGTH], used: 0 }
    }

    /// Appends `bytes`, for which there must be room.
    #[inline]
    pub(super) fn add<const N: usize>(mut self, bytes: [u8; N]) -> Self {
        let space = self.bytes.get_mut(self.used..).and_then(|rest| rest.first_chunk_mut::<N>());
        debug_assert!(space.is_some(), "record too short");
        if let Some(space) = space {
            *space = bytes;
            self.used += N;
        }
        self
    }

    pub(super) const fn bytes(&self) -> &[u8; LENGTH] {
        &self.bytes
    }
}
