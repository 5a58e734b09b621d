//! Traces as GOAL schedules: what each call of a rank becomes.
//!
//! The time between two calls is a calculation; a call waits for what its thread did before. A
//! posted operation lets its thread go on, and is waited for where a call reported its completion.
//! A receive takes the message that it took in the program: its source, tag and length are looked
//! up ahead (`lookahead`). Collective operations are the messages of an algorithm
//! (`collective`). Ranks are converted one after the other, each in one pass; memory is that of
//! operations under way and of communicators.
//!
//! A thread's processor is twice its number; its immediate collective operations take the next one,
//! so that they run at the same time as its calculations.

mod algorithms;
mod collective;
mod ends;
mod input;
mod lookahead;
mod rank;
mod report;
mod schedgen;

use std::collections::HashMap;
use std::sync::OnceLock;

use loggap_core::goal::Sink;
use loggap_core::goal::stats::Counter;
use loggap_core::units::{PerByte, SignedPerByte};

pub use algorithms::{Algorithms, AlgorithmsError};
pub(super) use collective::{CollectiveCall, NotedCall, Notes, NullMessage, Plan};
pub use ends::Ends;
pub use input::{Input, OpenError};
pub use rank::is_collective;
pub use report::{Class, Line, Report};

use super::rank::Communicator;
use super::{TraceError, Unfinished};
use crate::schedule::EachOp;
use ends::WithBothEnds;
use input::{Completions, Records};
use rank::RankConverter;

/// Treatment of traces that are not whole.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Strictness {
    /// An error.
    #[default]
    Strict,
    /// What can be read is used; the rest is reported.
    Lenient,
}

/// Operations and dependencies that a trace becomes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Graph {
    /// Those that this module describes.
    #[default]
    Derived,
    /// Dependencies as Schedgen 1 has them; speeds, overheads and algorithms are ignored.
    Schedgen {
        /// Number of copies of the traced ranks, with collectives of all (`--traces-extr`).
        copies: u32,
    },
}

/// Settings of a conversion.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Speed of the processors against those of the trace, by rank; the last one counts for all
    /// further ranks. None for 1.
    pub cpu_speed: Vec<f64>,
    /// Time between two calls that the tracer took, in nanoseconds; `None` for that of the trace.
    pub overhead: Option<f64>,
    /// Time to combine a byte of two vectors in reductions; `None` for that of the trace, over the
    /// speed of the rank.
    pub combine: Option<PerByte>,
    /// That of the trace, which [`Conversion::new`] sets.
    pub traced_combine: PerByte,
    /// Algorithms of collective operations.
    pub algorithms: Algorithms,
    /// Treatment of traces that are not whole.
    pub strictness: Strictness,
    /// Operations and dependencies.
    pub graph: Graph,
}

impl Options {
    /// Speed of the processor of a traced rank.
    fn speed(&self, rank: u32) -> f64 {
        let speeds = &self.cpu_speed;
        speeds.get(rank as usize).or(speeds.last()).copied().unwrap_or(1.0)
    }

    /// Time to combine a byte of two vectors on a traced rank.
    pub(super) fn combine_on(&self, rank: u32) -> PerByte {
        let picos = self.traced_combine.seconds() * 1e12 / self.speed(rank);
        self.combine.or_else(|| SignedPerByte::from_f64(picos).per_byte()).unwrap_or_default()
    }
}

/// Missing part of a rank's trace.
#[derive(Debug, thiserror::Error)]
pub enum Incomplete {
    /// Its end.
    #[error(
        "the trace of rank {rank} ends behind record {record}, before MPI_Finalize: the program was \
         ended, or the file is cut or damaged there; --lenient converts what is there"
    )]
    Cut {
        /// Rank.
        rank: u32,
        /// Number of its last record, from 1.
        record: u64,
    },
    /// The completion of an operation.
    #[error("{0}; --lenient converts the rest")]
    Unfinished(Unfinished),
}

/// Why a trace was not converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError<E> {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace of a rank is not whole.
    #[error(transparent)]
    Incomplete(#[from] Incomplete),
    /// The sink refused an element.
    #[error("rank {rank}: {error}")]
    Sink {
        /// Rank.
        rank: u32,
        /// Reason.
        error: E,
    },
}

/// A trace that can be played into a [`Sink`], any number of times.
#[derive(Debug)]
pub struct Conversion {
    input: Input,
    options: Options,
    /// Numbers of the communicators in tags, by identity.
    numbers: HashMap<u64, u32>,
    /// Ends of the messages, of a lenient conversion.
    ends: OnceLock<Ends>,
}

impl Conversion {
    /// First rank whose file is lost.
    pub(in crate::trace) fn lost(&self) -> Option<u32> {
        let Input::Trace(trace) = &self.input else { return None };
        let mut ranks = (0..).zip(trace.ranks());
        ranks.find_map(|(rank, trace)| trace.is_lost().then_some(rank))
    }

