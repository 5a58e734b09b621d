//! The queue of ranks: who has the next event.

use super::record::NONE;
use crate::units::Picos;

/// A rank and its next event.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Entry {
    pub(super) time: u64,
    /// The event's stamp.
    pub(super) created: u64,
    pub(super) seq: u32,
    pub(super) rank: u32,
}

impl Entry {
    /// When.
    #[must_use]
    pub const fn time(&self) -> Picos {
        Picos(self.time)
    }

    /// The rank; of what a network delivers, the send.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.rank
    }

    #[inline]
    pub(super) const fn before(&self, other: &Self) -> bool {
        if self.time != other.time {
            return self.time < other.time;
        }
        if self.created != other.created {
            return self.created < other.created;
        }
        self.seq < other.seq
    }
}

/// Children of a node.
const WIDTH: usize = 4;

/// A heap on lent memory, four children a node, with at most one entry a
/// rank.
#[derive(Debug)]
pub(super) struct Queue<'m> {
    entries: &'m mut [Entry],
    len: usize,
    /// Of each rank where its entry is; [`NONE`] without one.
    places: &'m mut [u32],
}

impl<'m> Queue<'m> {
    /// Without entries; both parts have one element a rank.
    pub(super) fn new(entries: &'m mut [Entry], places: &'m mut [u32]) -> Self {
        places.fill(NONE);
        Self { entries, len: 0, places }
    }

    #[inline]
    pub(super) fn first(&self) -> Option<Entry> {
        if self.len == 0 { None } else { self.entries.first().copied() }
    }

    /// Sets a rank's entry.
    #[inline]
    pub(super) fn set(&mut self, entry: Entry) {
        let place = self.places.get(entry.rank as usize).copied().unwrap_or(NONE);
        match self.entries.get(place as usize) {
            None => {
                self.len += 1;
                self.rise(self.len - 1, entry);
            }
            Some(old) if entry.before(old) => self.rise(place as usize, entry),
            Some(old) if old == &entry => {}
            Some(_) => self.sink(place as usize, entry),
        }
    }

    /// Drops a rank's entry, if it has one.
    #[inline]
    pub(super) fn drop(&mut self, rank: u32) {
        let Some(slot) = self.places.get_mut(rank as usize) else { return };
        let place = core::mem::replace(slot, NONE) as usize;
        if place >= self.len {
            return;
        }
        self.len -= 1;
        let Some(&last) = self.entries.get(self.len) else { return };
        debug_assert!(self.entries.get(place).is_some_and(|entry| entry.rank == rank));
        if last.rank == rank {
            return;
        }
        match self.entries.get(place) {
            Some(old) if last.before(old) => self.rise(place, last),
            _ => self.sink(place, last),
        }
    }

    /// Places `entry` at `at` or above.
    #[inline]
    fn rise(&mut self, mut at: usize, entry: Entry) {
        while let Some(above) = at.checked_sub(1).map(|below| below / WIDTH) {
            let Some(&parent) = self.entries.get(above) else { break };
            if !entry.before(&parent) {
                break;
            }
            self.put(at, parent);
            at = above;
        }
        self.put(at, entry);
    }

    /// Places `entry` at `at` or below.
    #[inline]
    fn sink(&mut self, mut at: usize, entry: Entry) {
        loop {
            let first = at * WIDTH + 1;
            let end = (first + WIDTH).min(self.len);
            let Some(children) = self.entries.get(first..end) else { break };
            let mut least = entry;
            let mut place = at;
            for (offset, child) in children.iter().enumerate() {
                if child.before(&least) {
                    least = *child;
                    place = first + offset;
                }
            }
            if place == at {
                break;
            }
            self.put(at, least);
            at = place;
        }
        self.put(at, entry);
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "at most one place a rank")]
    fn put(&mut self, at: usize, entry: Entry) {
        debug_assert!(at < self.len, "every rank has room for one entry");
        if let (Some(slot), Some(place)) =
            (self.entries.get_mut(at), self.places.get_mut(entry.rank as usize))
        {
            *slot = entry;
            *place = at as u32;
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
    fn the_first_entry_is_the_least_whatever_is_set_and_dropped() {
        const RANKS: usize = 50;
        let mut random = Random::new(5);
        let (mut entries, mut places) = (vec![Entry::default(); RANKS], vec![9; RANKS]);
        let mut queue = Queue::new(&mut entries, &mut places);
        let mut expected = BTreeSet::new();
        let mut keys = [None; RANKS];
        for seq in 0..20_000 {
            let rank = u32::try_from(random.below(RANKS as u64)).unwrap();
            if let Some(old) = keys[rank as usize].take() {
                expected.remove(&old);
            }
            if random.below(3) == 0 {
                queue.drop(rank);
            } else {
                let (time, created) = (random.below(20), random.below(20));
                let seq = seq % 7 * 100 + rank;
                queue.set(Entry { time, created, seq, rank });
                keys[rank as usize] = Some((time, created, seq, rank));
                expected.insert((time, created, seq, rank));
            }
            let first = queue.first().map(|e| (e.time, e.created, e.seq, e.rank));
            assert_eq!(first, expected.first().copied());
        }
    }
}
