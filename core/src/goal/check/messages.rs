//! Matching of messages: every message sent is received, with its size.
//!
//! Messages to one rank are split into components such that no receive takes messages of two: by
//! source and tag; if some receive has a wildcard for one of the two, by the other alone; if for
//! both, not at all. The numbers of sends and receives in a component must be equal in every run.
//! That suffices if every receive in a component takes every message in it. Otherwise a wildcard
//! may take a message that another receive needs, which depends on times and is reported as
//! possible.

use super::finding::{Certainty, Envelope, Finding};
use crate::goal::lookup::OpIndex;
use crate::goal::op::{ANY, ANY_TAG};

/// A send or a receive. Lent to the check in bulk; the content on entry does not matter.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Message {
    to: u32,
    from: u32,
    tag: u64,
    receive: bool,
    op: u32,
    size: u64,
}

impl Message {
    /// Send of `size` bytes by `place`.
    pub(super) const fn sent(place: OpIndex, to: u32, tag: u64, size: u64) -> Self {
        Self { to, from: place.rank, tag, receive: false, op: place.op, size }
    }

    /// Receive of `size` bytes by `place`.
    pub(super) const fn received(place: OpIndex, from: u32, tag: u64, size: u64) -> Self {
        Self { to: place.rank, from, tag, receive: true, op: place.op, size }
    }

    const fn place(&self) -> OpIndex {
        OpIndex { rank: if self.receive { self.to } else { self.from }, op: self.op }
    }

    const fn is_any_source(&self) -> bool {
        self.from == ANY
    }

    const fn is_any_tag(&self) -> bool {
        self.tag == ANY_TAG
    }

    /// True if its tag is one that traces use for collectives, from 10⁶ on.
    const fn is_of_collective(&self) -> bool {
        self.tag >= 1_000_000 && !self.is_any_tag()
    }
}

/// Reports mismatches among all `messages`, in the order of the receiving ranks. Reorders the
/// messages.
pub(super) fn match_all(messages: &mut [Message], report: &mut impl FnMut(Finding)) {
    messages.sort_unstable();
    for group in messages.chunk_by_mut(|a, b| a.to == b.to) {
        match_rank(group, report);
    }
}

/// Matches all messages to one rank, which are sorted.
fn match_rank(group: &mut [Message], report: &mut impl FnMut(Finding)) {
    let any_tag = group.iter().any(Message::is_any_tag);
    let any_source = group.iter().any(Message::is_any_source);
    match (any_source, any_tag) {
        (false, false) => match_classes(group, report),
        (false, true) => {
            for part in group.chunk_by_mut(|a, b| a.from == b.from) {
                let from = part.first().map_or(ANY, |message| message.from);
                match_component(part, from, ANY_TAG, report);
            }
        }
        (true, false) => {
            group.sort_unstable_by_key(|m| (m.tag, m.from, m.receive, m.op));
            for part in group.chunk_by_mut(|a, b| a.tag == b.tag) {
                let tag = part.first().map_or(ANY_TAG, |message| message.tag);
                match_component(part, ANY, tag, report);
            }
        }
        (true, true) => match_component(group, ANY, ANY_TAG, report),
    }
}

/// Matches messages without wildcards, by source and tag.
fn match_classes(part: &mut [Message], report: &mut impl FnMut(Finding)) {
    for class in part.chunk_by_mut(|a, b| (a.from, a.tag) == (b.from, b.tag)) {
        match_exact(class, report);
    }
}

/// Matches messages of one source and tag, sorted: sends, then receives, each in the order of the
/// operations.
fn match_exact(part: &mut [Message], report: &mut impl FnMut(Finding)) {
    let Some(&Message { from, to, tag, .. }) = part.first() else { return };
    let messages = Envelope { from, to, tag };
    if let Some(finding) = unbalanced(part, messages) {
        return report(finding);
    }
    let (sends, receives) = split(part);
    if different_size(sends, receives).is_none() {
        return; // usual case: the sizes agree in program order
    }
    report_sizes(part, messages, report);
}

/// Matches a component: messages among which every receive finds all that it can take.
fn match_component(part: &mut [Message], from: u32, tag: u64, report: &mut impl FnMut(Finding)) {
    if !part.iter().any(|message| message.is_any_source() || message.is_any_tag()) {
        return match_classes(part, report);
    }
    let Some(&Message { to, .. }) = part.first() else { return };
    let messages = Envelope { from, to, tag };
    let simple = all_take_all(part);
    if !simple && report_surplus(part, report) {
        return;
    }
    match unbalanced(part, messages) {
        Some(finding) => report(finding),
        None if simple => report_sizes(part, messages, report),
        None => {
            report(takes_collective(part).unwrap_or_else(|| possibly_unmatched(part, messages)))
        }
    }
}

