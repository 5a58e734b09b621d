//! Schedules that are read while they run, in global order.
//!
//! Only operations that are under way have a record: those that are released and of
//! which something is still to come (a send until its message has met its receive), and
//! those of which one dependency is fulfilled and another is not. All else is looked up
//! in the file ([`Lookup`](crate::goal::Lookup)) when it is needed: who waits for an operation when that
//! begins or ends, what waits and for how many when the first of these does. So
//! operations are released in the order of a stored schedule, for the same reasons.
//!
//! Beside its record an operation takes one bit, which says that it was released:
//! so no file, whatever becomes of it during the run, has an operation run twice.
//!
//! Receives that are posted, and messages that wait, are found by rank, sender and tag in
//! a hash table; where a schedule has wildcards, they are lists of their ranks, which are
//! looked through.

mod buckets;
mod builder;
mod memory;
mod operations;
mod partly;
mod waiting;

pub use builder::Builder;
pub use memory::{Memory, Requirements};
pub use operations::Streamed;
