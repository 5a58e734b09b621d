//! Control frames of both ends as owned values.

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

/// Opening of a session by the initiator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Hello {
    /// Versions of the initiator.
    pub versions: Versions,
    /// Capabilities of the initiator, as bits: [`super::CAPABILITY_DESCRIPTION`].
    pub capabilities: u32,
    /// Bounds that the initiator requests.
    pub bounds: Bounds,
    /// Nonce of the responder's challenge; 0 before a challenge and from an initiator of version 1.
    pub nonce: u64,
}

/// Acceptance of a session by the responder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Welcome {
    /// Version used from here on.
    pub version: u8,
    /// Capabilities of both ends, as bits.
    pub capabilities: u32,
    /// Bounds that the responder enforces.
    pub bounds: Bounds,
}

/// A control frame.
#[derive(Clone, Debug, Eq, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "without an allocator the list of a batch lies where the message lies"
)]
pub enum Message {
    /// Initiator: opens a session, or reopens it.
    Hello(Hello),
    /// Responder: accepts the session.
    Welcome(Welcome),
    /// Responder: ends the session; nothing follows.
    Refuse(Refusal),
    /// Responder: another initiator is being served.
    Queue {
        /// Number of initiators ahead in the queue, including the one being served.
        position: u32,
    },
    /// Responder on a datagram link: requests a hello with this nonce, which proves that the
    /// initiator receives at its source address.
    Challenge {
        /// Nonce to repeat.
        nonce: u64,
    },
    /// Initiator: announces rounds.
    Batch {
        /// Sequence number of the batch's first round; each further round or repetition increments
        /// it.
        sequence: u32,
        /// The rounds.
        rounds: Rounds,
    },
    /// Responder: ready for the first message of the batch.
    Ready {
        /// Sequence number of the batch.
        sequence: u32,
    },
    /// Responder: results, after the last reply of a batch with timed rounds.
    Report {
        /// Sequence number of the batch.
        sequence: u32,
        /// For each round of the batch, the time spent in the receive calls after the first; zero
        /// for rounds that are not timed.
        values: Vec<Picos, ROUNDS_PER_BATCH>,
    },
    /// Initiator: aborts the batch under way.
    Sync {
        /// Token to repeat in the answer.
        token: u32,
    },
    /// Responder: the batch is aborted, control frames are expected.
    Synced {
        /// Token of the request.
        token: u32,
        /// Data messages received in this session, including stray ones.
        received: u64,
        /// Data messages sent in this session.
        replied: u64,
    },
    /// Initiator: the session is over; nothing follows.
    Bye,
}

impl Message {
    /// Parses a frame. The version of `hello`, `refuse` and `queue` is not checked, so that ends
    /// with different versions can report the mismatch.
    ///
    /// # Errors
    ///
    /// [`ParseError`] with the offset of the error.
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

    /// Number of this kind on the wire.
    #[must_use]
    pub fn kind(&self) -> u8 {
        match self.sides() {
            Ok(request) => request.kind(),
            Err(reply) => reply.kind(),
        }
    }

    /// `Ok` with the request if an initiator sends it, `Err` with the reply if a responder does.
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

/// Collects a list whose length was checked.
fn listed<T>(elements: impl Iterator<Item = T>) -> Vec<T, ROUNDS_PER_BATCH> {
    let mut list = Vec::new();
    for element in elements {
        let _ = list.push(element);
    }
    list
}

const ROUND_LEN: usize = 24;
const _: () = assert!(HEADER_LEN + 8 + ROUNDS_PER_BATCH * ROUND_LEN <= FRAME_LEN);
