//! Inputs of a conversion: traces of loggap, and texts of liballprof.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::Strictness;
use crate::trace::liballprof::RankText;
use crate::trace::matching::ends;
use crate::trace::rank::Communicator;
use crate::trace::{Overhead, Record, Trace, TraceError, Unfinished};

/// Why an input was refused.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no path.
    #[error("give the directory of a trace, or the file of rank 0 of liballprof")]
    Nothing,
    /// A trace of a tool that is not read.
    #[error(
        "'{}' is a trace in {format}, which is not read: trace with 'loggap-mpi trace', or with \
         liballprof", path.display()
    )]
    Foreign {
        /// Path.
        path: PathBuf,
        /// Name of its format.
        format: &'static str,
    },
    /// A file is no trace.
    #[error("'{}' is neither the directory of a trace nor a text of liballprof", path.display())]
    Unknown {
        /// Path.
        path: PathBuf,
    },
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The file of a rank cannot be read, and the others can.
    #[error("{0}; --lenient leaves the rank out")]
    Rank(TraceError),
    /// No file of a rank has a record that can be read.
    #[error("'{}' has no records of any rank{reason}", path.display())]
    Lost {
        /// Directory of the trace.
        path: PathBuf,
        /// Why the first of the files cannot be opened.
        reason: String,
    },
}

/// Format of another tool, by the names of its files.
fn foreign(path: &Path) -> Option<&'static str> {
    let has = |path: &Path, wanted: &str| path.extension().is_some_and(|found| found == wanted);
    let is_dumpi = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("dumpi") && (has(path, "meta") || has(path, "bin"))
    };
    let known = |path: &Path| match path {
        path if has(path, "otf2") => Some("OTF2"),
        path if has(path, "prv") => Some("Paraver's format"),
        path if is_dumpi(path) => Some("DUMPI"),
        _ => None,
    };
    let inside = || fs::read_dir(path).ok()?.flatten().find_map(|entry| known(&entry.path()));
    known(path).or_else(inside)
}

/// Files whose names differ from that of rank 0 in the rank only, until one is missing.
fn following(first: &Path) -> Vec<PathBuf> {
    let name = first.to_str().and_then(|name| name.rsplit_once("-0"));
    let Some((before, behind)) = name else { return vec![first.to_owned()] };
    let of = |rank: u32| PathBuf::from(format!("{before}-{rank}{behind}"));
    let further = (1..).map(of).take_while(|path| path.exists());
    [first.to_owned()].into_iter().chain(further).collect()
}

/// Input of a conversion.
#[derive(Debug)]
pub enum Input {
    /// Trace of `loggap-mpi trace`.
    Trace(Box<Trace>),
    /// Files of liballprof, one a rank.
    Liballprof(Vec<RankText>),
}

/// Records of a rank.
pub(super) type Records<'t> = Box<dyn Iterator<Item = Result<Record<'t>, TraceError>> + 't>;

impl Input {
    /// Opens the directory of a trace, or files of liballprof: one for each rank, or that of rank 0,
    /// in whose name `-0` stands for the rank, as Schedgen takes it. A lenient reading takes a directory
    /// without the files of some ranks.
    ///
    /// # Errors
    ///
    /// [`OpenError`].
    pub fn open(paths: &[PathBuf], strictness: Strictness) -> Result<Self, OpenError> {
        if let Some((path, format)) = paths.iter().find_map(|path| Some((path, foreign(path)?))) {
            return Err(OpenError::Foreign { path: path.clone(), format });
        }
        match paths {
            [] => Err(OpenError::Nothing),
            [directory] if directory.is_dir() => {
                let trace = match strictness {
                    Strictness::Strict => Trace::open(directory).map_err(|error| {
                        let is_of_rank = error.is_of_rank();
                        if is_of_rank { OpenError::Rank(error) } else { error.into() }
                    })?,
                    Strictness::Lenient => Self::what_is_there(directory)?,
                };
                Ok(Self::Trace(Box::new(trace)))
            }
            [first] => Self::texts(&following(first)),
            several => Self::texts(several),
        }
    }

    /// A trace of which some record can be read.
    fn what_is_there(directory: &Path) -> Result<Trace, OpenError> {
        let trace = Trace::open_what_is_there(directory)?;
        if trace.ranks().iter().any(|rank| rank.records().any(|record| record.is_ok())) {
            return Ok(trace);
        }
        let reason = trace.missing().first().map(|error| format!(": {error}"));
        Err(OpenError::Lost { path: directory.to_owned(), reason: reason.unwrap_or_default() })
    }

    fn texts(paths: &[PathBuf]) -> Result<Self, OpenError> {
        let ranks = u32::try_from(paths.len()).unwrap_or(u32::MAX);
        let text = |(rank, path): (u32, &PathBuf)| RankText::open(path.clone(), rank, ranks);
        let texts = (0..).zip(paths).map(text).collect::<Result<Vec<_>, _>>()?;
        for text in &texts {
            if !text.is_text() {
                return Err(OpenError::Unknown { path: text.path().to_owned() });
            }
        }
        Ok(Self::Liballprof(texts))
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        let ranks = match self {
            Self::Trace(trace) => trace.ranks().len(),
            Self::Liballprof(texts) => texts.len(),
        };
        u32::try_from(ranks).unwrap_or(u32::MAX)
    }

    /// Records of `rank`.
    pub(super) fn records(&self, rank: u32, strictness: Strictness) -> Records<'_> {
        let at = rank as usize;
        match self {
            Self::Trace(trace) => match trace.ranks().get(at) {
                Some(rank) => Box::new(rank.records()),
                None => Box::new(std::iter::empty()),
            },
            Self::Liballprof(texts) => match texts.get(at) {
                Some(text) => Box::new(text.records(strictness)),
                None => Box::new(std::iter::empty()),
            },
        }
    }

    /// Communicators of `rank`, by number.
    pub(super) fn communicators(&self, rank: u32) -> Option<&HashMap<u32, Communicator>> {
        match self {
            Self::Trace(trace) => Some(trace.ranks().get(rank as usize)?.communicators()),
            Self::Liballprof(texts) => Some(texts.get(rank as usize)?.communicators()),
        }
    }

    /// Operations of `rank` that no call reported complete, where the trace has all completions.
    pub(super) fn unfinished(&self, rank: u32) -> Result<Vec<Unfinished>, TraceError> {
        match self {
            Self::Trace(trace) => {
                trace.ranks().get(rank as usize).map_or(Ok(Vec::new()), |rank| ends(rank, |_| {}))
            }
            Self::Liballprof(_) => Ok(Vec::new()),
        }
    }

    /// Completions that the trace has.
    pub(super) const fn completions(&self) -> Completions {
        match self {
            Self::Trace(_) => Completions::All,
            Self::Liballprof(_) => Completions::OfWaits,
        }
    }

    /// Overhead of recording a call.
    pub(super) fn overhead(&self) -> Overhead {
        match self {
            Self::Trace(trace) => trace.description().overhead(),
            Self::Liballprof(_) => Overhead::default(),
        }
    }
}

/// Completions of posted operations that a trace has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Completions {
    /// All: what lacks one was never complete.
    All,
    /// Not those of tests: what lacks one counts as posted.
    OfWaits,
}
