//! Operations and dependencies of one rank, in lent memory, with the dependencies grouped by the
//! operation waited for.

use super::op::{Edge, Op, OpKind};
use crate::units::Picos;

/// Memory for one rank at a time. The content on entry does not matter.
#[derive(Debug)]
pub struct RankMemory<'m> {
    /// One node for each operation of the largest rank.
    pub nodes: &'m mut [RankNode],
    /// One edge for each dependency of the rank with the most.
    pub edges: &'m mut [Edge],
    /// As long as `edges`.
    pub successors: &'m mut [u32],
}

/// Operation with the state of its dependencies.
#[derive(Clone, Copy, Debug)]
pub struct RankNode {
    pub(super) op: Op,
    /// Number of dependencies that it waits for.
    pub(super) dependencies: u32,
    /// Position of its first successor: those that wait for its completion, followed by those that
    /// wait for its start.
    pub(super) first: u32,
    /// Number of operations that wait for its completion.
    pub(super) completions: u32,
    /// Number of operations that wait for its start.
    pub(super) starts: u32,
    /// While grouping: number of operations that wait for its completion. While ordering: number of
    /// unfulfilled dependencies.
    pub(super) mark: u32,
    /// Number of operations on the longest chain of dependencies that ends with it.
    pub(super) level: u32,
    /// Next operation of a list.
    pub(super) next: u32,
}

impl RankNode {
    /// A calculation that takes no time.
    pub const EMPTY: Self =
        Self::new(Op { kind: OpKind::Calc { duration: Picos::ZERO }, cpu: 0, nic: 0 });

    const fn new(op: Op) -> Self {
        let (dependencies, first, completions, starts) = (0, 0, 0, 0);
        Self { op, dependencies, first, completions, starts, mark: 0, level: 0, next: 0 }
    }

    /// Position after its last successor.
    pub(super) const fn end(&self) -> u32 {
        self.first + self.completions + self.starts
    }
}

impl Default for RankNode {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// Content of one rank, in slices.
pub(super) struct RankParts<'b> {
    pub(super) nodes: &'b mut [RankNode],
    pub(super) edges: &'b [Edge],
    pub(super) successors: &'b mut [u32],
}

/// The lent memory is used up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct RankFull;

/// Content of one rank.
#[derive(Debug)]
pub(super) struct RankBuffer<'m> {
    memory: RankMemory<'m>,
    ops: usize,
    edges: usize,
}

impl<'m> RankBuffer<'m> {
    pub(super) fn new(memory: RankMemory<'m>) -> Self {
        Self { memory, ops: 0, edges: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.ops = 0;
        self.edges = 0;
    }

    pub(super) fn push_op(&mut self, op: Op) -> Result<(), RankFull> {
        *self.memory.nodes.get_mut(self.ops).ok_or(RankFull)? = RankNode::new(op);
        self.ops += 1;
        Ok(())
    }

    /// Adds a dependency between operations of the rank.
    pub(super) fn push_edge(&mut self, edge: Edge) -> Result<(), RankFull> {
        if self.edges >= self.memory.successors.len() || u32::try_from(self.edges + 1).is_err() {
            return Err(RankFull);
        }
        *self.memory.edges.get_mut(self.edges).ok_or(RankFull)? = edge;
        self.edges += 1;
        Ok(())
    }

    /// Counts dependencies and groups successors, once the rank is complete.
    pub(super) fn group(&mut self) {
        let RankParts { nodes, edges, successors } = self.parts();
        for edge in edges {
            if let Some(node) = nodes.get_mut(edge.op as usize) {
                node.dependencies += 1;
            }
            if let Some(node) = nodes.get_mut(edge.on as usize) {
                node.completions += u32::from(!edge.start);
                node.starts += u32::from(edge.start);
            }
        }
        let mut first = 0;
        for node in nodes.iter_mut() {
            node.first = first;
            first = node.end();
            // Until all are placed, `completions` and `starts` count those placed.
            (node.mark, node.completions, node.starts) = (node.completions, 0, 0);
        }
        for edge in edges {
            let Some(node) = nodes.get_mut(edge.on as usize) else { continue };
            let place = if edge.start {
                node.starts += 1;
                node.first + node.mark + node.starts - 1
            } else {
                node.completions += 1;
                node.first + node.completions - 1
            };
            if let Some(slot) = successors.get_mut(place as usize) {
                *slot = edge.op;
            }
        }
    }

    pub(super) fn nodes(&self) -> &[RankNode] {
        self.memory.nodes.get(..self.ops).unwrap_or_default()
    }

    /// Successors of all nodes, in order. Valid after [`RankBuffer::group`].
    pub(super) fn successors(&self) -> &[u32] {
        self.memory.successors.get(..self.edges).unwrap_or_default()
    }

    /// Nodes; dependencies in the order of their addition; after [`RankBuffer::group`] the successors
    /// of all nodes, before it space to sort the dependencies.
    pub(super) fn parts(&mut self) -> RankParts<'_> {
        let RankMemory { nodes, edges, successors } = &mut self.memory;
        RankParts {
            nodes: nodes.get_mut(..self.ops).unwrap_or_default(),
            edges: edges.get(..self.edges).unwrap_or_default(),
            successors: successors.get_mut(..self.edges).unwrap_or_default(),
        }
    }
}
