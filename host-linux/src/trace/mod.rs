//! Traces of MPI programs: what `loggap-mpi trace` wrote into a directory.
//!
//! [`Trace::open`] reads `trace.json` and opens a file a rank. [`RankTrace::records`] iterates over
//! the records of a rank in order of their ends, all threads together, without storing them;
//! [`Trace::merged`] over those of all ranks, in order of rank 0's time.
//!
//! ```no_run
//! use loggap::trace::{Trace, What};
//!
//! let trace = Trace::open("loggap-trace".as_ref())?;
//! for rank in trace.ranks() {
//!     for record in rank.records() {
//!         let record = record?;
//!         if let What::Messages(messages) = &record.what {
//!             println!("{} of {} messages at {} ns", record.call, messages.len(), record.enter);
//!         }
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod convert;
pub mod extrapolate;
pub mod liballprof;
mod matching;
mod rank;
mod record;
mod summary;
mod used;

use std::collections::{BTreeMap, BinaryHeap};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use loggap_core::trace::{FileHeader, ParseError};
use memmap2::Mmap;
use serde::{Deserialize, Serialize};

use crate::sys::file_map;
pub use matching::{Key, Pair, Unfinished, Unmatched, pairs};
pub use rank::{Communicator, RankTrace, Records};
pub use record::{Counts, Record, Tests, What};
pub use summary::{CallSummary, RankSummary, Summary};
pub use used::AlgorithmUse;

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// `trace.json` or the file of a rank cannot be read.
    #[error("cannot read '{}': {source}{}", path.display(), hint(path, source))]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// System error.
        source: io::Error,
    },
    /// `trace.json` is not that of a trace.
    #[error("'{}' is not the description of a trace: {reason}", path.display())]
    Description {
        /// Path of the file.
        path: PathBuf,
        /// Kind of the error.
        reason: String,
    },
    /// The file of a rank is of another run, rank or number of ranks.
    #[error(
        "'{}' is of rank {} of {} in run {:016x}, and not what trace.json describes: trace again into an \
         empty directory", path.display(), found.rank, found.ranks, found.run
    )]
    Mixed {
        /// Path of the file.
        path: PathBuf,
        /// Its own description.
        found: FileHeader,
    },
    /// A line of a text is wrong.
    #[error("'{}':{line}:{column}: {expected} expected; --lenient leaves out such lines", path.display())]
    Text {
        /// Path of the file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Byte in the line, from 1.
        column: usize,
        /// What should have stood there.
        expected: &'static str,
    },
    /// The file of a rank is wrong.
    #[error("'{}': record {record}: {error}", path.display())]
    Parse {
        /// Path of the file.
        path: PathBuf,
        /// Number of the record, from 0, in its thread.
        record: u64,
        /// Position in its block, and kind of the error.
        error: ParseError,
    },
}

fn hint(path: &Path, source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound if !is_of_rank(path) => "; loggap-mpi trace -o DIR writes it",
        io::ErrorKind::NotADirectory => {
            "; a trace is the directory that loggap-mpi trace -o DIR wrote"
        }
        _ => "",
    }
}

impl TraceError {
    /// True if the file of a rank cannot be read.
    #[must_use]
    pub fn is_of_rank(&self) -> bool {
        matches!(self, Self::Read { path, .. } | Self::Parse { path, .. } if is_of_rank(path))
    }
}

/// True for the file of a rank.
fn is_of_rank(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "trace")
}

/// The file at `path`, mapped into memory.
fn mapped(path: &Path) -> Result<Mmap, TraceError> {
    let map = File::open(path).and_then(|file| {
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        file_map::map(&file, length)
    });
    map.map_err(|source| TraceError::Read { path: path.to_owned(), source })
}

/// File that describes a trace.
const DESCRIPTION: &str = "trace.json";

/// Clock of a rank against that of rank 0.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Offset {
    /// Time of the rank when it was so, in nanoseconds.
    pub at_ns: i64,
    /// Time of the rank less that of rank 0, in nanoseconds.
    pub offset_ns: i64,
    /// Bound of the error, in nanoseconds.
    pub bound_ns: i64,
}

