//! Pairing heaps of records in lent memory (Fredman, Sedgewick, Sleator, Tarjan, 1986).
//!
//! A heap is known by its least record, or [`NONE`] if empty. Each record has two links and is in
//! at most one heap. The caller passes the comparison, the same for all operations on one heap.
//! Insertion takes one comparison; removal of the least takes O(log n), amortised.

#[cfg(target_has_atomic = "64")]
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::halves::{halves, whole};
use crate::sim::record::NONE;

/// Storage of the links of records: first child in the lower half, next sibling in the upper.
pub(in crate::sim) trait Links {
    fn link(&self, at: u32) -> u64;
    fn set_link(&mut self, at: u32, link: u64);
}

impl Links for &mut [u64] {
    #[inline]
    fn link(&self, at: u32) -> u64 {
        debug_assert!((at as usize) < self.len(), "every record has links");
        self.get(at as usize).copied().unwrap_or(EMPTY)
    }

    #[inline]
    fn set_link(&mut self, at: u32, link: u64) {
        if let Some(place) = self.get_mut(at as usize) {
            *place = link;
        }
    }
}

/// Partitions share the links of all records; each uses only those of records that wait on its own
/// ranks.
#[cfg(target_has_atomic = "64")]
impl Links for &[AtomicU64] {
    #[inline]
    fn link(&self, at: u32) -> u64 {
        debug_assert!((at as usize) < self.len(), "every record has links");
        self.get(at as usize).map_or(EMPTY, |link| link.load(Relaxed))
    }

    #[inline]
    fn set_link(&mut self, at: u32, link: u64) {
        if let Some(place) = self.get(at as usize) {
            place.store(link, Relaxed);
        }
    }
}

/// Link without child and sibling.
const EMPTY: u64 = u64::MAX;

/// Heaps whose records are linked in `links`.
#[derive(Debug)]
pub(in crate::sim) struct Heaps<L> {
    links: L,
    /// Number of comparisons and inspected heaps.
    #[cfg(test)]
    pub(in crate::sim) looks: u64,
}

impl<L: Links> Heaps<L> {
    pub(in crate::sim) const fn new(links: L) -> Self {
        Self {
            links,
            #[cfg(test)]
            looks: 0,
        }
    }

    /// Counts a comparison or inspection.
    #[inline]
    #[cfg_attr(not(test), allow(clippy::unused_self, reason = "counts in tests"))]
    pub(in crate::sim) const fn look(&mut self) {
        #[cfg(test)]
        {
            self.looks += 1;
        }
    }

    #[inline]
    fn meld(&mut self, a: u32, b: u32, before: &mut impl FnMut(u32, u32) -> bool) -> u32 {
        self.look();
        let (least, other) = if before(b, a) { (b, a) } else { (a, b) };
        let [first_child, next] = halves(self.links.link(least));
        let [below, _] = halves(self.links.link(other));
        self.links.set_link(other, whole([below, first_child]));
        self.links.set_link(least, whole([other, next]));
        least
    }

    /// Merges two heaps.
    pub(in crate::sim) fn join(
        &mut self,
        a: u32,
        b: u32,
        mut before: impl FnMut(u32, u32) -> bool,
    ) -> u32 {
        match (a, b) {
            (NONE, root) | (root, NONE) => root,
            _ => self.meld(a, b, &mut before),
        }
    }

    /// Inserts a record into the heap with root `root`.
    #[inline]
    pub(in crate::sim) fn push(
        &mut self,
        root: &mut u32,
        at: u32,
        mut before: impl FnMut(u32, u32) -> bool,
    ) {
        self.links.set_link(at, EMPTY);
        *root = if *root == NONE { at } else { self.meld(*root, at, &mut before) };
    }

    /// Removes the least record of the heap with root `root`.
    #[inline]
    pub(in crate::sim) fn pop(&mut self, root: &mut u32, mut before: impl FnMut(u32, u32) -> bool) {
        debug_assert!(*root != NONE, "nothing to take");
        let [mut rest, _] = halves(self.links.link(*root));
        // Melds the children in pairs; the list of pairs is in reverse order.
        let mut pairs = NONE;
        while rest != NONE {
            let one = rest;
            let [_, other] = halves(self.links.link(one));
            let least = if other == NONE {
                rest = NONE;
                one
            } else {
                [_, rest] = halves(self.links.link(other));
                self.meld(one, other, &mut before)
            };
            let [below, _] = halves(self.links.link(least));
            self.links.set_link(least, whole([below, pairs]));
            pairs = least;
        }
        *root = NONE;
        while pairs != NONE {
            let [_, after] = halves(self.links.link(pairs));
            *root = if *root == NONE { pairs } else { self.meld(*root, pairs, &mut before) };
            pairs = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::BTreeSet;
    use std::vec;

    #[test]
    fn the_root_is_the_least_whatever_is_put_in_and_taken_out() {
        const RECORDS: u32 = 300;
        let mut random = Random::new(8);
        let keys: vec::Vec<(u64, u32)> = (0..RECORDS).map(|at| (random.below(50), at)).collect();
        let before = |a: u32, b: u32| keys[a as usize] < keys[b as usize];
        let mut links = vec![7; RECORDS as usize];
        let mut heaps = Heaps::new(&mut links[..]);
        let mut roots = [NONE; 2];
        let mut expected: [BTreeSet<(u64, u32)>; 2] = [BTreeSet::new(), BTreeSet::new()];
        for _ in 0..30_000 {
            let at = u32::try_from(random.below(RECORDS.into())).unwrap();
            let which = usize::from(random.below(2) == 0);
            if expected.iter().all(|heap| !heap.contains(&keys[at as usize])) {
                heaps.push(&mut roots[which], at, before);
                expected[which].insert(keys[at as usize]);
            } else if expected[which].pop_first().is_some() {
                heaps.pop(&mut roots[which], before);
            }
            let least = expected.each_ref().map(|heap| heap.first().map_or(NONE, |first| first.1));
            assert_eq!(roots, least);
        }
    }

    #[test]
    fn each_record_costs_logarithmically_many_comparisons() {
        const RECORDS: u32 = 1 << 16;
        let mut random = Random::new(9);
        let keys: vec::Vec<u64> = (0..RECORDS).map(|_| random.draw()).collect();
        let mut links = vec![0; RECORDS as usize];
        let mut heaps = Heaps::new(&mut links[..]);
        let before = |a: u32, b: u32| keys[a as usize] < keys[b as usize];
        let mut root = NONE;
        for at in 0..RECORDS {
            heaps.push(&mut root, at, before);
        }
        let mut last = 0;
        while root != NONE {
            assert!(keys[root as usize] >= last);
            last = keys[root as usize];
            heaps.pop(&mut root, before);
        }
        let each = heaps.looks / u64::from(RECORDS);
        assert!(each <= 2 * 16, "{each} comparisons a record");
    }
}