    /// Conversion of a trace.
    #[must_use]
    pub fn new(input: Input, mut options: Options) -> Self {
        if let Input::Trace(trace) = &input {
            let description = trace.description();
            options.algorithms.set_library(description);
            let slope = SignedPerByte::from_f64(description.combine_per_byte_s * 1e12).per_byte();
            options.traced_combine = slope.unwrap_or_default();
        }
        let mut numbers = HashMap::new();
        for rank in 0..input.ranks() {
            let Some(communicators) = input.communicators(rank) else { continue };
            let mut known: Vec<_> = communicators.iter().collect();
            known.sort_unstable_by_key(|(number, _)| **number);
            for (_, comm) in known {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                numbers.entry(comm.identity).or_insert(next);
            }
        }
        Self { input, options, numbers, ends: OnceLock::new() }
    }

    /// Number of ranks; below 2³².
    #[must_use]
    pub fn ranks(&self) -> u32 {
        match self.options.graph {
            Graph::Derived => self.input.ranks(),
            Graph::Schedgen { copies } => self.input.ranks().saturating_mul(copies),
        }
    }

    /// Settings.
    pub(super) const fn options(&self) -> &Options {
        &self.options
    }

    /// Communicators of `rank`.
    pub(super) fn communicators(&self, rank: u32) -> impl Iterator<Item = &Communicator> {
        self.input.communicators(rank).into_iter().flat_map(HashMap::values)
    }

    /// Writes the schedule into `sink`.
    ///
    /// # Errors
    ///
    /// [`ConvertError`].
    pub fn feed<S: Sink>(&self, sink: &mut S) -> Result<Report, ConvertError<S::Error>> {
        self.feed_those(self.ends(), sink)
    }

    /// Ends of all messages, of a lenient conversion.
    fn ends(&self) -> Option<&Ends> {
        let is_lenient = self.options.strictness == Strictness::Lenient;
        let count = || {
            let (mut counter, mut ends) = (Counter::new(&mut []), Ends::default());
            let mut sink = EachOp::new(&mut counter, |rank, op| {
                ends.add(rank, op);
                Ok(op)
            });
            // What is wrong is so again when it is converted.
            let _told_then = self.feed_those(None, &mut sink);
            ends
        };
        is_lenient.then(|| self.ends.get_or_init(count))
    }

    /// Writes the schedule; with the `ends` of all messages, without those that have one.
    fn feed_those<S: Sink>(
        &self,
        ends: Option<&Ends>,
        sink: &mut S,
    ) -> Result<Report, ConvertError<S::Error>> {
        let mut report = Report::default();
        let ranks = self.ranks();
        let failed = |rank| move |error| ConvertError::Sink { rank, error };
        sink.ranks(ranks).map_err(failed(0))?;
        for rank in 0..ranks {
            sink.begin_rank(rank).map_err(failed(rank))?;
            self.rank_of(ends, rank, sink, &mut report, None)?;
            sink.end_rank().map_err(failed(rank))?;
        }
        Ok(report)
    }

    /// Converts one rank into the open one of `sink`. With `notes`, an empty calculation stands for
    /// each collective operation, and the notes tell which.
    pub(super) fn rank<'t, S: Sink>(
        &'t self,
        rank: u32,
        sink: &mut S,
        report: &mut Report,
        notes: Option<&mut Notes<'t>>,
    ) -> Result<(), ConvertError<S::Error>> {
        self.rank_of(self.ends(), rank, sink, report, notes)
    }

    fn rank_of<'t, S: Sink>(
        &'t self,
        ends: Option<&Ends>,
        rank: u32,
        sink: &mut S,
        report: &mut Report,
        notes: Option<&mut Notes<'t>>,
    ) -> Result<(), ConvertError<S::Error>> {
        let Some(ends) = ends else { return self.whole_rank(rank, sink, report, notes) };
        let mut with_both = WithBothEnds::new(ends, rank);
        let mut sink = EachOp::new(sink, |_, op| Ok(with_both.pass(op)));
        self.whole_rank(rank, &mut sink, report, notes)?;
        report.add_ends(with_both.counted);
        Ok(())
    }

    fn whole_rank<'t, S: Sink>(
        &'t self,
        rank: u32,
        sink: &mut S,
        report: &mut Report,
        notes: Option<&mut Notes<'t>>,
    ) -> Result<(), ConvertError<S::Error>> {
        let strictness = self.options.strictness;
        if matches!(self.options.graph, Graph::Schedgen { .. }) {
            return schedgen::convert(self, rank, sink, report);
        }
        let [records, ahead] = [(); 2].map(|()| self.input.records(rank, strictness));
        let mut converter = RankConverter::new(self, rank, ahead, sink, report);
        converter.notes = notes;
        for record in records {
            match record {
                Ok(record) => converter.convert(&record)?,
                Err(_) if strictness == Strictness::Lenient => {
                    converter.unreadable();
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        converter.end()
    }
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::too_many_lines,
    reason = "numbers of tests are small, and a random program has a step of each kind"
)]
mod tests;
