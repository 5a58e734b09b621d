//! Sources of schedules, and loading them into memory.

use std::fmt;
use std::io;
use std::sync::Arc;

use loggap_core::goal::Sink;
use loggap_core::goal::pattern::{GenerateError, Options, Pattern, generate, scratch_words};
use loggap_core::sim::implicit::PatternProgram;
use loggap_core::sim::{
    BuildError, Builder, Receive, Requirements, Schedule, Settings, Survey, Unsuitable,
};

use super::{Hints, OwnedMemory};
use crate::collective::Call;
use crate::schedule::{
    FeedError, Form, PrttRound, RefusedInput, ScheduleFile, TagNumbers, TraceSchedule,
};
use crate::trace::convert::{ConvertError, Report};
use crate::trace::extrapolate::Extrapolation;

/// A schedule to simulate.
#[derive(Debug)]
pub enum Source {
    /// Schedule file.
    File(ScheduleFile),
    /// Pattern, generated when it is needed.
    Pattern(Pattern, Options),
    /// Collective operation by an algorithm of an MPI library.
    Collective(Call),
    /// A measuring round.
    Prtt(PrttRound),
    /// Trace, converted when it is needed.
    Trace(Box<TraceSchedule>),
}

/// Why a schedule cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is invalid.
    #[error(transparent)]
    Input(RefusedInput),
    /// The trace cannot be converted.
    #[error("{0}")]
    Trace(String),
    /// The options of the pattern are invalid.
    #[error("{0}")]
    Options(String),
    /// The schedule as a whole cannot be simulated.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// An operation of a file cannot be simulated.
    #[error("{place}: {error}")]
    Schedule {
        /// File and line, or file and rank.
        place: String,
        /// The error.
        error: BuildError,
    },
    /// The simulation needs more memory than allowed.
    #[error(
        "the simulation needs {needed} bytes of memory and may take {allowed}; raise --max-memory, \
         or take fewer ranks or operations"
    )]
    Memory {
        /// Required memory, bytes.
        needed: u64,
        /// Allowed memory, bytes.
        allowed: u64,
    },
    /// Texts cannot be read during a run.
    #[error(
        "{name}: a text cannot be read as it runs; write it as .lgs or .bin with 'loggap goal \
         compile'"
    )]
    Text {
        /// Name of the file.
        name: String,
    },
    /// Patterns, and traces on their own ranks, cannot be read during a run.
    #[error(
        "only a file is read as it runs; 'loggap goal generate' writes a pattern to one, 'loggap goal \
         from-trace' a trace"
    )]
    NoFile,
    /// More operations are in progress at a time than fit into memory.
    #[error(
        "more than {records} operations are under way at a time, and the simulation may take \
         {allowed} bytes of memory; raise --max-memory"
    )]
    UnderWay {
        /// Number of operations that fit into memory.
        records: usize,
        /// Allowed memory, bytes.
        allowed: u64,
    },
    /// The kernel cannot provide the memory.
    #[error("there is no memory for the simulation: {0}")]
    Pages(io::Error),
    /// Several processes cannot run the schedule together.
    #[error("{0}; run it on one process, with 'loggap simulate'")]
    OneProcess(String),
}

impl LoadError {
    /// Why the schedule cannot run in windows, if that is the error.
    #[must_use]
    pub const fn unsuitable(&self) -> Option<Unsuitable> {
        match self {
            Self::Build(BuildError::Unsuitable(why))
            | Self::Schedule { error: BuildError::Unsuitable(why), .. } => Some(*why),
            _ => None,
        }
    }
}

impl From<FeedError<BuildError>> for LoadError {
    fn from(error: FeedError<BuildError>) -> Self {
        match error {
            FeedError::Input(refused) => Self::Input(refused),
            FeedError::Sink { place, error } => Self::Schedule { place, error },
        }
    }
}

impl From<ConvertError<BuildError>> for LoadError {
    fn from(error: ConvertError<BuildError>) -> Self {
        match error {
            ConvertError::Sink { rank, error } => {
                Self::Schedule { place: format!("the trace of rank {rank}"), error }
            }
            other => Self::Trace(other.to_string()),
        }
    }
}

