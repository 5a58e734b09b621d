//! Messages for one rank in a window, in the order of stamps.

use core::cmp::Ordering;

use super::mail::{END, Mail};
use super::shared::{Element, Shared};
use crate::sim::queues::chain::{self, Chain};
use crate::sim::rank::rules::Letter;

impl Chain for Mail<'_> {
    const END: u32 = END;

    #[inline]
    fn next(&self, at: u32) -> u32 {
        self.message(at).map_or(END, |message| message.link.get())
    }

    #[inline]
    fn set_next(&mut self, at: u32, next: u32) {
        if let Some(message) = self.message(at) {
            message.link.set(next);
        }
    }
}

/// Sorts messages in the mail by stamp and returns the first; adds the number of history steps to
/// `steps`.
pub(super) fn sort_mail(
    shared: &Shared<'_>,
    mail: &mut Mail<'_>,
    first: u32,
    steps: &mut u64,
) -> u32 {
    let before = |mail: &Mail<'_>, a, b| {
        let both = mail.message(a).zip(mail.message(b));
        both.is_some_and(|(a, b)| was_created_before(shared, [a.read(), b.read()], steps))
    };
    chain::sort(mail, first, before).first
}

/// As [`sort_mail`], for messages that stayed in the records of their sends.
pub(super) fn sort_kept(shared: &mut Shared<'_>, first: u32, steps: &mut u64) -> u32 {
    let before = |shared: &Shared<'_>, a, b| {
        was_created_before(shared, [shared.kept(a), shared.kept(b)], steps)
    };
    chain::sort(shared, first, before).first
}

#[inline]
fn was_created_before(shared: &Shared<'_>, [a, b]: [Letter; 2], steps: &mut u64) -> bool {
    if a.created != b.created {
        return a.created < b.created;
    }
    if a.source == b.source {
        return shared.at(a.send).number() < shared.at(b.send).number();
    }
    let (a, b) = (Element::Message(a.send), Element::Message(b.send));
    shared.order(a, b, steps) == Ordering::Less
}
