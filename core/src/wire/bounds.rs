//! Protocol versions and limits that both ends agree on, and the reasons for a refusal.

use core::fmt;

use super::codec::{Reader, Writer};
use super::{ParseError, Round, VERSION};
use crate::units::{Bytes, Picos};

/// A range of protocol versions, ends included.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Versions {
    /// Oldest version.
    pub lowest: u8,
    /// Newest version.
    pub highest: u8,
}

impl Versions {
    /// Versions implemented here.
    pub const OURS: Self = Self { lowest: VERSION, highest: VERSION };

    /// Newest version in both ranges; `None` if they do not overlap.
    #[must_use]
    pub fn newest_common(self, other: Self) -> Option<u8> {
        let highest = self.highest.min(other.highest);
        (highest >= self.lowest.max(other.lowest)).then_some(highest)
    }

    pub(super) fn emit(self, writer: &mut Writer<'_>) {
        writer.u8(self.lowest);
        writer.u8(self.highest);
    }

    /// Reads both ends without checking their order.
    fn read(reader: &mut Reader<'_>) -> Self {
        Self { lowest: reader.u8(), highest: reader.u8() }
    }

    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let versions = Self::read(reader);
        if versions.lowest > versions.highest {
            return Err(reader.reject("highest version", versions.highest.into(), 1));
        }
        Ok(versions)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lowest == self.highest {
            write!(f, "{}", self.lowest)
        } else {
            write!(f, "{} to {}", self.lowest, self.highest)
        }
    }
}

/// Limits that a responder announces in its welcome and enforces.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Bounds {
    /// Largest message and largest reply, in bytes.
    pub message: u32,
    /// Most messages in one round.
    pub messages: u32,
    /// Most rounds in one batch, repetitions counted.
    pub rounds: u32,
    /// Longest [`Round::pause`] between two receives.
    pub pause: Picos,
    /// Longest silence of the initiator.
    pub silence: Picos,
    /// Longest session.
    pub session: Picos,
}

impl Default for Bounds {
    /// 1 MiB, 65,536 messages a round, 65,536 rounds a batch, 1 s pause, 10 s silence, 1 h session.
    fn default() -> Self {
        const SECOND: u64 = 1_000_000_000_000;
        Self {
            message: 1 << 20,
            messages: 1 << 16,
            rounds: 1 << 16,
            pause: Picos(SECOND),
            silence: Picos(10 * SECOND),
            session: Picos(3_600 * SECOND),
        }
    }
}

impl Bounds {
    /// The smaller of both in every limit.
    #[must_use]
    pub fn narrowed(self, other: Self) -> Self {
        Self {
            message: self.message.min(other.message),
            messages: self.messages.min(other.messages),
            rounds: self.rounds.min(other.rounds),
            pause: self.pause.min(other.pause),
            silence: self.silence.min(other.silence),
            session: self.session.min(other.session),
        }
    }

    /// These bounds with messages of at most `largest` bytes.
    #[must_use]
    pub fn with_message_at_most(self, largest: Bytes) -> Self {
        let largest = u32::try_from(largest.0).unwrap_or(u32::MAX);
        Self { message: self.message.min(largest), ..self }
    }

    /// Checks all rounds of one batch.
    ///
    /// # Errors
    ///
    /// [`Refusal::Bounds`] for the first limit that is exceeded.
    pub fn check(&self, rounds: &[Round]) -> Result<(), Refusal> {
        let mut total = 0_u32;
        for round in rounds {
            total = total.saturating_add(round.repeats.into());
            let size = round.size.max(round.reply_size);
            let (what, asked, allowed) = if size > self.message {
                (Limited::Message, size, self.message)
            } else if round.messages > self.messages {
                (Limited::Messages, round.messages, self.messages)
            } else if total > self.rounds {
                (Limited::Rounds, total, self.rounds)
            } else if round.pause > self.pause {
                let (what, asked, allowed) = (Limited::Pause, round.pause.0, self.pause.0);
                return Err(Refusal::Bounds { what, asked, allowed });
            } else {
                continue;
            };
            let (asked, allowed) = (asked.into(), allowed.into());
            return Err(Refusal::Bounds { what, asked, allowed });
        }
        Ok(())
    }

    pub(super) fn emit(&self, writer: &mut Writer<'_>) {
        writer.u32(self.message);
        writer.u32(self.messages);
        writer.u32(self.rounds);
        writer.u32(0);
        writer.u64(self.pause.0);
        writer.u64(self.silence.0);
        writer.u64(self.session.0);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let (message, messages, rounds) = (reader.u32(), reader.u32(), reader.u32());
        let _reserved = reader.u32();
        let [pause, silence, session] = [reader.u64(), reader.u64(), reader.u64()].map(Picos);
        Self { message, messages, rounds, pause, silence, session }
    }
}

/// Quantities that a responder limits.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Limited {
    /// Bytes of a message.
    Message,
    /// Messages of a round.
    Messages,
    /// Rounds of a batch.
    Rounds,
    /// Time between two receives, in picoseconds.
    Pause,
    /// Silence of the initiator, in picoseconds.
    Silence,
    /// Duration of the session, in picoseconds.
    Session,
}

