//! Survey of GOAL text: number of ranks, operations and edges, order of the blocks, and the memory
//! that reading takes. It inspects only line starts, colons, braces and comments; the reader checks
//! the statements.

use core::ops::Range;

use super::cursor::{Cursor, ONES, TOPS, continues_identifier, equal};
use super::error::{TextError, TextErrorKind, Wanted};
use super::outline::{Fault, Header, Outline, take_comment};
use crate::goal::extent::Extent;
use crate::stats::heap_sort::heap_sort;

/// Size of a text, or of a part of it. Counts are exact if the text has no errors.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Survey {
    length: usize,
    /// Where it begins and ends in the text.
    start: usize,
    end: usize,
    ranks: u32,
    /// Rank of the first block.
    first: u32,
    consecutive: bool,
    counts: Counts,
}

impl Survey {
    /// Surveys `text`, in linear time.
    ///
    /// # Errors
    ///
    /// Any error outside of the ranks' blocks, an unterminated block or comment, no `num_ranks`, a
    /// rank out of range, or missing last ranks.
    pub fn of(text: &[u8]) -> Result<Self, TextError> {
        Self::scan(text, 0..text.len())
            .and_then(|found| found.complete())
            .map_err(|fault| fault.in_text(text))
    }

    /// Surveys a part of `text`, for [`Survey::join`]. `None` if it does not begin and end between
    /// blocks, or has errors.
    #[must_use]
    pub fn of_part(text: &[u8], part: Range<usize>) -> Option<Self> {
        Self::scan(text, part).ok()
    }

    /// Survey of a text from those of its `parts`, which [`read`](super::read) then reads one by
    /// one. `None` if that of the whole differs, or is an error.
    #[must_use]
    pub fn join(parts: &mut [Self]) -> Option<Self> {
        let (first, others) = parts.split_first()?;
        let mut whole = *first;
        for part in others {
            let follows = part.start == whole.end
                && part.first == whole.counts.blocks.ranks
                && part.consecutive
                && part.ranks == 0;
            if !follows {
                return None;
            }
            whole.end = part.end;
            whole.counts = whole.counts.with(part.counts);
        }
        let ranks = whole.ranks;
        let is_complete = ranks == whole.counts.blocks.ranks;
        if ranks == 0 || !is_complete || !whole.consecutive || whole.first != 0 {
            return None;
        }
        parts.iter_mut().for_each(|part| part.ranks = ranks);
        Some(whole)
    }

    fn scan(text: &[u8], part: Range<usize>) -> Result<Self, Fault> {
        let mut outline = Outline::new(text, part.start);
        let mut found = Self {
            length: text.len(),
            start: part.start,
            end: part.end,
            ranks: 0,
            first: 0,
            consecutive: true,
            counts: Counts::default(),
        };
        let mut highest = Header { rank: 0, at: 0 };
        let mut end = text.len();
        while let Some(header) = outline.next_block()? {
            if header.at >= part.end {
                end = header.at;
                break;
            }
            found.add(header.rank, count_body(&mut outline.cursor, header.rank)?);
            if header.rank > highest.rank {
                highest = header;
            }
        }
        if end != part.end {
            return Err(Fault::new(end, TextErrorKind::OtherText));
        }
        if let Some(ranks) = outline.ranks {
            found.ranks = ranks;
            if highest.rank >= ranks {
                let kind = TextErrorKind::RankOutOfRange { rank: highest.rank, ranks };
                return Err(Fault::new(highest.at, kind));
            }
        }
        Ok(found)
    }

    /// Checks the survey of a whole text.
    fn complete(mut self) -> Result<Self, Fault> {
        self.consecutive &= self.first == 0;
        match (self.ranks, self.counts.blocks.ranks) {
            (0, _) => Err(Fault::new(self.end, TextErrorKind::CountMissing)),
            (ranks, rank) if self.consecutive && rank < ranks => {
                Err(Fault::new(self.end, TextErrorKind::MissingRank { rank, ranks }))
            }
            _ => Ok(self),
        }
    }

