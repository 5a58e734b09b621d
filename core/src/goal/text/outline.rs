//! Outline of a text: the parts outside of the ranks' blocks, which are `num_ranks N`, `rank N {`
//! and comments.

use super::cursor::{Cursor, NoNumber};
use super::error::{Dialect, Name, Quantity, TextError, TextErrorKind, Wanted};

/// Error at a byte offset. Becomes a [`TextError`] once its line is computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) kind: TextErrorKind,
}

impl Fault {
    #[cold]
    pub(super) fn new(at: usize, kind: TextErrorKind) -> Self {
        Self { at, kind }
    }

    /// Error for a token at `cursor` other than `wanted`.
    #[cold]
    #[inline(never)]
    pub(super) fn expected(cursor: &Cursor<'_>, wanted: Wanted) -> Self {
        let (text, at) = (cursor.text(), cursor.at());
        let end = cursor.identifier_end().max(at + 1);
        let found = text.get(at..end).map(Name::new);
        Self::new(at, TextErrorKind::Expected { wanted, found })
    }

    /// Error for the word at `at`, which is no operation, with `wanted` expected at `cursor`.
    #[cold]
    #[inline(never)]
    pub(super) fn no_operation(cursor: &Cursor<'_>, at: usize, wanted: Wanted) -> Self {
        let end = Cursor::new(cursor.text(), at).identifier_end();
        let word = cursor.text().get(at..end).unwrap_or_default();
        let other = Dialect::of(word).map(|dialect| {
            let name = Name::new(word);
            Self::new(at, TextErrorKind::OtherDialect { name, dialect })
        });
        other.unwrap_or_else(|| Self::expected(cursor, wanted))
    }

    /// Adds line and column.
    pub(super) fn in_text(self, text: &[u8]) -> TextError {
        TextError::new(text, self.at, self.kind)
    }
}

/// Reads a number up to `most`, and skips the blanks behind it.
#[inline]
pub(super) fn number_up_to(
    cursor: &mut Cursor<'_>,
    most: u64,
    what: Quantity,
) -> Result<u64, Fault> {
    let start = cursor.at();
    match cursor.take_number() {
        Ok(value) if value <= most => {
            cursor.skip_blanks();
            Ok(value)
        }
        Err(NoNumber::Missing) => Err(Fault::expected(cursor, Wanted::Number)),
        Ok(_) | Err(NoNumber::TooLarge) => {
            Err(Fault::new(start, TextErrorKind::TooLarge { what, most }))
        }
    }
}

/// Header of a rank's block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) rank: u32,
    /// Offset of the word `rank`.
    pub(super) at: usize,
}

/// Iterator over the blocks of a text.
#[derive(Debug)]
pub(super) struct Outline<'t> {
    /// Position outside of all blocks; after [`Outline::next_block`] behind the `{` of a block,
    /// from where the caller must move it behind the `}`.
    pub(super) cursor: Cursor<'t>,
    /// Value of `num_ranks`, once it was read.
    pub(super) ranks: Option<u32>,
}

impl<'t> Outline<'t> {
    /// Starts at byte `at` of `text`, after a UTF-8 byte-order mark.
    pub(super) fn new(text: &'t [u8], at: usize) -> Self {
        let marked = at == 0 && text.starts_with(b"\xef\xbb\xbf");
        Self { cursor: Cursor::new(text, if marked { 3 } else { at }), ranks: None }
    }

    /// Moves behind the `{` of the next block; `None` at the end of the text.
    pub(super) fn next_block(&mut self) -> Result<Option<Header>, Fault> {
        loop {
            let cursor = &mut self.cursor;
            cursor.skip_blanks();
            if cursor.is_at_end() {
                return Ok(None);
            }
            if cursor.take_line_end() {
                continue;
            }
            let at = cursor.at();
            match cursor.byte() {
                b'r' if cursor.take(b"rank") => return self.header(at).map(Some),
                b'n' => self.take_count()?,
                b'/' if take_comment(cursor)? => {}
                _ => return Err(Fault::expected(cursor, Wanted::RankOrCount)),
            }
        }
    }

    /// Reads the rest of `rank N {`.
    fn header(&mut self, at: usize) -> Result<Header, Fault> {
        let cursor = &mut self.cursor;
        let rank = number_up_to(cursor, u64::from(u32::MAX) - 1, Quantity::Rank)?;
        if !cursor.take(b"{") {
            return Err(Fault::expected(cursor, Wanted::OpeningBrace));
        }
        Ok(Header { rank: u32::try_from(rank).unwrap_or(u32::MAX), at })
    }

    /// Reads `num_ranks N`.
    fn take_count(&mut self) -> Result<(), Fault> {
        let cursor = &mut self.cursor;
        let at = cursor.at();
        let start = *cursor;
        if !(cursor.take(b"num_rank") && cursor.take(b"s")) {
            return Err(Fault::expected(&start, Wanted::RankOrCount));
        }
        let ranks = number_up_to(cursor, u64::from(u32::MAX), Quantity::Ranks)?;
        match (ranks, self.ranks) {
            (0, _) => Err(Fault::new(at, TextErrorKind::NoRanks)),
            (_, Some(_)) => Err(Fault::new(at, TextErrorKind::CountTwice)),
            _ => {
                self.ranks = u32::try_from(ranks).ok();
                Ok(())
            }
        }
    }
}

/// Skips a comment; true if there was one at the cursor.
#[inline(never)]
pub(super) fn take_comment(cursor: &mut Cursor<'_>) -> Result<bool, Fault> {
    let unterminated = Fault { at: cursor.at(), kind: TextErrorKind::UnterminatedComment };
    cursor.take_comment().map_err(|()| unterminated)
}
