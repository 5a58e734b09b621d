//! Memory for the core's planner and assessment.

use loggap_core::fit::{Node, Point};
use loggap_core::measure::{
    AssessMemory, AssessRequirements, PlanMemory, PlanOptions, PlanRequirements, RowHeader,
    SampleStore, Slot,
};

use super::analysis::MOST_SIZES;

/// Number of sizes that bisection may add to the requested ones.
const ADDED_SIZES: usize = 96;
/// Values kept of a quantity at one size, per second of the time budget.
const VALUES_PER_SECOND: u64 = 512;
/// Lower and upper limit of the values kept.
const VALUES: (u64, u64) = (2_048, 16_384);

/// Buffers to assess a limited number of sizes.
#[derive(Debug)]
pub struct AssessBuffers {
    points: Vec<Point>,
    nodes: Vec<Node>,
}

impl AssessBuffers {
    /// Allocates buffers for up to `sizes` sizes.
    #[must_use]
    pub fn new(sizes: usize) -> Self {
        let needed = AssessRequirements::new(sizes);
        Self {
            points: vec![Point::default(); needed.points],
            nodes: vec![Node::default(); needed.nodes],
        }
    }

    /// Lends the buffers.
    pub fn lend(&mut self) -> AssessMemory<'_> {
        AssessMemory { points: &mut self.points, nodes: &mut self.nodes }
    }
}

/// Buffers of a planner, or of a sample store and its assessment.
#[derive(Debug)]
pub struct Memory {
    rows: Vec<RowHeader>,
    values: Vec<u64>,
    order: Vec<Slot>,
    assess: AssessBuffers,
}

impl Memory {
    /// Allocates buffers for `sizes` sizes plus those that bisection adds.
    #[must_use]
    pub fn new(sizes: usize, options: &PlanOptions) -> Self {
        let sizes = sizes.saturating_add(ADDED_SIZES).min(MOST_SIZES);
        let (rows, values, order) = PlanRequirements::new(sizes, repetitions(options))
            .map_or((0, 0, 0), |needed| (needed.store.rows, needed.store.values, needed.order));
        Self {
            rows: vec![RowHeader::default(); rows],
            values: vec![0; values],
            order: vec![Slot::default(); order],
            assess: AssessBuffers::new(sizes),
        }
    }

    /// Lends the buffers to a planner.
    pub(super) fn lend(&mut self) -> PlanMemory<'_> {
        PlanMemory {
            rows: &mut self.rows,
            values: &mut self.values,
            order: &mut self.order,
            assess: self.assess.lend(),
        }
    }

    /// Lends the buffers as a store and its assessment.
    pub(super) fn lend_store(&mut self) -> (SampleStore<'_>, &mut AssessBuffers) {
        (SampleStore::new(&mut self.rows, &mut self.values), &mut self.assess)
    }
}

/// Capacity for values of one quantity at one size.
fn repetitions(options: &PlanOptions) -> usize {
    let seconds = options.max_time.0 / 1_000_000_000_000;
    let wanted = seconds.saturating_mul(VALUES_PER_SECOND).clamp(VALUES.0, VALUES.1);
    usize::try_from(wanted).unwrap_or(usize::MAX)
}
