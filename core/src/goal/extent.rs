//! Size of a schedule.

/// Size of a schedule, which sinks need to know in advance.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Extent {
    /// Number of ranks.
    pub ranks: u32,
    /// Operations of all ranks.
    pub ops: usize,
    /// Dependencies of all ranks.
    pub edges: usize,
    /// Largest number of operations of a rank.
    pub ops_most: usize,
    /// Largest number of dependencies of a rank.
    pub edges_most: usize,
}

impl Extent {
    /// Extent of a rank with as many operations and dependencies.
    pub(super) const fn of_rank(ops: usize, edges: usize) -> Self {
        Self { ranks: 1, ops, edges, ops_most: ops, edges_most: edges }
    }

    /// Extent of this schedule and of another one beside it.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            ranks: self.ranks.saturating_add(other.ranks),
            ops: self.ops.saturating_add(other.ops),
            edges: self.edges.saturating_add(other.edges),
            ops_most: self.ops_most.max(other.ops_most),
            edges_most: self.edges_most.max(other.edges_most),
        }
    }
}
