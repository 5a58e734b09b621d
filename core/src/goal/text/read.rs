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
    let TextMemory { blocks, labels } = memory;
    let mut reader = Reader::new(text, survey, labels);
    let mut events = ToSink(sink);
    reader.read_all(text, survey, blocks, &mut events).map_err(|stop| stop.in_text(text))
}

/// Receiver of parsed statements.
pub(super) trait Events {
    type Error;

    fn ranks(&mut self, ranks: u32) -> Result<(), Self::Error>;
    fn begin_rank(&mut self, rank: u32) -> Result<(), Self::Error>;
    /// Operation with its label; its statement starts at `at`.
    fn op(&mut self, at: usize, label: Option<Label>, op: Op) -> Result<(), Self::Error>;
    fn edge(&mut self, edge: Edge) -> Result<(), Self::Error>;
    fn end_rank(&mut self) -> Result<(), Self::Error>;
}

/// Forwards statements to a [`Sink`].
struct ToSink<'s, S>(&'s mut S);

impl<S: Sink> Events for ToSink<'_, S> {
    type Error = S::Error;

    fn ranks(&mut self, ranks: u32) -> Result<(), S::Error> {
        self.0.ranks(ranks)
    }

    #[inline]
    fn begin_rank(&mut self, rank: u32) -> Result<(), S::Error> {
        self.0.begin_rank(rank)
    }

    #[inline]
    fn op(&mut self, _at: usize, _label: Option<Label>, op: Op) -> Result<(), S::Error> {
        self.0.op(op).map(|_| ())
    }

    #[inline]
    fn edge(&mut self, edge: Edge) -> Result<(), S::Error> {
        self.0.edge(edge)
    }

    #[inline]
    fn end_rank(&mut self) -> Result<(), S::Error> {
        self.0.end_rank()
    }
}

/// Reason why reading stopped.
pub(super) enum Stop<E> {
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
    pub(super) fn in_text(self, text: &[u8]) -> ReadError<E> {
        match self {
            Self::Fault(fault) => ReadError::Text(fault.in_text(text)),
            Self::Sink { at, error } => {
                ReadError::Sink { at, line: line_and_column(text, at).0, error }
            }
        }
    }
}

/// Adds the position to an error of a sink.
trait At<T, E> {
    fn at(self, at: usize) -> Result<T, Stop<E>>;
}

impl<T, E> At<T, E> for Result<T, E> {
    #[inline]
    fn at(self, at: usize) -> Result<T, Stop<E>> {
        self.map_err(|error| Stop::Sink { at, error })
    }
}

/// Parser state between statements.
pub(super) struct Reader<'t, 'm> {
    labels: Labels<'t, 'm>,
    /// Number of operations of the open rank.
    ops: u32,
    /// Offset behind the `{` of the open rank.
    block: usize,
    /// Number of label entries that suffices.
    needed: usize,
}

type Read<E> = Result<(), Stop<E>>;

impl<'t, 'm> Reader<'t, 'm> {
    pub(super) fn new(text: &'t [u8], survey: &Survey, memory: LabelMemory<'m>) -> Self {
        let labels = Labels::new(text, memory);
        Self { labels, ops: 0, block: 0, needed: survey.labels_most() }
    }

    pub(super) fn read_all<E: Events>(
        &mut self,
        text: &'t [u8],
        survey: &Survey,
        lent: &mut [Block],
        events: &mut E,
    ) -> Read<E::Error> {
        if text.len() != survey.length() {
            return Err(Fault::new(0, TextErrorKind::OtherText).into());
        }
        if survey.blocks_to_lend() == 0 {
            events.ranks(survey.ranks()).at(0)?;
            return self.read_ascending(text, survey, events);
        }
        let blocks = Block::find_all(text, survey, lent)?;
        events.ranks(survey.ranks()).at(0)?;
        for block in blocks {
            let mut outline = Outline::new(text, block.at());
            self.read_next(&mut outline, block.rank(), events)?;
        }
        Ok(())
    }

    fn read_ascending<E: Events>(
        &mut self,
        text: &'t [u8],
        survey: &Survey,
        events: &mut E,
    ) -> Read<E::Error> {
        let mut outline = Outline::new(text, survey.start());
        for rank in survey.own_ranks() {
            self.read_next(&mut outline, rank, events)?;
        }
        Ok(())
    }

    /// Reads the next block, which must be that of `rank`.
    fn read_next<E: Events>(
        &mut self,
        outline: &mut Outline<'t>,
        rank: u32,
        events: &mut E,
    ) -> Read<E::Error> {
        let header = outline.next_block()?.filter(|header| header.rank == rank);
        let Some(header) = header else {
            return Err(Fault::new(outline.cursor.at(), TextErrorKind::OtherText).into());
        };
        events.begin_rank(rank).at(header.at)?;
        self.labels.clear();
        self.ops = 0;
        self.block = outline.cursor.at();
        self.read_block(&mut outline.cursor, rank, events)?;
        events.end_rank().at(outline.cursor.at())
    }

    /// Reads statements up to and including the `}`.
    #[inline]
    fn read_block<E: Events>(
        &mut self,
        cursor: &mut Cursor<'t>,
        rank: u32,
        events: &mut E,
    ) -> Read<E::Error> {
        loop {
            match cursor.byte() {
                b'a'..=b'z' | b'A'..=b'Z' => self.statement(cursor, events)?,
                b'\n' | b' ' | b'\t' => cursor.advance(1),
                b'}' => {
                    cursor.advance(1);
                    return Ok(());
                }
                b'/' if take_comment(cursor)? => {}
                _ if cursor.is_at_end() => {
                    let kind = TextErrorKind::UnterminatedRank { rank };
                    return Err(Fault::new(cursor.at(), kind).into());
                }
                _ if cursor.take_line_end() => {}
                _ => return Err(Fault::expected(cursor, Wanted::Statement).into()),
            }
        }
    }

    /// Reads one statement with its line end.
    #[inline]
    fn statement<E: Events>(&mut self, cursor: &mut Cursor<'t>, events: &mut E) -> Read<E::Error> {
        let Some(label) = self.labels.scan(cursor) else {
            return Err(Fault::expected(cursor, Wanted::Statement).into());
        };
        if cursor.byte() != b':' {
            cursor.skip_blanks();
            if cursor.byte() != b':' {
                return self.without_colon(cursor, label, events);
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
        self.add(label.start, Some(label), op, events)
    }

    /// Passes an operation to `events`.
    #[inline]
    fn add<E: Events>(
        &mut self,
        at: usize,
        label: Option<Label>,
        op: Op,
        events: &mut E,
    ) -> Read<E::Error> {
        let Some(ops) = self.ops.checked_add(1) else {
            return Err(Fault::new(at, TextErrorKind::TooManyOps).into());
        };
        self.ops = ops;
        events.op(at, label, op).at(at)
    }

    /// Reads a dependency, or an operation without a label, from after its first word and blanks.
    #[inline]
    fn without_colon<E: Events>(
        &mut self,
        cursor: &mut Cursor<'t>,
        left: Label,
        events: &mut E,
    ) -> Read<E::Error> {
        let start = cursor.byte() == b'i';
        let before = *cursor;
        cursor.advance(usize::from(start));
        if !cursor.take(b"requires") {
            *cursor = before;
            return self.without_label(cursor, left, events);
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
        events.edge(Edge { op, on, start }).at(left.start)
    }

    #[inline(never)]
    fn without_label<E: Events>(
        &mut self,
        cursor: &mut Cursor<'t>,
        first: Label,
        events: &mut E,
    ) -> Read<E::Error> {
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
        self.add(first.start, None, op, events)
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
