//! Output of the writers.

use core::fmt;

use crate::slice::copy;

/// A growing sequence of bytes whose reserved beginning can be changed later.
pub trait Output {
    /// Reason why bytes were refused.
    type Error;

    /// Appends `length` zero bytes, before anything else is written, and keeps them open to
    /// [`Output::patch`].
    ///
    /// # Errors
    ///
    /// There is no room.
    fn reserve(&mut self, length: u64) -> Result<(), Self::Error>;

    /// Overwrites reserved bytes from offset `at` on.
    ///
    /// # Errors
    ///
    /// The bytes do not lie inside those reserved.
    fn patch(&mut self, at: u64, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Appends `bytes`.
    ///
    /// # Errors
    ///
    /// There is no room.
    fn append(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
}

/// The lent memory is used up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the output does not fit into the memory lent for it")
    }
}

impl core::error::Error for NoRoom {}

/// Output into lent memory.
#[derive(Debug)]
pub struct SliceOutput<'m> {
    memory: &'m mut [u8],
    length: usize,
    reserved: usize,
}

impl<'m> SliceOutput<'m> {
    /// Writes from the start of `memory` on.
    #[must_use]
    pub const fn new(memory: &'m mut [u8]) -> Self {
        Self { memory, length: 0, reserved: 0 }
    }

    /// Bytes written so far.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        self.memory.get(..self.length).unwrap_or(&[])
    }

    /// Takes the next `length` bytes.
    fn take(&mut self, length: usize) -> Result<&mut [u8], NoRoom> {
        let end = self.length.checked_add(length).ok_or(NoRoom)?;
        let space = self.memory.get_mut(self.length..end).ok_or(NoRoom)?;
        self.length = end;
        Ok(space)
    }
}

impl Output for SliceOutput<'_> {
    type Error = NoRoom;

    fn reserve(&mut self, length: u64) -> Result<(), NoRoom> {
        let length = usize::try_from(length).map_err(|_| NoRoom)?;
        self.take(length)?.fill(0);
        self.reserved = self.length;
        Ok(())
    }

    fn patch(&mut self, at: u64, bytes: &[u8]) -> Result<(), NoRoom> {
        let at = usize::try_from(at).map_err(|_| NoRoom)?;
        let end = at.checked_add(bytes.len()).filter(|&end| end <= self.reserved).ok_or(NoRoom)?;
        copy(bytes, self.memory.get_mut(at..end).ok_or(NoRoom)?);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), NoRoom> {
        copy(bytes, self.take(bytes.len())?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_do_not_fit_are_refused_and_nothing_changes() {
        let mut memory = [9; 6];
        let mut output = SliceOutput::new(&mut memory);
        assert_eq!(output.reserve(3), Ok(()));
        assert_eq!(output.append(&[1, 2, 3, 4]), Err(NoRoom));
        assert_eq!(output.append(&[1, 2]), Ok(()));
        assert_eq!(output.patch(1, &[7, 8]), Ok(()));
        assert_eq!(output.patch(2, &[7, 8]), Err(NoRoom));
        assert_eq!(output.patch(u64::MAX, &[7]), Err(NoRoom));
        assert_eq!(output.written(), [0, 7, 8, 1, 2]);
    }
}
