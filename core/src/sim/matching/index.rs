//! Hash table of receives and unexpected messages by sender and tag, for ranks where many wait.
//!
//! The table needs no memory except its buckets, because a waiting record has two words to spare.
//! Records with the same key form a circular list through their links, the oldest first. The last
//! record represents the list and names the next list of the same bucket.

use crate::sim::queues::chain::Chain;
use crate::sim::record::{Kind, NONE};
use crate::sim::records::Records;

/// Key of a list of the table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::sim) struct Key {
    /// Receives, or messages (whose records are sends).
    pub(in crate::sim) kind: Kind,
    pub(in crate::sim) sender: u32,
    pub(in crate::sim) tag: u32,
}

impl Key {
    pub(in crate::sim) const fn bucket(self, buckets: usize) -> usize {
        let both = (self.sender as u64) << 32 | self.tag as u64;
        let mixed = (both ^ both >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 32) as usize & buckets.wrapping_sub(1)
    }
}

/// Records in a table.
pub(in crate::sim) trait Keyed: Chain {
    fn key(&self, at: u32) -> Key;
    /// Next list of the same bucket, as the last record of that list; `at` is the last of its own
    /// list.
    fn after(&self, at: u32) -> u32;
    fn set_after(&mut self, at: u32, after: u32);
}

impl Keyed for Records<'_> {
    /// The key of a message has its sender.
    #[inline]
    fn key(&self, at: u32) -> Key {
        let record = self.at(at);
        Key { kind: record.kind(), sender: record.peer, tag: record.tag }
    }

    #[inline]
    fn after(&self, at: u32) -> u32 {
        self.at(at).seq
    }

    #[inline]
    fn set_after(&mut self, at: u32, after: u32) {
        self.at_mut(at).seq = after;
    }
}

/// Position of a list: first in its bucket, or behind the list of `before`.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct ListPosition {
    bucket: usize,
    before: u32,
    /// Last record of the list; [`NONE`] if there is no such list.
    last: u32,
}

/// Searches for a list; also returns the number of lists inspected. The number of buckets is a
/// power of two.
pub(in crate::sim) fn find(all: &impl Keyed, buckets: &[u32], key: Key) -> (ListPosition, u32) {
    debug_assert!(buckets.len().is_power_of_two(), "{} buckets", buckets.len());
    let bucket = key.bucket(buckets.len());
    let mut place =
        ListPosition { bucket, before: NONE, last: buckets.get(bucket).copied().unwrap_or(NONE) };
    let mut looks = 1;
    while place.last != NONE && all.key(place.last) != key {
        place.before = place.last;
        place.last = all.after(place.last);
        looks += 1;
    }
    (place, looks)
}

impl ListPosition {
    /// Oldest record of the list.
    pub(in crate::sim) fn first(&self, all: &impl Keyed) -> Option<u32> {
        (self.last != NONE).then(|| all.next(self.last))
    }

    /// Appends a record with the same key.
    pub(in crate::sim) fn append(self, all: &mut impl Keyed, buckets: &mut [u32], at: u32) {
        let after = if self.last == NONE { NONE } else { all.after(self.last) };
        all.push(&mut { self.last }, at);
        all.set_after(at, after);
        self.hang(all, buckets, at);
    }

    /// Removes the oldest record.
    pub(in crate::sim) fn remove_first(&mut self, all: &mut impl Keyed, buckets: &mut [u32]) {
        let Some(first) = self.first(all) else { return };
        if first == self.last {
            self.hang(all, buckets, all.after(first));
            self.last = NONE;
        } else {
            all.set_next(self.last, all.next(first));
        }
    }

    /// Links a list here, in place of the present one.
    fn hang(&self, all: &mut impl Keyed, buckets: &mut [u32], last: u32) {
        if self.before != NONE {
            all.set_after(self.before, last);
        } else if let Some(bucket) = buckets.get_mut(self.bucket) {
            *bucket = last;
        }
    }
}
