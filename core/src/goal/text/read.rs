//! Parser of statements, into a sink.

use super::cursor::Cursor;
use super::error::{Name, ReadError, TextErrorKind, Wanted, line_and_column};
use super::labels::{Label, LabelMemory, Labels, NotDefined};
use super::operation;
use super::outline::{Fault, Outline, take_comment};
use super::survey::{Block, Survey};
use crate::goal::op::{Edge, Op, Sink};

/// Memory for reading one text.
#[derive(Debug)]
pub struct TextMemory<'m> {
    /// [`Survey::blocks_to_lend`] elements.
    pub blocks: &'m mut [Block],
    /// Memory for the labels of one rank at a time.
    pub labels: LabelMemory<'m>,
}

/// Reads the surveyed `text`, or the surveyed part of it, into `sink`, with its ranks in ascending
/// order, whatever their order in the text.
///
/// # Errors
///
/// The first error of the text with its position, or the error of the sink. The sink then holds an
/// incomplete schedule.
pub fn read<S: Sink>(
    text: &[u8],
    survey: &Survey,
    memory: TextMemory<'_>,
    sink: &mut S,
) -> Result<(), ReadError<S::Error>> {
    read_and_note(text, survey, memory, sink, |_| ())
}

/// As [`read`]; calls `note` with each operation's place before the sink gets the operation.
pub(super) fn read_and_note<S: Sink>(
    text: &[u8],
    survey: &Survey,
    memory: TextMemory<'_>,
    sink: &mut S,
    note: impl FnMut(Placed),
) -> Result<(), ReadError<S::Error>> {
    let TextMemory { blocks, labels } = memory;
    let labels = Labels::new(text, labels);
    let needed = survey.labels_most();
    let mut reader = Reader { labels, rank: 0, ops: 0, block: 0, needed, sink, note };
    reader.read_all(text, survey, blocks).map_err(|stop| stop.in_text(text))
}

/// Place of an operation.
#[derive(Clone, Copy)]
pub(super) struct Placed {
    pub(super) rank: u32,
    pub(super) op: u32,
    /// Offset of its statement.
    pub(super) at: usize,
    pub(super) label: Option<Label>,
}

/// Reason why reading stopped.
enum Stop<E> {
    Fault(Fault),
    Sink { at: usize, error: E },
}

impl<E> From<Fault> for Stop<E> {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl<E> Stop<E> {
    #[cold]
    fn in_text(self, text: &[u8]) -> ReadError<E> {
        match self {
            Self::Fault(fault) => ReadError::Text(fault.in_text(text)),
            Self::Sink { at, error } => {
                ReadError::Sink { at, line: line_and_column(text, at).0, error }
            }
        }
    }
}

/// Adds the position to an error of a sink.
#[inline]
fn refused_at<E>(at: usize) -> impl FnOnce(E) -> Stop<E> {
    move |error| Stop::Sink { at, error }
}

/// Parser state between statements.
struct Reader<'t, 'm, 's, S, N> {
    labels: Labels<'t, 'm>,
    /// The open rank.
    rank: u32,
    /// Number of operations of the open rank.
    ops: u32,
    /// Offset behind the `{` of the open rank.
    block: usize,
    /// Number of label entries that suffices.
    needed: usize,
    sink: &'s mut S,
    note: N,
}

type Read<E> = Result<(), Stop<E>>;

impl<'t, S: Sink, N: FnMut(Placed)> Reader<'t, '_, '_, S, N> {
    fn read_all(&mut self, text: &'t [u8], survey: &Survey, lent: &mut [Block]) -> Read<S::Error> {
        if text.len() != survey.length() {
            return Err(Fault::new(0, TextErrorKind::OtherText).into());
        }
        let ranks = survey.extent().ranks;
        if survey.blocks_to_lend() == 0 {
            self.sink.ranks(ranks).map_err(refused_at(0))?;
            let mut outline = Outline::new(text, survey.start());
            return survey.own_ranks().try_for_each(|rank| self.read_next(&mut outline, rank));
        }
        let blocks = Block::find_all(text, survey, lent)?;
        self.sink.ranks(ranks).map_err(refused_at(0))?;
        blocks
            .iter()
            .try_for_each(|block| self.read_next(&mut Outline::new(text, block.at), block.rank))
    }

    /// Reads the next block, which must be that of `rank`.
    fn read_next(&mut self, outline: &mut Outline<'t>, rank: u32) -> Read<S::Error> {
        let header = outline.next_block()?.filter(|header| header.rank == rank);
        let Some(header) = header else {
            return Err(Fault::new(outline.cursor.at(), TextErrorKind::OtherText).into());
        };
        self.sink.begin_rank(rank).map_err(refused_at(header.at))?;
        self.labels.clear();
        self.rank = rank;
        self.ops = 0;
        self.block = outline.cursor.at();
        self.read_block(&mut outline.cursor)?;
        self.sink.end_rank().map_err(refused_at(outline.cursor.at()))
    }

