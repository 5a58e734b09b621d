//! What went over the link, and what became of a session.

use core::fmt;

use crate::units::Picos;
use crate::wire::{Limited, ParseError, Refusal};

/// Counts of one initiator's session, both directions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Traffic {
    /// Data messages sent.
    pub data_sent: u64,
    /// Data messages received, stray ones included.
    pub data_received: u64,
    /// Control frames sent.
    pub control_sent: u64,
    /// Control frames received.
    pub control_received: u64,
    /// Rounds that came to their end.
    pub rounds: u64,
    /// Rounds that were discarded because a message was lost or late.
    pub rounds_lost: u64,
    /// Data messages of either direction that were lost or came too late, as
    /// far as the responder has confirmed its counts.
    pub messages_lost: u64,
    /// Messages received that were not waited for, for example of a round
    /// that had been given up.
    pub strays: u64,
    /// Receive rounds whose reply was not complete when it was looked for:
    /// their time may hold waiting, and the delay was too short.
    pub late_replies: u64,
    /// Time inside of rounds, from the first send to the end of the last
    /// receive, busy waits included.
    pub in_rounds: Picos,
}

impl Traffic {
    /// All messages of both directions, control frames included.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.data_sent + self.data_received + self.control_sent + self.control_received
    }
}

/// Where a session stood when something went wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Phase {
    /// Waiting to be welcomed.
    Handshake,
    /// Waiting for its turn.
    Queue,
    /// Waiting for the responder to be ready for a batch.
    Batch,
    /// Waiting for a reply.
    Round,
    /// Finding together again after a loss.
    Synchronisation,
    /// Waiting for the description of the responder's environment.
    Description,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Handshake => "the handshake",
            Self::Queue => "the queue",
            Self::Batch => "the announcement of rounds",
            Self::Round => "a round",
            Self::Synchronisation => "the synchronisation after a loss",
            Self::Description => "the responder's description of itself",
        })
    }
}

/// Why an initiator's session failed. It is over, except after
/// [`SessionError::OutOfBounds`] and [`SessionError::Invalid`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SessionError<E> {
    /// The link failed.
    Link(E),
    /// The responder refused.
    Refused(Refusal),
    /// Nothing came for this long.
    Silent {
        /// What was waited for.
        phase: Phase,
        /// How long.
        limit: Picos,
    },
    /// What came was not a control frame.
    Malformed {
        /// What was waited for.
        phase: Phase,
        /// What is wrong with it.
        error: ParseError,
    },
    /// A control frame of this kind came out of order.
    OutOfOrder {
        /// What was waited for.
        phase: Phase,
        /// The frame's kind.
        kind: u8,
    },
    /// The reply of a round on a reliable link is not the one that was
    /// waited for: the two sides have lost each other.
    Misplaced {
        /// First byte of what came.
        tag: u8,
    },
    /// The experiment needs more than the two sides agreed on. Nothing was
    /// sent.
    OutOfBounds {
        /// What it is about.
        what: Limited,
        /// How much is needed.
        asked: u64,
        /// How much is allowed.
        allowed: u64,
    },
    /// The experiment means nothing. Nothing was sent.
    Invalid(Invalid),
    /// A lent buffer or the link itself does not take a control frame.
    TooSmall {
        /// Bytes that are needed.
        needed: usize,
        /// Bytes that there are.
        lent: usize,
    },
}

/// Why an experiment means nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Invalid {
    /// A message has no bytes.
    EmptyMessage,
    /// A round has no messages.
    NoMessages,
    /// A receive round has more than one message.
    SeveralReceives,
}

impl<E: fmt::Display> fmt::Display for SessionError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(error) => write!(f, "the link failed: {error}"),
            Self::Refused(refusal) => write!(f, "refused: {refusal}"),
            Self::Silent { phase, limit } => write!(
                f,
                "the peer was silent for {limit} in {phase}; is `loggap serve` running there, on \
                 this transport and port?"
            ),
            Self::Malformed { phase, error } => write!(f, "in {phase}: {error}"),
            Self::OutOfOrder { phase, kind } => {
                write!(f, "in {phase}: a control frame of kind {kind} out of order")
            }
            Self::Misplaced { tag } => {
                write!(f, "a message beginning with {tag:#04x} came instead of the reply")
            }
            Self::OutOfBounds { what, asked, allowed } => {
                let refusal = Refusal::Bounds { what: *what, asked: *asked, allowed: *allowed };
                refusal.fmt(f)
            }
            Self::Invalid(Invalid::EmptyMessage) => {
                f.write_str("a message of 0 bytes cannot be measured; begin with 1")
            }
            Self::Invalid(Invalid::NoMessages) => {
                f.write_str("a round of 0 messages cannot be measured; begin with 1")
            }
            Self::Invalid(Invalid::SeveralReceives) => {
                f.write_str("the receive overhead is measured with 1 message a round")
            }
            Self::TooSmall { needed, lent } => {
                write!(f, "{needed} bytes are needed for a control frame, there are {lent}")
            }
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for SessionError<E> {}