/// Contents of `trace.json`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Description {
    /// Version of this document.
    pub schema_version: u32,
    /// `loggap-trace`.
    pub format: String,
    /// Random number of the run, hexadecimal.
    pub run: String,
    /// Number of ranks.
    pub ranks: u32,
    /// MPI library.
    pub library: String,
    /// Command of the program, unless it was not to be kept.
    pub command: Option<Vec<String>>,
    /// Settings of the MPI library, as environment variables, of rank 0: those that are set, and
    /// those that decide about algorithms of collectives.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Open MPI's file of rules, if it has one.
    #[serde(default)]
    pub rules: Option<String>,
    /// Host of each rank.
    pub hosts: Vec<String>,
    /// Processors of each rank's host.
    #[serde(default)]
    pub processors: Vec<u32>,
    /// Reading of each rank's `CLOCK_MONOTONIC_RAW` that its times count from, in nanoseconds.
    pub bases_ns: Vec<u64>,
    /// Clock of each rank at the begin.
    pub clocks_begin: Vec<Offset>,
    /// Clock of each rank at the end; empty without `MPI_Finalize`.
    pub clocks_end: Vec<Offset>,
    /// Cost of recording a blocking send besides reading the clock, in seconds.
    pub cost_per_call_s: f64,
    /// Cost of the two readings of the clock of a call, in seconds.
    pub clock_reads_s: f64,
    /// Time to combine a byte of two vectors (`MPI_Reduce_local`, a sum of doubles), in seconds.
    #[serde(default)]
    pub combine_per_byte_s: f64,
}

/// Time of the tracer in recording a call, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overhead {
    /// Between the record before and this one.
    pub between: f64,
    /// Inside of this record.
    pub inside: f64,
}

impl Description {
    /// Overhead of recording a call, as measured when the run began.
    #[must_use]
    pub fn overhead(&self) -> Overhead {
        let inside = self.clock_reads_s * 1e9 / 2.0;
        Overhead { between: self.cost_per_call_s * 1e9 + inside, inside }
    }

    /// Reads `trace.json`.
    ///
    /// # Errors
    ///
    /// What is wrong in it.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        /// What every version has.
        #[derive(Deserialize)]
        struct Any {
            format: String,
            schema_version: u32,
        }
        let any: Any = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if any.format != "loggap-trace" || any.schema_version != 1 {
            return Err(format!("format {} {}", any.format, any.schema_version));
        }
        let read: Self = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let Self { ranks, hosts, processors, bases_ns, clocks_begin, clocks_end, .. } = &read;
        let always = [hosts.len(), bases_ns.len(), clocks_begin.len()];
        let perhaps = [processors.len(), clocks_end.len()].into_iter().filter(|length| *length > 0);
        let mut lengths = always.into_iter().chain(perhaps);
        if *ranks == 0 || lengths.any(|length| length != *ranks as usize) {
            return Err("a list is not as long as there are ranks".to_owned());
        }
        Ok(read)
    }
}

/// A trace.
#[derive(Debug)]
pub struct Trace {
    description: Description,
    ranks: Vec<RankTrace>,
    missing: Vec<TraceError>,
}

impl Trace {
    /// Opens the trace in `directory`. Files are mapped into memory, not read.
    ///
    /// # Errors
    ///
    /// [`TraceError`].
    pub fn open(directory: &Path) -> Result<Self, TraceError> {
        let trace = Self::open_what_is_there(directory)?;
        let mut missing = trace.missing.into_iter();
        missing.next().map_or(Ok(Self { missing: Vec::new(), ..trace }), Err)
    }

    /// As [`Trace::open`]; ranks whose files cannot be opened have no records.
    ///
    /// # Errors
    ///
    /// [`TraceError`] of `trace.json`, or of files that are of another run.
    pub fn open_what_is_there(directory: &Path) -> Result<Self, TraceError> {
        let path = directory.join(DESCRIPTION);
        let text =
            fs::read(&path).map_err(|source| TraceError::Read { path: path.clone(), source })?;
        let description = Description::parse(&text)
            .map_err(|reason| TraceError::Description { path: path.clone(), reason })?;
        let run = u64::from_str_radix(&description.run, 16).unwrap_or_default();
        let mut missing = Vec::new();
        let rank = |rank| {
            let path = directory.join(format!("{rank}.trace"));
            RankTrace::open(path.clone()).unwrap_or_else(|error| {
                missing.push(error);
                RankTrace::empty(path, FileHeader { run, rank, ranks: description.ranks })
            })
        };
        let ranks: Vec<_> = (0..description.ranks).map(rank).collect();
        Ok(Self { missing, ..Self::of(description, ranks)? })
    }

