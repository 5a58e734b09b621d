//! Message counts and errors of an initiator's session.

use core::fmt;

use crate::units::Picos;
use crate::wire::{Limited, ParseError, Refusal};

/// Message counts of one initiator's session, both directions.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Traffic {
    /// Data messages sent.
    pub data_sent: u64,
    /// Data messages received, including stray ones.
    pub data_received: u64,
    /// Control frames sent.
    pub control_sent: u64,
    /// Control frames received.
    pub control_received: u64,
    /// Rounds completed.
    pub rounds: u64,
    /// Rounds discarded because a message was lost or late.
    pub rounds_lost: u64,
    /// Data messages of either direction that were lost or late, as of the last comparison with the
    /// responder's counts.
    pub messages_lost: u64,
    /// Unexpected messages received, for example of an abandoned round.
    pub strays: u64,
    /// Receive rounds whose reply had not arrived at the first poll: their time may include
    /// waiting, and the delay was too short.
    pub late_replies: u64,
    /// Time within rounds, from the first send to the end of the last receive, including busy
    /// waits.
    pub in_rounds: Picos,
}

impl Traffic {
    /// Number of messages in both directions, including control frames.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.data_sent + self.data_received + self.control_sent + self.control_received
    }
}

/// Phase of a session, for errors.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Phase {
    /// Waiting for the welcome.
    Handshake,
    /// Waiting in the queue.
    Queue,
    /// Waiting for the responder to be ready for a batch.
    Batch,
    /// Waiting for a reply.
    Round,
    /// Synchronising after a loss.
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

/// Reasons why an initiator's session failed. It is over, except after
/// [`SessionError::OutOfBounds`] and [`SessionError::Invalid`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SessionError<E> {
    /// The link failed.
    Link(E),
    /// The responder refused.
    Refused(Refusal),
    /// The responder was silent for too long.
    Silent {
        /// Phase of the session.
        phase: Phase,
        /// Time limit.
        limit: Picos,
    },
    /// Data other than a control frame was received.
    Malformed {
        /// Phase of the session.
        phase: Phase,
        /// Error in the data.
        error: ParseError,
    },
    /// A control frame was received out of order.
    OutOfOrder {
        /// Phase of the session.
        phase: Phase,
        /// Kind of the frame.
        kind: u8,
    },
    /// A round's reply on a reliable link was not the expected one: the two ends are out of step.
    Misplaced {
        /// First byte of the message received.
        tag: u8,
    },
    /// The experiment exceeds the agreed bounds. Nothing was sent.
    OutOfBounds {
        /// Exceeded limit.
        what: Limited,
        /// Value required.
        asked: u64,
        /// Value allowed.
        allowed: u64,
    },
    /// The experiment is invalid. Nothing was sent.
    Invalid(Invalid),
    /// A lent buffer or the link is too small for a control frame.
    TooSmall {
        /// Bytes required.
        needed: usize,
        /// Bytes available.
        lent: usize,
    },
}

/// Reasons why an experiment is invalid.
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
