//! Messages between parts of the ranks.

use super::pool::{NONE, Node};
use crate::halves::{halves, whole};
use crate::sim::mail::{self, Words};
use crate::sim::word::Word32;

/// Messages between parts in one window.
pub type Mail<'s> = mail::Mail<'s, Message>;

/// Outbox of one sender for one window.
pub type Outbox<'s> = mail::Outbox<'s, Message>;

/// A message to another part, in 24 bytes, or the times of the message before it. Times are split in
/// words, because not every target has 64-bit atomics.
#[derive(Debug, Default)]
pub struct Message {
    /// Low halves of the creation time and of the time from the parent's to it, ps; of times: the
    /// parent's creation time.
    times: [Word32; 2],
    /// Bits 32 to 47 of both times; [`FAR`] if one has more bits: its times follow. Of times: high
    /// half of the creation time.
    highs: Word32,
    source: Word32,
    target: Word32,
    receive: Word32,
}

const _: () = assert!(size_of::<Message>() == 24, "the figures in the docs assume it");

/// [`Message::highs`] of a message created after 281 s of simulated time, or so long after its
/// parent.
const FAR: u32 = u32::MAX;

/// Target of the times of a message. No rank, as the number of ranks fits in 32 bits.
const TIMES: u32 = u32::MAX;

impl Message {
    /// Writes `item` to rank `target` into the messages that `place` returns, its times after it,
    /// as chains are read from last to first. `None` if there is no place.
    #[inline]
    pub(super) fn write<'m>(
        mut place: impl FnMut() -> Option<&'m Self>,
        target: u32,
        item: &Node,
    ) -> Option<()> {
        let message = place()?;
        let [created, created_high] = halves(item.created);
        let [since, since_high] = halves(item.created.wrapping_sub(item.parent));
        let highs = if (created_high | since_high) >> 16 == 0 {
            created_high << 16 | since_high
        } else {
            FAR
        };
        message.set([created, since], highs, target);
        message.source.set(item.first);
        message.receive.set(item.last);
        if highs == FAR {
            place()?.set(halves(item.parent), created_high, TIMES);
        }
        Some(())
    }

    /// All words; the fifth is the target.
    const fn all(&self) -> [&Word32; 6] {
        let Self { times: [first, second], highs, source, target, receive } = self;
        [first, second, highs, source, target, receive]
    }

    fn set(&self, times: [u32; 2], highs: u32, target: u32) {
        for (place, half) in self.times.iter().zip(times) {
            place.set(half);
        }
        self.highs.set(highs);
        self.target.set(target);
    }
}

impl Words for Message {
    const WORDS: usize = 6;

    fn read(&self, push: impl FnMut(u32)) {
        self.all().map(Word32::get).into_iter().for_each(push);
    }

    fn write(&self, words: &[u32]) {
        for (place, word) in self.all().into_iter().zip(words) {
            place.set(*word);
        }
    }

    fn target(words: &[u32]) -> Option<u32> {
        words.get(4).copied().filter(|target| *target != TIMES)
    }
}

/// Reader of a chain of messages, from last to first.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// High half of the creation time, and the parent's, of the next message if it is far.
    created_high: u32,
    parent: u64,
}

impl Reader {
    /// Rank that receives `message`, and the contents of its node; `None` for the times of the one
    /// that is read next.
    #[inline]
    pub(super) fn read(&mut self, message: &Message) -> Option<Received> {
        let [first, second] = message.times.each_ref().map(Word32::get);
        let (highs, target) = (message.highs.get(), message.target.get());
        if target == TIMES {
            *self = Self { created_high: highs, parent: whole([first, second]) };
            return None;
        }
        let (created, parent) = if highs == FAR {
            (whole([first, self.created_high]), self.parent)
        } else {
            let created = whole([first, highs >> 16]);
            (created, created.wrapping_sub(whole([second, highs & 0xffff])))
        };
        let (first, last) = (message.source.get(), message.receive.get());
        Some(Received { target, item: Node { next: NONE, first, last, kind: 0, created, parent } })
    }
}

/// A message as its receiver has it.
#[derive(Debug)]
pub(super) struct Received {
    /// Rank that receives.
    pub(super) target: u32,
    /// Node contents.
    pub(super) item: Node,
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn times_of_any_age_are_read_as_they_were_written() {
        const NEAR: u64 = (1 << 48) - 1;
        let near = [(NEAR, NEAR), (NEAR - (1 << 32), 0), (5, 5), (5, 0)];
        // The first would be `FAR` by chance.
        let far =
            [(NEAR, 0), (NEAR + 1, NEAR + 1), (u64::MAX, 0), (u64::MAX - 5, u64::MAX), (5, 6)];
        let near = near.map(|times| (times, 1));
        for ((created, parent), places) in near.into_iter().chain(far.map(|times| (times, 2))) {
            let item = Node { next: NONE, first: 3, last: 4, kind: 0, created, parent };
            let messages = [Message::default(), Message::default()];
            let mut rest = messages.iter();
            Message::write(|| rest.next(), 7, &item).unwrap();
            assert_eq!(messages.len() - rest.len(), places, "{item:?}");
            let mut reader = Reader::default();
            let read: Vec<_> =
                messages.iter().take(places).rev().filter_map(|one| reader.read(one)).collect();
            let [read] = &read[..] else { panic!("{read:?}") };
            assert_eq!((read.target, read.item), (7, item));
        }
    }
}
