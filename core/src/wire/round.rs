//! What the responder has to know of a round before it begins.

use heapless::Vec;

use super::ROUNDS_PER_BATCH;
use super::codec::{Reader, Writer};
use crate::units::Picos;

/// When the responder replies.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ReplyPolicy {
    /// Once, after the last message of the round.
    AfterLast,
    /// After each message.
    AfterEach,
}

/// A round, or the same round several times in a row.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Round {
    /// Messages from the initiator, at least 1.
    pub messages: u32,
    /// Bytes in each of them, at least 1.
    pub size: u32,
    /// Bytes in each reply, at least 1.
    pub reply_size: u32,
    /// When the responder replies.
    pub policy: ReplyPolicy,
    /// Whether the responder times its receive calls after the round's first
    /// and reports their sum; only with one repetition.
    pub timed: bool,
    /// How often the round is repeated, at least 1.
    pub repeats: u16,
    /// How long the responder busy-waits before it looks for each message
    /// but the first.
    pub pause: Picos,
}

/// The rounds of one batch.
pub type Rounds = Vec<Round, ROUNDS_PER_BATCH>;

/// First byte of every data message of the `sequence`-th round of a session,
/// there and back: below 128, so that it never begins a control frame.
#[must_use]
pub const fn tag_of(sequence: u32) -> u8 {
    sequence.to_le_bytes()[0] & 0x7f
}

impl Round {
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

    pub(super) fn parse(reader: &mut Reader<'_>) -> Self {
        let messages = positive(reader, "messages");
        let size = positive(reader, "size");
        let reply_size = positive(reader, "reply size");
        let repeats = reader.u16();
        if repeats == 0 {
            reader.reject("repeats", 0, 2);
        }
        let policy = reader.u8();
        if policy > 1 {
            reader.reject("reply policy", u64::from(policy), 1);
        }
        let timed = reader.u8();
        if timed > 1 || (timed == 1 && repeats != 1) {
            reader.reject("timed flag", u64::from(timed), 1);
        }
        let policy = if policy == 0 { ReplyPolicy::AfterLast } else { ReplyPolicy::AfterEach };
        let pause = Picos(reader.u64());
        Self { messages, size, reply_size, policy, timed: timed == 1, repeats, pause }
    }
}

fn positive(reader: &mut Reader<'_>, name: &'static str) -> u32 {
    let value = reader.u32();
    if value == 0 {
        reader.reject(name, 0, 4);
    }
    value
}
