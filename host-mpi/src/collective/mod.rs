//! Collective operations, measured from a common start to the last exit.
//!
//! The clocks of all ranks are synchronised ([`crate::clocks`]). Rank 0
//! announces a start ahead of time; all ranks spin until then, carry out one
//! operation and read their clocks again. Rank 0 also makes the decisions,
//! independently of MPI: [`scheme`] when the next repetition starts, [`judge`]
//! whether it counts, [`stop`] when there are enough. Results are verified
//! outside of the timed section (`verify`).
//!
//! Sources: Hoefler, Schneider, Lumsdaine, "Accurately Measuring Collective
//! Operations at Massive Scale" (2008), for the mistakes and the windows;
//! Hunold, Carpen-Amarie, "Hierarchical Clock Synchronization in MPI" (2018),
//! for round time.

pub mod arrival;
mod buffers;
mod calls;
mod completed;
pub mod interval;
pub mod judge;
pub mod launches;
pub mod operation;
mod order;
pub mod overlap;
pub mod piece;
pub mod report;
pub mod run;
pub mod scheme;
mod segment;
pub mod series;
pub mod stop;
mod timed;
mod verify;
