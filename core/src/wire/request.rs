//! What an initiator asks, as a responder reads it: without a copy of lists.

use super::codec::Reader;
use super::frame::{KIND_AT, VERSION_AT};
use super::{
    Bounds, Frame, HEADER_LEN, Hello, ParseError, ParseErrorKind, ROUNDS_PER_BATCH, Round, VERSION,
    Versions,
};

/// A control frame of an initiator: a view of its bytes.
#[derive(Clone, Copy, Debug)]
pub enum Request<'a> {
    /// Opens a session, or opens it again.
    Hello(Hello),
    /// Announces rounds.
    Batch {
        /// Sequence number of the batch's first round.
        sequence: u32,
        /// The rounds.
        rounds: RoundList<'a>,
    },
    /// Drops whatever is under way.
    Sync {
        /// Repeated in the answer.
        token: u32,
    },
    /// The session is over; nothing follows.
    Bye,
    /// A frame that only responders send. Its body was not looked at.
    Other {
        /// Its kind.
        kind: u8,
    },
}

impl<'a> Request<'a> {
    /// Reads one frame. Of `hello` the version is not looked at, so that two
    /// versions can name their mismatch.
    ///
    /// # Errors
    ///
    /// [`ParseError`] with the offset of what is wrong.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        Self::of(&Frame::new_checked(bytes)?)
    }

    /// What a frame asks; see [`Request::parse`].
    pub(super) fn of(frame: &Frame<&'a [u8]>) -> Result<Self, ParseError> {
        let mut body = Reader::new(frame.body_of(), HEADER_LEN);
        let kind = frame.kind();
        if frame.version() != VERSION && !matches!(kind, 1 | 3 | 4) {
            let kind = ParseErrorKind::Version(frame.version());
            return Err(ParseError { at: VERSION_AT, kind });
        }
        match kind {
            1 => {
                let versions = Versions::parse(&mut body)?;
                let _reserved = body.u16();
                let capabilities = body.u32();
                let bounds = Bounds::read(&mut body);
                body.check()?;
                Ok(Self::Hello(Hello { versions, capabilities, bounds }))
            }
            5 => {
                let rounds = RoundList::parse(&mut body)?;
                Ok(Self::Batch { sequence: frame.sequence(), rounds })
            }
            8 => Ok(Self::Sync { token: frame.sequence() }),
            10 => Ok(Self::Bye),
            2 | 3 | 4 | 6 | 7 | 9 => Ok(Self::Other { kind }),
            _ => Err(ParseError { at: KIND_AT, kind: ParseErrorKind::Kind(kind) }),
        }
    }

    /// The number of this kind on the wire.
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

/// The rounds of one batch, at least one, in the bytes of their frame.
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

/// Length of a list of 1 to [`ROUNDS_PER_BATCH`].
pub(super) fn list_length(body: &mut Reader<'_>) -> Result<usize, ParseError> {
    let count = body.u64();
    match usize::try_from(count) {
        Ok(length) if (1..=ROUNDS_PER_BATCH).contains(&length) => Ok(length),
        _ => Err(body.reject("list length", count, 8)),
    }
}
