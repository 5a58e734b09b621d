//! Schedule files: opening, reading into a sink, looking up operations.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use loggap_core::goal::binary::{
    self, BinaryError, BinaryReadError, LookupError, LookupMemory, Native, Reference,
};
use loggap_core::goal::text::{
    self, Block, LabelMemory, LabelUse, OpPlace, ReadError, Survey, TextError, TextMemory,
};
use loggap_core::goal::{Extent, OpIndex, Sink};
use loggap_core::sim::BuildError;
use memmap2::Mmap;

use super::EachOp;
use super::coding::Coding;
use super::form::Form;
use super::lookup::NumberedLookup;
use super::tags::{TagNumbers, numbering, with_number};
use crate::side_by_side::side_by_side;
use crate::sys::file_map;

/// An input that is no valid schedule.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {message}")]
pub struct RefusedInput {
    /// Name of the file.
    pub name: String,
    /// The error and its position.
    pub message: String,
}

/// Error of reading a schedule into a sink.
#[derive(Debug, thiserror::Error)]
pub enum FeedError<E> {
    /// The file is invalid.
    #[error(transparent)]
    Input(RefusedInput),
    /// The sink returned an error for the operation at this place.
    #[error("{place}: {error}")]
    Sink {
        /// File and line, or file and rank.
        place: String,
        /// The sink's error.
        error: E,
    },
}

/// Position of an operation in a GOAL text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Location {
    /// Rank of the operation.
    pub rank: u32,
    /// Index within the rank.
    pub op: u32,
    /// Line of its statement, from 1.
    pub line: usize,
    /// Byte offset of its statement.
    pub offset: usize,
    /// Label of the operation.
    pub label: Option<String>,
}

/// An open schedule file. Blocks, header and table were checked when it was opened, so its extent
/// is known; operations are checked when they are read.
#[derive(Debug)]
pub struct ScheduleFile {
    name: String,
    contents: Contents,
    frame: Frame,
    tags: RwLock<Arc<TagNumbers>>,
}

#[derive(Debug)]
enum Contents {
    Mapped { map: Mmap, file: File, opened: Version },
    Owned(Vec<u8>),
}

/// Version of a file's content: it changes whenever the file is written to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Version {
    length: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl Version {
    fn of(file: &File) -> io::Result<Self> {
        let about = file.metadata()?;
        let (seconds, nanoseconds) = (about.mtime(), about.mtime_nsec());
        Ok(Self { length: about.len(), seconds, nanoseconds })
    }
}

/// Result of the checks at opening.
#[derive(Debug)]
enum Frame {
    /// Survey of the whole, and of its parts if there are several.
    Text(Survey, Vec<Survey>),
    Binary(Form, Extent),
}

/// Least length of a part of a text that is read apart from others, bytes.
const PART: usize = 1 << 20;
/// Parts for each thread, so that the load is balanced.
const EACH: usize = 4;

/// Surveys a text on several threads, in parts of at least `least` bytes if its ranks are in order.
fn survey(bytes: &[u8], threads: usize, least: usize) -> Result<Frame, TextError> {
    let count = if threads > 1 { (bytes.len() / least).min(threads * EACH) } else { 1 };
    let mut starts: Vec<usize> =
        (1..count).filter_map(|part| next_rank(bytes, bytes.len() / count * part)).collect();
    starts.push(0);
    starts.sort_unstable();
    starts.dedup();
    if starts.len() > 1 {
        let of_part = |start: usize| {
            let next = starts.iter().copied().find(|&next| next > start);
            Survey::of_part(bytes, start..next.unwrap_or(bytes.len())).ok_or(())
        };
        let parts = side_by_side(threads, &starts, || Ok(()), |(), start| of_part(start));
        if let Ok(mut parts) = parts
            && let Some(whole) = Survey::join(&mut parts)
        {
            return Ok(Frame::Text(whole, parts));
        }
    }
    Ok(Frame::Text(Survey::of(bytes)?, Vec::new()))
}

