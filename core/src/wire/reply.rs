//! Control frames of a responder, without copies of their lists.

use super::codec::Reader;
use super::frame;
use super::request::{known_kind, list_length};
use super::{Bounds, FRAME_LEN, Frame, HEADER_LEN, ParseError, Refusal, Welcome};
use crate::units::Picos;

/// A control frame sent by a responder. To write a report, `V` is an iterator over its times. An
/// initiator that reads one has announced a single timed round, and `V` is its time.
#[derive(Clone, Copy, Debug)]
pub enum Reply<V> {
    /// Accepts the session.
    Welcome(Welcome),
    /// Ends the session; nothing follows.
    Refuse(Refusal),
    /// Another initiator is being served.
    Queue {
        /// Number of initiators ahead in the queue, including the one being served.
        position: u32,
    },
    /// Requests a hello with this nonce.
    Challenge {
        /// Nonce to repeat.
        nonce: u64,
    },
    /// Ready for the first message of a batch.
    Ready {
        /// Sequence number of the batch.
        sequence: u32,
    },
    /// Results, after the last reply of a batch with timed rounds.
    Report {
        /// Sequence number of the batch.
        sequence: u32,
        /// For each round of the batch, the time spent in the receive calls after the first; zero
        /// for rounds that are not timed.
        values: V,
    },
    /// The batch is aborted, control frames are expected.
    Synced {
        /// Token of the request.
        token: u32,
        /// Data messages received in this session, including stray ones.
        received: u64,
        /// Data messages sent in this session.
        replied: u64,
    },
    /// A frame that only initiators send, or a [`super::DescriptionPart`]. Its body was not parsed.
    Other {
        /// Its kind.
        kind: u8,
    },
}

impl Reply<Picos> {
    /// Parses a frame; of a report's times only the first. The version of `refuse` and `queue` is
    /// not checked, so that ends with different versions can report the mismatch.
    ///
    /// # Errors
    ///
    /// [`ParseError`] with the offset of the error.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        Self::of(&Frame::new_checked(bytes)?, |body, length| {
            let first = Picos(body.u64());
            body.skip(8 * (length - 1));
            first
        })
    }
}

impl<V> Reply<V> {
    /// Parses the body of a frame; `times` reads a list of the given length.
    pub(super) fn of(
        frame: &Frame<&[u8]>,
        times: impl FnOnce(&mut Reader<'_>, usize) -> V,
    ) -> Result<Self, ParseError> {
        let mut body = Reader::new(frame.body_of(), HEADER_LEN);
        let number = frame.sequence();
        let reply = match known_kind(frame)? {
            2 => Self::Welcome(Welcome::read(&mut body)),
            3 => Self::Refuse(Refusal::parse(&mut body)?),
            4 => Self::Queue { position: body.u32() },
            11 => Self::Challenge { nonce: body.u64() },
            6 => Self::Ready { sequence: number },
            7 => {
                let length = list_length(&mut body)?;
                Self::Report { sequence: number, values: times(&mut body, length) }
            }
            9 => {
                let (received, replied) = (body.u64(), body.u64());
                Self::Synced { token: number, received, replied }
            }
            kind => Self::Other { kind },
        };
        body.check()?;
        Ok(reply)
    }
}

impl<V: ExactSizeIterator<Item = Picos>> Reply<V> {
    /// Writes the whole frame. Nothing is written for [`Reply::Other`].
    pub fn emit(self, bytes: &mut [u8; FRAME_LEN]) {
        let mut body = frame::body(bytes);
        let (kind, mut number) = (self.kind(), 0);
        match self {
            Self::Welcome(welcome) => {
                body.u8(welcome.version);
                body.u8(0);
                body.u16(0);
                body.u32(welcome.capabilities);
                welcome.bounds.emit(&mut body);
            }
            Self::Refuse(refusal) => refusal.emit(&mut body),
            Self::Queue { position } => body.u32(position),
            Self::Challenge { nonce } => body.u64(nonce),
            Self::Ready { sequence } => number = sequence,
            Self::Report { sequence, values } => {
                number = sequence;
                body.u64(values.len() as u64);
                values.for_each(|value| body.u64(value.0));
            }
            Self::Synced { token, received, replied } => {
                number = token;
                body.u64(received);
                body.u64(replied);
            }
            Self::Other { .. } => return,
        }
        let body_len = body.at();
        frame::seal(bytes, kind, number, body_len);
    }
}

impl<V> Reply<V> {
    /// Number of this kind on the wire.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Welcome(_) => 2,
            Self::Refuse(_) => 3,
            Self::Queue { .. } => 4,
            Self::Ready { .. } => 6,
            Self::Report { .. } => 7,
            Self::Synced { .. } => 9,
            Self::Challenge { .. } => 11,
            Self::Other { kind } => *kind,
        }
    }
}

impl Welcome {
    fn read(body: &mut Reader<'_>) -> Self {
        let version = body.u8();
        let _reserved = (body.u8(), body.u16());
        Self { version, capabilities: body.u32(), bounds: Bounds::read(body) }
    }
}
