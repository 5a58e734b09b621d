//! Random access to the operations of a schedule, which need not be in memory.

use super::op::Op;

/// An operation, by its rank and its index there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct OpIndex {
    /// Rank of the operation.
    pub rank: u32,
    /// Index of the operation on its rank.
    pub op: u32,
}

/// Event of an operation that a dependency waits for: `requires` its end, `irequires` its start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum DependsOn {
    /// The start of an operation.
    Start,
    /// Its completion.
    End,
}

/// Random access to the operations of a schedule: a view of a file that was checked. If the file
/// has changed since, a lookup returns `None` or wrong data.
pub trait Lookup: Copy {
    /// The operation at an index; `None` if it does not exist.
    fn op(&self, index: OpIndex) -> Option<Op>;

    /// Number of dependencies that an operation waits for.
    fn dependencies(&self, index: OpIndex) -> Option<u32>;

    /// Calls `tell` with each operation that waits for this one, and with the event that it waits
    /// for, once for each statement. Dependencies on the start, and those on the completion, are
    /// each in the order of the statements.
    fn dependents(&self, index: OpIndex, tell: impl FnMut(u32, DependsOn)) -> Option<()>;

    /// Calls `tell` with each operation of `rank` that has no dependencies, in ascending order.
    fn roots(&self, rank: u32, tell: impl FnMut(u32)) -> Option<()>;

    /// Reads `place`, which is used soon, into the processor's cache, where the host can.
    #[inline]
    fn prefetch<T>(_place: &T) {}

    /// As [`Lookup::prefetch`], for what lookups on `rank` need.
    #[inline]
    fn prefetch_rank(&self, _rank: u32) {}
}
