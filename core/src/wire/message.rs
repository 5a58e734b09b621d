//! Control frames as values.

use heapless::Vec;

use super::codec::{Reader, Writer};
use super::frame::{self, KIND_AT, VERSION_AT};
use super::{
    Bounds, FRAME_LEN, Frame, HEADER_LEN, ParseError, ParseErrorKind, ROUNDS_PER_BATCH, Refusal,
    Round, Rounds, VERSION, Versions,
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
        let message = match frame.kind() {
            1 => Self::Hello(parse_hello(&mut body)),
            3 => Self::Refuse(Refusal::parse(&mut body)),
            4 => Self::Queue { position: body.u32() },
            _ if frame.version() != VERSION => {
                let kind = ParseErrorKind::Version(frame.version());
                return Err(ParseError { at: VERSION_AT, kind });
            }
            2 => Self::Welcome(parse_welcome(&mut body)),
            5 => Self::Batch { sequence, rounds: parse_list(&mut body, Round::parse) },
            6 => Self::Ready { sequence },
            7 => Self::Report { sequence, values: parse_list(&mut body, |b| Picos(b.u64())) },
            8 => Self::Sync { token: sequence },
            9 => Self::Synced { token: sequence, received: body.u64(), replied: body.u64() },
            10 => Self::Bye,
            kind => {
                return Err(ParseError { at: KIND_AT, kind: ParseErrorKind::Kind(kind) });
            }
        };
        body.finish(message)
    }

    /// Writes the whole frame.
    pub fn emit(&self, bytes: &mut [u8; FRAME_LEN]) {
        frame::emit(bytes, self.kind(), self.sequence(), |body| match self {
            Self::Hello(hello) => {
                hello.versions.emit(body);
                body.u16(0);
                body.u32(hello.capabilities);
                hello.bounds.emit(body);
            }
            Self::Welcome(welcome) => {
                body.u8(welcome.version);
                body.u8(0);
                body.u16(0);
                body.u32(welcome.capabilities);
                welcome.bounds.emit(body);
            }
            Self::Refuse(refusal) => refusal.emit(body),
            Self::Queue { position } => body.u32(*position),
            Self::Batch { rounds, .. } => emit_list(body, rounds, |body, round| round.emit(body)),
            Self::Report { values, .. } => emit_list(body, values, |body, value| body.u64(value.0)),
            Self::Synced { received, replied, .. } => {
                body.u64(*received);
                body.u64(*replied);
            }
            Self::Ready { .. } | Self::Sync { .. } | Self::Bye => {}
        });
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

fn parse_hello(body: &mut Reader<'_>) -> Hello {
    let versions = Versions::parse(body);
    let _reserved = body.u16();
    Hello { versions, capabilities: body.u32(), bounds: Bounds::parse(body) }
}

fn parse_welcome(body: &mut Reader<'_>) -> Welcome {
    let version = body.u8();
    let _reserved = (body.u8(), body.u16());
    Welcome { version, capabilities: body.u32(), bounds: Bounds::parse(body) }
}

/// A list: its length in a u64, then its elements.
fn parse_list<T>(
    body: &mut Reader<'_>,
    mut element: impl FnMut(&mut Reader<'_>) -> T,
) -> Vec<T, ROUNDS_PER_BATCH> {
    let mut list = Vec::new();
    let count = body.u64();
    if count == 0 || count > ROUNDS_PER_BATCH as u64 {
        body.reject("list length", count, 8);
    }
    while (list.len() as u64) < count && !body.has_failed() {
        // As many fit as the check allows.
        let _ = list.push(element(body));
    }
    list
}

fn emit_list<T>(
    body: &mut Writer<'_>,
    list: &Vec<T, ROUNDS_PER_BATCH>,
    element: impl Fn(&mut Writer<'_>, &T),
) {
    body.u64(list.len() as u64);
    for item in list {
        element(body, item);
    }
}

const ROUND_LEN: usize = 24;
const _: () = assert!(HEADER_LEN + 8 + ROUNDS_PER_BATCH * ROUND_LEN <= FRAME_LEN);
