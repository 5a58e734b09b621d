//! Memory for one rank of a schedule.

use loggap_core::goal::{Edge, Extent, RankMemory, RankNode};

/// Memory for the largest rank of a schedule.
#[derive(Debug)]
pub struct OwnedRank {
    nodes: Vec<RankNode>,
    edges: Vec<Edge>,
    successors: Vec<u32>,
}

impl OwnedRank {
    /// Memory for each rank of a schedule of this extent.
    #[must_use]
    pub fn new(extent: &Extent) -> Self {
        Self {
            nodes: vec![RankNode::EMPTY; extent.ops_most],
            edges: vec![Edge::default(); extent.edges_most],
            successors: vec![0; extent.edges_most],
        }
    }

    /// Lends it.
    pub fn lend(&mut self) -> RankMemory<'_> {
        let Self { nodes, edges, successors } = self;
        RankMemory { nodes, edges, successors }
    }
}
