//! Messages between parts of the ranks.

use super::pool::Item;
use super::rank::{halves, whole};
use crate::sim::mail;
use crate::sim::word::Word32;

/// Messages between parts in one window.
pub type Mail<'s> = mail::Mail<'s, Message>;

/// Outbox of one sender for one window.
pub type Outbox<'s> = mail::Outbox<'s, Message>;

/// A message to another part, in 24 bytes, or the full [`Item::parent`] of the message before it.
/// Times are split in halves, because not every target has 64-bit atomics.
#[derive(Debug, Default)]
pub struct Message {
    created: [Word32; 2],
    /// Time from `parent` to `created`, ps; [`FAR`] if it does not fit, and a message with `parent`
    /// follows.
    since_parent: Word32,
    source: Word32,
    target: Word32,
    receive: Word32,
}

const _: () = assert!(size_of::<Message>() == 24, "the figures in the docs assume it");

/// [`Message::since_parent`] of an operation that took longer.
const FAR: u32 = u32::MAX;

/// Target of a message that has the parent of the one before it. No rank, as their number fits in
/// 32 bits.
const PARENT: u32 = u32::MAX;

impl Message {
    /// Writes `item` to rank `target` into the messages that `place` returns, the parent after its
    /// message, as chains are read from last to first. `None` if there is no place.
    #[inline]
    pub(super) fn write<'m>(
        mut place: impl FnMut() -> Option<&'m Self>,
        target: u32,
        item: &Item,
    ) -> Option<()> {
        let message = place()?;
        let since = item.created.wrapping_sub(item.parent);
        let since = u32::try_from(since).unwrap_or(FAR);
        message.put_created(item.created);
        message.since_parent.set(since);
        message.source.set(item.first);
        message.target.set(target);
        message.receive.set(item.last);
        if since == FAR {
            let parent = place()?;
            parent.put_created(item.parent);
            parent.target.set(PARENT);
        }
        Some(())
    }

    fn put_created(&self, time: u64) {
        for (place, half) in self.created.iter().zip(halves(time)) {
            place.set(half);
        }
    }

    fn created(&self) -> u64 {
        let [low, high] = &self.created;
        whole([low.get(), high.get()])
    }
}

/// Reader of a chain of messages, from last to first.
#[derive(Debug, Default)]
pub(super) struct Reader {
    parent: u64,
}

impl Reader {
    /// Rank that receives `message`, and the contents of its node; `None` for the parent of the one
    /// that is read next.
    #[inline]
    pub(super) fn read(&mut self, message: &Message) -> Option<Received> {
        let (target, created) = (message.target.get(), message.created());
        if target == PARENT {
            self.parent = created;
            return None;
        }
        let parent = match message.since_parent.get() {
            FAR => self.parent,
            since => created.wrapping_sub(u64::from(since)),
        };
        let (first, last) = (message.source.get(), message.receive.get());
        Some(Received { target, item: Item { first, last, kind: 0, created, parent } })
    }
}

/// A message as its receiver has it.
#[derive(Debug)]
pub(super) struct Received {
    /// Rank that receives.
    pub(super) target: u32,
    /// Node contents.
    pub(super) item: Item,
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_parent_of_any_age_is_read_as_it_was_written() {
        let created = u64::MAX - 5;
        for parent in
            [created, created - 1, created - u64::from(FAR) + 1, created - u64::from(FAR), 0]
        {
            let item = Item { first: 3, last: 4, kind: 0, created, parent };
            let places = [Message::default(), Message::default()];
            let mut rest = places.iter();
            Message::write(|| rest.next(), 7, &item).unwrap();
            let used = places.len() - rest.len();
            assert_eq!(used, 1 + usize::from(created - parent >= u64::from(FAR)));
            let mut reader = Reader::default();
            let read: Vec<_> =
                places.iter().take(used).rev().filter_map(|one| reader.read(one)).collect();
            let [read] = &read[..] else { panic!("{read:?}") };
            assert_eq!((read.target, read.item), (7, item));
        }
    }
}