/// Finds a receive with a wildcard tag, and the first message of a collective that it can take from
/// a receive with that tag.
fn takes_collective(part: &[Message]) -> Option<Finding> {
    part.iter().filter(|message| message.receive && message.is_any_tag()).find_map(|wild| {
        let takes = |other: &&Message| {
            let from = other.from == wild.from || other.is_any_source() || wild.is_any_source();
            other.receive && other.is_of_collective() && from
        };
        let instead = part.iter().find(takes)?;
        let Message { from, to, tag, .. } = *instead;
        let messages = Envelope { from, to, tag };
        let (place, instead_of) = (wild.place(), instead.place());
        Some(Finding::TakesCollective { place, messages, instead_of })
    })
}

/// Sends and receives of a part that begins with the sends.
fn split(part: &[Message]) -> (&[Message], &[Message]) {
    part.split_at_checked(part.partition_point(|message| !message.receive)).unwrap_or((part, &[]))
}

/// Numbers of messages.
struct Counts {
    sends: usize,
    receives: usize,
}

impl Counts {
    fn of(part: &[Message]) -> Self {
        let sends = part.iter().filter(|message| !message.receive).count();
        Self { sends, receives: part.len() - sends }
    }

    fn unmatched(&self, place: OpIndex, messages: Envelope, certainty: Certainty) -> Finding {
        let numbers = [self.sends, self.receives];
        let [sends, receives] = numbers.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        Finding::Unmatched { place, messages, sends, receives, certainty }
    }
}

/// Finding if the numbers of sends and receives differ.
fn unbalanced(part: &[Message], messages: Envelope) -> Option<Finding> {
    let counts = Counts::of(part);
    if counts.sends == counts.receives {
        return None;
    }
    // The last of the larger side: the first ones find partners.
    let more = counts.receives > counts.sends;
    let last = part.iter().filter(|message| message.receive == more).max_by_key(|m| m.op)?;
    Some(counts.unmatched(last.place(), messages, Certainty::Certain))
}

/// True if every receive of a component takes every message of it.
fn all_take_all(part: &[Message]) -> bool {
    let mut sends = part.iter().filter(|message| !message.receive);
    let Some(first) = sends.next() else { return true };
    let one_source = sends.clone().all(|send| send.from == first.from);
    let one_tag = sends.all(|send| send.tag == first.tag);
    part.iter().filter(|message| message.receive).all(|receive| {
        let source = receive.is_any_source() || one_source && receive.from == first.from;
        let tag =
            receive.is_any_tag() || one_tag && (receive.tag == first.tag || first.is_any_tag());
        source && tag
    })
}

/// Reports classes of equal source and tag that all wildcards of the component together could not
/// balance; true if there was one.
fn report_surplus(part: &[Message], report: &mut impl FnMut(Finding)) -> bool {
    let is_wildcard = |m: &&Message| m.receive && (m.is_any_source() || m.is_any_tag());
    let wildcard_receives = part.iter().filter(is_wildcard).count();
    let wildcard_sends = part.iter().filter(|m| !m.receive && m.is_any_tag()).count();
    let mut found = false;
    for class in part.chunk_by(|a, b| (a.from, a.tag) == (b.from, b.tag)) {
        let Some(&first) = class.first() else { continue };
        let Counts { sends, receives } = Counts::of(class);
        if first.is_any_source()
            || first.is_any_tag()
            || sends <= receives + wildcard_receives && receives <= sends + wildcard_sends
        {
            continue;
        }
        let Message { from, to, tag, .. } = first;
        if let Some(finding) = unbalanced(class, Envelope { from, to, tag }) {
            report(finding);
            found = true;
        }
    }
    found
}

/// Finding of a balanced component that some orders leave unmatched.
fn possibly_unmatched(part: &[Message], messages: Envelope) -> Finding {
    let wildcard = part.iter().find(|m| m.is_any_source() || m.is_any_tag());
    let place =
        wildcard.or(part.first()).map_or(OpIndex { rank: messages.to, op: 0 }, Message::place);
    Counts::of(part).unmatched(place, messages, Certainty::Possible)
}

/// First pair of a send and a receive with different sizes.
fn different_size<'p>(
    sends: &'p [Message],
    receives: &'p [Message],
) -> Option<(&'p Message, &'p Message)> {
    sends.iter().zip(receives).find(|(send, receive)| send.size != receive.size)
}

/// Compares sizes where any send may match any receive.
fn report_sizes(part: &mut [Message], messages: Envelope, report: &mut impl FnMut(Finding)) {
    part.sort_unstable_by_key(|message| (message.receive, message.size, message.op));
    let (sends, receives) = split(part);
    let sides = |(send, receive): (&Message, &Message)| {
        ((send.place(), send.size), (receive.place(), receive.size))
    };
    if let Some(pair) = different_size(sends, receives) {
        let (send, receive) = sides(pair);
        let certainty = Certainty::Certain;
        return report(Finding::SizeMismatch { send, receive, messages, certainty });
    }
    // The sizes of both sides agree, but are not all equal: the order decides.
    if let (Some(smallest), Some(largest)) = (receives.first(), sends.last())
        && smallest.size != largest.size
    {
        let (send, receive) = sides((largest, smallest));
        let certainty = Certainty::Possible;
        report(Finding::SizeMismatch { send, receive, messages, certainty });
    }
}
