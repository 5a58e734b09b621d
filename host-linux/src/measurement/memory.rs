//! Vectors for what the core wants to borrow.

use loggap_core::fit::{Cell, Node, Point, Segment};
use loggap_core::measure::{
    AssessMemory, AssessRequirements, RowHeader, SampleStore, StoreRequirements,
};

/// Memory of a [`SampleStore`].
#[derive(Debug)]
pub struct StoreVecs {
    rows: Vec<RowHeader>,
    values: Vec<u64>,
}

impl StoreVecs {
    /// As much as `required`.
    #[must_use]
    pub fn new(required: StoreRequirements) -> Self {
        let rows = vec![RowHeader::default(); required.rows];
        Self { rows, values: vec![0; required.values] }
    }

    /// An empty store.
    pub fn store(&mut self) -> SampleStore<'_> {
        SampleStore::new(&mut self.rows, &mut self.values)
    }

    pub(super) fn parts(&mut self) -> (&mut [RowHeader], &mut [u64]) {
        (&mut self.rows, &mut self.values)
    }
}

/// Memory of an assessment.
#[derive(Debug)]
pub struct AssessVecs {
    points: Vec<Point>,
    nodes: Vec<Node>,
    cells: Vec<Cell>,
    segments: Vec<Segment>,
}

impl AssessVecs {
    /// As much as `required`.
    #[must_use]
    pub fn new(required: AssessRequirements) -> Self {
        Self {
            points: vec![Point::default(); required.points],
            nodes: vec![Node::default(); required.nodes],
            cells: vec![Cell::default(); required.cells],
            segments: vec![Segment::default(); required.segments],
        }
    }

    /// Lent as a whole.
    pub fn lend(&mut self) -> AssessMemory<'_> {
        AssessMemory {
            points: &mut self.points,
            nodes: &mut self.nodes,
            cells: &mut self.cells,
            segments: &mut self.segments,
        }
    }
}