/// Size of a schedule and the memory for its simulation.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Memory in bytes, without that of the caller.
    pub bytes: u64,
    /// Number of ranks.
    pub ranks: u32,
    /// Operations of all ranks.
    pub ops: u64,
    /// Additional memory for each operation in progress, bytes, if only these are in memory.
    pub each: u64,
}

impl Needs {
    /// Needs of a schedule from its survey.
    pub(super) const fn of(survey: &Survey, bytes: u64) -> Self {
        Self { bytes, ranks: survey.ranks(), ops: survey.ops(), each: 0 }
    }

    /// Adds the memory for the numbers of large tags.
    pub(super) const fn with_tags(self, bytes: u64) -> Self {
        Self { bytes: self.bytes.saturating_add(bytes), ..self }
    }

    /// Checks that the memory is within the limit, together with that of the caller.
    pub(super) fn within(self, limit: &Limit<'_>) -> Result<Self, LoadError> {
        let needed = self.bytes.saturating_add((limit.besides)(&self));
        let allowed = limit.bytes;
        if needed > allowed { Err(LoadError::Memory { needed, allowed }) } else { Ok(self) }
    }
}

/// Requirements of a run in order, checked against the limit.
fn requirements(
    survey: &Survey,
    settings: Settings,
    limit: &Limit<'_>,
) -> Result<(Requirements, Needs), LoadError> {
    let requirements = survey.requirements(settings)?;
    Ok((requirements, Needs::of(survey, requirements.bytes()).within(limit)?))
}

/// Memory limit of a simulation, and hints about its schedule.
pub struct Limit<'a> {
    /// Limit on the total, bytes.
    pub bytes: u64,
    /// Memory of the caller besides the simulation, bytes.
    pub besides: &'a dyn Fn(&Needs) -> u64,
    /// Hints about the schedule, to be noted while it is read.
    pub hints: Option<&'a Hints<'a>>,
}

impl fmt::Debug for Limit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limit").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Limit<'_> {
    /// No limit.
    #[must_use]
    pub const fn none() -> Self {
        Self { bytes: u64::MAX, besides: &|_| 0, hints: None }
    }
}

impl Source {
    /// Program of a pattern that need not be stored, given the receive mode. Invalid options are
    /// reported when the pattern is stored.
    pub(super) fn program(&self, receive: Receive) -> Option<PatternProgram> {
        match self {
            Self::Pattern(pattern, options) if receive == Receive::Hold => {
                PatternProgram::new(*pattern, options).ok().flatten()
            }
            _ => None,
        }
    }

    /// Writes the schedule into `sink`, with numbers instead of large tags, and notes `hints`.
    pub(super) fn feed<S: Sink<Error = BuildError>>(
        &self,
        sink: &mut S,
        hints: Option<&Hints<'_>>,
    ) -> Result<(), LoadError> {
        let most_ops = if let Self::Trace(_) = self { u64::MAX } else { Hints::MOST_OPS };
        let sink = &mut Hints::noting(hints, most_ops, sink);
        match self {
            Self::File(file) => Ok(file.feed_numbered(sink)?),
            Self::Pattern(pattern, options) => {
                let words = scratch_words(*pattern, options)
                    .map_err(|error| LoadError::Options(error.to_string()))?;
                generate(*pattern, options, &mut vec![0; words], sink).map_err(
                    |error| match error {
                        GenerateError::Options(error) => LoadError::Options(error.to_string()),
                        GenerateError::Sink(error) => error.into(),
                    },
                )
            }
            Self::Collective(call) => Ok(call.feed(sink)?),
            Self::Prtt(round) => Ok(round.feed(sink)?),
            Self::Trace(trace) => Ok(trace.feed_numbered(sink).map(drop)?),
        }
    }

