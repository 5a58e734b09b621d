//! Circular lists through the links of records, known by their last record.

use super::record::{NONE, Record};

/// The records of a schedule. Every index in a list, an edge or a slot is one
/// of theirs; where one were not, reads give an empty record and writes are
/// lost, so that no index can stop the program.
#[derive(Debug)]
pub(super) struct Records<'m> {
    all: &'m mut [Record],
    sentinel: Record,
}

impl<'m> Records<'m> {
    pub(super) fn new(all: &'m mut [Record]) -> Self {
        Self { all, sentinel: Record::default() }
    }

    pub(super) const fn all(&self) -> &[Record] {
        self.all
    }

    #[inline]
    pub(super) fn at(&self, index: u32) -> &Record {
        debug_assert!((index as usize) < self.all.len(), "no record {index}");
        self.all.get(index as usize).unwrap_or(&self.sentinel)
    }

    #[inline]
    pub(super) fn at_mut(&mut self, index: u32) -> &mut Record {
        debug_assert!((index as usize) < self.all.len(), "no record {index}");
        match self.all.get_mut(index as usize) {
            Some(record) => record,
            None => &mut self.sentinel,
        }
    }

    /// Appends a record to the list that ends with `last`.
    #[inline]
    pub(super) fn push(&mut self, last: &mut u32, index: u32) {
        let first = if *last == NONE {
            index
        } else {
            let before = self.at_mut(*last);
            let first = before.link;
            before.link = index;
            first
        };
        self.at_mut(index).link = first;
        *last = index;
    }

    /// Puts a record where its stamp belongs; at the end as a rule.
    pub(super) fn insert(&mut self, last: &mut u32, index: u32) {
        let stamp = self.at(index).stamp();
        if *last == NONE || self.at(*last).stamp() < stamp {
            self.push(last, index);
            return;
        }
        let mut before = *last;
        let mut next = self.at(before).link;
        while self.at(next).stamp() < stamp {
            before = next;
            next = self.at(before).link;
        }
        self.at_mut(index).link = next;
        self.at_mut(before).link = index;
    }

    /// Takes `index`, which follows `before`, out of the list.
    #[inline]
    pub(super) fn remove(&mut self, last: &mut u32, before: u32, index: u32) {
        let next = self.at(index).link;
        if before == index {
            *last = NONE;
            return;
        }
        self.at_mut(before).link = next;
        if *last == index {
            *last = before;
        }
    }

    /// Every record of a list with the one before it, from the first on.
    pub(super) fn iter(&self, last: u32) -> Walk<'_, 'm> {
        Walk { records: self, before: last, last, done: last == NONE }
    }
}

/// A walk through a list.
pub(super) struct Walk<'r, 'm> {
    records: &'r Records<'m>,
    before: u32,
    last: u32,
    done: bool,
}

impl Iterator for Walk<'_, '_> {
    /// The record before, and the record.
    type Item = (u32, u32);

    #[inline]
    fn next(&mut self) -> Option<(u32, u32)> {
        if self.done {
            return None;
        }
        let before = self.before;
        let index = self.records.at(before).link;
        self.before = index;
        self.done = index == self.last;
        Some((before, index))
    }
}
