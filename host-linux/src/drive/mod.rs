//! A measurement from the open link to the parameters: drives the core's
//! planner, session and assessment over several launches, and lends them
//! memory.
//!
//! - [`Run`]: launches over the time allowed.
//! - [`Analysis`]: from stored samples to parameters.
//! - [`next`]: where another run would fall; [`History`]: earlier runs.

mod analysis;
mod calls;
mod course;
mod error;
mod history;
mod memory;
mod method;
pub mod next;
mod repetitions;
mod rounds;
mod run;
mod sizes;

pub use analysis::{Analysis, AnalysisError};
pub use error::MeasureError;
pub use history::{History, HistoryError};
pub use memory::{AssessBuffers, Memory};
pub use method::Method;
pub use run::{Measured, Observer, Run, RunOptions, Status};
pub use sizes::{SizePlan, default_sweep};
