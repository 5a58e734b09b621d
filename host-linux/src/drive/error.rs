//! Why a measurement failed.

use loggap_core::measure::{PlanError, SessionError};
use thiserror::Error;

use super::AnalysisError;
use crate::link::LinkError;

/// Why a measurement did not start, or ended early.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The session failed.
    #[error(transparent)]
    Session(#[from] SessionError<LinkError>),
    /// The plan could not be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There are too few samples, or they do not behave like a link.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// No size was given.
    #[error("no message size to measure; give some with -s")]
    NoSizes,
    /// A size exceeds the longest message of this link.
    #[error(
        "a message of {size} bytes is over the {longest} that this link takes; use -s 1:{longest}"
    )]
    TooLong {
        /// The size in bytes.
        size: u32,
        /// The largest in bytes.
        longest: u32,
    },
    /// Allocation of a send and a receive buffer failed.
    #[error("no memory for two messages of {size} bytes; use smaller sizes")]
    Memory {
        /// The largest size in bytes.
        size: u32,
    },
}