    fn add(&mut self, rank: u32, counts: Counts) {
        let blocks = self.counts.blocks.ranks;
        if blocks == 0 {
            self.first = rank;
        }
        self.consecutive &= rank - self.first.min(rank) == blocks;
        self.counts = self.counts.with(counts);
    }

    /// Size of the schedule, or of its part, but with all ranks.
    #[must_use]
    pub const fn extent(&self) -> Extent {
        Extent { ranks: self.ranks, ..self.counts.blocks }
    }

    /// Ranks of the part, or all; if they are in ascending order.
    #[must_use]
    pub fn own_ranks(&self) -> Range<u32> {
        self.first..self.first.saturating_add(self.counts.blocks.ranks)
    }

    /// Offset at which the part begins.
    pub(super) const fn start(&self) -> usize {
        self.start
    }

    /// Number of labels of all ranks.
    #[must_use]
    pub const fn labels(&self) -> usize {
        self.counts.labels
    }

    /// Largest number of labels of a rank: sufficient number of entries and of buckets of
    /// [`LabelMemory`](super::LabelMemory).
    #[must_use]
    pub const fn labels_most(&self) -> usize {
        self.counts.labels_most
    }

    /// Elements of [`Block`] memory for reading: 0 if the ranks are in ascending order.
    #[must_use]
    pub const fn blocks_to_lend(&self) -> usize {
        if self.consecutive { 0 } else { self.counts.blocks.ranks as usize }
    }

    /// Length of the surveyed text, bytes.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.length
    }
}

/// Position of the block of one rank. The content on entry does not matter.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Block {
    pub(super) rank: u32,
    /// Offset of the word `rank`.
    pub(super) at: usize,
}

impl Block {
    /// Locates all blocks of the surveyed `text`, in ascending order of ranks.
    pub(super) fn find_all<'b>(
        text: &[u8],
        survey: &Survey,
        lent: &'b mut [Self],
    ) -> Result<&'b [Self], Fault> {
        let needed = survey.counts.blocks.ranks as usize;
        let Some(blocks) = lent.get_mut(..needed) else {
            return Err(Fault::new(0, TextErrorKind::BlockMemory { needed }));
        };
        let mut outline = Outline::new(text, 0);
        let mut slots = blocks.iter_mut();
        while let Some(header) = outline.next_block()? {
            let slot = slots.next().ok_or(Fault::new(header.at, TextErrorKind::OtherText))?;
            *slot = Self { rank: header.rank, at: header.at };
            count_body(&mut outline.cursor, header.rank)?;
        }
        if slots.next().is_some() {
            return Err(Fault::new(text.len(), TextErrorKind::OtherText));
        }
        heap_sort(blocks);
        Self::complete(text, survey.ranks, blocks)?;
        Ok(blocks)
    }

    /// Checks that every rank has exactly one block.
    fn complete(text: &[u8], ranks: u32, blocks: &[Self]) -> Result<(), Fault> {
        let twice = blocks.iter().zip(blocks.iter().skip(1)).find(|(a, b)| a.rank == b.rank);
        if let Some((first, second)) = twice {
            let (first_line, _) = super::error::line_and_column(text, first.at);
            let kind = TextErrorKind::DuplicateRank { rank: second.rank, first_line };
            return Err(Fault::new(second.at, kind));
        }
        let gap = (0..ranks)
            .zip(blocks.iter().map(|b| Some(b.rank)).chain([None]))
            .find(|&(expected, found)| found != Some(expected));
        match gap {
            Some((rank, _)) => {
                Err(Fault::new(text.len(), TextErrorKind::MissingRank { rank, ranks }))
            }
            None => Ok(()),
        }
    }
}

/// Counts of one block, or of several.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
struct Counts {
    blocks: Extent,
    labels: usize,
    /// Of a block.
    labels_most: usize,
}

impl Counts {
    fn with(self, other: Self) -> Self {
        Self {
            blocks: self.blocks.with(other.blocks),
            labels: self.labels + other.labels,
            labels_most: self.labels_most.max(other.labels_most),
        }
    }
}

