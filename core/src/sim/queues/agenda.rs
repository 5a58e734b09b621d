//! Priority queue of entries with a fast path: entries added in ascending order, as when many ranks
//! do the same, go through a ring.

use super::array_heap::{self, Precedes};
use super::queue::Entry;
use crate::sim::record::NONE;

impl Precedes for Entry {
    #[inline]
    fn before(&self, other: &Self) -> bool {
        Self::before(self, other)
    }
}

/// Ring of entries in ascending order, and a heap of those that were added out of order.
#[derive(Debug)]
pub(in crate::sim) struct Agenda<'m> {
    heap: &'m mut [Entry],
    heaped: usize,
    ring: &'m mut [Entry],
    /// Position of the first entry in the ring. That entry is never cancelled; a cancelled entry
    /// has the index [`NONE`].
    head: usize,
    ringed: usize,
}

/// Positions: first those of the heap, then those of the ring.
impl<'m> Agenda<'m> {
    /// Empty agenda. The heap needs room for all entries; the ring may have any length.
    pub(in crate::sim) const fn new(heap: &'m mut [Entry], ring: &'m mut [Entry]) -> Self {
        Self { heap, heaped: 0, ring, head: 0, ringed: 0 }
    }

    /// Agenda without a ring, with the first `heaped` entries of a heap left by another one.
    pub(in crate::sim) fn of_heap(heap: &'m mut [Entry], heaped: usize) -> Self {
        Self { heaped, ..Self::new(heap, &mut []) }
    }

    /// Number of entries in the heap.
    pub(in crate::sim) const fn heaped(&self) -> usize {
        self.heaped
    }

    /// The least entry.
    #[inline]
    pub(in crate::sim) fn first(&self) -> Option<Entry> {
        let next = if self.is_ring_next() { self.ring.get(self.head) } else { self.heap.first() };
        next.filter(|_| self.ringed + self.heaped > 0).copied()
    }

    /// Children of the heap's root: the next entry of the heap is among them.
    #[inline]
    pub(in crate::sim) fn after_root(&self) -> &[Entry] {
        self.heap.get(1..self.heaped.min(1 + array_heap::WIDTH)).unwrap_or_default()
    }

    /// True if the least entry is in the ring.
    #[inline]
    fn is_ring_next(&self) -> bool {
        if self.heaped == 0 || self.ringed == 0 {
            return self.ringed > 0;
        }
        match (self.ring.get(self.head), self.heap.first()) {
            (Some(ringed), Some(heaped)) => ringed.before(heaped),
            _ => false,
        }
    }

    /// Adds an entry. `moved` is called with each entry whose position changes, the new one
    /// included.
    #[inline]
    pub(in crate::sim) fn add(&mut self, entry: Entry, mut moved: impl FnMut(&Entry, usize)) {
        let last = self.ring_at(self.ringed.wrapping_sub(1));
        match self.ring.get(last).filter(|_| self.ringed > 0) {
            Some(&last) if entry.before(&last) => {
                if self.ringed > 1 {
                    return self.add_to_heap(entry, moved);
                }
                // An entry in the far future must not keep all others out of the ring.
                self.ringed = 0;
                self.add_to_heap(last, &mut moved);
            }
            _ => {}
        }
        if self.ringed == self.ring.len() {
            return self.add_to_heap(entry, moved);
        }
        let at = self.ring_at(self.ringed);
        if let Some(place) = self.ring.get_mut(at) {
            *place = entry;
            self.ringed += 1;
            moved(&entry, self.heap.len() + at);
        }
    }

    fn add_to_heap(&mut self, entry: Entry, moved: impl FnMut(&Entry, usize)) {
        debug_assert!(self.heaped < self.heap.len(), "there is room for all");
        array_heap::rise(self.heap, self.heaped, entry, moved);
        self.heaped += 1;
    }

    /// Position in the ring of the entry `after` the first.
    #[inline]
    const fn ring_at(&self, after: usize) -> usize {
        let at = self.head.wrapping_add(after);
        if at >= self.ring.len() { at.wrapping_sub(self.ring.len()) } else { at }
    }

    /// Removes the least entry.
    #[inline]
    pub(in crate::sim) fn remove_first(&mut self, moved: impl FnMut(&Entry, usize)) {
        if self.is_ring_next() {
            self.remove_ringed();
        } else if let Some(heap) = self.heap.get_mut(..self.heaped) {
            array_heap::remove_first(heap, moved);
            self.heaped = self.heaped.saturating_sub(1);
        }
    }

    /// Removes the first entry of the ring, and cancelled ones behind it.
    #[inline]
    fn remove_ringed(&mut self) {
        loop {
            self.head = self.ring_at(1);
            self.ringed -= 1;
            let next = self.ring.get(self.head).filter(|_| self.ringed > 0);
            if next.is_none_or(|next| next.index != NONE) {
                return;
            }
        }
    }

