//! Circular lists through the links of records, known by their last record.

use super::record::NONE;
use super::shared::Shared;

impl<'s> Shared<'s> {
    /// Appends a record to the list that ends with `last`.
    #[inline]
    pub(super) fn push(&self, last: &mut u32, index: u32) {
        let first = if *last == NONE {
            index
        } else {
            let before = self.at(*last);
            let first = before.link();
            before.set_link(index);
            first
        };
        self.at(index).set_link(first);
        *last = index;
    }

    /// Takes `index`, which follows `before`, out of the list.
    #[inline]
    pub(super) fn remove(&self, last: &mut u32, (before, index): (u32, u32)) {
        if before == index {
            *last = NONE;
            return;
        }
        self.at(before).set_link(self.at(index).link());
        if *last == index {
            *last = before;
        }
    }

    /// Every record of a list with the one before it, from the first on.
    pub(super) const fn walk(&self, last: u32) -> Walk<'_, 's> {
        Walk { shared: self, before: last, last, done: last == NONE }
    }
}

/// A walk through a list.
pub(super) struct Walk<'r, 's> {
    shared: &'r Shared<'s>,
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
        let index = self.shared.at(before).link();
        self.before = index;
        self.done = index == self.last;
        Some((before, index))
    }
}
