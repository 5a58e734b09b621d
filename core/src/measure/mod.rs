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
//! - [`serve`] is the other end: a [`ResponderState`], the state machine, driven over
//!   a link.
//! - [`Planner`] decides which experiments come next and keeps the samples in
//!   a [`SampleStore`]; [`Assessment`] turns these into a
//!   [`Profile`](crate::model::Profile), and can do so again at any time from
//!   the same samples.
//! - [`Simulated`] is a link on virtual time whose parameters are known.

mod assess;
mod experiment;
mod link;
mod methods;
mod plan;
mod session;
mod simulated;

pub use assess::assessment::{
    AssessMemory, AssessOptions, AssessRequirements, Assessment, Findings, MAX_WARNINGS, assess,
    assess_range,
};
pub use assess::floor::Floor;
pub use assess::store::{QUANTITIES, RowHeader, SampleStore, StoreError, StoreRequirements};
pub use assess::table::{Curve, SizeRow};
pub use assess::warning::{AssessError, Warning};
pub use experiment::{Experiment, Quantity, Sample};
pub use link::{Clock, Link, LinkProperties};
pub use methods::samples::{MethodOptions, MethodSamples};
pub use plan::ladder::coarse_sizes;
pub use plan::memory::{PlanError, PlanMemory, PlanRequirements, Slot};
pub use plan::planner::{Conclusion, Kept, PlanOptions, Planner, Progress};
pub use session::initiator::{Buffers, Initiator, Outcome, SessionOptions};
pub(crate) use session::kernel::without_reading;
pub use session::kernel::{Expected, Ticks, Timer};
pub use session::poller::{Deadline, Poller};
pub use session::responder::{ServeError, ServeOptions, serve, serve_with};
pub use session::responder_state::{Awaited, Burst, Ending, ResponderState, Served};
pub use session::traffic::{Invalid, Phase, SessionError, Traffic};
pub use simulated::{
    Bend, Bursts, Correlation, Disturbance, Drift, Preemptions, RoundNoise, Shared, Simulated,
    Truth, TwoSpeeds,
};
