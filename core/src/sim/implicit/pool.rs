//! Pool of nodes for messages and waiting operations, linked in lists, in lent memory.

use super::error::ImplicitError;
use crate::sim::queues::chain::Chain;

/// Sentinel: end of a list; no node has this number.
pub(super) const NONE: u32 = 0;

/// Node: a message or waiting operations, in 32 bytes of lent memory. The content on entry does not
/// matter. Creation times are 0 for operations without dependencies, otherwise the instant plus 1.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C)]
pub struct Node {
    /// Next node of its list; [`Pool::keep`] sets it.
    pub(super) next: u32,
    /// Message: the sender in windows, the receiver in global order. Operations: the first one.
    pub(super) first: u32,
    /// Message: the receive that it matches. Operations: one past the last.
    pub(super) last: u32,
    /// Kind of the operations; 0 for a message.
    pub(super) kind: u32,
    /// Creation time.
    pub(super) created: u64,
    /// Creation time of the creator; in global order the number of the stamp. Receives in windows:
    /// the time at which they are posted.
    pub(super) parent: u64,
}

const _: () = assert!(size_of::<Node>() == 32, "two in a cache line");

/// Pool of nodes with a free list.
#[derive(Debug)]
pub(super) struct Pool<'m> {
    nodes: &'m mut [Node],
    /// First node that was never used.
    fresh: u32,
    /// First node of the free list.
    free: u32,
}

impl Chain for Pool<'_> {
    const END: u32 = NONE;

    #[inline]
    fn next(&self, node: u32) -> u32 {
        self.item(node).next
    }

    #[inline]
    fn set_next(&mut self, node: u32, next: u32) {
        if let Some(place) = self.nodes.get_mut(node as usize) {
            place.next = next;
        }
    }
}

impl<'m> Pool<'m> {
    pub(super) const fn new(nodes: &'m mut [Node]) -> Self {
        Self { nodes, fresh: 1, free: NONE }
    }

    /// Number of nodes ever used, including the sentinel.
    pub(super) const fn used(&self) -> u32 {
        self.fresh
    }

    #[inline]
    pub(super) fn item(&self, node: u32) -> Node {
        debug_assert!(node != NONE && (node as usize) < self.nodes.len(), "no node {node}");
        self.nodes.get(node as usize).copied().unwrap_or_default()
    }

    /// Replaces the first operation of a node.
    #[inline]
    pub(super) fn set_first(&mut self, node: u32, first: u32) {
        if let Some(place) = self.nodes.get_mut(node as usize) {
            place.first = first;
        }
    }

    /// Takes a free node.
    #[inline]
    fn take(&mut self) -> Result<u32, ImplicitError> {
        if self.free != NONE {
            let node = self.free;
            self.free = self.next(node);
            return Ok(node);
        }
        let node = self.fresh;
        if node as usize >= self.nodes.len() || node == u32::MAX {
            return Err(ImplicitError::Nodes { lent: self.nodes.len() });
        }
        self.fresh = node + 1;
        Ok(node)
    }

    /// Appends a node to the circular list that ends with `last`.
    #[inline]
    pub(super) fn push(&mut self, last: &mut u32, item: Node) -> Result<(), ImplicitError> {
        let node = self.keep(item)?;
        Chain::push(self, last, node);
        Ok(())
    }

    /// As `push`, at the beginning of the list.
    #[inline]
    pub(super) fn push_first(&mut self, last: &mut u32, item: Node) -> Result<(), ImplicitError> {
        let end = *last;
        self.push(last, item)?;
        if end != NONE {
            *last = end;
        }
        Ok(())
    }

    /// First node of a list that is not empty.
    #[inline]
    pub(super) fn first(&self, last: u32) -> u32 {
        self.next(last)
    }

    /// Creates a node that is in no list.
    #[inline]
    pub(super) fn keep(&mut self, item: Node) -> Result<u32, ImplicitError> {
        let node = self.take()?;
        if let Some(place) = self.nodes.get_mut(node as usize) {
            *place = Node { next: NONE, ..item };
        }
        Ok(node)
    }

    /// Key by which messages are ordered in a list.
    #[inline]
    fn stamp(&self, node: u32) -> (u64, u64) {
        let Node { created, parent, .. } = self.item(node);
        (created, parent)
    }

    /// Inserts a node into a list by creation time; usually at the end.
    #[inline]
    pub(super) fn insert(&mut self, last: &mut u32, node: u32) {
        Chain::insert(self, last, node, |pool, a, b| pool.stamp(a) < pool.stamp(b));
    }

    /// Moves the first node of the chain that begins with `first` to the end of a list; returns the
    /// rest of the chain.
    #[inline]
    pub(super) fn append(&mut self, last: &mut u32, first: u32) -> u32 {
        let rest = self.next(first);
        Chain::push(self, last, first);
        rest
    }

    /// Moves a chain of nodes to the end of a list.
    #[inline]
    pub(super) fn splice(&mut self, last: &mut u32, [first, end]: [u32; 2]) {
        if *last == NONE {
            self.set_next(end, first);
        } else {
            let head = self.next(*last);
            self.set_next(*last, first);
            self.set_next(end, head);
        }
        *last = end;
    }

    /// Turns a circular list that is not empty into a chain that ends with [`NONE`].
    #[inline]
    pub(super) fn open(&mut self, last: u32) -> u32 {
        let first = self.next(last);
        self.set_next(last, NONE);
        first
    }

    /// Removes the node after `before` from its list and frees it.
    #[inline]
    pub(super) fn remove_after(&mut self, last: &mut u32, before: u32) {
        let node = self.next(before);
        self.remove(last, before, node);
        self.set_next(node, self.free);
        self.free = node;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn message(created: u64) -> Node {
        Node { created, ..Node::default() }
    }

    fn times(pool: &Pool<'_>, last: u32) -> Vec<u64> {
        let mut times = Vec::new();
        let mut node = last;
        while node != NONE {
            node = pool.next(node);
            times.push(pool.item(node).created);
            if node == last {
                break;
            }
        }
        times
    }

    #[test]
    fn lists_stay_in_order_and_nodes_are_used_again() {
        let mut memory = [Node { next: 9, ..Node::default() }; 4];
        let mut pool = Pool::new(&mut memory);
        let mut list = NONE;
        for created in [5, 2, 9] {
            assert_eq!(pool.push(&mut list, message(created)), Ok(()));
        }
        assert_eq!(pool.push(&mut list, message(1)), Err(ImplicitError::Nodes { lent: 4 }));
        assert_eq!(times(&pool, list), [5, 2, 9]);
        let before = list;
        pool.remove_after(&mut list, before);
        assert_eq!(times(&pool, list), [2, 9]);
        assert_eq!(pool.push(&mut list, message(7)), Ok(()));
        assert_eq!(times(&pool, list), [2, 9, 7]);
        for _ in 0..3 {
            let before = list;
            pool.remove_after(&mut list, before);
        }
        assert_eq!(list, NONE);
        let mut other = NONE;
        assert_eq!(pool.push(&mut other, message(3)), Ok(()));
        assert_eq!(pool.push_first(&mut other, message(4)), Ok(()));
        assert_eq!(times(&pool, other), [4, 3]);
    }
}