    /// Reads statements up to and including the `}`.
    #[inline]
    fn read_block(&mut self, cursor: &mut Cursor<'t>) -> Read<S::Error> {
        loop {
            match cursor.byte() {
                b'a'..=b'z' | b'A'..=b'Z' => self.statement(cursor)?,
                b'\n' | b' ' | b'\t' => cursor.advance(1),
                b'}' => {
                    cursor.advance(1);
                    return Ok(());
                }
                b'/' if take_comment(cursor)? => {}
                _ if cursor.is_at_end() => {
                    let kind = TextErrorKind::UnterminatedRank { rank: self.rank };
                    return Err(Fault::new(cursor.at(), kind).into());
                }
                _ if cursor.take_line_end() => {}
                _ => return Err(Fault::expected(cursor, Wanted::Statement).into()),
            }
        }
    }

    /// Reads one statement with its line end.
    #[inline]
    fn statement(&mut self, cursor: &mut Cursor<'t>) -> Read<S::Error> {
        let Some(label) = self.labels.scan(cursor) else {
            return Err(Fault::expected(cursor, Wanted::Statement).into());
        };
        if cursor.byte() != b':' {
            cursor.skip_blanks();
            if cursor.byte() != b':' {
                return self.without_colon(cursor, label);
            }
        }
        cursor.advance(1);
        cursor.skip_blanks();
        let op = if cursor.take(b"send") {
            operation::take_send(cursor)?
        } else if cursor.take(b"recv") {
            operation::take_receive(cursor)?
        } else if cursor.take(b"calc") {
            operation::take_calc(cursor)?
        } else {
            return Err(Fault::no_operation(cursor, cursor.at(), Wanted::Operation).into());
        };
        if let Err(why) = self.labels.define(label, self.ops) {
            return Err(self.not_defined(cursor, label, why).into());
        }
        self.add(label.start, Some(label), op)
    }

    /// Passes an operation to the sink.
    #[inline]
    fn add(&mut self, at: usize, label: Option<Label>, op: Op) -> Read<S::Error> {
        let Some(ops) = self.ops.checked_add(1) else {
            return Err(Fault::new(at, TextErrorKind::TooManyOps).into());
        };
        (self.note)(Placed { rank: self.rank, op: self.ops, at, label });
        self.ops = ops;
        self.sink.op(op).map(drop).map_err(refused_at(at))
    }

    /// Reads a dependency, or an operation without a label, from after its first word and blanks.
    #[inline]
    fn without_colon(&mut self, cursor: &mut Cursor<'t>, left: Label) -> Read<S::Error> {
        let start = cursor.byte() == b'i';
        let before = *cursor;
        cursor.advance(usize::from(start));
        if !cursor.take(b"requires") {
            *cursor = before;
            return self.without_label(cursor, left);
        }
        let Some(right) = self.labels.scan(cursor) else {
            return Err(Fault::expected(cursor, Wanted::Label).into());
        };
        operation::take_end(cursor, Wanted::End)?;
        let Some(op) = self.labels.find(left) else {
            return Err(undefined(cursor, left).into());
        };
        let Some(on) = self.labels.find(right) else {
            return Err(undefined(cursor, right).into());
        };
        self.sink.edge(Edge { op, on, start }).map_err(refused_at(left.start))
    }

    #[inline(never)]
    fn without_label(&mut self, cursor: &mut Cursor<'t>, first: Label) -> Read<S::Error> {
        let op = match first.name(cursor.text()) {
            b"send" => operation::take_send(cursor)?,
            b"recv" => operation::take_receive(cursor)?,
            b"calc" => operation::take_calc(cursor)?,
            b"rank" | b"num_ranks" => {
                let start = Cursor::new(cursor.text(), first.start);
                return Err(Fault::expected(&start, Wanted::Statement).into());
            }
            _ => return Err(Fault::no_operation(cursor, first.start, Wanted::AfterLabel).into()),
        };
        self.add(first.start, None, op)
    }

    #[cold]
    #[inline(never)]
    fn not_defined(&self, cursor: &Cursor<'t>, label: Label, why: NotDefined) -> Fault {
        let text = cursor.text();
        let name = Name::new(label.name(text));
        let kind = match why {
            NotDefined::Reserved => TextErrorKind::ReservedLabel { name },
            NotDefined::Full => TextErrorKind::LabelMemory { needed: self.needed },
            NotDefined::Duplicate => {
                let first = first_definition(text, self.block, label.name(text));
                TextErrorKind::DuplicateLabel { name, first_line: line_and_column(text, first).0 }
            }
        };
        Fault::new(label.start, kind)
    }
}

#[cold]
fn undefined(cursor: &Cursor<'_>, label: Label) -> Fault {
    let name = Name::new(label.name(cursor.text()));
    Fault::new(label.start, TextErrorKind::UndefinedLabel { name })
}

/// Offset of the statement that defines `name`, in the block whose statements start at `block` and
/// are free of errors up to there.
fn first_definition(text: &[u8], block: usize, name: &[u8]) -> usize {
    let mut cursor = Cursor::new(text, block);
    while !cursor.is_at_end() {
        cursor.skip_blanks();
        let (start, end) = (cursor.at(), cursor.identifier_end());
        let is_name = text.get(start..end) == Some(name);
        cursor.advance(end - start);
        cursor.skip_blanks();
        if is_name && cursor.byte() == b':' {
            return start;
        }
        while !matches!(cursor.take_comment(), Ok(true)) && !cursor.take_line_end() {
            cursor.advance(1);
        }
    }
    block
}
