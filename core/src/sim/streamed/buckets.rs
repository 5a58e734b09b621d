//! Buckets of a hash table of records, which grows with the number of records in use.

use crate::sim::record::NONE;

/// Initial number of buckets, if there is memory for them.
const LEAST: usize = 64;

/// Buckets with a list of records each; [`NONE`] if empty.
#[derive(Debug)]
pub(super) struct Buckets<'m> {
    all: &'m mut [u32],
    /// Number of buckets in use, a power of two.
    used: usize,
}

impl<'m> Buckets<'m> {
    /// Empty buckets; the length of `all` is a power of two.
    pub(super) fn new(all: &'m mut [u32]) -> Self {
        debug_assert!(all.len().is_power_of_two(), "{} buckets", all.len());
        let used = all.len().min(LEAST);
        all.iter_mut().take(used).for_each(|bucket| *bucket = NONE);
        Self { all, used }
    }

    const fn place(&self, key: u32) -> usize {
        let mixed = key.wrapping_mul(0x9e37_79b1);
        (mixed ^ mixed >> 15) as usize & (self.used - 1)
    }

    /// Bucket of a key.
    #[inline]
    pub(super) fn of(&self, key: u32) -> u32 {
        self.all.get(self.place(key)).copied().unwrap_or(NONE)
    }

    /// Replaces the content of a key's bucket; returns the old content.
    #[inline]
    pub(super) fn replace(&mut self, key: u32, list: u32) -> u32 {
        let place = self.place(key);
        self.all.get_mut(place).map_or(NONE, |bucket| core::mem::replace(bucket, list))
    }

    /// True if the table should grow: more records in use than buckets, and memory for more
    /// buckets.
    #[inline]
    pub(super) const fn are_few(&self, records_used: u32) -> bool {
        records_used as usize > self.used && self.used < self.all.len()
    }

    /// Doubles the number of buckets; `again` is called with the list of each old bucket and
    /// inserts its records anew.
    #[cold]
    pub(super) fn double(&mut self, mut again: impl FnMut(&mut Self, u32)) {
        let before = self.used;
        self.used *= 2;
        self.all.iter_mut().take(self.used).skip(before).for_each(|bucket| *bucket = NONE);
        for bucket in 0..before {
            let Some(list) = self.all.get_mut(bucket) else { return };
            let list = core::mem::replace(list, NONE);
            again(self, list);
        }
    }

    /// Empties all buckets; `take` is called with the list of each.
    pub(super) fn drain(&mut self, take: impl FnMut(u32)) {
        let used = self.all.iter_mut().take(self.used);
        used.map(|bucket| core::mem::replace(bucket, NONE)).for_each(take);
    }
}
