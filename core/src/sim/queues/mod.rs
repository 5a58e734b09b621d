//! Lists, heaps and queues on lent memory.
//!
//! - [`chain`]: lists through links that lie elsewhere.
//! - [`array_heap`] and [`heap`]: the least of many, in an array and through links.
//! - [`agenda`]: entries in the order of (time, stamp); [`queue`]: one of each rank.
//! - [`wheel`]: in which window each rank is next due.

pub(super) mod agenda;
pub(super) mod array_heap;
pub(super) mod chain;
pub(super) mod heap;
pub(super) mod queue;
pub(super) mod wheel;