    /// Entry at a position in use.
    #[inline]
    pub(in crate::sim) fn at(&self, place: usize) -> Option<&Entry> {
        match place.checked_sub(self.heap.len()) {
            None => self.heap.get(place).filter(|_| place < self.heaped),
            Some(at) => self.ring.get(at),
        }
    }

    /// Replaces the entry at `place`, or adds `entry` if that position is not in use.
    #[inline]
    pub(in crate::sim) fn set(
        &mut self,
        place: usize,
        entry: Entry,
        moved: impl FnMut(&Entry, usize),
    ) {
        let Some(&old) = self.at(place) else { return self.add(entry, moved) };
        debug_assert_eq!(old.index, entry.index, "its place is known");
        if old == entry {
            return;
        }
        if place >= self.heap.len() {
            self.cancel(place - self.heap.len());
            self.add(entry, moved);
        } else if entry.before(&old) {
            array_heap::rise(self.heap, place, entry, moved);
        } else if let Some(heap) = self.heap.get_mut(..self.heaped) {
            array_heap::sink(heap, place, entry, moved);
        }
    }

    /// Removes the entry at a position.
    #[inline]
    pub(in crate::sim) fn remove(&mut self, place: usize, moved: impl FnMut(&Entry, usize)) {
        if place >= self.heap.len() {
            return self.cancel(place - self.heap.len());
        }
        let Some((&mut last, rest)) =
            self.heap.get_mut(..self.heaped).and_then(<[Entry]>::split_last_mut)
        else {
            return;
        };
        self.heaped -= 1;
        match rest.get(place) {
            Some(old) if last.before(old) => array_heap::rise(rest, place, last, moved),
            Some(_) => array_heap::sink(rest, place, last, moved),
            None => {}
        }
    }

    fn cancel(&mut self, at: usize) {
        if at == self.head {
            return self.remove_ringed();
        }
        if let Some(entry) = self.ring.get_mut(at) {
            entry.index = NONE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::BTreeSet;
    use std::vec;

    const RANKS: u32 = 40;
    const PLACES: usize = RANKS as usize;

    /// Random insertions, removals and replacements, compared with a set; returns how often the
    /// ring was used.
    fn compare(ring: usize, late: u64) -> usize {
        let mut random = Random::new(7);
        let (mut heap, mut in_order) =
            (vec![Entry::default(); PLACES], vec![Entry::default(); ring]);
        let mut agenda = Agenda::new(&mut heap, &mut in_order);
        let mut places = [usize::MAX; PLACES];
        let mut keys = [None; PLACES];
        let mut expected = BTreeSet::new();
        let mut ringed = 0;
        for seq in 0..40_000u32 {
            let rank = u32::try_from(random.below(RANKS.into())).unwrap();
            let at = rank as usize;
            let mut moved = |entry: &Entry, at: usize| places[entry.index as usize] = at;
            match random.below(3) {
                0 => {
                    if let Some(first) = agenda.first() {
                        let children = agenda.after_root().to_vec();
                        agenda.remove_first(&mut moved);
                        let second = agenda.first().filter(|_| ring == 0);
                        assert!(second.is_none_or(|second| children.contains(&second)));
                        places[first.index as usize] = usize::MAX;
                        expected.remove(&keys[first.index as usize].take().unwrap());
                    }
                }
                1 if keys[at].is_some() => {
                    let place = places[at];
                    agenda.remove(place, |entry, at| places[entry.index as usize] = at);
                    places[at] = usize::MAX;
                    expected.remove(&keys[at].take().unwrap());
                }
                _ => {
                    let time = u64::from(seq / 4) + random.below(late);
                    let entry = Entry { time, created: 0, seq, index: rank };
                    let place = places[at];
                    agenda.set(place, entry, |entry, at| places[entry.index as usize] = at);
                    if let Some(old) = keys[at].replace((time, seq, rank)) {
                        expected.remove(&old);
                    }
                    expected.insert((time, seq, rank));
                    ringed += usize::from(places[at] >= PLACES);
                }
            }
            let first = agenda.first().map(|entry| (entry.time, entry.seq, entry.index));
            assert_eq!(first, expected.first().copied());
        }
        ringed
    }

    #[test]
    fn the_first_entry_is_the_least_whatever_is_set_and_removed() {
        assert_eq!(compare(0, 20), 0);
        let sets = compare(PLACES, 1);
        assert!(sets > 10_000, "all in order: {sets}");
        let some = compare(PLACES, 20);
        assert!(some > 100 && some < sets, "{some} of {sets}");
        assert!(compare(3, 2) > 100);
    }
}
