//! The driver: from the options of a measurement to its assessed result.
//!
//! - [`Measurement`]: [`Options`] and [`Ends`] in, profile out: opens the links, watches the
//!   machine, runs and assesses.
//! - [`Run`]: launches over the time allowed; lends memory to the core's planner, session and
//!   assessment.
//! - [`Analysis`]: from stored samples to parameters.
//! - [`next`]: where another run would fall; [`History`]: earlier runs.

mod agreement;
mod analysis;
mod calls;
mod course;
mod derived;
mod document;
mod endpoints;
mod ends;
mod error;
mod exit_codes;
mod found;
mod history;
mod measurement;
mod memory;
mod method;
pub mod next;
mod observer;
pub(crate) mod perftest;
mod probes;
mod rounds;
mod run;
mod sizes;

pub use analysis::{Analysis, AnalysisError};
pub(crate) use analysis::{is_converged, requested};
pub(crate) use document::unix_seconds;
pub use document::{Assessed, Finished};
pub use endpoints::{EndOptions, Endpoints};
pub use ends::{Ends, ProtocolLimit};
pub use error::MeasureError;
pub(crate) use history::peer_name;
pub use history::{History, HistoryError};
pub(crate) use measurement::ONE_OF_MANY;
pub use measurement::{Measurement, Options};
pub use memory::{AssessBuffers, Memory};
pub use method::Method;
pub use observer::Observer;
pub use probes::{Series, TimedProbe};
pub use run::{Measured, MethodSeries, Run, RunOptions};
pub use sizes::{SizePlan, default_sweep};
