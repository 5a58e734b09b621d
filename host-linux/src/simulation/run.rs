//! A whole simulation in one call, without an observer.

use loggap_core::noise::InvalidTrace;
use loggap_core::sim::{Engine, Parameters, Settings, SimError, Unfinished};
use loggap_core::units::Picos;

use super::{Limit, LoadError, PatternError, SetsError, Source};

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
    /// A computed pattern stopped.
    #[error(transparent)]
    Pattern(PatternError),
    /// The schedule cannot come to its end; this is left, and perhaps more.
    #[error("the schedule cannot come to its end: {0}")]
    Unfinished(Unfinished),
}

/// How long `source` takes.
///
/// # Errors
///
/// [`RunError`].
pub fn makespan(
    source: &Source,
    parameters: Parameters<'_>,
    settings: Settings,
    limit: &Limit<'_>,
) -> Result<Picos, RunError> {
    let ran = source.load(settings, limit, |schedule, _| {
        let mut engine = Engine::new(schedule, parameters, settings);
        let finished = engine.run().map_err(RunError::Stopped)?;
        let mut left = None;
        engine.unfinished(|first| left = left.or(Some(first)));
        match left {
            None => Ok(finished.makespan),
            Some(left) => Err(RunError::Unfinished(left)),
        }
    });
    ran.map_err(RunError::Load)?
}
