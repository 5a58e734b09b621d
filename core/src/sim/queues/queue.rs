//! Event queue: the next event of each rank.

use super::agenda::Agenda;
use crate::sim::record::NONE;
use crate::units::Picos;

/// Queue entry: a rank and its next event.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Entry {
    pub(in crate::sim) time: u64,
    /// First part of the event's stamp; `seq` is the second.
    pub(in crate::sim) created: u64,
    pub(in crate::sim) seq: u32,
    /// Rank; for an arrival, the send or message.
    pub(in crate::sim) index: u32,
}

impl Entry {
    /// Time of the event.
    #[must_use]
    pub const fn time(&self) -> Picos {
        Picos(self.time)
    }

    /// Rank; for an arrival, the send.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    #[inline]
    pub(in crate::sim) const fn before(&self, other: &Self) -> bool {
        if self.time != other.time {
            return self.time < other.time;
        }
        if self.created != other.created {
            return self.created < other.created;
        }
        self.seq < other.seq
    }
}

/// Event queue with at most one entry for each rank.
#[derive(Debug)]
pub(in crate::sim) struct Queue<'m> {
    agenda: Agenda<'m>,
    /// Position of each rank's entry; [`NONE`] without one.
    places: &'m mut [u32],
}

impl<'m> Queue<'m> {
    /// Empty queue. All parts have one element for each rank, except that the ring may have any
    /// length; see [`Agenda::new`].
    pub(in crate::sim) fn new(
        heap: &'m mut [Entry],
        ring: &'m mut [Entry],
        places: &'m mut [u32],
    ) -> Self {
        places.fill(NONE);
        Self { agenda: Agenda::new(heap, ring), places }
    }

    #[inline]
    pub(in crate::sim) fn first(&self) -> Option<Entry> {
        self.agenda.first()
    }

    /// See [`Agenda::after_root`].
    #[inline]
    pub(in crate::sim) fn after_root(&self) -> &[Entry] {
        self.agenda.after_root()
    }

    /// Time of a rank's entry, ps.
    #[inline]
    pub(in crate::sim) fn time_of(&self, rank: u32) -> Option<u64> {
        let place = self.places.get(rank as usize)?;
        self.agenda.at(*place as usize).map(|entry| entry.time)
    }

    /// Sets a rank's entry.
    #[inline]
    pub(in crate::sim) fn set(&mut self, entry: Entry) {
        let Self { agenda, places } = self;
        let place = places.get(entry.index as usize).copied().unwrap_or(NONE);
        agenda.set(place as usize, entry, |entry, at| note(places, entry, at));
    }

    /// Removes a rank's entry, if there is one.
    #[inline]
    pub(in crate::sim) fn drop(&mut self, rank: u32) {
        let Self { agenda, places } = self;
        let Some(place) = places.get_mut(rank as usize) else { return };
        let place = core::mem::replace(place, NONE);
        if place != NONE {
            agenda.remove(place as usize, |entry, at| note(places, entry, at));
        }
    }
}

/// Stores the position of a rank's entry.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "at most two places a rank")]
fn note(places: &mut [u32], entry: &Entry, at: usize) {
    if let Some(place) = places.get_mut(entry.index as usize) {
        *place = at as u32;
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
        let mut queue = Queue::new(&mut entries, &mut [], &mut places);
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
                queue.set(Entry { time, created, seq, index: rank });
                keys[rank as usize] = Some((time, created, seq, rank));
                expected.insert((time, created, seq, rank));
            }
            let first = queue.first().map(|e| (e.time, e.created, e.seq, e.index));
            assert_eq!(first, expected.first().copied());
        }
    }
}
