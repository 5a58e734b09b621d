//! How far two clocks are apart, and how fast they move apart.
//!
//! A [`Ping`] carries three readings: the own clock when it was sent, the
//! peer's when it arrived there, and the own one when the answer was back.
//! The peer's reading was taken in between, so that every ping bounds the
//! offset; an [`OffsetEstimator`] keeps the intersection and says when more
//! pings would not narrow it. Offsets over time give a [`ClockModel`], by
//! interpolation between two of them or by regression ([`DriftEstimator`]);
//! models along a tree of ranks are combined by [`ClockModel::after`].
//!
//! The offset is `d(t) = t − reference(t)` at the own reading `t`, so that
//! `reference(t) = t − d(t)`, in picoseconds. The drift is its slope, in
//! picoseconds per second, which is parts per 10¹². Everything is integers,
//! but for the regression: a double of seconds since 1970 resolves 238 ns.
//!
//! Bounds as in `SKaMPI`, the end of a series as in Netgauge (Hoefler,
//! Schneider, Lumsdaine, "Accurately Measuring Collective Operations at
//! Massive Scale", 2008); drift and the combination of models as in Hunold
//! and Carpen-Amarie, "Hierarchical Clock Synchronization in MPI" (2018).

mod check;
mod drift;
mod drift_study;
mod exchange;
mod model;
mod offset;
mod patience;
mod published;
mod published_trial;
mod rank;
pub mod simulated;
mod tree;
mod trial;

#[cfg(test)]
mod tests;

pub use check::{Residual, ResidualSummary, Residuals, Triangle};
pub use drift::{DriftError, DriftEstimator, LEAST_SPAN, MOST_DRIFT_PPM};
pub use drift_study::{DriftStudy, TimedOffset, record_drift, study_drift};
pub use exchange::{Pinger, Series, SeriesEnd, SeriesError, SeriesOptions, measure_offset};
pub use model::ClockModel;
pub use offset::{Offset, OffsetEstimator, OffsetOptions, Ping, PingError};
pub use patience::{Delays, PATIENCES, PatienceRow, study_patience};
pub use published::{MergeStep, MinRoundTrip, Scheme, stop_after};
pub use published_trial::{SchemeMemory, SchemeReport, scheme_trial};
pub use rank::{Agreement, Assumptions, Base, ParentClock, RankClock, SyncError, SyncOptions};
pub use tree::{Edge, Role, Step, Tree, TreeEntry, TreeError, TreeMemory};
pub use trial::{Scenario, TrialError, TrialMemory, TrialRank, TrialReport, trial};

/// Picoseconds in a second: what a drift is counted in.
const SECOND: u64 = 1_000_000_000_000;
