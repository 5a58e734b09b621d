//! Measurement of a link: the traits that a host implements, the session, the planner and the
//! assessment.
//!
//! [`Clock`] and [`Link`] are all that a host or a firmware implements. A state machine without I/O
//! decides what to measure next. The timed kernels are generic over both traits and inlined, so
//! that the same code is timed on every host and on the device.
//!
//! - [`Initiator`] opens a session with a responder and runs
//!   [`Experiment`]s, each of which gives a [`Sample`] or is lost.
//! - [`serve`] is the other end: it runs the state machine [`ResponderState`] over a link.
//! - [`Planner`] decides which experiments come next and stores the samples in a [`SampleStore`];
//!   [`Assessment`] computes a [`Profile`](crate::model::Profile) from these, at any time and
//!   repeatably.
//! - [`Simulated`] is a link with known parameters, on virtual time.

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
pub use assess::floor;
pub use assess::ranges::SizeSpan;
pub use assess::store::{QUANTITIES, RowHeader, SampleStore, StoreError, StoreRequirements};
pub use assess::table::SizeRow;
pub use assess::warning::{AssessError, Warning};
pub use experiment::{Experiment, Quantity, Sample};
pub use link::{Clock, Link, LinkProperties};
pub use methods::plogp::{
    PlogpOptions, PlogpRow, is_gap_stable, missing_probes, plogp_latency, plogp_rows,
};
pub use methods::probe::{Probe, ProbeKind, ProbeRow, ProbeTime};
pub use methods::probing::PROBE_BATCH;
pub use methods::signature::{
    Bottleneck, MAX_DELTAS, MOST_IN_FLIGHT, Regime, Signature, SignatureOptions, missing_points,
};
pub use plan::disturbed::{BRIEF_BATCH, TIME_SLICE};
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
