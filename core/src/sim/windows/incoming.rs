//! What has come for one rank in a window, in the order of stamps.

use core::cmp::Ordering;

use super::mail::{END, Mail};
use super::shared::{Element, Shared};

/// Messages in singly linked lists that end with [`END`].
pub(super) trait Linked {
    fn link(&self, at: u32) -> u32;
    fn set_link(&self, at: u32, link: u32);
    /// When the message was sent, its send, and the rank that sent it.
    fn origin(&self, at: u32) -> (u64, u32, u32);
}

impl Linked for Mail<'_> {
    #[inline]
    fn link(&self, at: u32) -> u32 {
        self.message(at).map_or(END, |message| message.link())
    }

    #[inline]
    fn set_link(&self, at: u32, link: u32) {
        if let Some(message) = self.message(at) {
            message.set_link(link);
        }
    }

    #[inline]
    fn origin(&self, at: u32) -> (u64, u32, u32) {
        match self.message(at) {
            Some(message) => (message.created(), message.send(), message.source()),
            None => (0, END, END),
        }
    }
}

/// Messages in the records of their sends.
impl Linked for Shared<'_> {
    fn link(&self, at: u32) -> u32 {
        self.at(at).link()
    }

    fn set_link(&self, at: u32, link: u32) {
        self.at(at).set_link(link);
    }

    fn origin(&self, at: u32) -> (u64, u32, u32) {
        let record = self.at(at);
        (record.time(), at, record.peer())
    }
}

/// Lists that are being merged: one of each length 2ⁿ runs.
const MERGING: usize = 32;

/// Sorts messages by stamp; a list in order is only walked through.
pub(super) struct Sorter<'r, 's, L> {
    pub(super) shared: &'r Shared<'s>,
    pub(super) list: &'r L,
    pub(super) steps: u64,
}

impl<L: Linked> Sorter<'_, '_, L> {
    /// Whether the message at `a` was created before that at `b`.
    #[inline]
    fn before(&mut self, a: u32, b: u32) -> bool {
        let (earlier, a, source) = self.list.origin(a);
        let (later, b, other) = self.list.origin(b);
        if earlier != later {
            return earlier < later;
        }
        if source == other && source != END {
            return self.shared.at(a).number() < self.shared.at(b).number();
        }
        let (a, b) = (Element::Message(a), Element::Message(b));
        self.shared.order(a, b, &mut self.steps) == Ordering::Less
    }

    /// The first of the sorted messages that begin at `first`.
    pub(super) fn sort(&mut self, first: u32) -> u32 {
        let mut merging = [END; MERGING];
        let mut rest = first;
        while rest != END {
            let mut run = rest;
            rest = self.cut(run);
            for (place, waiting) in merging.iter_mut().enumerate() {
                if *waiting == END || place == MERGING - 1 {
                    *waiting = self.merge(*waiting, run);
                    break;
                }
                run = self.merge(core::mem::replace(waiting, END), run);
            }
        }
        merging.into_iter().fold(END, |sorted, more| self.merge(more, sorted))
    }

    /// Cuts the list after its first messages that are in order; the rest.
    fn cut(&mut self, first: u32) -> u32 {
        let mut last = first;
        loop {
            let next = self.list.link(last);
            if next == END {
                return END;
            }
            if !self.before(last, next) {
                self.list.set_link(last, END);
                return next;
            }
            last = next;
        }
    }

    fn merge(&mut self, a: u32, b: u32) -> u32 {
        let (mut a, mut b) = (a, b);
        if a == END {
            return b;
        }
        if b == END {
            return a;
        }
        let mut first = END;
        let mut last = END;
        while a != END && b != END {
            let taken = if self.before(a, b) { &mut a } else { &mut b };
            let index = *taken;
            *taken = self.list.link(index);
            if last == END {
                first = index;
            } else {
                self.list.set_link(last, index);
            }
            last = index;
        }
        self.list.set_link(last, if a == END { b } else { a });
        first
    }
}
