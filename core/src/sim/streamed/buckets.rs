//! Buckets of a hash table of records, as many as there are records in use.

use crate::sim::record::NONE;

/// Buckets at the beginning, if there are so many.
const LEAST: usize = 64;

/// In each bucket a list of records, or [`NONE`].
#[derive(Debug)]
pub(super) struct Buckets<'m> {
    all: &'m mut [u32],
    /// Buckets in use, a power of two.
    used: usize,
}

impl<'m> Buckets<'m> {
    /// Empty ones; the number of them is a power of two.
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

    /// The bucket of a key.
    #[inline]
    pub(super) fn of(&self, key: u32) -> u32 {
        self.all.get(self.place(key)).copied().unwrap_or(NONE)
    }

    /// Replaces what is in the bucket of a key; returns what was.
    #[inline]
    pub(super) fn replace(&mut self, key: u32, list: u32) -> u32 {
        let place = self.place(key);
        self.all.get_mut(place).map_or(NONE, |bucket| core::mem::replace(bucket, list))
    }

    /// Whether there are fewer buckets in use than there may be with so many records in use.
    #[inline]
    pub(super) const fn are_few(&self, records_used: u32) -> bool {
        records_used as usize > self.used && self.used < self.all.len()
    }

    /// Uses twice as many buckets; `again` takes the list of each one that was in use, and
    /// puts its records where they belong now.
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

    /// Empties all buckets; `take` has the list of each.
    pub(super) fn drain(&mut self, take: impl FnMut(u32)) {
        let used = self.all.iter_mut().take(self.used);
        used.map(|bucket| core::mem::replace(bucket, NONE)).for_each(take);
    }
}
