//! Streamed schedules: read from a file during the run, in global order, or in parts of the ranks
//! ([`Part`]) window by window.
//!
//! Only operations under way have a record: released ones that are not complete (a send until its
//! message is matched), and those with both a fulfilled and an unfulfilled dependency. The file
//! ([`Lookup`](crate::goal::Lookup)) is read for the rest: for the operations that wait for one,
//! when that begins or ends; for a waiting operation and the number of its dependencies, when the
//! first of these is fulfilled. So operations are released in the same order as in a stored
//! schedule.
//!
//! Each operation has one more bit, set when it is released, so that no change to the file during
//! the run can make an operation run twice.
//!
//! The ranks share the buckets of posted receives and unexpected messages, so that memory follows
//! the operations under way; with a wildcard on one rank, the buckets of all ranks ignore sender
//! or tag.

mod builder;
mod memory;
mod operations;
mod partly;

pub use builder::Builder;
pub use operations::Streamed;

pub use crate::sim::in_order::part::{GivenUp, Part};
pub use crate::sim::in_order::part_mail::{Mail, Message, Outbox, PLACES};
