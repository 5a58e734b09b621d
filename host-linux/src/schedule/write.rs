//! Writes schedules in any form.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};

use loggap_core::goal::binary::{BinaryWriteError, NativeWriter, ReferenceWriter, cut_tag};
use loggap_core::goal::text::{TextWriteError, TextWriter};
use loggap_core::goal::{ANY, ANY_TAG, Edge, Op, OpKind, Output, RankMemory, RankNode, Sink};

use super::form::{Extent, Form};

/// Why a schedule was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The system did not take the bytes.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The form cannot say this schedule.
    #[error("{0}")]
    Schedule(String),
}

impl From<TextWriteError<io::Error>> for WriteError {
    fn from(error: TextWriteError<io::Error>) -> Self {
        match error {
            TextWriteError::Output(error) => Self::Io(error),
            other => Self::Schedule(other.to_string()),
        }
    }
}

impl From<BinaryWriteError<io::Error>> for WriteError {
    fn from(error: BinaryWriteError<io::Error>) -> Self {
        match error {
            BinaryWriteError::Output(error) => Self::Io(error),
            other => Self::Schedule(other.to_string()),
        }
    }
}

/// Bytes on their way into a stream that cannot go back: text only.
#[derive(Debug)]
pub struct StreamOutput<W>(pub W);

impl<W: Write> Output for StreamOutput<W> {
    type Error = io::Error;

    fn reserve(&mut self, _length: u64) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::NotSeekable, "binary schedules need a regular file"))
    }

    fn patch(&mut self, _at: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::NotSeekable.into())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }
}

/// Bytes on their way into a file: the reserved first ones wait in memory
/// until all are known.
#[derive(Debug)]
struct FileOutput<'f> {
    file: BufWriter<&'f mut File>,
    head: Vec<u8>,
}

impl<'f> FileOutput<'f> {
    fn new(file: &'f mut File) -> Self {
        Self { file: BufWriter::with_capacity(1 << 18, file), head: Vec::new() }
    }

    fn finish(mut self) -> io::Result<()> {
        if !self.head.is_empty() {
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(&self.head)?;
        }
        self.file.flush()
    }
}

impl Output for FileOutput<'_> {
    type Error = io::Error;

    fn reserve(&mut self, length: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(length))?;
        let bytes = usize::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.head = vec![0; bytes];
        Ok(())
    }

    fn patch(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let at = usize::try_from(at).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let space = self.head.get_mut(at..at.saturating_add(bytes.len()));
        space.ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(bytes);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }
}

/// Tags that LogGOPSim's form cuts off to their lower 32 bits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CutTags {
    /// Operations whose tags are cut off.
    pub operations: u64,
    /// Two tags of which one is left, or one tag and the wildcard.
    pub confused: Option<[u64; 2]>,
}

/// Finds which tags are cut off, and confused by it.
#[derive(Debug, Default)]
struct TagCutter {
    cut: CutTags,
    /// The tag of each that is left.
    tags: HashMap<u32, u64>,
    last: Option<u64>,
}

impl TagCutter {
    fn note(&mut self, op: &Op) {
        let (OpKind::Send { tag, .. } | OpKind::Receive { tag, .. }) = op.kind else { return };
        let left = cut_tag(tag);
        self.cut.operations += u64::from(tag != ANY_TAG && tag >= u64::from(ANY));
        if self.last.replace(tag) == Some(tag) {
            return;
        }
        let first = if left == ANY { ANY_TAG } else { *self.tags.entry(left).or_insert(tag) };
        if first != tag {
            self.cut.confused.get_or_insert([first, tag]);
        }
    }
}

/// A writer of any form.
#[derive(Debug)]
pub struct Writer<'w, 'f> {
    writer: AnyWriter<'w, 'f>,
    cutter: Option<TagCutter>,
}

