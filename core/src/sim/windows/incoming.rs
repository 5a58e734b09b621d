//! What has come for one rank in a window, in the order of stamps.

use core::cmp::Ordering;

use super::mail::{END, Mail};
use super::shared::{Element, Shared};
use crate::sim::chain::{self, Chain};

/// Where a message comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    created: u64,
    send: u32,
    /// The rank; [`END`] where that is not known.
    source: u32,
}

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

impl Mail<'_> {
    #[inline]
    fn origin(&self, at: u32) -> Origin {
        debug_assert!(self.message(at).is_some(), "no message {at}");
        match self.message(at) {
            Some(message) => Origin {
                created: message.created.get(),
                send: message.send.get(),
                source: message.source.get(),
            },
            None => Origin { created: 0, send: END, source: END },
        }
    }
}

impl Shared<'_> {
    /// That of a message in the record of its send.
    fn origin_of_kept(&self, send: u32) -> Origin {
        let record = self.at(send);
        Origin { created: record.time.get(), send, source: record.peer.get() }
    }
}

/// Sorts messages in the mail by stamp, and returns the first; adds the steps
/// taken to `steps`.
pub(super) fn sort_mail(
    shared: &Shared<'_>,
    mail: &mut Mail<'_>,
    first: u32,
    steps: &mut u64,
) -> u32 {
    let before =
        |mail: &Mail<'_>, a, b| was_created_before(shared, [mail.origin(a), mail.origin(b)], steps);
    chain::sort(mail, first, before).first
}

/// The same of messages in the records of their sends.
pub(super) fn sort_kept(shared: &mut Shared<'_>, first: u32, steps: &mut u64) -> u32 {
    let before = |shared: &Shared<'_>, a, b| {
        was_created_before(shared, [shared.origin_of_kept(a), shared.origin_of_kept(b)], steps)
    };
    chain::sort(shared, first, before).first
}

#[inline]
fn was_created_before(shared: &Shared<'_>, [a, b]: [Origin; 2], steps: &mut u64) -> bool {
    if a.created != b.created {
        return a.created < b.created;
    }
    if a.source == b.source && a.source != END {
        return shared.at(a.send).number() < shared.at(b.send).number();
    }
    let (a, b) = (Element::Message(a.send), Element::Message(b.send));
    shared.order(a, b, steps) == Ordering::Less
}
