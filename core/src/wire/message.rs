//! Control frames as values.

use heapless::Vec;

use super::codec::Reader;
use super::{
    Bounds, FRAME_LEN, Frame, HEADER_LEN, ParseError, ROUNDS_PER_BATCH, Refusal, Reply, Request,
    Rounds, Versions, frame, request,
};
use crate::units::Picos;

/// What the initiator opens with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Hello {
    /// Versions that the initiator speaks.
    pub versions: Versions,
    /// Bits of what the initiator can do; none is defined yet.
    pub capabilities: u32,
    /// The bounds that the initiator asks for.
    pub bounds: Bounds,
}

/// What the responder answers when it accepts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Welcome {
    /// The version that both speak from here on.
    pub version: u8,
    /// Bits of what both can do; none is defined yet.
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
    /// The number of this kind on the wire.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => 1,
            Self::Welcome(_) => 2,
            Self::Refuse(_) => 3,
            Self::Queue { .. } => 4,
            Self::Batch { .. } => 5,
            Self::Ready { .. } => 6,
            Self::Report { .. } => 7,
            Self::Sync { .. } => 8,
            Self::Synced { .. } => 9,
            Self::Bye => 10,
        }
    }

    /// Reads one frame. Of `hello`, `refuse` and `queue` the version is not
    /// looked at, so that two versions can name their mismatch.
    ///
    /// # Errors
    ///
    /// [`ParseError`] with the offset of what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let frame = Frame::new_checked(bytes)?;
        let mut body = Reader::new(frame.body(), HEADER_LEN);
        let sequence = frame.sequence();
        let message = match Request::of(&frame)? {
            Request::Hello(hello) => Self::Hello(hello),
            Request::Batch { sequence, rounds } => {
                Self::Batch { sequence, rounds: listed(rounds.iter()) }
            }
            Request::Sync { token } => Self::Sync { token },
            Request::Bye => Self::Bye,
            Request::Other { kind: 2 } => Self::Welcome(read_welcome(&mut body)),
            Request::Other { kind: 3 } => Self::Refuse(Refusal::parse(&mut body)?),
            Request::Other { kind: 4 } => Self::Queue { position: body.u32() },
            Request::Other { kind: 6 } => Self::Ready { sequence },
            Request::Other { kind: 7 } => {
                let length = request::list_length(&mut body)?;
                let values = listed((0..length).map(|_| Picos(body.u64())));
                Self::Report { sequence, values }
            }
            Request::Other { .. } => {
                let (received, replied) = (body.u64(), body.u64());
                Self::Synced { token: sequence, received, replied }
            }
        };
        body.check()?;
        Ok(message)
    }

    /// Writes the whole frame.
    pub fn emit(&self, bytes: &mut [u8; FRAME_LEN]) {
        let (kind, sequence) = (self.kind(), self.sequence());
        match self {
            Self::Hello(hello) => frame::emit(bytes, kind, sequence, |body| {
                hello.versions.emit(body);
                body.u16(0);
                body.u32(hello.capabilities);
                hello.bounds.emit(body);
            }),
            Self::Batch { rounds, .. } => frame::emit(bytes, kind, sequence, |body| {
                body.u64(rounds.len() as u64);
                rounds.iter().for_each(|round| round.emit(body));
            }),
            Self::Sync { .. } | Self::Bye => frame::emit(bytes, kind, sequence, |_| {}),
            Self::Welcome(welcome) => Reply::Welcome(welcome).emit(bytes),
            Self::Refuse(refusal) => Reply::Refuse(refusal).emit(bytes),
            Self::Queue { position } => Reply::Queue { position: *position }.emit(bytes),
            Self::Ready { sequence } => Reply::Ready { sequence: *sequence }.emit(bytes),
            Self::Report { sequence, values } => {
                Reply::Report { sequence: *sequence, values }.emit(bytes);
            }
            Self::Synced { token, received, replied } => {
                let (token, received, replied) = (*token, *received, *replied);
                Reply::Synced { token, received, replied }.emit(bytes);
            }
        }
    }

    const fn sequence(&self) -> u32 {
        match self {
            Self::Batch { sequence, .. }
            | Self::Ready { sequence }
            | Self::Report { sequence, .. }
            | Self::Sync { token: sequence }
            | Self::Synced { token: sequence, .. } => *sequence,
            _ => 0,
        }
    }
}

/// The elements of a list, whose length was checked.
fn listed<T>(elements: impl Iterator<Item = T>) -> Vec<T, ROUNDS_PER_BATCH> {
    let mut list = Vec::new();
    for element in elements {
        let _ = list.push(element);
    }
    list
}

fn read_welcome(body: &mut Reader<'_>) -> Welcome {
    let version = body.u8();
    let _reserved = (body.u8(), body.u16());
    Welcome { version, capabilities: body.u32(), bounds: Bounds::read(body) }
}

const ROUND_LEN: usize = 24;
const _: () = assert!(HEADER_LEN + 8 + ROUNDS_PER_BATCH * ROUND_LEN <= FRAME_LEN);
