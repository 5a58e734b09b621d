//! Measuring a link: the two traits that touch the outside and the values
//! that pass between what decides and what times.
//!
//! [`Clock`] and [`Link`] are all that a host or a firmware implements. What
//! to measure next is decided by a state machine without I/O; the timed
//! kernels are generic over both traits and inlined, so that the same code
//! is timed on every host and on the device.
//!
//! - [`Initiator`] opens a session with a responder and runs
//!   [`Experiment`]s, each of which gives a [`Sample`] or is lost.
//! - [`serve`] is the other end: a [`Mirror`], the state machine, driven over
//!   a link.
//! - [`Planner`] decides which experiments come next and keeps the samples in
//!   a [`SampleStore`]; [`Assessment`] turns these into a
//!   [`Profile`](crate::model::Profile), and can do so again at any time from
//!   the same samples.
//! - [`Simulated`] is a link on virtual time whose parameters are known.

mod assess;
mod batch;
mod bisect;
mod effort;
mod exchange;
mod experiment;
#[cfg(test)]
mod hostile;
mod initiator;
mod kernel;
mod ladder;
mod link;
mod methods;
mod mirror;
mod patience;
mod plan_memory;
mod planner;
mod plogp;
mod random;
mod ranges;
mod responder;
mod samples;
mod signature;
mod simulated;
mod spread;
mod table;
mod traffic;
mod warmup;
mod warning;
mod watch;

pub use assess::{
    AssessMemory, AssessOptions, AssessRequirements, Assessment, Findings, MAX_WARNINGS, assess,
};
pub use experiment::{Experiment, Quantity, Sample};
pub use initiator::{Buffers, Initiator, Outcome, SessionOptions};
pub use kernel::{Expected, Ticks, Timer, mean_delay, without_reading};
pub use ladder::coarse_sizes;
pub use link::{Clock, Link, LinkProperties};
pub use methods::{MethodOptions, MethodSamples};
pub use mirror::{Awaited, Burst, Ending, Mirror, Served};
pub use plan_memory::{PlanError, PlanMemory, PlanRequirements, Slot};
pub use planner::{Conclusion, Kept, PlanOptions, Planner, Progress};
pub use responder::{ServeError, serve};
pub use samples::{QUANTITIES, RowHeader, SampleStore, StoreError, StoreRequirements};
pub use simulated::{Disturbance, Shared, Simulated, Truth};
pub use table::{Curve, SizeRow};
pub use traffic::{Invalid, Phase, SessionError, Traffic};
pub use warning::{AssessError, Warning};
pub use watch::{Deadline, Watch};
