//! Stored schedules in time windows, on any number of partitions and threads.
//!
//! A message arrives at least o + L after its send began. Time is therefore cut into windows of
//! that length (the lookahead): within a window each rank can be run by itself, because its
//! messages arrive in later windows. Ranks are grouped into [`Partition`]s, each a state machine on
//! lent memory that runs one window at a time; between windows they exchange [`Mail`].
//!
//! # Order of stamps
//!
//! The [`Engine`](super::Engine) breaks ties by stamps that it draws in sequence. Here no stamps
//! are drawn; the order of creation follows from the history. Of two items created at different
//! times, the earlier is first; at the same time, the one whose creator was created first; and so
//! on, back to operations without dependencies, which are created rank by rank. Records keep the
//! cause of their release and the time of their execution, so any partition can follow the history
//! of any operation. Results equal those of the engine, bit for bit, for any number of partitions.
//!
//! # Limits
//!
//! [`Unsuitable`] lists the schedules that cannot run in windows.

mod build;
mod foreign;
mod incoming;
mod mail;
mod memory;
mod overlap;
mod partition;
mod prefetch;
mod rank;
mod record;
mod rules;
mod schedule;
mod shared;
mod step;

pub use build::{Builder, BuiltPart};
pub use foreign::{Away, End, Foreign, UNKNOWN};
pub use mail::{Mail, Message, Outbox};
pub use memory::{Memory, Requirements, Unsuitable};
pub use overlap::Receiving;
pub use partition::{Partition, STEPS};
pub use rank::WindowRank;
pub use record::WindowRecord;
pub use schedule::Schedule;
