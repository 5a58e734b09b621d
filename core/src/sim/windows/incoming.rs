//! What has come in the mail for one rank, in the order of stamps.

use core::cmp::Ordering;

use super::mail::{END, Mail, Message};
use super::shared::{Element, Shared};

/// Lists that are being merged: one of each length 2ⁿ runs.
const MERGING: usize = 32;

/// Sorts letters by stamp; a list in order is only walked through.
pub(super) struct Sorter<'r, 's, 'm> {
    pub(super) shared: &'r Shared<'s>,
    pub(super) mail: &'r Mail<'m>,
    pub(super) steps: u64,
}

impl<'m> Sorter<'_, '_, 'm> {
    fn at(&self, at: u32) -> Option<&'m Message> {
        self.mail.message(at)
    }

    fn link(&self, at: u32) -> u32 {
        self.at(at).map_or(END, Message::link)
    }

    fn set_link(&self, at: u32, link: u32) {
        if let Some(message) = self.at(at) {
            message.set_link(link);
        }
    }

    /// Whether the letter at `a` was created before that at `b`.
    #[inline]
    fn before(&mut self, a: u32, b: u32) -> bool {
        let (Some(first), Some(second)) = (self.at(a), self.at(b)) else { return true };
        let (earlier, later) = (first.created(), second.created());
        if earlier != later {
            return earlier < later;
        }
        let (a, b) = (first.send(), second.send());
        if first.source() == second.source() {
            return self.shared.at(a).number() < self.shared.at(b).number();
        }
        let (a, b) = (Element::Message(a), Element::Message(b));
        self.shared.order(a, b, &mut self.steps) == Ordering::Less
    }

    /// The first of the sorted letters that begin at `first`.
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

    /// Cuts the list after its first letters that are in order; the rest.
    fn cut(&mut self, first: u32) -> u32 {
        let mut last = first;
        loop {
            let next = self.link(last);
            if next == END {
                return END;
            }
            if !self.before(last, next) {
                self.set_link(last, END);
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
            *taken = self.link(index);
            if last == END {
                first = index;
            } else {
                self.set_link(last, index);
            }
            last = index;
        }
        self.set_link(last, if a == END { b } else { a });
        first
    }
}
