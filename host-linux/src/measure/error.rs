//! Why a measurement failed.

use loggap_core::measure::{PlanError, SessionError};
use thiserror::Error;

use super::AnalysisError;
use crate::link::LinkError;

/// Why a measurement did not begin, or ended before its time.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The session failed.
    #[error(transparent)]
    Session(#[from] SessionError<LinkError>),
    /// There is nothing to plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The samples do not suffice, or show something else than the link.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// No size was given.
    #[error("no message size to measure; give some with -s")]
    NoSizes,
    /// A size is over what this link takes.
    #[error(
        "a message of {size} bytes is over the {longest} that this link takes; use -s 1:{longest}"
    )]
    TooLong {
        /// The size in bytes.
        size: u32,
        /// The largest in bytes.
        longest: u32,
    },
    /// There is no memory for a message to send and one to receive.
    #[error("no memory for two messages of {size} bytes; use smaller sizes")]
    Memory {
        /// The largest size in bytes.
        size: u32,
    },
}
