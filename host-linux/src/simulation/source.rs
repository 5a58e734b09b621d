//! What is simulated, and how it comes into memory.

use std::fmt;

use loggap_core::goal::Sink;
use loggap_core::goal::pattern::{GenerateError, Options, Pattern, generate, scratch_words};
use loggap_core::sim::{BuildError, Builder, Requirements, Schedule, Settings, Survey};

use super::OwnedMemory;
use crate::schedule::{FeedError, RefusedInput, ScheduleFile};

/// A schedule to simulate.
#[derive(Debug)]
pub enum Source {
    /// From a file.
    File(ScheduleFile),
    /// A pattern, computed when it is needed.
    Pattern(Pattern, Options),
}

/// Why a schedule cannot be simulated.
#[derive(Debug)]
pub enum LoadError {
    /// The file is wrong.
    Input(RefusedInput),
    /// The options make no pattern.
    Options(String),
    /// The schedule cannot be simulated.
    Schedule {
        /// File and line, or file and rank; empty for a pattern.
        place: String,
        /// Why.
        error: BuildError,
    },
    /// More memory is needed than allowed.
    Memory {
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        allowed: u64,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(refused) => refused.fmt(f),
            Self::Options(reason) => f.write_str(reason),
            Self::Schedule { place, error } if place.is_empty() => error.fmt(f),
            Self::Schedule { place, error } => write!(f, "{place}: {error}"),
            Self::Memory { needed, allowed } => write!(
                f,
                "the simulation needs {needed} bytes of memory and may take {allowed}; raise \
                 --max-memory, or take fewer ranks or operations"
            ),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<FeedError<BuildError>> for LoadError {
    fn from(error: FeedError<BuildError>) -> Self {
        match error {
            FeedError::Input(refused) => Self::Input(refused),
            FeedError::Sink { place, error } => Self::Schedule { place, error },
        }
    }
}

impl From<BuildError> for LoadError {
    fn from(error: BuildError) -> Self {
        Self::Schedule { place: String::new(), error }
    }
}

/// What a simulation will need.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Elements of memory.
    pub requirements: Requirements,
    /// Number of ranks.
    pub ranks: u32,
    /// Operations of all ranks.
    pub ops: u64,
}

impl Needs {
    fn of(survey: &Survey, settings: Settings) -> Result<Self, BuildError> {
        let requirements = survey.requirements(settings)?;
        Ok(Self { requirements, ranks: survey.ranks(), ops: survey.ops() })
    }

    fn within(self, allowed: u64, besides: impl Fn(&Self) -> u64) -> Result<Self, LoadError> {
        let needed = self.requirements.bytes().saturating_add(besides(&self));
        if needed > allowed { Err(LoadError::Memory { needed, allowed }) } else { Ok(self) }
    }
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
    /// Plays the schedule into `sink`.
    fn feed<S: Sink<Error = BuildError>>(&self, sink: &mut S) -> Result<(), LoadError> {
        match self {
            Self::File(file) => Ok(file.feed(sink)?),
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
        }
    }

    /// What is known of a file without reading its operations; enough memory
    /// if its ranks have one processor and one interface.
    fn guess(&self) -> Option<Survey> {
        let Self::File(file) = self else { return None };
        let extent = file.extent();
        let wide = |count: usize| count as u64;
        let edges = [wide(extent.edges), wide(extent.edges_most)];
        let ops = [wide(extent.ops), wide(extent.ops_most)];
        Some(Survey::bound(extent.ranks, ops, edges))
    }

    /// Loads the schedule, lends it to `run` and returns what that returns.
    /// A file is read once if its ranks have one processor and one interface,
    /// and twice otherwise.
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
        let guess = self.guess().and_then(|survey| Needs::of(&survey, settings).ok());
        let guess = guess.and_then(|needs| needs.within(limit.bytes, limit.besides).ok());
        if let Some(needs) = guess {
            let mut memory = OwnedMemory::new(&needs.requirements);
            match self.build(&needs, &mut memory) {
                Err(LoadError::Schedule { error: BuildError::Unit { .. }, .. }) => {}
                outcome => return outcome.map(|schedule| run(schedule, &needs)),
            }
        }
        let mut survey = Survey::default();
        self.feed(&mut survey)?;
        let needs = Needs::of(&survey, settings)?.within(limit.bytes, limit.besides)?;
        let mut memory = OwnedMemory::new(&needs.requirements);
        let schedule = self.build(&needs, &mut memory)?;
        Ok(run(schedule, &needs))
    }

    fn build<'m>(
        &self,
        needs: &Needs,
        memory: &'m mut OwnedMemory,
    ) -> Result<Schedule<'m>, LoadError> {
        let mut builder = Builder::new(memory.lend(), needs.requirements)?;
        self.feed(&mut builder)?;
        Ok(builder.finish()?)
    }
}
