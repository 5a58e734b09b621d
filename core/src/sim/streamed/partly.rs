//! Operations of which one dependency is fulfilled and another is not, by number.
//!
//! A hash table whose buckets are lists through a word of the records that is free until
//! the operation is released. It uses twice as many buckets whenever there are twice as
//! many records, so that it takes no more memory than they do.

use crate::sim::record::NONE;
use crate::sim::records::Records;

/// Buckets at the beginning, if there are so many.
const LEAST: usize = 64;

#[derive(Debug)]
pub(super) struct Partly<'m> {
    buckets: &'m mut [u32],
    /// Buckets in use, a power of two.
    used: usize,
}

impl<'m> Partly<'m> {
    /// The number of `buckets` is a power of two.
    pub(super) fn new(buckets: &'m mut [u32]) -> Self {
        debug_assert!(buckets.len().is_power_of_two(), "{} buckets", buckets.len());
        let used = buckets.len().min(LEAST);
        buckets.iter_mut().take(used).for_each(|bucket| *bucket = NONE);
        Self { buckets, used }
    }

    const fn bucket_of(&self, number: u32) -> usize {
        let mixed = number.wrapping_mul(0x9e37_79b1);
        (mixed ^ mixed >> 15) as usize & (self.used - 1)
    }

    fn first(&self, bucket: usize) -> u32 {
        self.buckets.get(bucket).copied().unwrap_or(NONE)
    }

    /// The record of an operation, counted over the whole schedule, and the one before it
    /// in its bucket.
    fn search(&self, records: &Records<'_>, number: u32) -> (u32, u32) {
        let (mut before, mut at) = (NONE, self.first(self.bucket_of(number)));
        while at != NONE && records.at(at).next != number {
            before = at;
            at = records.at(at).seq;
        }
        (before, at)
    }

    #[inline]
    pub(super) fn find(&self, records: &Records<'_>, number: u32) -> Option<u32> {
        let (_, at) = self.search(records, number);
        (at != NONE).then_some(at)
    }

    #[inline]
    pub(super) fn insert(&mut self, records: &mut Records<'_>, at: u32) {
        let bucket = self.bucket_of(records.at(at).next);
        if let Some(first) = self.buckets.get_mut(bucket) {
            records.at_mut(at).seq = core::mem::replace(first, at);
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, records: &mut Records<'_>, at: u32) {
        let number = records.at(at).next;
        let (before, found) = self.search(records, number);
        debug_assert_eq!(found, at, "it is in its bucket");
        let after = records.at(at).seq;
        if before != NONE {
            records.at_mut(before).seq = after;
        } else if let Some(first) = self.buckets.get_mut(self.bucket_of(number)) {
            *first = after;
        }
    }

    /// Sees to it that there are about as many buckets as `records_used`.
    #[inline]
    pub(super) fn grow(&mut self, records: &mut Records<'_>, records_used: u32) {
        if records_used as usize > self.used && self.used < self.buckets.len() {
            self.double(records);
        }
    }

    /// Divides each bucket in two.
    #[cold]
    fn double(&mut self, records: &mut Records<'_>) {
        let before = self.used;
        self.used *= 2;
        self.buckets.iter_mut().take(self.used).skip(before).for_each(|bucket| *bucket = NONE);
        for bucket in 0..before {
            let Some(first) = self.buckets.get_mut(bucket) else { return };
            let mut at = core::mem::replace(first, NONE);
            while at != NONE {
                let after = records.at(at).seq;
                self.insert(records, at);
                at = after;
            }
        }
    }
}