    /// Trace with the files of these ranks.
    ///
    /// # Errors
    ///
    /// [`TraceError::Mixed`].
    pub fn of(description: Description, ranks: Vec<RankTrace>) -> Result<Self, TraceError> {
        let run = u64::from_str_radix(&description.run, 16);
        for (number, rank) in (0..).zip(&ranks) {
            let found = rank.header();
            if (found.rank, found.ranks, Ok(found.run)) != (number, description.ranks, run.clone())
            {
                return Err(TraceError::Mixed { path: rank.path().to_owned(), found });
            }
        }
        Ok(Self { description, ranks, missing: Vec::new() })
    }

    /// Contents of `trace.json`.
    #[must_use]
    pub const fn description(&self) -> &Description {
        &self.description
    }

    /// A host with more ranks than processors: what these computed includes waiting for processors.
    #[must_use]
    pub fn crowded_host(&self) -> Option<&str> {
        let Description { hosts, processors, .. } = &self.description;
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        hosts.iter().for_each(|host| *counts.entry(host).or_default() += 1);
        let ranks = hosts.iter().zip(processors);
        let is_crowded =
            |host: &str, processors| counts.get(host).is_some_and(|ranks| *ranks > processors);
        let (host, _) = ranks.into_iter().find(|(host, count)| is_crowded(host, **count))?;
        Some(host)
    }

    /// Why ranks have no records whose files could not be opened.
    #[must_use]
    pub fn missing(&self) -> &[TraceError] {
        &self.missing
    }

    /// Traces of the ranks, in order.
    #[must_use]
    pub fn ranks(&self) -> &[RankTrace] {
        &self.ranks
    }

    /// Time of rank 0 at the time `nanos` of `rank`, both in nanoseconds after the rank's base;
    /// interpolated between begin and end.
    #[must_use]
    pub fn time(&self, rank: u32, nanos: u64) -> i64 {
        let at = rank as usize;
        let time = i64::try_from(nanos).unwrap_or(i64::MAX);
        let Some(begin) = self.description.clocks_begin.get(at) else { return time };
        let end = self.description.clocks_end.get(at).unwrap_or(begin);
        let span = i128::from(end.at_ns) - i128::from(begin.at_ns);
        let moved = i128::from(end.offset_ns) - i128::from(begin.offset_ns);
        let since = i128::from(time) - i128::from(begin.at_ns);
        // Clocks that no machine has must not overflow.
        let drift = if span > 0 { moved.saturating_mul(since) / span } else { 0 };
        let global = (i128::from(time) - i128::from(begin.offset_ns)).saturating_sub(drift);
        let limit = if global < 0 { i64::MIN } else { i64::MAX };
        i64::try_from(global).unwrap_or(limit)
    }

    /// Records of all ranks in order of their ends in rank 0's time, each with its rank.
    #[must_use]
    pub fn merged(&self) -> Merged<'_> {
        let mut merged = Merged { trace: self, ranks: Vec::new(), next: BinaryHeap::new() };
        for rank in &self.ranks {
            merged.ranks.push((rank.records(), None));
            merged.advance(merged.ranks.len() - 1);
        }
        merged
    }
}

/// Iterator of [`Trace::merged`].
#[derive(Debug)]
pub struct Merged<'t> {
    trace: &'t Trace,
    ranks: Vec<(Records<'t>, Option<Result<Record<'t>, TraceError>>)>,
    /// Earliest ends of the ranks' next records.
    next: BinaryHeap<std::cmp::Reverse<(i64, usize)>>,
}

impl Merged<'_> {
    fn advance(&mut self, rank: usize) {
        let Some((records, next)) = self.ranks.get_mut(rank) else { return };
        *next = records.next();
        let Some(found) = next else { return };
        let number = u32::try_from(rank).unwrap_or(u32::MAX);
        let end = found.as_ref().map_or(i64::MIN, |record| self.trace.time(number, record.leave));
        self.next.push(std::cmp::Reverse((end, rank)));
    }
}

impl<'t> Iterator for Merged<'t> {
    type Item = Result<(u32, Record<'t>), TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let std::cmp::Reverse((_, rank)) = self.next.pop()?;
        let record = self.ranks.get_mut(rank)?.1.take()?;
        self.advance(rank);
        Some(record.map(|record| (u32::try_from(rank).unwrap_or(u32::MAX), record)))
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "numbers of tests are small")]
mod testing;
#[cfg(test)]
mod tests;
