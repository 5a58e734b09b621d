//! Lines of bounded length.

use std::io::{self, Read};

use thiserror::Error;

/// A line is too long; its limit in bytes.
#[derive(Debug, Error)]
#[error("a line of more than {0} bytes")]
pub(super) struct LineTooLong(pub(super) usize);

/// Reader that passes `input` through and fails at a line of more than `longest` bytes, so that a
/// file without line ends cannot fill the memory. Appends a missing line end to the last line.
#[derive(Debug)]
pub(super) struct BoundedLines<R> {
    input: R,
    longest: usize,
    /// Bytes of the current line.
    length: usize,
}

impl<R> BoundedLines<R> {
    pub(super) const fn new(input: R, longest: usize) -> Self {
        Self { input, longest, length: 0 }
    }
}

impl<R: Read> Read for BoundedLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        if count == 0
            && self.length > 0
            && let Some(first) = buffer.first_mut()
        {
            (*first, self.length) = (b'\n', 0);
            return Ok(1);
        }
        for byte in buffer.iter().take(count) {
            self.length = if *byte == b'\n' { 0 } else { self.length.saturating_add(1) };
            if self.length > self.longest {
                return Err(io::Error::other(LineTooLong(self.longest)));
            }
        }
        Ok(count)
    }
}
