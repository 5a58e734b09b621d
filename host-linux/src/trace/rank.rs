//! The file of a rank: its blocks, communicators, and records.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fmt;
use std::iter;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use loggap_core::trace::{
    BlockHeader, DEFINITIONS, Decoder, Direction, FileHeader, ParseError, ParseErrorKind, Part,
};

use super::record::{Counts, Record, Tests, What};
use super::{TraceError, mapped};

/// A communicator, as a rank knows it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Communicator {
    /// Identity, the same at all its ranks and of no other communicator.
    pub identity: u64,
    /// Progressions of ranks in `MPI_COMM_WORLD` in order of the communicator's: first, stride,
    /// count.
    members: Vec<(i32, i32, u32)>,
    remote: Vec<(i32, i32, u32)>,
    /// Extents of a Cartesian topology, and whether each is a ring.
    pub dimensions: Vec<(u32, bool)>,
    /// Neighbours of a graph topology, and whether this rank sends to them or receives from them.
    pub neighbours: Vec<(Direction, i32)>,
}

impl Communicator {
    /// Ranks in `MPI_COMM_WORLD`, in order of the communicator's.
    pub fn members(&self) -> impl Iterator<Item = i32> + '_ {
        self.members.iter().flat_map(|&(first, stride, count)| {
            (0..count).map(move |at| first.wrapping_add(stride.wrapping_mul(at.cast_signed())))
        })
    }

    /// Number of members.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.members.iter().map(|&(_, _, count)| u64::from(count)).sum()
    }

    /// `MPI_COMM_WORLD` of `ranks` ranks.
    #[must_use]
    pub fn world(ranks: u32) -> Self {
        Self { members: vec![(0, 1, ranks)], ..Self::default() }
    }

    /// True if it has another group.
    #[must_use]
    pub const fn is_inter(&self) -> bool {
        !self.remote.is_empty()
    }

    /// Rank in `MPI_COMM_WORLD` of the member `rank`.
    #[must_use]
    pub fn member(&self, rank: u32) -> Option<i32> {
        let mut rest = rank;
        for &(first, stride, count) in &self.members {
            if rest < count {
                return Some(first.wrapping_add(stride.wrapping_mul(rest.cast_signed())));
            }
            rest -= count;
        }
        None
    }

    /// Rank in this communicator of the rank `world` of `MPI_COMM_WORLD`.
    #[must_use]
    pub fn rank_of(&self, world: i32) -> Option<u32> {
        let mut before = 0u32;
        for &(first, stride, count) in &self.members {
            let distance = i64::from(world) - i64::from(first);
            let step = if stride == 0 { 0 } else { distance / i64::from(stride) };
            if step * i64::from(stride) == distance && (0..i64::from(count)).contains(&step) {
                return before.checked_add(u32::try_from(step).ok()?);
            }
            before = before.checked_add(count)?;
        }
        None
    }
}

/// Names of calls, each once.
#[derive(Debug, Default)]
struct Names {
    /// Until the first empty place.
    here: [OnceLock<Box<str>>; 16],
    more: OnceLock<Box<Self>>,
}

impl Names {
    /// Most of them are 1,024 names; MPI has about 450.
    const MOST: usize = 64;

    /// `name` with the life of these; `None` if there are too many.
    fn keep(&self, name: &str) -> Option<&str> {
        let all = iter::successors(Some(self), |names| Some(names.more.get_or_init(Box::default)));
        let places = all.take(Self::MOST).flat_map(|names| &names.here);
        places.map(|place| &**place.get_or_init(|| name.into())).find(|&kept| kept == name)
    }
}

/// Trace of a rank.
pub struct RankTrace {
    path: PathBuf,
    bytes: Box<dyn Deref<Target = [u8]> + Send + Sync>,
    header: FileHeader,
    /// Blocks of calls: header, and where what is stored of them begins.
    blocks: Vec<(BlockHeader, usize)>,
    /// Names of the calls that were read so far.
    names: Names,
    communicators: HashMap<u32, Communicator>,
    /// Bytes at the end that are no whole block.
    cut: usize,
}

impl fmt::Debug for RankTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RankTrace").field("path", &self.path).finish_non_exhaustive()
    }
}

impl RankTrace {
    /// Opens the file of a rank.
    ///
    /// # Errors
    ///
    /// [`TraceError`].
    pub fn open(path: PathBuf) -> Result<Self, TraceError> {
        let map = mapped(&path)?;
        Self::parse(path, map)
    }

    /// A rank without records.
    pub(super) fn empty(path: PathBuf, header: FileHeader) -> Self {
        Self {
            path,
            bytes: Box::new(Vec::new()),
            header,
            blocks: Vec::new(),
            names: Names::default(),
            communicators: HashMap::new(),
            cut: 0,
        }
    }