/// Start of the next line `rank N {`, which is a block unless it is in a comment.
fn next_rank(bytes: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let brace = from + bytes.get(from..)?.iter().position(|&byte| byte == b'{')?;
        let line = bytes.get(..brace)?.iter().rposition(|&byte| byte == b'\n')? + 1;
        if bytes.get(line..brace)?.starts_with(b"rank") {
            return Some(line);
        }
        from = brace + 1;
    }
}

impl Contents {
    fn load(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return read_to_end(&mut io::stdin().lock());
        }
        let mut file = File::open(path)?;
        let about = file.metadata()?;
        // Some devices never reach their end.
        if about.file_type().is_char_device() || about.file_type().is_block_device() {
            return Err(io::Error::other("a device holds no schedule; give a file or '-'"));
        }
        match usize::try_from(about.len()) {
            Ok(length) if length > 0 && about.is_file() => {
                let opened = Version::of(&file)?;
                let map = file_map::map(&file, length)?;
                Ok(Self::Mapped { map, file, opened })
            }
            _ => read_to_end(&mut file),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Mapped { map, .. } => map,
            Self::Owned(bytes) => bytes,
        }
    }

    /// True if the file may have changed since it was opened.
    fn changed(&self) -> bool {
        match self {
            Self::Mapped { file, opened, .. } => {
                Version::of(file).is_ok_and(|version| version != *opened)
            }
            Self::Owned(_) => false,
        }
    }
}

fn read_to_end(from: &mut dyn Read) -> io::Result<Contents> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes)?;
    Ok(Contents::Owned(bytes))
}

impl ScheduleFile {
    /// Opens the file at `path`, or standard input for `-`. Binary formats are recognised by their
    /// magic numbers; all else is text.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or its blocks, header or table are invalid.
    pub fn open(path: &Path) -> Result<Self, RefusedInput> {
        Self::open_on(path, 1)
    }

    /// As [`ScheduleFile::open`], on several threads.
    ///
    /// # Errors
    ///
    /// As [`ScheduleFile::open`].
    pub fn open_on(path: &Path, threads: usize) -> Result<Self, RefusedInput> {
        let name = match path.to_str() {
            Some("-") => "standard input".to_owned(),
            _ => path.display().to_string(),
        };
        match Contents::load(path) {
            Ok(contents) => Self::examine(name, contents, threads, PART),
            Err(error) => Err(RefusedInput { name, message: error.to_string() }),
        }
    }

