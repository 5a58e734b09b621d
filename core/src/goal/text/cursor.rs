//! Cursor in a text, with the elementary parsing steps: blanks, whole numbers, identifiers, words.
//!
//! Numbers and words are read eight bytes at a time by one little-endian load. Past the end of the
//! text the load yields zero bytes, which belong to no token, so no step needs a bounds check.

/// Word with every byte set to 1.
pub(super) const ONES: u64 = 0x0101_0101_0101_0101;
/// Mask of the top bit of every byte of a word.
pub(super) const TOPS: u64 = 0x8080_8080_8080_8080;
/// Mask of all bits but the top one of every byte of a word.
const LOWS: u64 = 0x7f7f_7f7f_7f7f_7f7f;

/// Top bit set in each byte of `word` that equals `byte`, exactly.
#[inline]
pub(super) const fn equal(word: u64, byte: u8) -> u64 {
    let differ = word ^ (ONES * byte as u64);
    !(((differ & LOWS) + LOWS) | differ | LOWS)
}

/// Number of leading decimal digits of `word`, and their value.
#[inline]
pub(super) const fn digits(word: u64) -> (u32, u64) {
    let values = word ^ (ONES * b'0' as u64);
    let others = (((values & LOWS) + ONES * 0x76) | values) & TOPS;
    let count = others.trailing_zeros() / 8;
    if count == 0 {
        return (0, 0);
    }
    // Shift the digits to the top, so that zeros lead, then join neighbours: 8 digits to 4 pairs to
    // 2 fours to 1.
    let ones = values << (64 - 8 * count);
    let pairs = (ones & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(2_561) >> 8;
    let fours = (pairs & 0x00ff_00ff_00ff_00ff).wrapping_mul(6_553_601) >> 16;
    let eight = (fours & 0x0000_ffff_0000_ffff).wrapping_mul(42_949_672_960_001) >> 32;
    (count, eight)
}

/// True if `byte` can continue an identifier after its first letter.
#[inline]
pub(super) const fn continues_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Reason why no number was read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NoNumber {
    /// No digit at the cursor.
    Missing,
    /// The number exceeds 2⁶⁴ − 1.
    TooLarge,
}

/// Cursor in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Cursor<'t> {
    /// Cursor at byte `at` of `text`.
    pub(super) const fn new(text: &'t [u8], at: usize) -> Self {
        Self { text, at }
    }

    /// Offset in the text.
    #[inline]
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// The whole text.
    pub(super) const fn text(&self) -> &'t [u8] {
        self.text
    }

    /// True at the end of the text.
    #[inline]
    pub(super) const fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Byte at the cursor; 0 at the end.
    #[inline]
    pub(super) fn byte(&self) -> u8 {
        self.byte_after(0)
    }

    /// Byte at `offset` after the cursor; 0 past the end.
    #[inline]
    pub(super) fn byte_after(&self, offset: usize) -> u8 {
        self.text.get(self.at.wrapping_add(offset)).copied().unwrap_or(0)
    }

    /// Eight bytes from the cursor on, the first in the lowest byte; zeros past the end.
    #[inline]
    pub(super) fn word(&self) -> u64 {
        self.word_after(0)
    }

    /// Eight bytes from `offset` after the cursor on.
    #[inline]
    pub(super) fn word_after(&self, offset: usize) -> u64 {
        let start = self.at.wrapping_add(offset);
        match self.text.get(start..start.wrapping_add(8)).and_then(|w| w.first_chunk::<8>()) {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => self.last_word(start),
        }
    }

    #[cold]
    #[inline(never)]
    fn last_word(&self, start: usize) -> u64 {
        let rest = self.text.get(start..).unwrap_or(&[]);
        rest.iter().take(8).rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    }

    /// Skips `count` bytes.
    #[inline]
    pub(super) const fn advance(&mut self, count: usize) {
        self.at = self.at.wrapping_add(count);
    }

    /// Skips blanks and tabs.
    #[inline]
    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.byte(), b' ' | b'\t') {
            self.advance(1);
        }
    }

    /// Skips one line end, `\n` or `\r\n`; true if there was one. The end of the text counts as
    /// one.
    #[inline]
    pub(super) fn take_line_end(&mut self) -> bool {
        match self.byte() {
            b'\n' => {
                self.advance(1);
                true
            }
            b'\r' if self.byte_after(1) == b'\n' => {
                self.advance(2);
                true
            }
            _ => self.is_at_end(),
        }
    }

    /// Skips `word` and the blanks behind it; true if it was at the cursor. `LENGTH` is at most 8.
    #[inline]
    pub(super) fn take<const LENGTH: usize>(&mut self, word: &[u8; LENGTH]) -> bool {
        let wanted = word.iter().rev().fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte));
        let shift = 64 - 8 * LENGTH;
        if self.word() << shift != wanted << shift {
            return false;
        }
        self.advance(LENGTH);
        self.skip_blanks();
        true
    }

    /// Reads a whole decimal number.
    #[inline]
    pub(super) fn take_number(&mut self) -> Result<u64, NoNumber> {
        let (count, value) = digits(self.word());
        match count {
            0 => Err(NoNumber::Missing),
            1..8 => {
                self.advance(count as usize);
                Ok(value)
            }
            _ => self.take_long_number(),
        }
    }

    #[cold]
    #[inline(never)]
    fn take_long_number(&mut self) -> Result<u64, NoNumber> {
        let mut value = 0_u64;
        let mut end = *self;
        while end.byte().is_ascii_digit() {
            let digit = u64::from(end.byte() - b'0');
            value = value
                .checked_mul(10)
                .and_then(|tens| tens.checked_add(digit))
                .ok_or(NoNumber::TooLarge)?;
            end.advance(1);
        }
        *self = end;
        Ok(value)
    }

    /// Offset of the first byte at or after the cursor that does not continue an identifier.
    #[inline]
    pub(super) fn identifier_end(&self) -> usize {
        let mut end = *self;
        while continues_identifier(end.byte()) {
            end.advance(1);
        }
        end.at
    }

    /// Skips a comment at the cursor, without the line end of a `//` comment; true if there was
    /// one.
    ///
    /// # Errors
    ///
    /// `Err(())` if `/*` has no `*/`; the cursor is then at the `/*`.
    pub(super) fn take_comment(&mut self) -> Result<bool, ()> {
        let rest = self.text.get(self.at..).unwrap_or(&[]);
        if rest.starts_with(b"//") {
            let length = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            self.advance(length);
            return Ok(true);
        }
        let Some(inside) = rest.strip_prefix(b"/*") else { return Ok(false) };
        let end = inside.windows(2).position(|pair| pair == b"*/").ok_or(())?;
        self.advance(end + 4);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    #[test]
    fn digits_stop_at_the_first_other_byte() {
        for text in
            ["", "a", "0", "7b", "42 1", "1234567x", "12345678", "99999999", ":1", "/", "9\u{7f}"]
        {
            let cursor = Cursor::new(text.as_bytes(), 0);
            let expected: Vec<u8> = text.bytes().take_while(u8::is_ascii_digit).take(8).collect();
            let value = expected.iter().fold(0, |sum, b| sum * 10 + u64::from(b - b'0'));
            let found = digits(cursor.word());
            assert_eq!((found.0 as usize, found.1), (expected.len(), value), "{text:?}");
        }
    }

    #[test]
    fn every_byte_value_is_classed_right_beside_every_other() {
        for byte in 0..=255_u8 {
            for neighbour in [0, b'0', b'9', b':', 0x7f, 0x80, 0xff] {
                let word = u64::from_le_bytes([byte, neighbour, byte, b'5', 0, 0, 0, 0]);
                assert_eq!(digits(word).0 > 0, byte.is_ascii_digit());
                let found = equal(word, neighbour).to_le_bytes().map(|b| b != 0);
                assert_eq!(found[..3], [byte == neighbour, true, byte == neighbour]);
            }
        }
    }

    #[test]
    fn numbers_of_any_length_read_like_the_standard_parser() {
        for value in [0, 9, 10, 9_999_999, 10_000_000, 99_999_999, 123_456_789_012, u64::MAX] {
            let text = value.to_string();
            assert_eq!(Cursor::new(text.as_bytes(), 0).take_number(), Ok(value));
        }
        assert_eq!(Cursor::new(b"18446744073709551616", 0).take_number(), Err(NoNumber::TooLarge));
        assert_eq!(Cursor::new(b"-1", 0).take_number(), Err(NoNumber::Missing));
    }

    #[test]
    fn comments_end_where_they_say_or_not_at_all() {
        let mut line = Cursor::new(b"// a */\nb", 0);
        assert_eq!((line.take_comment(), line.at()), (Ok(true), 7));
        let mut block = Cursor::new(b"/*/ *\n*/b", 0);
        assert_eq!((block.take_comment(), block.at()), (Ok(true), 8));
        let mut open = Cursor::new(b"/*/", 0);
        assert_eq!((open.take_comment(), open.at()), (Err(()), 0));
        assert_eq!(Cursor::new(b"/", 0).take_comment(), Ok(false));
    }
}
