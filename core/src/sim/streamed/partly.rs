//! Hash table of operations with both a fulfilled and an unfulfilled dependency, by index.
//!
//! Buckets are lists through `seq`, a word of the records that is free until the release.

use crate::sim::record::NONE;
use crate::sim::records::Records;

/// Initial number of buckets, if there is memory for them.
const LEAST: usize = 64;

/// The table; it grows with the number of records in use.
#[derive(Debug)]
pub(super) struct Partly<'m> {
    /// First record of each list; [`NONE`] if it is empty.
    buckets: &'m mut [u32],
    /// Number of buckets in use, a power of two.
    used: usize,
}

/// Record of an operation, and its predecessor in the bucket.
struct Found {
    before: u32,
    at: u32,
}

impl<'m> Partly<'m> {
    /// Empty table; the number of buckets is a power of two.
    pub(super) fn new(buckets: &'m mut [u32]) -> Self {
        let used = buckets.len().min(LEAST);
        buckets.iter_mut().take(used).for_each(|bucket| *bucket = NONE);
        Self { buckets, used }
    }

    const fn place(&self, number: u32) -> usize {
        let mixed = number.wrapping_mul(0x9e37_79b1);
        (mixed ^ mixed >> 15) as usize & (self.used - 1)
    }

    /// Searches for an operation by its index in the whole schedule.
    fn search(&self, records: &Records<'_>, number: u32) -> Found {
        let first = self.buckets.get(self.place(number)).copied();
        let (mut before, mut at) = (NONE, first.unwrap_or(NONE));
        while at != NONE && records.at(at).next != number {
            before = at;
            at = records.at(at).seq;
        }
        Found { before, at }
    }

    #[inline]
    pub(super) fn find(&self, records: &Records<'_>, number: u32) -> Option<u32> {
        let Found { at, .. } = self.search(records, number);
        (at != NONE).then_some(at)
    }

    /// Replaces the first record of a list; returns the old one.
    #[inline]
    fn replace(&mut self, number: u32, first: u32) -> u32 {
        let place = self.place(number);
        self.buckets.get_mut(place).map_or(NONE, |bucket| core::mem::replace(bucket, first))
    }

    #[inline]
    pub(super) fn insert(&mut self, records: &mut Records<'_>, at: u32) {
        let after = self.replace(records.at(at).next, at);
        records.at_mut(at).seq = after;
    }

    #[inline]
    pub(super) fn remove(&mut self, records: &mut Records<'_>, at: u32) {
        let number = records.at(at).next;
        let found = self.search(records, number);
        debug_assert_eq!(found.at, at, "it is in its bucket");
        let after = records.at(at).seq;
        if found.before != NONE {
            records.at_mut(found.before).seq = after;
        } else {
            self.replace(number, after);
        }
    }

    /// Doubles the number of buckets when there are more records.
    #[inline]
    pub(super) fn grow(&mut self, records: &mut Records<'_>, records_used: u32) {
        if records_used as usize > self.used && self.used < self.buckets.len() {
            self.double(records);
        }
    }

    #[cold]
    fn double(&mut self, records: &mut Records<'_>) {
        let before = self.used;
        self.used *= 2;
        self.buckets.get_mut(before..self.used).unwrap_or_default().fill(NONE);
        for bucket in 0..before {
            let first = self.buckets.get_mut(bucket);
            let mut at = first.map_or(NONE, |first| core::mem::replace(first, NONE));
            while at != NONE {
                let after = records.at(at).seq;
                self.insert(records, at);
                at = after;
            }
        }
    }
}
