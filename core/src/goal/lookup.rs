//! Schedules whose operations can be looked up in any order, so that they need not be
//! in memory.

use super::op::Op;

/// An operation by its rank and its index there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct OpIndex {
    /// The rank.
    pub rank: u32,
    /// The operation, counted on its rank.
    pub op: u32,
}

/// What others wait for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Moment {
    /// The start of an operation.
    Start,
    /// Its completion.
    End,
}

/// A schedule whose operations can be looked up in any order: a view of a file that was
/// checked. Where the file has changed since, a lookup finds nothing, or something else.
pub trait Lookup: Copy {
    /// An operation; `None` where there is none.
    fn op(&self, index: OpIndex) -> Option<Op>;

    /// Dependencies that an operation waits for.
    fn dependencies(&self, index: OpIndex) -> Option<u32>;

    /// Calls `tell` with each operation that waits for this one, and for what of it, once
    /// for each statement; for the start, and for the completion, in the order of the
    /// statements.
    fn dependents(&self, index: OpIndex, tell: impl FnMut(u32, Moment)) -> Option<()>;

    /// Calls `tell` with each operation of `rank` that waits for nothing, in ascending
    /// order.
    fn roots(&self, rank: u32, tell: impl FnMut(u32)) -> Option<()>;
}