/// Counts a block, and moves the cursor from behind its `{` to behind its `}`.
///
/// Every statement starts a line, or follows a comment or the brace. Every label definition ends
/// with a colon, and there are no other colons. An operation has a label or starts with its own
/// name. Therefore operations = labels + bare operations, and edges = statements − operations.
/// Lines that start with `l`, as generated ones do, are counted as labelled statements without
/// further inspection.
fn count_body(cursor: &mut Cursor<'_>, rank: u32) -> Result<Counts, Fault> {
    let mut statements = 0;
    let mut bare = 0;
    let mut labels = 0;
    // Bit 7 is set while the next byte starts a line.
    let mut starts = 0x80_u64;
    loop {
        let word = cursor.word();
        let stops = zeros(word ^ (ONES * u64::from(b'/')))
            | zeros(word ^ (ONES * u64::from(b'}')))
            | zeros(word ^ (ONES * u64::from(b'{')));
        let seen = if stops == 0 { u64::MAX } else { (1 << stops.trailing_zeros()) - 1 };
        let newlines = equal(word, b'\n');
        let line_starts = (newlines << 8 | starts) & seen & TOPS;
        labels += count(equal(word, b':') & seen);
        let plain = line_starts & equal(word, b'l');
        statements += count(plain);
        let mut others = line_starts & !plain & !newlines;
        while others != 0 {
            let offset = others.trailing_zeros() as usize / 8;
            others &= others - 1;
            match line_start(cursor, offset) {
                LineStart::Nothing => {}
                LineStart::Bare => {
                    statements += 1;
                    bare += 1;
                }
                LineStart::Other => statements += 1,
            }
        }
        if stops == 0 {
            starts = newlines >> 56;
            cursor.advance(8);
            if cursor.is_at_end() {
                return Err(Fault::new(
                    cursor.text().len(),
                    TextErrorKind::UnterminatedRank { rank },
                ));
            }
            continue;
        }
        cursor.advance(stops.trailing_zeros() as usize / 8);
        match cursor.byte() {
            b'}' => {
                cursor.advance(1);
                let ops = labels + bare;
                let blocks = Extent::of_rank(ops, usize::saturating_sub(statements, ops));
                return Ok(Counts { blocks, labels, labels_most: labels });
            }
            b'{' => return Err(brace_inside(cursor)),
            _ => {
                // A `/` that starts no comment is left to the reader.
                let comment = take_comment(cursor)?;
                cursor.advance(usize::from(!comment));
                starts = u64::from(comment) << 7;
            }
        }
    }
}

/// Top bit of the lowest zero byte of `word`; higher bits may be wrong.
#[inline]
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & TOPS
}

/// Error at the line with a `{` inside a block: the preceding `}` is missing.
#[cold]
fn brace_inside(cursor: &Cursor<'_>) -> Fault {
    let before = cursor.text().get(..cursor.at()).unwrap_or(&[]);
    let line = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    let mut start = Cursor::new(cursor.text(), line);
    start.skip_blanks();
    Fault::expected(&start, Wanted::Statement)
}

/// Number of bytes of `tops` with their top bit set.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "at most 8")]
const fn count(tops: u64) -> usize {
    ((tops >> 7).wrapping_mul(ONES) >> 56) as usize
}

/// Kind of a line, by its start.
enum LineStart {
    /// No statement: an empty line, a comment, a brace.
    Nothing,
    /// An operation without a label.
    Bare,
    /// Any other statement.
    Other,
}

fn line_start(cursor: &Cursor<'_>, offset: usize) -> LineStart {
    let mut cursor = *cursor;
    cursor.advance(offset);
    cursor.skip_blanks();
    match cursor.byte() {
        b'\n' | b'\r' | b'/' | b'}' | 0 => LineStart::Nothing,
        b's' | b'r' | b'c' if !continues_identifier(cursor.byte_after(4)) => {
            let bare = [b"send", b"recv", b"calc"].iter().any(|name| cursor.take(name));
            if bare { LineStart::Bare } else { LineStart::Other }
        }
        _ => LineStart::Other,
    }
}
