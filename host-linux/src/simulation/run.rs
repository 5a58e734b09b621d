//! How long a schedule takes, in one call.

use loggap_core::noise::InvalidTrace;
use loggap_core::sim::{SimError, Unfinished};
use loggap_core::units::Picos;

use super::{Job, LoadError, NetworkError, PatternError, SetsError, Source};

/// Why there is no makespan.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The schedule cannot be loaded.
    #[error(transparent)]
    Load(LoadError),
    /// The run stopped.
    #[error(transparent)]
    Stopped(SimError),
    /// These parameters cannot be simulated with.
    #[error(transparent)]
    Parameters(#[from] SetsError),
    /// The noise is no trace.
    #[error("noise: {0}")]
    Noise(InvalidTrace),
    /// There is no such network.
    #[error(transparent)]
    Network(Box<NetworkError>),
    /// A computed pattern stopped.
    #[error(transparent)]
    Pattern(PatternError),
    /// The schedule cannot come to its end; this is left, and perhaps more.
    #[error("the schedule cannot come to its end: {0}")]
    Unfinished(Unfinished),
    /// The runs were stopped before this one began.
    #[error("interrupted before this was run")]
    Interrupted,
}

impl RunError {
    /// Whether it comes of these parameters and noise: the same schedule may come
    /// to its end with others.
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

/// How long `source` takes, which has to come to its end.
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
