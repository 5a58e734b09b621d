//! Makespan of a schedule in one call.

use std::io;

use loggap_core::noise::InvalidTrace;
use loggap_core::sim::implicit::ImplicitError;
use loggap_core::sim::{SimError, Unfinished};
use loggap_core::units::Picos;

use super::{Elsewhere, Job, LoadError, NetworkError, SetsError, Source};

/// Error of a simulation.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The schedule cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The run stopped with an error.
    #[error(transparent)]
    Stopped(#[from] SimError),
    /// The parameter sets are invalid.
    #[error(transparent)]
    Parameters(#[from] SetsError),
    /// The noise is invalid.
    #[error("noise: {0}")]
    Noise(#[from] InvalidTrace),
    /// The network cannot be created.
    #[error(transparent)]
    Network(Box<NetworkError>),
    /// The run of a computed pattern stopped with an error.
    #[error(transparent)]
    Pattern(#[from] ImplicitError),
    /// The kernel cannot provide the memory for a computed pattern.
    #[error(
        "there is no memory for the {bytes} bytes of the simulation: {error}; take fewer ranks"
    )]
    PatternMemory {
        /// Size of the memory, bytes.
        bytes: u64,
        /// The kernel's error.
        error: io::Error,
    },
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
        matches!(self, Self::Elsewhere)
    }
}

impl RunError {
    /// True if it is due to the parameters and noise of this point: the schedule may complete with
    /// others.
    #[must_use]
    pub const fn is_of_one_point(&self) -> bool {
        matches!(
            self,
            Self::Stopped(_) | Self::Unfinished(_) | Self::Interrupted | Self::Pattern(_)
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