    /// Opens a schedule that is already in memory.
    ///
    /// # Errors
    ///
    /// Its blocks, header or table are invalid.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Result<Self, RefusedInput> {
        Self::examine(name.into(), Contents::Owned(bytes), 1, PART)
    }

    /// As [`ScheduleFile::from_bytes`], on several threads, with parts of at least `part` bytes.
    #[cfg(test)]
    pub(crate) fn in_parts(
        bytes: Vec<u8>,
        threads: usize,
        part: usize,
    ) -> Result<Self, RefusedInput> {
        Self::examine("t.goal".to_owned(), Contents::Owned(bytes), threads, part)
    }

    fn examine(
        name: String,
        contents: Contents,
        threads: usize,
        part: usize,
    ) -> Result<Self, RefusedInput> {
        let bytes = contents.bytes();
        let binary = |error: BinaryError| error.to_string();
        let frame = match binary::Format::of(bytes) {
            Some(binary::Format::Reference) => Reference::open(bytes)
                .map(|view| Frame::Binary(Form::Reference, view.extent()))
                .map_err(binary),
            Some(binary::Format::Native) => Native::open(bytes)
                .map(|view| Frame::Binary(Form::Native, view.extent()))
                .map_err(binary),
            None => match Coding::of(bytes) {
                Some(coding) => Err(coding.to_string()),
                None => survey(bytes, threads, part).map_err(|error| explain(bytes, &error)),
            },
        };
        match frame {
            Ok(frame) => Ok(Self { name, contents, frame, tags: RwLock::default() }),
            Err(message) => Err(RefusedInput { name, message }),
        }
    }

    /// Name of the file, for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Format of the file.
    #[must_use]
    pub const fn form(&self) -> Form {
        match self.frame {
            Frame::Text(..) => Form::Text,
            Frame::Binary(form, _) => form,
        }
    }

    /// Length of the file in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.contents.bytes().len()
    }

    /// Size of the schedule: exact if reading succeeds.
    #[must_use]
    pub const fn extent(&self) -> Extent {
        match &self.frame {
            Frame::Text(survey, _) => survey.extent(),
            Frame::Binary(_, extent) => *extent,
        }
    }

    /// Number of labels in a text; `None` for binary formats.
    #[must_use]
    pub fn labels(&self) -> Option<usize> {
        match &self.frame {
            Frame::Text(survey, _) => Some(survey.labels()),
            Frame::Binary(..) => None,
        }
    }

    /// Reads the whole schedule into `sink`.
    ///
    /// # Errors
    ///
    /// The first error in the file or of the sink; or that the file was written to since it was
    /// opened.
    pub fn feed<S: Sink>(&self, sink: &mut S) -> Result<(), FeedError<S::Error>> {
        let fed = self.play(sink);
        self.unchanged().map_err(FeedError::Input)?;
        fed
    }

    /// As [`ScheduleFile::feed`], for the sink of a simulation: tags from 2³¹ are replaced by their
    /// numbers in [`ScheduleFile::tags`].
    ///
    /// # Errors
    ///
    /// As [`ScheduleFile::feed`].
    pub fn feed_numbered<S: Sink<Error = BuildError>>(
        &self,
        sink: &mut S,
    ) -> Result<(), FeedError<BuildError>> {
        let mut tags = self.tags.write().unwrap_or_else(PoisonError::into_inner);
        self.feed(&mut numbering(Arc::make_mut(&mut tags), sink))
    }

    /// Parts of a text that can be [read](Self::feed_part) apart; none if it is read as a whole.
    pub(crate) fn parts(&self) -> &[Survey] {
        match &self.frame {
            Frame::Text(_, parts) => parts,
            Frame::Binary(..) => &[],
        }
    }

    /// Reads a part of a text into the sink of a simulation. `None` if [`ScheduleFile::feed_numbered`]
    /// returns an error or replaces tags.
    pub(crate) fn feed_part<S: Sink<Error = BuildError>>(
        &self,
        part: &Survey,
        sink: &mut S,
    ) -> Option<()> {
        let small = |_, op| with_number(op, |_| None).ok_or(BuildError::TooManyOps);
        let mut sink = EachOp::new(sink, small);
        let bytes = self.contents.bytes();
        with_memory(part, |memory| text::read(bytes, part, memory, &mut sink)).ok()
    }

    /// Tags that were replaced by numbers.
    pub fn tags(&self) -> Arc<TagNumbers> {
        Arc::clone(&self.tags.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks that the file was not written to since it was opened.
    ///
    /// # Errors
    ///
    /// The file has changed.
    pub fn unchanged(&self) -> Result<(), RefusedInput> {
        if self.contents.changed() {
            let message = "another program wrote to the file while it was read; try again";
            return Err(self.refused(message.to_owned()));
        }
        Ok(())
    }

    /// Random access to the operations of a binary file. `memory` has as many elements as
    /// [`ScheduleFile::lookup_spans`] says; `tags` are the file's. The file must have been
    /// [read](Self::feed_numbered) without an error before.
    ///
    /// # Errors
    ///
    /// The file is a text, or `memory` is too small.
    pub fn lookup<'f>(
        &'f self,
        memory: LookupMemory<'f>,
        tags: &'f TagNumbers,
    ) -> Result<NumberedLookup<'f>, RefusedInput> {
        let bytes = self.contents.bytes();
        let lookup = match self.form() {
            Form::Text => {
                return Err(self.refused("a text has no operations to look up".to_owned()));
            }
            Form::Native => Native::open(bytes)
                .map_err(LookupError::File)
                .and_then(|view| view.lookup(memory))
                .map(|file| NumberedLookup::Native(file, tags)),
            Form::Reference => Reference::open(bytes)
                .map_err(LookupError::File)
                .map(|file| NumberedLookup::Reference(file, tags)),
        };
        lookup.map_err(|error| self.refused(error.to_string()))
    }

    /// Elements of [`LookupMemory::spans`] for [`ScheduleFile::lookup`].
    #[must_use]
    pub fn lookup_spans(&self) -> u64 {
        match self.form() {
            Form::Native => Native::open(self.contents.bytes()).map_or(0, |view| view.spans()),
            Form::Text | Form::Reference => 0,
        }
    }

    /// Tells the kernel to expect random instead of sequential reads from now on.
    pub fn advise_lookups(&self) {
        if let Contents::Mapped { map, .. } = &self.contents {
            file_map::advise_lookups(map);
        }
    }

    fn play<S: Sink>(&self, sink: &mut S) -> Result<(), FeedError<S::Error>> {
        let bytes = self.contents.bytes();
        match &self.frame {
            Frame::Text(survey, _) => {
                let read = |memory: TextMemory<'_>| text::read(bytes, survey, memory, sink);
                with_memory(survey, read).map_err(|error| match error {
                    ReadError::Text(error) => {
                        FeedError::Input(self.refused(explain(bytes, &error)))
                    }
                    ReadError::Sink { line, error, .. } => {
                        FeedError::Sink { place: format!("{}: line {line}", self.name), error }
                    }
                })
            }
            Frame::Binary(form, extent) => {
                let read = match form {
                    Form::Native => Native::open(bytes)
                        .map_err(BinaryReadError::from)
                        .and_then(|v| v.read(sink)),
                    _ => Reference::open(bytes)
                        .map_err(BinaryReadError::from)
                        .and_then(|view| view.read(&mut vec![0; extent.ops_most], sink)),
                };
                read.map_err(|error| match error {
                    BinaryReadError::File(error) => {
                        FeedError::Input(self.refused(error.to_string()))
                    }
                    BinaryReadError::Sink { rank, error } => {
                        FeedError::Sink { place: format!("{}: rank {rank}", self.name), error }
                    }
                })
            }
        }
    }

    /// Positions of operations in a text; empty for binary formats.
    ///
    /// # Errors
    ///
    /// The text is invalid.
    pub fn locate(&self, ops: &[OpIndex]) -> Result<Vec<Location>, RefusedInput> {
        let Frame::Text(survey, _) = &self.frame else { return Ok(Vec::new()) };
        let bytes = self.contents.bytes();
        let mut wanted: Vec<OpPlace> =
            ops.iter().map(|index| OpPlace::new(index.rank, index.op)).collect();
        wanted.sort_unstable_by_key(|place| (place.rank, place.op));
        with_memory(survey, |memory| text::locate(bytes, survey, memory, &mut wanted))
            .map_err(|error| self.refused(explain(bytes, &error)))?;
        Ok(locations(bytes, &wanted))
    }

    /// The first `most` labels of a text to which no dependency refers, and the number of all of
    /// them; none for binary formats.
    ///
    /// # Errors
    ///
    /// The text is invalid.
    pub fn unused_labels(&self, most: usize) -> Result<(Vec<Location>, usize), RefusedInput> {
        let Frame::Text(survey, _) = &self.frame else { return Ok((Vec::new(), 0)) };
        let bytes = self.contents.bytes();
        let mut uses = vec![LabelUse::default(); survey.extent().ops_most];
        let (mut found, mut count) = (Vec::new(), 0);
        let report = |unused| {
            count += 1;
            if found.len() < most {
                found.push(unused);
            }
        };
        with_memory(survey, |memory| text::unused_labels(bytes, survey, memory, &mut uses, report))
            .map_err(|error| self.refused(explain(bytes, &error)))?;
        // Offsets are not in the order of ranks if the text's blocks are not.
        found.sort_unstable_by_key(|place| place.at);
        let mut found = locations(bytes, &found);
        found.sort_unstable_by_key(|place| (place.rank, place.op));
        Ok((found, count))
    }

    fn refused(&self, message: String) -> RefusedInput {
        RefusedInput { name: self.name.clone(), message }
    }
}

