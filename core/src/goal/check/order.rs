//! Order of one rank's operations by their dependencies: the longest chain, and operations that
//! wait for each other in a cycle.

use crate::goal::rank::{RankBuffer, RankNode, RankParts};

/// Result of ordering one rank's operations.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Order {
    /// Number of operations on the longest chain of dependencies.
    pub(super) depth: u32,
    /// Number of operations that wait for a cycle, directly or indirectly.
    pub(super) blocked: u32,
}

const NONE: u32 = u32::MAX;

/// Orders the operations of the grouped `rank` topologically. Blocked operations keep a `mark`
/// above 0.
pub(super) fn order(rank: &mut RankBuffer<'_>) -> Order {
    let RankParts { nodes, successors, .. } = rank.parts();
    let mut ready = NONE;
    let mut found = Order::default();
    for (index, node) in (0..).zip(nodes.iter_mut()) {
        node.mark = node.dependencies;
        node.level = 1;
        found.blocked += 1;
        if node.mark == 0 {
            node.next = ready;
            ready = index;
        }
    }
    while let Some(&node) = nodes.get(ready as usize) {
        ready = node.next;
        found.blocked -= 1;
        found.depth = found.depth.max(node.level);
        let range = node.first as usize..node.end() as usize;
        for &successor in successors.get(range).unwrap_or_default() {
            release(nodes, successor, node.level, &mut ready);
        }
    }
    found
}

/// Fulfils one dependency of operation `index`.
fn release(nodes: &mut [RankNode], index: u32, level: u32, ready: &mut u32) {
    let Some(node) = nodes.get_mut(index as usize) else { return };
    node.level = node.level.max(level.saturating_add(1));
    node.mark = node.mark.saturating_sub(1);
    if node.mark == 0 {
        node.next = *ready;
        *ready = index;
    }
}

/// Operations that wait for each other in a cycle: each for the next, the last for the first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Cycle {
    ops: [u32; Self::SHOWN],
    length: u32,
}

impl Cycle {
    /// Largest number of operations stored.
    pub const SHOWN: usize = 8;

    /// First operations of the cycle, from the lowest on.
    #[must_use]
    pub fn ops(&self) -> &[u32] {
        let shown = Self::SHOWN.min(self.length as usize);
        self.ops.get(..shown).unwrap_or_default()
    }

    /// Number of operations of the cycle.
    #[must_use]
    pub const fn length(&self) -> u32 {
        self.length
    }
}

/// A cycle in a rank in which [`order`] left blocked operations.
pub(super) fn cycle(rank: &mut RankBuffer<'_>) -> Option<Cycle> {
    let RankParts { nodes, edges, .. } = rank.parts();
    // Every blocked operation waits for another blocked one, which is stored in `next`.
    for edge in edges {
        let blocked = nodes.get(edge.on as usize).is_some_and(|node| node.mark > 0);
        if let Some(node) = nodes.get_mut(edge.op as usize).filter(|_| blocked) {
            node.next = edge.on;
        }
    }
    let nodes = &*nodes;
    let next = |op: u32| nodes.get(op as usize).map_or(NONE, |node| node.next);
    let mut op = (0..).zip(nodes).find(|(_, node)| node.mark > 0)?.0;
    for _ in nodes {
        op = next(op); // after as many steps as there are operations, `op` is on the cycle
    }
    let steps = || core::iter::successors(Some(op), |&at| Some(next(at)).filter(|&at| at != op));
    let lowest = steps().min()?;
    let mut found = Cycle { ops: [0; Cycle::SHOWN], length: 0 };
    let cycle =
        core::iter::successors(Some(lowest), |&at| Some(next(at)).filter(|&at| at != lowest));
    let mut slots = found.ops.iter_mut();
    for op in cycle {
        found.length += 1;
        if let Some(slot) = slots.next() {
            *slot = op;
        }
    }
    Some(found)
}
