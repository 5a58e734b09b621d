//! Exit codes of the errors of simulations.

use crate::simulation::{Elsewhere, LoadError, RunError, SetsError};
use crate::terminal::CliError;

impl From<RunError> for CliError {
    /// Converts an error of a single run in a series.
    fn from(error: RunError) -> Self {
        match &error {
            RunError::Load(
                LoadError::Memory { .. } | LoadError::UnderWay { .. } | LoadError::Pages(_),
            ) => Self::failed(error),
            RunError::Parameters(error) => (*error).into(),
            RunError::Elsewhere => Self::ELSEWHERE,
            RunError::Load(_) | RunError::Noise(_) | RunError::Network(_) => Self::usage(error),
            RunError::Unfinished(_) => Self::failed(format_args!(
                "{error}; 'loggap simulate' lists everything that is left"
            )),
            RunError::Stopped(_)
            | RunError::Pattern(_)
            | RunError::PatternMemory { .. }
            | RunError::Interrupted => Self::failed(error),
        }
    }
}

impl From<SetsError> for CliError {
    fn from(error: SetsError) -> Self {
        match error {
            SetsError::Number | SetsError::Levels { .. } => Self::usage(error),
            SetsError::Receive => Self::failed(error),
        }
    }
}
