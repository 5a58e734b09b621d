//! Hash table of operations with both a fulfilled and an unfulfilled dependency, by index.
//!
//! Buckets are lists through `seq`, a word of the records that is free until the release.

use super::buckets::Buckets;
use crate::sim::record::NONE;
use crate::sim::records::Records;

#[derive(Debug)]
pub(super) struct Partly<'m> {
    buckets: Buckets<'m>,
}

/// Record of an operation, and its predecessor in the bucket.
struct Found {
    before: u32,
    at: u32,
}

impl<'m> Partly<'m> {
    pub(super) const fn new(buckets: Buckets<'m>) -> Self {
        Self { buckets }
    }

    /// Searches for an operation by its index in the whole schedule.
    fn search(&self, records: &Records<'_>, number: u32) -> Found {
        let (mut before, mut at) = (NONE, self.buckets.of(number));
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

    #[inline]
    pub(super) fn insert(&mut self, records: &mut Records<'_>, at: u32) {
        insert(&mut self.buckets, records, at);
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
            self.buckets.replace(number, after);
        }
    }

    /// Doubles the number of buckets when there are more records.
    #[inline]
    pub(super) fn grow(&mut self, records: &mut Records<'_>, records_used: u32) {
        if self.buckets.are_few(records_used) {
            self.buckets.double(|buckets, mut at| {
                while at != NONE {
                    let after = records.at(at).seq;
                    insert(buckets, records, at);
                    at = after;
                }
            });
        }
    }
}

fn insert(buckets: &mut Buckets<'_>, records: &mut Records<'_>, at: u32) {
    let first = buckets.replace(records.at(at).next, at);
    records.at_mut(at).seq = first;
}
