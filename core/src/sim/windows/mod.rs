//! Stored schedules in time windows, on any number of partitions and threads.
//!
//! A message arrives at least o + L after its send began. So time is cut
//! into windows of that length: in a window every rank can be run by itself,
//! and what it sends concerns later windows only. Ranks are grouped into
//! [`Partition`]s, each a state machine on lent memory that runs one window
//! at a time; between windows they exchange [`Mail`].
//!
//! # How the order of stamps is kept
//!
//! The [`Engine`](super::Engine) breaks ties by stamps that it draws one
//! after the other. Nobody does here. But what was created first can be told
//! from the history: of two things created at different times, the earlier
//! one; at the same time, that whose creator was created first; and so on,
//! back to what waits for nothing, which is created rank after rank. Records
//! keep what released them and when they were executed, so any partition can
//! follow the history of any operation. Results are those of the engine, bit
//! for bit, for any number of partitions.
//!
//! # When it is possible
//!
//! [`Unsuitable`] says when not.

mod build;
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

pub use build::Builder;
pub use mail::{Mail, Message, Outbox};
pub use memory::{Memory, Requirements, Unsuitable};
pub use overlap::Receiving;
pub use partition::{Partition, STEPS};
pub use rank::WindowRank;
pub use record::WindowRecord;
pub use schedule::Schedule;
