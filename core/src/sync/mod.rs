//! Clock synchronisation: offset and drift of clocks, with error bounds.
//!
//! A [`Ping`] consists of three readings: the own clock when it was sent, the peer's clock when it
//! arrived, and the own clock when the answer was back. The peer's reading was taken between the
//! others, so every ping bounds the offset. An [`OffsetEstimator`] keeps the intersection of the
//! bounds and decides when more pings would not narrow it. Offsets over time give a [`ClockModel`],
//! by interpolation between two of them or by regression ([`DriftEstimator`]); models along a tree
//! of ranks are combined by [`ClockModel::after`].
//!
//! The offset is `d(t) = t − reference(t)` at the own reading `t`, so that `reference(t) = t −
//! d(t)`, in picoseconds. The drift is its slope, in picoseconds per second, that is, parts per
//! 10¹². All values but those of the regression are integers: a double of seconds since 1970
//! resolves only 238 ns.
//!
//! # Many ranks
//!
//! A [`Tree`] determines which ranks synchronise in which round; a host executes [`Tree::steps`] of
//! its rank. A parent sends the result of [`RankClock::announce`] ([`ParentClock::to_words`]) and
//! answers pings with readings of its own clock until the child is done. A child implements
//! [`Pinger`] and calls [`RankClock::share`] within a clock domain, and [`RankClock::synchronise`]
//! between domains or if `share` returns false. One such pass gives offsets; five over half a
//! second or more give useful slopes; another one after the measurement allows interpolation
//! ([`RankClock::since`]). [`Residual`], [`Triangle`] and [`Residuals`] check the result with new
//! pings.
//!
//! # Meaning of an error
//!
//! Errors are bounds, not standard deviations: the delay of a network in either direction cannot
//! exceed the round trip. Along a tree they add, edge by edge. They hold as long as
//!
//! - no two clocks drift apart faster than [`Assumptions::drift_ppm`] ([`OffsetOptions::drift_ppm`]
//!   of a series),
//! - the momentary drift differs from its mean between two offsets by no more than
//!   [`Assumptions::wander_ppb`], which matters between and after them,
//! - readings are as accurate as [`OffsetOptions::resolution`] states, and
//! - clocks of one domain show the same time, up to a constant bounded by the check.
//!
//! If one of the first two is violated, or a clock is set, a later offset falls outside the bounds
//! predicted by the earlier ones: it [contradicts](Agreement::Contradicts) them, a new model
//! begins, and [`RankClock::since`] refuses to interpolate. Errors claimed in between were
//! wrong. A clock that is set by less than the error at that time is not detected.
//!
//! # Comparison
//!
//! [`Scheme`] and [`MinRoundTrip`] are published schemes.
//!
//! # Sources
//!
//! Bounds as in `SKaMPI` (Worsch, Reussner, Augustin, "On Benchmarking Collective MPI Operations",
//! 2002); the end of a series as in Netgauge (Hoefler, Schneider, Lumsdaine, "Accurately Measuring
//! Collective Operations at Massive Scale", 2008, called "the slides" here); drift, the tree from
//! the root and the combination of models as in Hunold and Carpen-Amarie, "Hierarchical Clock
//! Synchronization in MPI" (2018).
//!
//! # Example
//!
//! ```
//! use loggap_core::sync::{ParentClock, Ping, Pinger, RankClock, SyncOptions};
//! use loggap_core::units::Picos;
//!
//! /// Peer whose clock is 5 us behind, 1 us away; holds the own time.
//! struct Peer(Picos);
//!
//! impl Pinger for Peer {
//!     type Error = core::convert::Infallible;
//!
//!     fn now(&mut self) -> Picos {
//!         self.0
//!     }
//!
//!     fn ping(&mut self) -> Result<Ping, Self::Error> {
//!         let (sent, received) = (self.0, Picos(self.0.0 + 2_000_000));
//!         self.0 = received;
//!         Ok(Ping { sent, stamped: Picos(sent.0 + 1_000_000 - 5_000_000), received })
//!     }
//! }
//!
//! let options = SyncOptions::default();
//! let mut rank = RankClock::default();
//! let mut peer = Peer(Picos(1_000_000_000_000));
//! rank.synchronise(&ParentClock::root(), &mut peer, &options, &mut [])?;
//!
//! let model = rank.model(&options.assumptions)?;
//! let now = peer.now();
//! assert!(model.reference_at(now).0.abs_diff(now.0 - 5_000_000) <= model.error_at(now).0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod drift;
mod exchange;
mod model;
mod offset;
mod parent;
mod published;
mod rank;
mod tree;

#[cfg(test)]
mod tests;

pub use check::{Residual, ResidualSummary, Residuals, Triangle};
pub use drift::{DriftError, DriftEstimator, LEAST_SPAN, MOST_DRIFT_PPM};
pub use exchange::{Pinger, Series, SeriesEnd, SeriesError, SeriesOptions, measure_offset};
pub use model::ClockModel;
pub use offset::{Offset, OffsetEstimator, OffsetOptions, Ping, PingError};
pub use parent::ParentClock;
pub use published::{MergeStep, MinRoundTrip, Scheme, stop_after};
pub use rank::{Agreement, Assumptions, RankClock, SyncError, SyncOptions};
pub use tree::{Edge, Role, Step, Tree, TreeEntry, TreeError, TreeMemory};

/// Picoseconds in a second: the denominator of drifts.
const SECOND: u64 = 1_000_000_000_000;
