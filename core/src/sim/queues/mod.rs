//! Lists, heaps and queues in lent memory.
//!
//! - [`chain`]: linked lists whose links are stored by the caller.
//! - [`array_heap`] and [`heap`]: priority queues, in an array and as pairing heaps through links.
//! - [`agenda`]: entries in the order of (time, stamp); [`queue`]: at most one entry for each rank.
//! - [`wheel`]: timing wheel of the windows in which ranks are due.

pub(super) mod agenda;
pub(super) mod array_heap;
pub(super) mod chain;
pub(super) mod heap;
pub(super) mod queue;
pub(super) mod wheel;
