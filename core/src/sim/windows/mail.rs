//! Messages between two windows.
//!
//! A message for which the sender has no room in the [mail](crate::sim::mail) stays in the record
//! of its send; these records are chained instead.

use crate::halves::{halves, whole};
use crate::sim::mail::{self, Words};
use crate::sim::rank::rules::Letter;
use crate::sim::record::NONE;
use crate::sim::word::{Word32, Word64};

/// Messages of one window.
pub type Mail<'s> = mail::Mail<'s, Message>;

/// Outbox of one sender for one window.
pub type Outbox<'s> = mail::Outbox<'s, Message>;

/// A message in flight, in 32 bytes.
#[derive(Debug, Default)]
#[repr(C, align(32))]
pub struct Message {
    pub(super) created: Word64,
    pub(super) send: Word32,
    pub(super) source: Word32,
    pub(super) target: Word32,
    pub(super) tag: Word32,
    size: Word32,
    pub(super) link: Word32,
}

const _: () = assert!(size_of::<Message>() == 32, "two in a cache line");

impl Message {
    #[allow(clippy::cast_possible_truncation, reason = "the builder refuses longer messages")]
    pub(super) fn write(&self, target: u32, letter: &Letter) {
        self.created.set(letter.created);
        self.send.set(letter.send);
        self.source.set(letter.source);
        self.target.set(target);
        self.tag.set(letter.tag);
        self.size.set(letter.size as u32);
    }

    #[inline]
    pub(super) fn read(&self) -> Letter {
        Letter {
            created: self.created.get(),
            send: self.send.get(),
            source: self.source.get(),
            tag: self.tag.get(),
            size: self.size.get().into(),
        }
    }
}

impl Words for Message {
    const WORDS: usize = 7;

    fn read(&self, mut push: impl FnMut(u32)) {
        let Self { created, send, source, target, tag, size, .. } = self;
        halves(created.get()).into_iter().for_each(&mut push);
        [send, source, target, tag, size].map(Word32::get).into_iter().for_each(push);
    }

    fn write(&self, words: &[u32]) {
        let Self { created, send, source, target, tag, size, .. } = self;
        if let [low, high, rest @ ..] = words {
            created.set(whole([*low, *high]));
            for (place, word) in [send, source, target, tag, size].into_iter().zip(rest) {
                place.set(*word);
            }
        }
    }

    fn target(words: &[u32]) -> Option<u32> {
        words.get(4).copied().filter(|target| *target != END)
    }
}

/// Sentinel: end of a list of messages.
pub(super) const END: u32 = NONE;
