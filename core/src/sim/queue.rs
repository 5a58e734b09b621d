//! The queue of ranks: who has the next event.

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
    #[inline]
    const fn before(&self, other: &Self) -> bool {
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

/// A heap on lent memory, four children a node.
#[derive(Debug)]
pub(super) struct Queue<'m> {
    entries: &'m mut [Entry],
    len: usize,
}

impl<'m> Queue<'m> {
    pub(super) const fn new(entries: &'m mut [Entry]) -> Self {
        Self { entries, len: 0 }
    }

    pub(super) const fn is_full(&self) -> bool {
        self.len == self.entries.len()
    }

    pub(super) fn first(&self) -> Option<Entry> {
        if self.len == 0 { None } else { self.entries.first().copied() }
    }

    /// Adds an entry; `false` when there is no room.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) -> bool {
        if self.is_full() {
            return false;
        }
        self.len += 1;
        self.rise(self.len - 1, entry);
        true
    }

    /// Takes the first entry out.
    #[inline]
    pub(super) fn pop(&mut self) {
        let Some(last) = self.len.checked_sub(1) else { return };
        self.len = last;
        if let Some(&entry) = self.entries.get(last) {
            self.sink(0, entry);
        }
    }

    /// Drops the entries that are not worth keeping.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool) {
        let mut kept = 0;
        for index in 0..self.len {
            let Some(&entry) = self.entries.get(index) else { break };
            if keep(&entry) {
                if let Some(place) = self.entries.get_mut(kept) {
                    *place = entry;
                }
                kept += 1;
            }
        }
        self.len = kept;
        for index in (0..kept.div_ceil(WIDTH)).rev() {
            if let Some(&entry) = self.entries.get(index) {
                self.sink(index, entry);
            }
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
            self.set(at, parent);
            at = above;
        }
        self.set(at, entry);
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
            self.set(at, least);
            at = place;
        }
        self.set(at, entry);
    }

    #[inline]
    fn set(&mut self, at: usize, entry: Entry) {
        if let Some(place) = self.entries.get_mut(at) {
            *place = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn entries_come_in_order_of_time_and_stamp_whatever_was_dropped() {
        let mut random = Random::new(5);
        let mut memory = vec![Entry::default(); 500];
        let mut queue = Queue::new(&mut memory);
        let mut expected: Vec<(u64, u64, u32, u32)> = Vec::new();
        for rank in 0..500 {
            let (time, created) = (random.below(20), random.below(20));
            assert!(queue.push(Entry { time, created, seq: rank, rank }));
            expected.push((time, created, rank, rank));
        }
        assert!(!queue.push(Entry::default()));
        queue.retain(|entry| entry.rank % 3 != 0);
        expected.retain(|entry| entry.3 % 3 != 0);
        expected.sort_unstable();
        for (time, created, seq, rank) in expected {
            assert_eq!(queue.first(), Some(Entry { time, created, seq, rank }));
            queue.pop();
        }
        assert_eq!(queue.first(), None);
        queue.pop();
    }
}
