//! Makespan of a schedule in one call.

use loggap_core::noise::InvalidTrace;
use loggap_core::sim::{SimError, Unfinished};
use loggap_core::units::Picos;

use super::{Elsewhere, Job, LoadError, NetworkError, PatternError, SetsError, Source};

/// Error of a simulation.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The schedule cannot be loaded.
    #[error(transparent)]
    Load(LoadError),
    /// The run stopped with an error.
    #[error(transparent)]
    Stopped(SimError),
    /// The parameter sets are invalid.
    #[error(transparent)]
    Parameters(#[from] SetsError),
    /// The noise is invalid.
    #[error("noise: {0}")]
    Noise(InvalidTrace),
    /// The network cannot be created.
    #[error(transparent)]
    Network(Box<NetworkError>),
    /// The run of a computed pattern failed.
    #[error(transparent)]
    Pattern(PatternError),
    /// The schedule does not complete; this operation, and perhaps others, remain.
    #[error("the schedule cannot come to its end: {0}")]
    Unfinished(Unfinished),
    /// The runs were stopped before this one started.
    #[error("interrupted before this was run")]
    Interrupted,
    /// Another process of the simulation failed.
    #[error("another process failed")]
    Elsewhere,
}

impl Elsewhere for RunError {
    const ELSEWHERE: Self = Self::Elsewhere;

    fn is_elsewhere(&self) -> bool {
        match self {
            Self::Load(error) => error.is_elsewhere(),
            Self::Pattern(error) => error.is_elsewhere(),
            error => matches!(error, Self::Elsewhere),
        }
    }
}

impl RunError {
    /// True if it is due to the parameters and noise of this point: the schedule may complete with
    /// others.
    #[must_use]
    pub const fn is_of_one_point(&self) -> bool {
        matches!(
            self,
            Self::Stopped(_)
                | Self::Unfinished(_)
                | Self::Interrupted
                | Self::Pattern(PatternError::Stopped(_))
        )
    }
}

impl From<NetworkError> for RunError {
    fn from(error: NetworkError) -> Self {
        Self::Network(Box::new(error))
    }
}

/// Makespan of `source`, which must complete.
///
/// # Errors
///
/// [`RunError`].
pub fn makespan(source: &Source, job: &Job<'_>) -> Result<Picos, RunError> {
    let outcome = job.simulate(source, &|_| {})?;
    match outcome.stuck.listed().next() {
        None => Ok(outcome.finished.makespan),
        Some(left) => Err(RunError::Unfinished(*left)),
    }
}
