//! Control frames of an initiator, without copies of their lists.

use super::codec::Reader;
use super::frame::{self, KIND_OFFSET, VERSION_AT};
use super::{
    Bounds, FRAME_LEN, Frame, HEADER_LEN, Hello, ParseError, ParseErrorKind, ROUNDS_PER_BATCH,
    Round, VERSION, Versions,
};

/// A control frame sent by an initiator. Its list of rounds `R` is a [`RoundList`] when read and a
/// slice when written.
#[derive(Clone, Copy, Debug)]
pub enum Request<R> {
    /// Opens a session, or reopens it.
    Hello(Hello),
    /// Announces rounds.
    Batch {
        /// Sequence number of the batch's first round.
        sequence: u32,
        /// The rounds.
        rounds: R,
    },
    /// Aborts the batch under way.
    Sync {
        /// Token to repeat in the answer.
        token: u32,
    },
    /// The session is over; nothing follows.
    Bye,
    /// A frame that only responders send. Its body was not parsed.
    Other {
        /// Its kind.
        kind: u8,
    },
}

impl<'a> Request<RoundList<'a>> {
    /// Parses a frame. The version of `hello` is not checked, so that ends with different versions
    /// can report the mismatch.
    ///
    /// # Errors
    ///
    /// [`ParseError`] with the offset of the error.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        Self::of(&Frame::new_checked(bytes)?)
    }

    /// Parses the body of a frame; see [`Request::parse`].
    pub(super) fn of(frame: &Frame<&'a [u8]>) -> Result<Self, ParseError> {
        let mut body = Reader::new(frame.body_of(), HEADER_LEN);
        let request = match known_kind(frame)? {
            1 => Self::Hello(Hello::parse(&mut body)?),
            5 => {
                let rounds = RoundList::parse(&mut body)?;
                Self::Batch { sequence: frame.sequence(), rounds }
            }
            8 => Self::Sync { token: frame.sequence() },
            10 => Self::Bye,
            kind => Self::Other { kind },
        };
        Ok(request)
    }
}

impl Request<&[Round]> {
    /// Writes the whole frame. Nothing is written for [`Request::Other`].
    pub fn emit(&self, bytes: &mut [u8; FRAME_LEN]) {
        let mut body = frame::body(bytes);
        let mut number = 0;
        match *self {
            Self::Hello(hello) => {
                hello.versions.emit(&mut body);
                body.u16(0);
                body.u32(hello.capabilities);
                hello.bounds.emit(&mut body);
                body.u64(hello.nonce);
            }
            Self::Batch { sequence, rounds } => {
                number = sequence;
                body.u64(rounds.len() as u64);
                rounds.iter().for_each(|round| round.emit(&mut body));
            }
            Self::Sync { token } => number = token,
            Self::Bye => {}
            Self::Other { .. } => return,
        }
        let body_len = body.at();
        frame::seal(bytes, self.kind(), number, body_len);
    }
}

impl<R> Request<R> {
    /// Number of this kind on the wire.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => 1,
            Self::Batch { .. } => 5,
            Self::Sync { .. } => 8,
            Self::Bye => 10,
            Self::Other { kind } => *kind,
        }
    }
}

impl Hello {
    fn parse(body: &mut Reader<'_>) -> Result<Self, ParseError> {
        let versions = Versions::parse(body)?;
        let _reserved = body.u16();
        let capabilities = body.u32();
        let bounds = Bounds::read(body);
        body.check()?;
        // Past the end of version 1's body; reads 0 there.
        Ok(Self { versions, capabilities, bounds, nonce: body.u64() })
    }
}

/// Kind of a frame, if this version knows it. The version of `hello`, `refuse` and `queue` is not
/// checked.
pub(super) fn known_kind(frame: &Frame<&[u8]>) -> Result<u8, ParseError> {
    match (frame.kind(), frame.version()) {
        (kind @ (1 | 3 | 4), _) | (kind @ 1..=13, VERSION) => Ok(kind),
        (kind, VERSION) => Err(ParseError { at: KIND_OFFSET, kind: ParseErrorKind::Kind(kind) }),
        (_, other) => Err(ParseError { at: VERSION_AT, kind: ParseErrorKind::Version(other) }),
    }
}

/// The rounds of one batch, at least one, borrowed from the bytes of their frame.
#[derive(Clone, Copy, Debug)]
pub struct RoundList<'a> {
    first: Reader<'a>,
    count: usize,
}

impl<'a> RoundList<'a> {
    fn parse(body: &mut Reader<'a>) -> Result<Self, ParseError> {
        let count = list_length(body)?;
        let first = *body;
        for _ in 0..count {
            Round::parse(body)?;
        }
        body.check()?;
        Ok(Self { first, count })
    }

    /// The rounds, in order.
    pub fn iter(&self) -> impl Iterator<Item = Round> + 'a {
        let mut body = self.first;
        (0..self.count).map_while(move |_| Round::parse(&mut body).ok())
    }
}

/// Length of a list, 1 to [`ROUNDS_PER_BATCH`].
pub(super) fn list_length(body: &mut Reader<'_>) -> Result<usize, ParseError> {
    let count = body.u64();
    match usize::try_from(count) {
        Ok(length) if (1..=ROUNDS_PER_BATCH).contains(&length) => Ok(length),
        _ => Err(body.reject("list length", count, 8)),
    }
}