impl Limited {
    /// All quantities, in the order of their numbers on the wire.
    pub(super) const ALL: [Self; 6] =
        [Self::Message, Self::Messages, Self::Rounds, Self::Pause, Self::Silence, Self::Session];

    /// Number on the wire.
    const fn code(self) -> u8 {
        match self {
            Self::Message => 0,
            Self::Messages => 1,
            Self::Rounds => 2,
            Self::Pause => 3,
            Self::Silence => 4,
            Self::Session => 5,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Message => "bytes in a message",
            Self::Messages => "messages in a round",
            Self::Rounds => "rounds in a batch",
            Self::Pause => "pause",
            Self::Silence => "silence",
            Self::Session => "session",
        }
    }

    /// True for limits on a time in picoseconds, false for counts.
    const fn is_time(self) -> bool {
        matches!(self, Self::Pause | Self::Silence | Self::Session)
    }
}

/// Reasons why the responder ends the session.
// A 32-bit tag keeps the payload aligned, so that copies take few instructions.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refusal {
    /// The ends have no version of the protocol in common.
    Version {
        /// Versions of the initiator.
        initiator: Versions,
        /// Versions of the responder.
        responder: Versions,
    },
    /// Another initiator is being served, and the queue is full.
    Busy {
        /// Length of the queue.
        waiting: u64,
    },
    /// The request, or the session's duration, exceeds a limit.
    Bounds {
        /// Limited quantity.
        what: Limited,
        /// Value requested.
        asked: u64,
        /// Value allowed.
        allowed: u64,
    },
    /// A control frame of this kind is not allowed in the current state.
    OutOfOrder {
        /// Kind of the frame.
        kind: u8,
    },
    /// A control frame was expected, and the bytes received are none.
    Malformed {
        /// Offset of the wrong byte.
        at: u64,
    },
}

impl Refusal {
    pub(super) fn emit(&self, writer: &mut Writer<'_>) {
        let mut what = Limited::Message;
        let mut versions = (Versions::OURS, Versions::OURS);
        let (mut asked, mut allowed) = (0, 0);
        let reason = match *self {
            Self::Version { initiator, responder } => {
                versions = (initiator, responder);
                0
            }
            Self::Busy { waiting } => {
                asked = waiting;
                1
            }
            Self::Bounds { what: limited, asked: wanted, allowed: bound } => {
                (what, asked, allowed) = (limited, wanted, bound);
                2
            }
            Self::OutOfOrder { kind } => {
                asked = kind.into();
                3
            }
            Self::Malformed { at } => {
                asked = at;
                4
            }
        };
        writer.u8(reason);
        writer.u8(what.code());
        versions.0.emit(writer);
        versions.1.emit(writer);
        writer.u16(0);
        writer.u64(asked);
        writer.u64(allowed);
    }

    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let (reason, what) = (reader.u8(), reader.u8());
        let [initiator, responder] = [Versions::read(reader), Versions::read(reader)];
        let _reserved = reader.u16();
        let (asked, allowed) = (reader.u64(), reader.u64());
        // Name and value of the field, and its offset back from the current position.
        let (name, value, back) = match (reason, Limited::ALL.get(usize::from(what))) {
            (_, None) => ("bound", what.into(), 23),
            _ if initiator.lowest > initiator.highest => {
                ("highest version", initiator.highest.into(), 21)
            }
            _ if responder.lowest > responder.highest => {
                ("highest version", responder.highest.into(), 19)
            }
            (0, _) => return Ok(Self::Version { initiator, responder }),
            (1, _) => return Ok(Self::Busy { waiting: asked }),
            (2, Some(&what)) => return Ok(Self::Bounds { what, asked, allowed }),
            (3, _) => match u8::try_from(asked) {
                Ok(kind) => return Ok(Self::OutOfOrder { kind }),
                Err(_) => ("kind", asked, 16),
            },
            (4, _) => return Ok(Self::Malformed { at: asked }),
            (other, _) => ("reason", other.into(), 24),
        };
        Err(reader.reject(name, value, back))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Version { initiator, responder } => write!(
                f,
                "protocol versions differ: the initiator speaks {initiator}, the responder \
                 {responder}; install the same loggap on both sides"
            ),
            Self::Busy { waiting } => {
                write!(f, "the responder is taken and {waiting} others wait; try again later")
            }
            Self::Bounds { what, asked, allowed } if what.is_time() => write!(
                f,
                "a {} of {}: the responder allows {}",
                what.name(),
                Picos(asked),
                Picos(allowed)
            ),
            Self::Bounds { what, asked, allowed } => {
                write!(f, "{asked} {}: the responder allows {allowed}", what.name())
            }
            Self::OutOfOrder { kind } => write!(f, "a control frame of kind {kind} out of order"),
            Self::Malformed { at } => {
                write!(f, "no control frame where one belongs: wrong at byte {at}")
            }
        }
    }
}

impl core::error::Error for Refusal {}