    /// Reads the file of a rank, whose content is `bytes`: the headers of its blocks, and the
    /// definitions of communicators.
    ///
    /// # Errors
    ///
    /// [`TraceError`].
    pub fn parse(
        path: PathBuf,
        bytes: impl Deref<Target = [u8]> + Send + Sync + 'static,
    ) -> Result<Self, TraceError> {
        let failed = |error| TraceError::Parse { path: path.clone(), record: 0, error };
        let header = FileHeader::parse(&bytes).map_err(failed)?;
        let mut new = Self::empty(path.clone(), header);
        let mut at = FileHeader::LEN.min(bytes.len());
        // A program that was killed leaves a part of a block.
        while let Ok(block) = BlockHeader::parse(bytes.get(at..).unwrap_or_default()) {
            let start = at + BlockHeader::LEN;
            let end = start.saturating_add(usize::try_from(block.stored).unwrap_or(usize::MAX));
            let Some(stored) = bytes.get(start..end) else { break };
            if !block.fits(stored) {
                break;
            }
            at = end;
            if block.thread == DEFINITIONS {
                let parts = parts(&block, stored).map_err(failed)?;
                define(&parts, &mut new.communicators).map_err(failed)?;
            } else {
                new.blocks.push((block, start));
            }
        }
        new.cut = bytes.len().saturating_sub(at);
        new.bytes = Box::new(bytes);
        Ok(new)
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if its file could not be opened.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Run and rank.
    #[must_use]
    pub const fn header(&self) -> FileHeader {
        self.header
    }

    /// Bytes at the end of the file that are no whole block, as a killed program or a full disk
    /// leaves them.
    #[must_use]
    pub const fn cut(&self) -> usize {
        self.cut
    }

    /// Communicator of this number at this rank.
    #[must_use]
    pub fn communicator(&self, number: u32) -> Option<&Communicator> {
        self.communicators.get(&number)
    }

    /// All communicators, with their numbers.
    #[must_use]
    pub const fn communicators(&self) -> &HashMap<u32, Communicator> {
        &self.communicators
    }

    /// Records of all threads in order of their ends.
    #[must_use]
    pub fn records(&self) -> Records<'_> {
        let mut blocks: Vec<_> = self.blocks.iter().collect();
        blocks.sort_by_key(|(block, _)| block.thread);
        let threads = (0..).zip(blocks.chunk_by(|(one, _), (other, _)| one.thread == other.thread));
        let threads: Vec<_> = threads.map(|(at, blocks)| Thread::new(self, at, blocks)).collect();
        let next = threads.iter().enumerate().filter_map(|(at, thread)| Some((thread.end()?, at)));
        Records { next: next.map(Reverse).collect(), threads }
    }
}

/// Parts of a block of which this is stored.
fn parts<'a>(block: &BlockHeader, stored: &'a [u8]) -> Result<Cow<'a, [u8]>, ParseError> {
    if !block.is_compressed() {
        return Ok(stored.into());
    }
    // The header was refused if this is much.
    let mut parts = vec![0; block.length as usize];
    match lz4_flex::block::decompress_into(stored, &mut parts) {
        Ok(length) if length == parts.len() => Ok(parts.into()),
        _ => Err(ParseError { at: 0, kind: ParseErrorKind::Value("compressed data") }),
    }
}

/// Adds the communicators of a block of definitions.
fn define(parts: &[u8], known: &mut HashMap<u32, Communicator>) -> Result<(), ParseError> {
    let mut decoder = Decoder::new(parts, 0);
    let mut last = None;
    while let Some(part) = decoder.next() {
        let part = part?;
        if let Part::Define { number, identity } = part {
            known.insert(number, Communicator { identity, ..Communicator::default() });
            last = Some(number);
            continue;
        }
        let error = ParseError { at: decoder.offset(), kind: ParseErrorKind::Value("definition") };
        let comm = last.and_then(|last| known.get_mut(&last)).ok_or(error)?;
        match part {
            Part::Members { remote, first, stride, count } => {
                let group = if remote { &mut comm.remote } else { &mut comm.members };
                group.push((first, stride, count));
            }
            Part::Dimension { extent, periodic } => comm.dimensions.push((extent, periodic)),
            Part::Neighbour { direction, peer } => comm.neighbours.push((direction, peer)),
            _ => return Err(error),
        }
    }
    Ok(())
}

/// Iterator of [`RankTrace::records`]. After an error, a thread has no more records.
#[derive(Debug)]
pub struct Records<'t> {
    threads: Vec<Thread<'t>>,
    /// Ends of the threads' next records.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

impl<'t> Iterator for Records<'t> {
    type Item = Result<Record<'t>, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((_, at)) = self.next.pop()?;
        let first = self.threads.get_mut(at)?;
        let record = first.next.take();
        if record.as_ref().is_some_and(Result::is_ok) {
            first.next = first.read();
            self.next.extend(first.end().map(|end| Reverse((end, at))));
        }
        record
    }
}

