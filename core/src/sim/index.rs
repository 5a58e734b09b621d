//! A hash table of records by sender and tag, for ranks where many receives
//! or messages wait.
//!
//! The table takes no memory but its buckets: what waits has two words of
//! its record to spare. Records of one kind, sender and tag form a circular
//! list through `link`, the oldest first; its last record stands for it and
//! has in `seq` the list after it in the same bucket.

use super::list::Records;
use super::record::{Kind, NONE};

/// What a list of the table has in common.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Key {
    /// Of receives, or of messages, whose records are sends.
    pub(super) kind: Kind,
    pub(super) sender: u32,
    pub(super) tag: u32,
}

impl Key {
    /// The key of a record: a message's is that of its sender.
    pub(super) fn of(records: &Records<'_>, op: u32) -> Self {
        let record = records.at(op);
        Self { kind: record.kind(), sender: record.peer, tag: record.tag }
    }

    const fn bucket(self, buckets: usize) -> usize {
        let both = (self.sender as u64) << 32 | self.tag as u64;
        let mixed = (both ^ both >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 32) as usize & buckets.wrapping_sub(1)
    }
}

/// Where a list hangs: in its bucket, or behind the list of `before`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    bucket: usize,
    before: u32,
    /// The last record of the list; [`NONE`] where there is no such list.
    last: u32,
}

/// Looks for a list; also says how many lists it looked at. The number of
/// buckets is a power of two.
pub(super) fn find(records: &Records<'_>, buckets: &[u32], key: Key) -> (Place, u32) {
    let bucket = key.bucket(buckets.len());
    let mut place =
        Place { bucket, before: NONE, last: buckets.get(bucket).copied().unwrap_or(NONE) };
    let mut looks = 1;
    while place.last != NONE && Key::of(records, place.last) != key {
        place.before = place.last;
        place.last = records.at(place.last).seq;
        looks += 1;
    }
    (place, looks)
}

impl Place {
    /// The oldest record of the list.
    pub(super) fn first(&self, records: &Records<'_>) -> Option<u32> {
        (self.last != NONE).then(|| records.at(self.last).link)
    }

    /// Appends a record that has the key.
    pub(super) fn append(mut self, records: &mut Records<'_>, buckets: &mut [u32], op: u32) {
        let after = if self.last == NONE { NONE } else { records.at(self.last).seq };
        records.push(&mut self.last, op);
        records.at_mut(op).seq = after;
        self.hang(records, buckets, op);
    }

    /// Takes the oldest record out.
    pub(super) fn remove_first(mut self, records: &mut Records<'_>, buckets: &mut [u32]) {
        let Some(first) = self.first(records) else { return };
        let (last, after) = (self.last, records.at(self.last).seq);
        records.remove(&mut self.last, last, first);
        if self.last == NONE {
            self.hang(records, buckets, after);
        }
    }

    /// Hangs a list here, in place of what hangs here now.
    fn hang(&self, records: &mut Records<'_>, buckets: &mut [u32], last: u32) {
        if self.before != NONE {
            records.at_mut(self.before).seq = last;
        } else if let Some(bucket) = buckets.get_mut(self.bucket) {
            *bucket = last;
        }
    }
}
