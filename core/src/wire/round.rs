//! Announcement of a round to the responder.

use heapless::Vec;

use super::codec::{Reader, Writer};
use super::{ParseError, ROUNDS_PER_BATCH};
use crate::units::Picos;

/// Number of replies to a round.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ReplyPolicy {
    /// One, after the last message of the round.
    AfterLast,
    /// One after each message.
    AfterEach,
}

/// A round, repeated `repeats` times.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Round {
    /// Messages from the initiator, at least 1.
    pub messages: u32,
    /// Bytes in each message, at least 1.
    pub size: u32,
    /// Bytes in each reply, at least 1.
    pub reply_size: u32,
    /// When the responder replies.
    pub policy: ReplyPolicy,
    /// True if the responder measures the time in its receive calls after the round's first and
    /// reports their sum; only with one repetition.
    pub timed: bool,
    /// Number of repetitions, at least 1.
    pub repeats: u16,
    /// Busy wait of the responder before it polls for each message but the first.
    pub pause: Picos,
}

/// The rounds of one batch.
pub type Rounds = Vec<Round, ROUNDS_PER_BATCH>;

/// First byte of every data message of the `sequence`-th round of a session, in both directions:
/// below 128, so that it never begins a control frame.
#[must_use]
pub const fn tag_of(sequence: u32) -> u8 {
    sequence.to_le_bytes()[0] & 0x7f
}

impl Round {
    /// One untimed round of `messages` messages of `size` bytes with one reply of the same size
    /// after the last.
    #[must_use]
    pub(crate) const fn plain(messages: u32, size: u32) -> Self {
        Self {
            messages,
            size,
            reply_size: size,
            policy: ReplyPolicy::AfterLast,
            timed: false,
            repeats: 1,
            pause: Picos::ZERO,
        }
    }

    /// Messages from the responder in one repetition.
    #[must_use]
    pub const fn replies(&self) -> u32 {
        match self.policy {
            ReplyPolicy::AfterLast => 1,
            ReplyPolicy::AfterEach => self.messages,
        }
    }

    pub(super) fn emit(&self, writer: &mut Writer<'_>) {
        writer.u32(self.messages);
        writer.u32(self.size);
        writer.u32(self.reply_size);
        writer.u16(self.repeats);
        writer.u8(match self.policy {
            ReplyPolicy::AfterLast => 0,
            ReplyPolicy::AfterEach => 1,
        });
        writer.u8(u8::from(self.timed));
        writer.u64(self.pause.0);
    }

    #[inline(never)]
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let [messages, size, reply_size] = [reader.u32(), reader.u32(), reader.u32()];
        let (repeats, policy, timed) = (reader.u16(), reader.u8(), reader.u8());
        let pause = Picos(reader.u64());
        // Name and value of the field, and its offset back from the current position.
        let (name, value, back) = if messages == 0 {
            ("messages", 0, 24)
        } else if size == 0 {
            ("size", 0, 20)
        } else if reply_size == 0 {
            ("reply size", 0, 16)
        } else if repeats == 0 {
            ("repeats", 0, 12)
        } else if policy > 1 {
            ("reply policy", policy, 10)
        } else if timed > 1 || (timed == 1 && repeats != 1) {
            ("timed flag", timed, 9)
        } else {
            let policy = if policy == 0 { ReplyPolicy::AfterLast } else { ReplyPolicy::AfterEach };
            let timed = timed == 1;
            return Ok(Self { messages, size, reply_size, policy, timed, repeats, pause });
        };
        Err(reader.reject(name, u64::from(value), back))
    }
}
