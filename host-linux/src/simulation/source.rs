//! What is simulated, and how it comes into memory.

use std::fmt;
use std::io;

use loggap_core::goal::Sink;
use loggap_core::goal::pattern::{GenerateError, Options, Pattern, generate, scratch_words};
use loggap_core::sim::implicit::PatternProgram;
use loggap_core::sim::{BuildError, Builder, Receive, Requirements, Schedule, Settings, Survey};

use super::OwnedMemory;
use crate::collective::Call;
use crate::schedule::{FeedError, Form, RefusedInput, ScheduleFile};

/// A schedule to simulate.
#[derive(Debug)]
pub enum Source {
    /// From a file.
    File(ScheduleFile),
    /// A pattern, computed when it is needed.
    Pattern(Pattern, Options),
    /// A collective operation by one of an MPI library's algorithms.
    Collective(Call),
}

/// Why a schedule cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is wrong.
    #[error(transparent)]
    Input(RefusedInput),
    /// The options make no pattern.
    #[error("{0}")]
    Options(String),
    /// The schedule as a whole cannot be simulated.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// What stands at a place of a file cannot be simulated.
    #[error("{place}: {error}")]
    Schedule {
        /// File and line, or file and rank.
        place: String,
        /// Why.
        error: BuildError,
    },
    /// More memory is needed than allowed.
    #[error(
        "the simulation needs {needed} bytes of memory and may take {allowed}; raise --max-memory, \
         or take fewer ranks or operations"
    )]
    Memory {
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        allowed: u64,
    },
    /// A text is not read while it runs.
    #[error(
        "{name}: a text cannot be read as it runs; write it as .lgs or .bin with 'loggap goal \
         compile'"
    )]
    Text {
        /// The file.
        name: String,
    },
    /// A pattern is not read while it runs.
    #[error("only a file is read as it runs; 'loggap goal generate' writes a pattern to one")]
    NoFile,
    /// More operations are under way at a time than there is memory for.
    #[error(
        "more than {records} operations are under way at a time, and the simulation may take \
         {allowed} bytes of memory; raise --max-memory"
    )]
    UnderWay {
        /// There is memory for so many.
        records: usize,
        /// Bytes allowed.
        allowed: u64,
    },
    /// The kernel has no more memory.
    #[error("there is no memory for the simulation: {0}")]
    Pages(io::Error),
}

impl From<FeedError<BuildError>> for LoadError {
    fn from(error: FeedError<BuildError>) -> Self {
        match error {
            FeedError::Input(refused) => Self::Input(refused),
            FeedError::Sink { place, error } => Self::Schedule { place, error },
        }
    }
}

/// What a simulation will need.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Bytes of memory, besides those that the caller takes.
    pub bytes: u64,
    /// Number of ranks.
    pub ranks: u32,
    /// Operations of all ranks.
    pub ops: u64,
    /// Bytes beside `bytes` for each operation that is under way, where only these are in
    /// memory.
    pub each: u64,
}

impl Needs {
    /// Those of a surveyed schedule.
    pub(super) const fn of(survey: &Survey, bytes: u64) -> Self {
        Self { bytes, ranks: survey.ranks(), ops: survey.ops(), each: 0 }
    }

    /// The same with so many bytes for the numbers of high tags.
    pub(super) const fn with_tags(self, bytes: u64) -> Self {
        Self { bytes: self.bytes.saturating_add(bytes), ..self }
    }

    /// The same, if there is room for it and for what there is besides.
    pub(super) fn within(self, limit: &Limit<'_>) -> Result<Self, LoadError> {
        let needed = self.bytes.saturating_add((limit.besides)(&self));
        let allowed = limit.bytes;
        if needed > allowed { Err(LoadError::Memory { needed, allowed }) } else { Ok(self) }
    }
}

/// Elements that a simulation event by event needs, within the limit.
fn requirements(
    survey: &Survey,
    settings: Settings,
    limit: &Limit<'_>,
) -> Result<(Requirements, Needs), LoadError> {
    let requirements = survey.requirements(settings)?;
    Ok((requirements, Needs::of(survey, requirements.bytes()).within(limit)?))
}

/// How much memory a simulation may take.
pub struct Limit<'a> {
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes that the caller takes besides those of the simulation.
    pub besides: &'a dyn Fn(&Needs) -> u64,
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
        Self { bytes: u64::MAX, besides: &|_| 0 }
    }
}

impl Source {
    /// The program of a pattern that need not be stored, where messages are received
    /// in this way. What is wrong with a pattern's options is found where it is stored.
    pub(super) fn program(&self, receive: Receive) -> Option<PatternProgram> {
        match self {
            Self::Pattern(pattern, options) if receive == Receive::Hold => {
                PatternProgram::new(*pattern, options).ok().flatten()
            }
            _ => None,
        }
    }

    /// Plays the schedule into `sink`, with numbers in place of high tags.
    pub(super) fn feed<S: Sink<Error = BuildError>>(&self, sink: &mut S) -> Result<(), LoadError> {
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
        }
    }

    /// Bytes of the numbers of high tags.
    pub(super) fn tag_bytes(&self) -> u64 {
        match self {
            Self::File(file) => file.tags().bytes(),
            Self::Pattern(..) | Self::Collective(_) => 0,
        }
    }

    /// Whether it is a binary file.
    pub(super) fn is_binary(&self) -> bool {
        matches!(self, Self::File(file) if file.form() != Form::Text)
    }

    /// Number of ranks; of a file as it begins.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        match self {
            Self::File(file) => file.extent().ranks,
            Self::Pattern(_, options) => options.ranks,
            Self::Collective(call) => call.ranks,
        }
    }

    /// What is known of a file without reading its operations; enough memory
    /// if its ranks have one processor and one interface.
    pub(super) fn guess(&self) -> Option<Survey> {
        let Self::File(file) = self else { return None };
        let extent = file.extent();
        let wide = |count: usize| count as u64;
        let edges = [wide(extent.edges), wide(extent.edges_most)];
        let ops = [wide(extent.ops), wide(extent.ops_most)];
        Some(Survey::bound(extent.ranks, ops, edges))
    }

    /// Loads the schedule, lends it to `run` and returns what that returns.
    /// A file is read once if its ranks have one processor and one interface,
    /// and no wildcards where they have many receives; and twice otherwise.
    ///
    /// # Errors
    ///
    /// [`LoadError`]; `run` was not called then.
    pub fn load<T>(
        &self,
        settings: Settings,
        limit: &Limit<'_>,
        run: impl FnOnce(Schedule<'_>, &Needs) -> T,
    ) -> Result<T, LoadError> {
        let guess = self.guess().and_then(|survey| requirements(&survey, settings, limit).ok());
        if let Some((requirements, needs)) = guess {
            let mut memory = OwnedMemory::new(&requirements).map_err(LoadError::Pages)?;
            match self.build(requirements, &mut memory) {
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
        self.feed(&mut survey)?;
        let (requirements, needs) = requirements(&survey, settings, limit)?;
        needs.with_tags(self.tag_bytes()).within(limit)?;
        let mut memory = OwnedMemory::new(&requirements).map_err(LoadError::Pages)?;
        let schedule = self.build(requirements, &mut memory)?;
        Ok(run(schedule, &needs))
    }

    fn build<'m>(
        &self,
        requirements: Requirements,
        memory: &'m mut OwnedMemory,
    ) -> Result<Schedule<'m>, LoadError> {
        let mut builder = Builder::new(memory.lend(), requirements)?;
        self.feed(&mut builder)?;
        Ok(builder.finish()?)
    }
}