/// Records of a thread.
#[derive(Debug)]
struct Thread<'t> {
    rank: &'t RankTrace,
    /// Number among the threads of the rank.
    number: u32,
    /// Blocks that were not begun, the next one last.
    blocks: Vec<&'t (BlockHeader, usize)>,
    decoder: Decoder<Cow<'t, [u8]>>,
    names: Vec<&'t str>,
    /// First part of the next record.
    pending: Option<Part<'t>>,
    next: Option<Result<Record<'t>, TraceError>>,
    records: u64,
}

impl<'t> Thread<'t> {
    fn new(rank: &'t RankTrace, number: u32, blocks: &[&'t (BlockHeader, usize)]) -> Self {
        let mut new = Self {
            rank,
            number,
            blocks: blocks.iter().rev().copied().collect(),
            decoder: Decoder::over(Cow::default(), 0),
            names: Vec::new(),
            pending: None,
            next: None,
            records: 0,
        };
        new.next = new.read();
        new
    }

    /// End of the next record; an error comes first.
    fn end(&self) -> Option<u64> {
        self.next.as_ref().map(|next| next.as_ref().map_or(0, |record| record.leave))
    }

    /// The next record.
    fn read(&mut self) -> Option<Result<Record<'t>, TraceError>> {
        let record = self.record().transpose()?;
        self.records += 1;
        Some(record.map_err(|error| TraceError::Parse {
            path: self.rank.path.clone(),
            record: self.records - 1,
            error,
        }))
    }

    /// The next part of this block that is no name.
    fn part(&mut self) -> Result<Option<Part<'t>>, ParseError> {
        let names = &self.rank.names;
        let mut next = || self.decoder.part(|name| names.keep(name));
        while let Some(part) = self.pending.take().map(Ok).or_else(&mut next) {
            match part? {
                Part::Name(name) => self.names.push(name),
                part => return Ok(Some(part)),
            }
        }
        Ok(None)
    }

    fn record(&mut self) -> Result<Option<Record<'t>>, ParseError> {
        let first = loop {
            if let Some(part) = self.part()? {
                break part;
            }
            let Some((block, start)) = self.blocks.pop() else { return Ok(None) };
            let stored = self.rank.bytes.get(*start..start + block.stored as usize);
            self.decoder = Decoder::over(parts(block, stored.unwrap_or_default())?, block.base);
            self.names.clear();
        };
        let Part::Call { name, enter, leave } = first else { return Err(self.wrong("record")) };
        let call = self.name(name)?;
        let mut what = What::Call;
        while let Some(part) = self.part()? {
            if matches!(part, Part::Call { .. }) {
                self.pending = Some(part);
                break;
            }
            what = self.with(what, part)?;
        }
        Ok(Some(Record { call, thread: self.number, enter, leave, what }))
    }

    /// `what` with a further part.
    fn with(&self, mut what: What<'t>, part: Part<'t>) -> Result<What<'t>, ParseError> {
        match (&mut what, part) {
            (What::Call, Part::Message(message)) => return Ok(What::Messages(vec![message])),
            (What::Messages(all), Part::Message(message)) => all.push(message),
            (What::Call, Part::Completed(one)) => return Ok(What::Completions(vec![one])),
            (What::Completions(all), Part::Completed(one)) => all.push(one),
            (What::Call, Part::Collective(operation)) => {
                let [sent, received] = [Counts::default(), Counts::default()];
                return Ok(What::Collective { operation, sent, received });
            }
            (What::Collective { sent, received, .. }, Part::Each { direction, peers, bytes }) => {
                // More peers than any communicator has would be made up.
                if peers > u64::from(u32::MAX) {
                    return Err(self.wrong("number of peers"));
                }
                match direction {
                    Direction::Send => sent.0.push((peers, bytes)),
                    Direction::Receive => received.0.push((peers, bytes)),
                }
            }
            (What::Call, Part::Probed(envelope)) => return Ok(What::Probe(envelope)),
            (What::Call, Part::Loop { inside, computing }) => {
                return Ok(What::Tests(Tests { counts: Vec::new(), inside, computing }));
            }
            (What::Tests(tests), Part::Tests { name, count }) => {
                tests.counts.push((self.name(name)?, count));
            }
            (What::Call, Part::Communicator { number, freed }) => {
                return Ok(What::Communicator { number, freed });
            }
            _ => return Err(self.wrong("part of a record")),
        }
        Ok(what)
    }

    fn name(&self, number: u32) -> Result<&'t str, ParseError> {
        let name = usize::try_from(number).ok().and_then(|number| self.names.get(number));
        name.copied().ok_or_else(|| self.wrong("number of a name"))
    }

    const fn wrong(&self, what: &'static str) -> ParseError {
        ParseError { at: self.decoder.offset(), kind: ParseErrorKind::Value(what) }
    }
}
