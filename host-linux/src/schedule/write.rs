//! Writes schedules in any of the three formats.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};

use loggap_core::goal::binary::{BinaryWriteError, NativeWriter, ReferenceWriter, cut_tag};
use loggap_core::goal::text::{TextWriteError, TextWriter};
use loggap_core::goal::{ANY, ANY_TAG, Edge, Extent, Op, OpKind, Output, Sink};

use super::form::Form;
use super::owned_rank::OwnedRank;

/// Error of writing a schedule.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// I/O error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The format cannot represent this schedule.
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

/// Output to a stream that cannot seek, which is enough for text.
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

/// Output to a file. The reserved first bytes are kept in memory until they are complete.
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

/// Tags that LogGOPSim's format truncates to their lower 32 bits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CutTags {
    /// Operations with truncated tags.
    pub operations: u64,
    /// Two tags that become equal by truncation, or one that becomes the wildcard.
    pub confused: Option<[u64; 2]>,
}

/// Counts truncated tags and finds those that become ambiguous.
#[derive(Debug, Default)]
struct TagCutter {
    cut: CutTags,
    /// The first original tag of each truncated one.
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

/// A writer for any of the formats.
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

/// Forwards a call to the writer, whichever format it has.
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
    /// True if the format is text.
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

/// Writes into `file`, in the format `form`, the schedule of this `extent` that `feed` produces;
/// returns the truncated tags.
///
/// # Errors
///
/// Errors of `feed`, and [`WriteError`] when the file is completed.
pub fn write<E: From<WriteError>>(
    file: &mut File,
    form: Form,
    extent: &Extent,
    feed: impl FnOnce(&mut Writer<'_, '_>) -> Result<(), E>,
) -> Result<CutTags, E> {
    let output = FileOutput::new(file);
    let (mut rank, mut pending);
    let cutter = (form == Form::Reference).then(TagCutter::default);
    let writer = match form {
        Form::Text => AnyWriter::Text(TextWriter::new(output)),
        Form::Reference => {
            rank = OwnedRank::new(extent);
            AnyWriter::Reference(ReferenceWriter::new(output, rank.lend()))
        }
        Form::Native => {
            pending = vec![[0; 8]; extent.ops_most + extent.edges_most];
            AnyWriter::Native(NativeWriter::new(output, &mut pending))
        }
    };
    let mut writer = Writer { writer, cutter };
    feed(&mut writer)?;
    writer.finish().map_err(E::from)
}

/// Writes the schedule that `feed` produces to a stream, as text.
///
/// # Errors
///
/// Errors of `feed`, and [`WriteError`] when the text is completed.
pub fn write_text<W: Write, E: From<WriteError>>(
    out: W,
    feed: impl FnOnce(&mut TextWriter<StreamOutput<W>>) -> Result<(), E>,
) -> Result<(), E> {
    let mut writer = TextWriter::new(StreamOutput(out));
    feed(&mut writer)?;
    writer.finish().map(drop).map_err(|error| E::from(WriteError::from(error)))
}