/// Calls `read` with the memory that reading a text needs.
fn with_memory<T>(survey: &Survey, read: impl FnOnce(TextMemory<'_>) -> T) -> T {
    // Zeroed pages cost nothing until they are used; numbered labels do not use them.
    let mut blocks = vec![Block::default(); survey.blocks_to_lend()];
    let mut entries = vec![[0_u64; 2]; survey.labels_most()];
    let mut buckets = vec![0_u32; survey.labels_most()];
    // The result does not depend on the seed. It is random so that no input can be crafted to make
    // label look-ups slow.
    let seed = RandomState::new().build_hasher().finish();
    let labels = LabelMemory { entries: &mut entries, buckets: &mut buckets, seed };
    read(TextMemory { blocks: &mut blocks, labels })
}

/// Lines and labels of `places`. If their offsets ascend, the lines of the text are counted only
/// once.
fn locations(bytes: &[u8], places: &[OpPlace]) -> Vec<Location> {
    let (mut line, mut counted) = (1, 0);
    let mut found = Vec::with_capacity(places.len());
    for place in places {
        let Some(offset) = place.at else { continue };
        if offset < counted {
            (line, counted) = (1, 0);
        }
        let between = bytes.get(counted..offset).unwrap_or_default();
        line += between.iter().filter(|&&byte| byte == b'\n').count();
        counted = offset;
        let label = place.label.map(|name| name.to_string());
        found.push(Location { rank: place.rank, op: place.op, line, offset, label });
    }
    found
}

/// Message of the error, the line that it is about, and a mark below the position.
fn explain(bytes: &[u8], error: &TextError) -> String {
    const WIDTH: usize = 100;
    let start = error.at.saturating_sub(error.column - 1);
    // Start of the shown part of the line; a long line is cut on the left.
    let shown = start.max(error.at.saturating_sub(WIDTH - 20));
    let rest = bytes.get(shown..).unwrap_or_default();
    let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line.get(..WIDTH).unwrap_or(line));
    let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.trim().is_empty() {
        return error.to_string();
    }
    let before = String::from_utf8_lossy(bytes.get(shown..error.at).unwrap_or_default());
    let blanks = " ".repeat(before.chars().count());
    format!("{error}\n  {line}\n  {blanks}^", line = line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use loggap_core::goal::stats::Counter;

    fn open(text: &str) -> ScheduleFile {
        ScheduleFile::from_bytes("t.goal", text.into()).unwrap()
    }

    #[test]
    fn an_error_shows_the_line_and_marks_the_place() {
        let file = open("num_ranks 1\nrank 0 {\n  a: sned 5b to 1\n}\n");
        let error = file.feed(&mut Counter::new(&mut [])).unwrap_err().to_string();
        let mut lines = error.lines();
        let first = lines.next().unwrap();
        assert!(first.starts_with("t.goal: line 3, column 6 (byte 26): expected"), "{first}");
        assert_eq!(lines.next(), Some("    a: sned 5b to 1"));
        assert_eq!(lines.next(), Some("       ^"));
    }

    #[test]
    fn an_error_in_a_very_long_line_shows_a_part_of_it() {
        let text = format!("num_ranks 1\nrank 0 {{\na: send 5b to {}\n}}\n", "9".repeat(5_000));
        let error = open(&text).feed(&mut Counter::new(&mut [])).unwrap_err().to_string();
        assert!(error.len() < 400 && error.contains("peer too large"), "{error}");
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_other_codings_are_named_with_what_converts_them() {
        let text = "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\n}\n";
        let marked = open(&format!("\u{feff}{text}"));
        marked.feed(&mut Counter::new(&mut [])).unwrap();
        assert_eq!(
            (marked.extent().ops, marked.locate(&[OpIndex { rank: 0, op: 1 }]).unwrap()[0].line),
            (2, 4)
        );
        let units = |mark: &str, order: fn(u16) -> [u8; 2]| -> Vec<u8> {
            format!("{mark}{text}").encode_utf16().flat_map(order).collect()
        };
        for (bytes, command) in [
            (units("\u{feff}", u16::to_le_bytes), "'iconv -f UTF-16 -t UTF-8 FILE > PLAIN'"),
            (units("\u{feff}", u16::to_be_bytes), "iconv -f UTF-16 -t UTF-8"),
            (units("", u16::to_le_bytes), "iconv -f UTF-16LE"),
            (units("", u16::to_be_bytes), "iconv -f UTF-16BE"),
            (b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec(), "'gzip -dc FILE > PLAIN'"),
            (b"\x28\xb5\x2f\xfd\x24".to_vec(), "zstd -dc"),
            (b"\xfd7zXZ\0".to_vec(), "xz -dc"),
            (b"BZh91AY".to_vec(), "bzip2 -dc"),
        ] {
            let error = ScheduleFile::from_bytes("x", bytes.clone()).unwrap_err().to_string();
            assert!(error.starts_with("x: this is ") && error.contains(command), "{error}");
        }
    }

    #[test]
    fn an_operation_of_another_dialect_is_named() {
        for (statement, word, owner) in [
            ("coll allreduce 8b group 7 instance 1", "coll", "a collective"),
            ("a: coll allreduce 8b group 7 instance 1", "coll", "a collective"),
            ("a: AllReduce 4096 bytes comm 0", "AllReduce", "a collective"),
            ("a: put 8b to 1 tag 3", "put", "LogGOPSim2"),
            ("tget 8b from 1", "tget", "LogGOPSim2"),
        ] {
            let text = format!("num_ranks 1\nrank 0 {{\n{statement}\n}}\n");
            let error = open(&text).feed(&mut Counter::new(&mut [])).unwrap_err().to_string();
            let about = format!("t.goal: line 3, column {}", 1 + statement.find(word).unwrap());
            let named = format!("\"{word}\" is ");
            assert!(error.starts_with(&about) && error.contains(owner), "{error}");
            assert!(error.contains(&named) && error.ends_with('^'), "{error}");
        }
        let error = open("num_ranks 1\nrank 0 {\na: sned 5b to 1\n}\n");
        let error = error.feed(&mut Counter::new(&mut [])).unwrap_err().to_string();
        assert!(error.contains("found \"sned\""), "{error}");
    }

    #[test]
    fn operations_and_unused_labels_are_found_in_blocks_of_any_order() {
        let file = open(
            "num_ranks 2\nrank 1 {\nx: calc 1\ny: calc 2\nx requires x\n}\n\
             rank 0 {\nz: calc 1\n}\n",
        );
        let place = |rank, op, line, offset, label: &str| Location {
            rank,
            op,
            line,
            offset,
            label: Some(label.to_owned()),
        };
        let found = file.locate(&[OpIndex { rank: 1, op: 1 }, OpIndex { rank: 0, op: 0 }]).unwrap();
        assert_eq!(found, [place(0, 0, 8, 65, "z"), place(1, 1, 4, 31, "y")]);
        let unused = file.unused_labels(9).unwrap();
        assert_eq!(unused, (vec![place(0, 0, 8, 65, "z"), place(1, 1, 4, 31, "y")], 2));
        assert_eq!(file.unused_labels(1).unwrap().1, 2);
    }

    #[test]
    fn a_file_that_is_written_to_while_it_is_read_is_refused() {
        use std::io::Write;

        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"num_ranks 1\nrank 0 {\nx: calc 1\n}\n").unwrap();
        let open = ScheduleFile::open(file.path()).unwrap();
        open.feed(&mut Counter::new(&mut [])).unwrap();
        // Timestamps of files may have a granularity of some milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(50));
        let again = std::fs::OpenOptions::new().write(true).open(file.path());
        again.unwrap().write_all(b"num_ranks 1\nrank 0 {\ny: calc 2\n}\n").unwrap();
        let error = open.feed(&mut Counter::new(&mut [])).unwrap_err().to_string();
        assert!(error.contains("another program wrote to the file"), "{error}");
    }
}
