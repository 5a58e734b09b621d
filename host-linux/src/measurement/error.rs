//! Why a measurement says nothing about the link.

use std::{error, fmt};

use loggap_core::measure::{PlanError, SessionError};

use super::AnalysisError;
use crate::drive::DriveError;
use crate::link::LinkError;

/// Why there are no parameters.
#[derive(Debug)]
pub enum MeasureError {
    /// The session failed.
    Session(SessionError<LinkError>),
    /// There is nothing to plan.
    Plan(PlanError),
    /// The samples do not suffice, or show something else than the link.
    Analysis(AnalysisError),
    /// No size was given.
    NoSizes,
    /// A size is over what this link takes.
    TooLong {
        /// The size in bytes.
        size: u32,
        /// The largest in bytes.
        longest: u32,
    },
    /// More sizes than can be planned for.
    TooManySizes(usize),
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(error) => error.fmt(f),
            Self::Plan(error) => error.fmt(f),
            Self::Analysis(error) => error.fmt(f),
            Self::NoSizes => f.write_str("no message size to measure; give some with -s"),
            Self::TooLong { size, longest } => write!(
                f,
                "a message of {size} bytes is over the {longest} that this link takes; \
                 use -s 1:{longest}"
            ),
            Self::TooManySizes(count) => {
                write!(f, "{count} sizes are more than can be measured at once; use a larger step")
            }
        }
    }
}

impl error::Error for MeasureError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Session(SessionError::Link(error)) => Some(error),
            Self::Plan(error) => Some(error),
            Self::Analysis(error) => Some(error),
            _ => None,
        }
    }
}

impl From<SessionError<LinkError>> for MeasureError {
    fn from(error: SessionError<LinkError>) -> Self {
        Self::Session(error)
    }
}

impl From<DriveError<LinkError>> for MeasureError {
    fn from(error: DriveError<LinkError>) -> Self {
        match error {
            DriveError::Plan(error) => Self::Plan(error),
            DriveError::Connect(error) | DriveError::Session(error, _) => Self::Session(error),
        }
    }
}
