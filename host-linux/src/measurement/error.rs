//! Why a measurement says nothing about the link.

use std::{error, fmt};

use loggap_core::measure::{AssessError, PlanError, SessionError};

use crate::link::LinkError;

/// Why there are no parameters.
#[derive(Debug)]
pub enum MeasureError {
    /// The session failed.
    Session(SessionError<LinkError>),
    /// There is nothing to plan.
    Plan(PlanError),
    /// The samples do not suffice, or show something else than the link.
    Assess(AssessError),
    /// No size was given.
    NoSizes,
    /// A size is over what this link and its responder take.
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
            Self::Assess(error) => error.fmt(f),
            Self::NoSizes => f.write_str("no message size to measure; give some with -s"),
            Self::TooLong { size, longest } => write!(
                f,
                "a message of {size} bytes is over the {longest} that this link and its \
                 responder take; use -s 1:{longest}, or `loggap serve --max-message` there"
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
            Self::Assess(error) => Some(error),
            _ => None,
        }
    }
}

impl From<SessionError<LinkError>> for MeasureError {
    fn from(error: SessionError<LinkError>) -> Self {
        Self::Session(error)
    }
}

impl From<PlanError> for MeasureError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

impl From<AssessError> for MeasureError {
    fn from(error: AssessError) -> Self {
        Self::Assess(error)
    }
}
