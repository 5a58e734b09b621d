//! Messages between parts of the ranks.

use crate::halves::{halves, whole};
use crate::sim::mail::{self, Words};
use crate::sim::origin::{Ancestor, BEYOND, START};
use crate::sim::record::NONE;
use crate::sim::word::Word32;

/// Messages between parts in one window.
pub type Mail<'s> = mail::Mail<'s, Message>;

/// Outbox of one sender for one window.
pub type Outbox<'s> = mail::Outbox<'s, Message>;

/// Number of words of a message.
const WORDS: usize = 16;
/// Events of a history in a message, of five words each.
const EACH: usize = 3;
/// Messages that have the history of another.
const HISTORY: usize = 5;
/// Events of the history of a message: with fewer, ties stay open.
const MOST: usize = EACH * HISTORY;

/// Largest number of places in the mail that a message takes.
pub const PLACES: u64 = 1 + HISTORY as u64;

/// A message to another part, or events of the history of the message before it; in one cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Message([Word32; WORDS]);

/// Contents of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Content {
    pub(super) target: u32,
    pub(super) tag: u32,
    /// Index of the send on its rank.
    pub(super) op: u32,
    /// Second part of the stamp.
    pub(super) seq: u32,
    /// Rank that sent it.
    pub(super) by: u32,
    /// Bytes.
    pub(super) size: u64,
    pub(super) created: u64,
    pub(super) arrival: u64,
}

impl Content {
    /// Writes a message with its `history` into the places that `place` returns; `None` if there is
    /// none.
    pub(super) fn write<'m>(
        &self,
        history: impl Iterator<Item = Ancestor>,
        mut place: impl FnMut() -> Option<&'m Message>,
    ) -> Option<()> {
        let &Self { target, tag, op, seq, by, size, created, arrival } = self;
        let times = [size, created, arrival].map(halves);
        place()?.set([target, tag, op, seq, by].into_iter().chain(times.into_iter().flatten()));
        let mut history = history.take(MOST).peekable();
        while history.peek().is_some() {
            let events = history.by_ref().take(EACH).flat_map(words);
            place()?.set([NONE].into_iter().chain(events).chain([NONE; WORDS]));
        }
        Some(())
    }
}

/// First word of an event that was of an operation without dependencies.
const ROOT: u32 = 0;

/// An event in words.
fn words(event: Ancestor) -> [u32; 5] {
    let Ancestor { created, seq, by, creator } = event;
    let [low, high] = halves(created);
    let kind = if creator == START { ROOT } else { ROOT + 1 };
    [kind, low, high, seq, by]
}

impl Message {
    #[inline]
    fn set(&self, words: impl Iterator<Item = u32>) {
        for (place, word) in self.0.iter().zip(words) {
            place.set(word);
        }
    }
}

impl Words for Message {
    const WORDS: usize = WORDS;

    fn read(&self, push: impl FnMut(u32)) {
        self.0.iter().map(Word32::get).for_each(push);
    }

    fn write(&self, words: &[u32]) {
        self.set(words.iter().copied());
    }

    fn target(words: &[u32]) -> Option<u32> {
        words.first().copied().filter(|target| *target != NONE)
    }
}

/// Reads messages from last to first, so that the history of each comes before it.
#[derive(Debug, Default)]
pub(super) struct Reader {
    events: heapless::Vec<Ancestor, MOST>,
    /// True if they are those of the message that was read last.
    done: bool,
}

impl Reader {
    /// Contents of `message`; `None` for events of the one that is read next.
    pub(super) fn read(&mut self, message: &Message) -> Option<Content> {
        let all = message.0.each_ref().map(Word32::get);
        if core::mem::take(&mut self.done) {
            self.events.clear();
        }
        let [target, tag, op, seq, by, a, b, c, d, e, f, ..] = all;
        if target != NONE {
            self.done = true;
            let [size, created, arrival] = [[a, b], [c, d], [e, f]].map(whole);
            return Some(Content { target, tag, op, seq, by, size, created, arrival });
        }
        let [_, events @ ..] = all;
        for &[kind, low, high, seq, by] in events.as_chunks().0.iter().rev() {
            if kind != NONE {
                let creator = if kind == ROOT { START } else { BEYOND };
                let created = whole([low, high]);
                // A message has at most `MOST`.
                let _ = self.events.push(Ancestor { created, seq, by, creator });
            }
        }
        None
    }

    /// History of the message that was read last, the oldest event first: each is the creator of the
    /// next one.
    pub(super) fn history(&self) -> &[Ancestor] {
        &self.events
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written_with_as_much_of_its_history_as_is_sent() {
        let times = (3 << 40, 4 << 40, 5 << 40);
        let (size, created, arrival) = times;
        for events in [0, 1, 3, 4, 14, 15, 16, 40] {
            let history: Vec<_> = (0..events)
                .map(|at| {
                    let creator = if at + 1 == events { START } else { 7 };
                    Ancestor { created: u64::from(at) << 35, seq: at, by: 100 + at, creator }
                })
                .collect();
            let content =
                Content { target: 1, tag: 2, op: 10, seq: 11, by: 12, size, created, arrival };
            let sent: [Message; 1 + HISTORY] = Default::default();
            let mut places = sent.iter();
            content.write(history.iter().copied(), || places.next()).unwrap();
            let used = sent.len() - places.len();
            // As another process has them.
            let mut reader = Reader::default();
            let mut read = Vec::new();
            for (at, message) in sent.iter().take(used).enumerate().rev() {
                let mut words = Vec::new();
                message.read(|word| words.push(word));
                assert_eq!(Message::target(&words), (at == 0).then_some(1));
                let copy = Message::default();
                copy.write(&words);
                read.extend(reader.read(&copy));
            }
            assert_eq!(read, [content]);
            let expected = history.iter().take(MOST).rev().map(|event| {
                let creator = if event.creator == START { START } else { BEYOND };
                Ancestor { creator, ..*event }
            });
            assert!(reader.history().iter().copied().eq(expected), "{events}");
        }
    }
}