#[derive(Debug)]
enum AnyWriter<'w, 'f> {
    Text(TextWriter<FileOutput<'f>>),
    Reference(ReferenceWriter<'w, FileOutput<'f>>),
    Native(NativeWriter<'w, FileOutput<'f>>),
}

/// Calls the same method on whichever writer it is.
macro_rules! forward {
    ($self:ident, $writer:ident => $call:expr) => {
        match &mut $self.writer {
            AnyWriter::Text($writer) => Ok($call?),
            AnyWriter::Reference($writer) => Ok($call?),
            AnyWriter::Native($writer) => Ok($call?),
        }
    };
}

impl Sink for Writer<'_, '_> {
    type Error = WriteError;

    fn ranks(&mut self, ranks: u32) -> Result<(), WriteError> {
        forward!(self, writer => writer.ranks(ranks))
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), WriteError> {
        forward!(self, writer => writer.begin_rank(rank))
    }

    fn op(&mut self, op: Op) -> Result<u32, WriteError> {
        let index = forward!(self, writer => writer.op(op));
        if let Some(cutter) = &mut self.cutter {
            cutter.note(&op);
        }
        index
    }

    fn edge(&mut self, edge: Edge) -> Result<(), WriteError> {
        forward!(self, writer => writer.edge(edge))
    }

    fn end_rank(&mut self) -> Result<(), WriteError> {
        forward!(self, writer => writer.end_rank())
    }
}

impl Writer<'_, '_> {
    /// Whether it writes text.
    pub(crate) const fn is_text(&self) -> bool {
        matches!(self.writer, AnyWriter::Text(_))
    }

    fn finish(self) -> Result<CutTags, WriteError> {
        let output = match self.writer {
            AnyWriter::Text(writer) => writer.finish()?,
            AnyWriter::Reference(writer) => writer.finish()?,
            AnyWriter::Native(writer) => writer.finish()?,
        };
        output.finish()?;
        Ok(self.cutter.map(|cutter| cutter.cut).unwrap_or_default())
    }
}

/// Writes into `file`, in `form`, the schedule of this `extent` that `feed`
/// plays; returns the tags that were cut off.
///
/// # Errors
///
/// Those of `feed`, and [`WriteError`] of completing the file.
pub fn write<E: From<WriteError>>(
    file: &mut File,
    form: Form,
    extent: &Extent,
    feed: impl FnOnce(&mut Writer<'_, '_>) -> Result<(), E>,
) -> Result<CutTags, E> {
    let output = FileOutput::new(file);
    let binary = form != Form::Text;
    let (ops, edges) = if binary { (extent.ops_most, extent.edges_most) } else { (0, 0) };
    let (mut nodes, mut rank_edges, mut successors, mut pending);
    let cutter = (form == Form::Reference).then(TagCutter::default);
    let writer = match form {
        Form::Text => AnyWriter::Text(TextWriter::new(output)),
        Form::Reference => {
            nodes = vec![RankNode::EMPTY; ops];
            rank_edges = vec![Edge::default(); edges];
            successors = vec![0; edges];
            let (nodes, edges, successors) = (&mut nodes, &mut rank_edges, &mut successors);
            AnyWriter::Reference(ReferenceWriter::new(
                output,
                RankMemory { nodes, edges, successors },
            ))
        }
        Form::Native => {
            pending = vec![[0; 8]; ops + edges];
            AnyWriter::Native(NativeWriter::new(output, &mut pending))
        }
    };
    let mut writer = Writer { writer, cutter };
    feed(&mut writer)?;
    writer.finish().map_err(E::from)
}

/// Writes as text, into a stream, the schedule that `feed` plays.
///
/// # Errors
///
/// Those of `feed`, and [`WriteError`] of completing the text.
pub fn write_text<W: Write, E: From<WriteError>>(
    out: W,
    feed: impl FnOnce(&mut TextWriter<StreamOutput<W>>) -> Result<(), E>,
) -> Result<(), E> {
    let mut writer = TextWriter::new(StreamOutput(out));
    feed(&mut writer)?;
    writer.finish().map(drop).map_err(|error| E::from(WriteError::from(error)))
}