    /// Large tags that were replaced by numbers.
    pub(super) fn tags(&self) -> Option<Arc<TagNumbers>> {
        match self {
            Self::File(file) => Some(file.tags()),
            Self::Trace(trace) => Some(trace.tags()),
            Self::Pattern(..) | Self::Collective(_) | Self::Prtt(_) => None,
        }
    }

    /// Memory for the numbers of large tags, bytes.
    pub(super) fn tag_bytes(&self) -> u64 {
        self.tags().map_or(0, |tags| tags.bytes())
    }

    /// True for a binary file.
    pub(super) fn is_binary(&self) -> bool {
        matches!(self, Self::File(file) if file.form() != Form::Text)
    }

    /// A trace that stands for more ranks than were traced.
    pub(crate) fn extrapolation(&self) -> Option<&Extrapolation> {
        match self {
            Self::Trace(trace) => trace.extrapolation(),
            _ => None,
        }
    }

    /// What became of the calls of a trace on its own ranks, once it was loaded.
    #[must_use]
    pub fn conversion_report(&self) -> Option<Report> {
        match self {
            Self::Trace(trace) => trace.conversion_report(),
            _ => None,
        }
    }

    /// Number of ranks; for a file, as declared at its beginning.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        match self {
            Self::File(file) => file.extent().ranks,
            Self::Pattern(_, options) => options.ranks,
            Self::Collective(call) => call.ranks,
            Self::Prtt(round) => round.ranks(),
            Self::Trace(trace) => trace.ranks(),
        }
    }

    /// Upper bounds known from a file without reading its operations. They are sufficient if its
    /// ranks have one processor and one interface, also where its parts are built apart.
    pub(super) fn guess(&self) -> Option<Survey> {
        let Self::File(file) = self else { return None };
        let extent = file.extent();
        let wide = |count: usize| count as u64;
        let edges_most = extent.edges_most.saturating_mul(file.parts().len().max(1));
        let edges = [wide(extent.edges), wide(edges_most)];
        let ops = [wide(extent.ops), wide(extent.ops_most)];
        Some(Survey::bound(extent.ranks, ops, edges))
    }

    /// Loads the schedule, lends it to `run` and returns the result of that. A file is read once if
    /// its ranks have one processor and one interface; otherwise twice.
    ///
    /// # Errors
    ///
    /// [`LoadError`]; `run` was not called in this case.
    pub fn load<T>(
        &self,
        settings: Settings,
        limit: &Limit<'_>,
        run: impl FnOnce(Schedule<'_>, &Needs) -> T,
    ) -> Result<T, LoadError> {
        let guess = self.guess().and_then(|survey| requirements(&survey, settings, limit).ok());
        if let Some((requirements, needs)) = guess {
            let mut memory = OwnedMemory::new(&requirements).map_err(LoadError::Pages)?;
            match self.build(requirements, &mut memory, limit.hints) {
                Err(
                    LoadError::Schedule {
                        error: BuildError::Unit { .. } | BuildError::Full, ..
                    }
                    | LoadError::Build(BuildError::Unit { .. } | BuildError::Full),
                ) => {}
                outcome => {
                    let schedule = outcome?;
                    needs.with_tags(self.tag_bytes()).within(limit)?;
                    return Ok(run(schedule, &needs));
                }
            }
        }
        let mut survey = Survey::default();
        self.feed(&mut survey, None)?;
        let (requirements, needs) = requirements(&survey, settings, limit)?;
        needs.with_tags(self.tag_bytes()).within(limit)?;
        let mut memory = OwnedMemory::new(&requirements).map_err(LoadError::Pages)?;
        let schedule = self.build(requirements, &mut memory, limit.hints)?;
        Ok(run(schedule, &needs))
    }

    fn build<'m>(
        &self,
        requirements: Requirements,
        memory: &'m mut OwnedMemory,
        hints: Option<&Hints<'_>>,
    ) -> Result<Schedule<'m>, LoadError> {
        let mut builder = Builder::new(memory.lend(), requirements)?;
        self.feed(&mut builder, hints)?;
        Ok(builder.finish()?)
    }
}
