//! Matching of messages and receives.
//!
//! Posted receives are searched in the order of posting, in their [`slots`]. Unexpected messages are
//! a list in the order in which they were handled. Where many wait in global order, they move to a
//! table (`in_order::waiting`).

pub(in crate::sim) mod slots;

use crate::goal::ANY;
use crate::sim::rank::dependencies::Operations;
use slots::WILD;

/// Sender and tag of a message, or those that a receive accepts; [`ANY`] is a wildcard.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::sim) struct Envelope {
    pub(in crate::sim) sender: u32,
    pub(in crate::sim) tag: u32,
}

impl Envelope {
    /// Matching rule: the receive's sender is equal or a wildcard; the tags are equal, or either is
    /// a wildcard.
    #[inline]
    pub(in crate::sim) const fn takes(self, message: Self) -> bool {
        (self.sender == ANY || self.sender == message.sender)
            && (self.tag == message.tag || self.tag == ANY || message.tag == ANY)
    }

    /// True if sender or tag is a wildcard.
    #[inline]
    pub(in crate::sim) const fn is_wild(self) -> bool {
        self.sender == ANY || self.tag == ANY
    }

    #[inline]
    pub(in crate::sim) const fn mixed(self) -> u32 {
        let Self { sender, tag } = self;
        sender.wrapping_mul(0x9e37_79b1) ^ tag.wrapping_mul(0x85eb_ca77).rotate_left(15)
    }

    /// Hash of sender and tag; [`WILD`] if and only if one is a wildcard.
    #[inline]
    pub(in crate::sim) const fn hash(self) -> u32 {
        if self.is_wild() { WILD } else { self.mixed() | 1 }
    }
}

/// Oldest matching message of a list that ends with `last`, with its predecessor; and the number of
/// messages inspected.
#[inline]
pub(in crate::sim) fn first_message(
    ops: &impl Operations,
    last: u32,
    receive: Envelope,
) -> (Option<(u32, u32)>, u32) {
    let mut looks = 0;
    let found = ops.walk(last).find(|&(_, message)| {
        looks += 1;
        receive.takes(ops.envelope(message))
    });
    (found, looks)
}
