//! Control frames as values.

use core::iter::Copied;
use core::slice::Iter;

use heapless::Vec;

use super::codec::Reader;
use super::frame::KIND_OFFSET;
use super::{
    Bounds, FRAME_LEN, Frame, HEADER_LEN, ParseError, ParseErrorKind, ROUNDS_PER_BATCH, Refusal,
    Reply, Request, Round, Rounds, Versions,
};
use crate::units::Picos;

/// What the initiator opens with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Hello {
    /// Versions that the initiator speaks.
    pub versions: Versions,
    /// Bits of what the initiator can do: [`super::CAPABILITY_DESCRIPTION`].
    pub capabilities: u32,
    /// The bounds that the initiator asks for.
    pub bounds: Bounds,
    /// The nonce of the responder's challenge; 0 before there was one, and
    /// from an initiator of version 1.
    pub nonce: u64,
}

/// What the responder answers when it accepts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Welcome {
    /// The version that both speak from here on.
    pub version: u8,
    /// Bits of what both can do.
    pub capabilities: u32,
    /// The bounds that the responder enforces.
    pub bounds: Bounds,
}

/// A control frame.
#[derive(Clone, Debug, Eq, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "without an allocator the list of a batch lies where the message lies"
)]
pub enum Message {
    /// Initiator: opens a session, or opens it again.
    Hello(Hello),
    /// Responder: accepts it.
    Welcome(Welcome),
    /// Responder: does not go on; nothing follows.
    Refuse(Refusal),
    /// Responder: another initiator is being served.
    Queue {
        /// Initiators before this one, the one being served included.
        position: u32,
    },
    /// Responder on a datagram link: asks for a hello with this nonce, which
    /// shows that the initiator receives at the address that it sends from.
    Challenge {
        /// To be repeated.
        nonce: u64,
    },
    /// Initiator: announces rounds.
    Batch {
        /// Sequence number of the batch's first round; each repetition of a
        /// round has the next one.
        sequence: u32,
        /// The rounds.
        rounds: Rounds,
    },
    /// Responder: waits for the first message of the batch.
    Ready {
        /// Sequence number of the batch.
        sequence: u32,
    },
    /// Responder, after the last reply of a batch with timed rounds.
    Report {
        /// Sequence number of the batch.
        sequence: u32,
        /// For each round of the batch the time spent in the receive calls
        /// after the first; zero for a round that is not timed.
        values: Vec<Picos, ROUNDS_PER_BATCH>,
    },
    /// Initiator: drops whatever is under way.
    Sync {
        /// Repeated in the answer.
        token: u32,
    },
    /// Responder: has dropped it and waits for control frames.
    Synced {
        /// Of the question.
        token: u32,
        /// Data messages received in this session, stray ones included.
        received: u64,
        /// Data messages sent in this session.
        replied: u64,
    },
    /// Initiator: the session is over; nothing follows.
    Bye,
}

impl Message {
    /// Reads one frame. Of `hello`, `refuse` and `queue` the version is not
    /// looked at, so that two versions can name their mismatch.
    ///
    /// # Errors
    ///
    /// [`ParseError`] with the offset of what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let frame = Frame::new_checked(bytes)?;
        Ok(match Request::of(&frame)? {
            Request::Hello(hello) => Self::Hello(hello),
            Request::Batch { sequence, rounds } => {
                Self::Batch { sequence, rounds: listed(rounds.iter()) }
            }
            Request::Sync { token } => Self::Sync { token },
            Request::Bye => Self::Bye,
            Request::Other { .. } => match Reply::of(&frame, times)? {
                Reply::Welcome(welcome) => Self::Welcome(welcome),
                Reply::Refuse(refusal) => Self::Refuse(refusal),
                Reply::Queue { position } => Self::Queue { position },
                Reply::Challenge { nonce } => Self::Challenge { nonce },
                Reply::Ready { sequence } => Self::Ready { sequence },
                Reply::Report { sequence, values } => Self::Report { sequence, values },
                Reply::Synced { token, received, replied } => {
                    Self::Synced { token, received, replied }
                }
                Reply::Other { kind } => {
                    return Err(ParseError { at: KIND_OFFSET, kind: ParseErrorKind::Kind(kind) });
                }
            },
        })
    }

    /// Writes the whole frame.
    pub fn emit(&self, bytes: &mut [u8; FRAME_LEN]) {
        match self.sides() {
            Ok(request) => request.emit(bytes),
            Err(reply) => reply.emit(bytes),
        }
    }

    /// The number of this kind on the wire.
    #[must_use]
    pub fn kind(&self) -> u8 {
        match self.sides() {
            Ok(request) => request.kind(),
            Err(reply) => reply.kind(),
        }
    }

    /// What it is of an initiator, or else of a responder.
    fn sides(&self) -> Result<Request<&[Round]>, Reply<Copied<Iter<'_, Picos>>>> {
        Err(match *self {
            Self::Hello(hello) => return Ok(Request::Hello(hello)),
            Self::Batch { sequence, ref rounds } => {
                return Ok(Request::Batch { sequence, rounds });
            }
            Self::Sync { token } => return Ok(Request::Sync { token }),
            Self::Bye => return Ok(Request::Bye),
            Self::Welcome(welcome) => Reply::Welcome(welcome),
            Self::Refuse(refusal) => Reply::Refuse(refusal),
            Self::Queue { position } => Reply::Queue { position },
            Self::Challenge { nonce } => Reply::Challenge { nonce },
            Self::Ready { sequence } => Reply::Ready { sequence },
            Self::Report { sequence, ref values } => {
                Reply::Report { sequence, values: values.iter().copied() }
            }
            Self::Synced { token, received, replied } => Reply::Synced { token, received, replied },
        })
    }
}

fn times(body: &mut Reader<'_>, length: usize) -> Vec<Picos, ROUNDS_PER_BATCH> {
    listed((0..length).map(|_| Picos(body.u64())))
}

/// The elements of a list, whose length was checked.
fn listed<T>(elements: impl Iterator<Item = T>) -> Vec<T, ROUNDS_PER_BATCH> {
    let mut list = Vec::new();
    for element in elements {
        let _ = list.push(element);
    }
    list
}

const ROUND_LEN: usize = 24;
const _: () = assert!(HEADER_LEN + 8 + ROUNDS_PER_BATCH * ROUND_LEN <= FRAME_LEN);
