//! Parts as bytes: a kind and flags in one byte, then variable-length integers. Of a message, only
//! what differs from the previous one in the same direction is written.

use super::{
    Collective, Completed, Direction, Envelope, MAX_NAME, Message, Mode, Outcome, ParseError,
    ParseErrorKind, Part,
};

/// Most bytes of a coded part.
pub const MAX_PART: usize = 80;

/// Kinds of parts, the low half of their first byte; the high half holds flags.
mod kind {
    pub(super) const NAME: u8 = 0;
    pub(super) const CALL: u8 = 1;
    pub(super) const MESSAGE: u8 = 2;
    pub(super) const COMPLETED: u8 = 3;
    pub(super) const COLLECTIVE: u8 = 4;
    pub(super) const EACH: u8 = 5;
    pub(super) const PROBED: u8 = 6;
    pub(super) const TESTS: u8 = 7;
    pub(super) const LOOP: u8 = 8;
    pub(super) const COMMUNICATOR: u8 = 9;
    pub(super) const DEFINE: u8 = 10;
    pub(super) const MEMBERS: u8 = 11;
    pub(super) const DIMENSION: u8 = 12;
    pub(super) const NEIGHBOUR: u8 = 13;
}

/// Values that the next ones are written relative to.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    time: u64,
    sent: Envelope,
    received: Envelope,
    completed: Envelope,
    posted: u64,
    finished: u64,
    collective: Collective,
}

impl Last {
    const fn envelope(&mut self, direction: Direction) -> &mut Envelope {
        match direction {
            Direction::Send => &mut self.sent,
            Direction::Receive => &mut self.received,
        }
    }
}

/// Writer of the parts of a block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Encoder {
    last: Last,
}

impl Encoder {
    /// Encoder of a new block, whose times are counted from `base`.
    #[must_use]
    pub fn new(base: u64) -> Self {
        Self { last: Last { time: base, ..Last::default() } }
    }

    #[inline(always)] // Callers know the kind.
    #[allow(clippy::too_many_lines, reason = "a line or two for each kind of part")]
    /// Writes `part` to the start of `out` and returns its length.
    ///
    /// `None` if `out` is shorter than [`MAX_PART`]; nothing is written then.
    pub fn put(&mut self, part: &Part<'_>, out: &mut [u8]) -> Option<usize> {
        let mut out = Out { bytes: out.first_chunk_mut()?, at: 0 };
        let last = &mut self.last;
        match *part {
            Part::Name(name) => {
                let name = name.as_bytes();
                let name = name.get(..MAX_NAME).unwrap_or(name);
                out.byte(kind::NAME);
                out.number(name.len() as u64);
                name.iter().for_each(|byte| out.byte(*byte));
            }
            Part::Call { name, enter, leave } => {
                out.small(kind::CALL, name);
                out.number(enter.wrapping_sub(last.time));
                out.number(leave.wrapping_sub(enter));
                last.time = leave;
            }
            Part::Message(message) => out.message(&message, last),
            Part::Completed(completed) => out.completed(&completed, last),
            Part::Collective(collective) => out.collective(&collective, last),
            Part::Each { direction, peers, bytes } => {
                out.flagged(kind::EACH, direction as u8);
                out.number(peers);
                out.number(bytes);
            }
            Part::Probed(envelope) => {
                out.byte(kind::PROBED);
                out.envelope(&envelope, &mut last.received, 0);
            }
            Part::Tests { name, count } => {
                out.small(kind::TESTS, name);
                out.number(count);
            }
            Part::Loop { inside, computing } => {
                out.byte(kind::LOOP);
                out.number(inside);
                out.number(computing);
            }
            Part::Communicator { number, freed } => {
                out.flagged(kind::COMMUNICATOR, u8::from(freed));
                out.number(number.into());
            }
            Part::Define { number, identity } => {
                out.byte(kind::DEFINE);
                out.number(number.into());
                out.number(identity);
            }
            Part::Members { remote, first, stride, count } => {
                out.flagged(kind::MEMBERS, u8::from(remote));
                out.signed(first.into());
                out.signed(stride.into());
                out.number(count.into());
            }
            Part::Dimension { extent, periodic } => {
                out.flagged(kind::DIMENSION, u8::from(periodic));
                out.number(extent.into());
            }
            Part::Neighbour { direction, peer } => {
                out.flagged(kind::NEIGHBOUR, direction as u8);
                out.signed(peer.into());
            }
        }
        Some(out.at)
    }
}

/// Flag of a name's number that follows the first byte.
const LONG_NAME: u32 = 15;
/// Bit of an envelope's mask: the request is not the next one.
const OTHER_REQUEST: u8 = 16;

/// Bytes of one part.
struct Out<'a> {
    bytes: &'a mut [u8; MAX_PART],
    at: usize,
}

impl Out<'_> {
    fn byte(&mut self, byte: u8) {
        debug_assert!(self.at < MAX_PART, "a part is longer than MAX_PART");
        if let Some(place) = self.bytes.get_mut(self.at) {
            *place = byte;
        }
        self.at += 1;
    }

    fn flagged(&mut self, kind: u8, flags: u8) {
        self.byte(kind | flags << 4);
    }

    #[allow(clippy::cast_possible_truncation, reason = "the low seven bits")]
    fn number(&mut self, mut number: u64) {
        while number > 0x7f {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63).cast_unsigned());
    }

    fn difference(&mut self, new: u64, old: u64) {
        self.signed(new.wrapping_sub(old).cast_signed());
    }

    /// A kind, and a number that is usually below 15.
    fn small(&mut self, kind: u8, number: u32) {
        let flags = u8::try_from(number.min(LONG_NAME)).unwrap_or(0);
        self.flagged(kind, flags);
        if number >= LONG_NAME {
            self.number((number - LONG_NAME).into());
        }
    }

    /// A mask with `flags`, and the fields that differ from `last`.
    fn envelope(&mut self, new: &Envelope, last: &mut Envelope, flags: u8) {
        if new == last {
            return self.byte(flags);
        }
        let differs = [
            new.peer != last.peer,
            new.tag != last.tag,
            new.bytes != last.bytes,
            new.communicator != last.communicator,
        ];
        self.byte(flags | mask(differs));
        let [peer, tag, bytes, communicator] = differs;
        if peer {
            self.signed(i64::from(new.peer) - i64::from(last.peer));
        }
        if tag {
            self.signed(i64::from(new.tag) - i64::from(last.tag));
        }
        if bytes {
            self.difference(new.bytes, last.bytes);
        }
        if communicator {
            self.difference(new.communicator.into(), last.communicator.into());
        }
        *last = *new;
    }

    fn message(&mut self, message: &Message, last: &mut Last) {
        let Message { direction, mode, envelope, request } = message;
        let flags = *direction as u8 | u8::from(request.is_some()) << 1 | (*mode as u8) << 2;
        self.flagged(kind::MESSAGE, flags);
        let next = last.posted.wrapping_add(1);
        let other = request.filter(|request| *request != next);
        let flag = if other.is_some() { OTHER_REQUEST } else { 0 };
        self.envelope(envelope, last.envelope(*direction), flag);
        if let Some(other) = other {
            self.difference(other, next);
        }
        last.posted = request.unwrap_or(last.posted);
    }

    fn completed(&mut self, completed: &Completed, last: &mut Last) {
        let outcome = match completed.outcome {
            Outcome::Done => 0,
            Outcome::Received(_) => 1,
            Outcome::Cancelled => 2,
            Outcome::Freed => 3,
        };
        let next = last.finished.wrapping_add(1);
        let other = completed.request != next;
        self.flagged(kind::COMPLETED, outcome | u8::from(other) << 2);
        if other {
            self.difference(completed.request, next);
        }
        if let Outcome::Received(envelope) = completed.outcome {
            self.envelope(&envelope, &mut last.completed, 0);
        }
        last.finished = completed.request;
    }

    fn collective(&mut self, new: &Collective, last: &mut Last) {
        let flags = u8::from(new.in_place) | u8::from(new.root.is_some()) << 1;
        self.flagged(kind::COLLECTIVE, flags | u8::from(new.request.is_some()) << 2);
        let (old, root) = (last.collective, new.root.unwrap_or(0));
        let next = last.posted.wrapping_add(1);
        let other = new.request.filter(|request| *request != next);
        let differs = [
            new.communicator != old.communicator,
            root != old.root.unwrap_or(0),
            new.sent != old.sent,
            new.received != old.received,
        ];
        self.byte(mask(differs) | if other.is_some() { OTHER_REQUEST } else { 0 });
        let [communicator, other_root, sent, received] = differs;
        if communicator {
            self.difference(new.communicator.into(), old.communicator.into());
        }
        if other_root {
            self.signed(root.into());
        }
        if sent {
            self.difference(new.sent, old.sent);
        }
        if received {
            self.difference(new.received, old.received);
        }
        if let Some(other) = other {
            self.difference(other, next);
        }
        last.posted = new.request.unwrap_or(last.posted);
        last.collective = Collective { root: Some(root), ..*new };
    }
}

fn mask(bits: [bool; 4]) -> u8 {
    bits.iter().rev().fold(0, |mask, bit| mask << 1 | u8::from(*bit))
}

/// Reader of the parts of a block, lent or owned; after an error it ends.
#[derive(Clone, Debug)]
pub struct Decoder<B> {
    parts: B,
    at: usize,
    last: Last,
}

impl<'a> Decoder<&'a [u8]> {
    /// Decoder of the parts of a block whose times are counted from `base`.
    #[must_use]
    pub fn new(parts: &'a [u8], base: u64) -> Self {
        Self::over(parts, base)
    }
}

impl<B: AsRef<[u8]>> Decoder<B> {
    /// As [`Decoder::new`], of parts that it may own.
    #[must_use]
    pub fn over(parts: B, base: u64) -> Self {
        Self { parts, at: 0, last: Last { time: base, ..Last::default() } }
    }

    /// Byte offset of the next part.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// The next part. A name is what `keep` makes of it; `None` is an error.
    pub fn part<'n>(
        &mut self,
        keep: impl FnOnce(&str) -> Option<&'n str>,
    ) -> Option<Result<Part<'n>, ParseError>> {
        next(self.parts.as_ref(), &mut self.at, &mut self.last, keep)
    }
}

impl<'a> Iterator for Decoder<&'a [u8]> {
    type Item = Result<Part<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        next(self.parts, &mut self.at, &mut self.last, Some)
    }
}

fn next<'a, 'n>(
    bytes: &'a [u8],
    at: &mut usize,
    last: &mut Last,
    keep: impl FnOnce(&'a str) -> Option<&'n str>,
) -> Option<Result<Part<'n>, ParseError>> {
    if *at >= bytes.len() {
        return None;
    }
    let mut input = Input { bytes, at: *at };
    let part = input.part(last, keep).map_err(|kind| ParseError { at: input.at, kind });
    *at = if part.is_err() { bytes.len() } else { input.at };
    Some(part)
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

type Read<T> = Result<T, ParseErrorKind>;

impl<'a> Input<'a> {
    fn part<'n>(
        &mut self,
        last: &mut Last,
        keep: impl FnOnce(&'a str) -> Option<&'n str>,
    ) -> Read<Part<'n>> {
        let first = self.byte()?;
        let flags = first >> 4;
        let flag = |bit: u8| flags & bit != 0;
        let direction = if flag(1) { Direction::Receive } else { Direction::Send };
        Ok(match first & 15 {
            kind::NAME => Part::Name(keep(self.name()?).ok_or(ParseErrorKind::Value("name"))?),
            kind::CALL => {
                let name = self.small(flags)?;
                let enter = last.time.wrapping_add(self.number()?);
                last.time = enter.wrapping_add(self.number()?);
                Part::Call { name, enter, leave: last.time }
            }
            kind::MESSAGE => Part::Message(self.message(flags, direction, last)?),
            kind::COMPLETED => Part::Completed(self.completed(flags, last)?),
            kind::COLLECTIVE => Part::Collective(self.collective(flags, last)?),
            kind::EACH => Part::Each { direction, peers: self.number()?, bytes: self.number()? },
            kind::PROBED => {
                self.envelope(&mut last.received)?;
                Part::Probed(last.received)
            }
            kind::TESTS => Part::Tests { name: self.small(flags)?, count: self.number()? },
            kind::LOOP => Part::Loop { inside: self.number()?, computing: self.number()? },
            kind::COMMUNICATOR => Part::Communicator { number: self.word()?, freed: flag(1) },
            kind::DEFINE => Part::Define { number: self.word()?, identity: self.number()? },
            kind::MEMBERS => Part::Members {
                remote: flag(1),
                first: self.int()?,
                stride: self.int()?,
                count: self.word()?,
            },
            kind::DIMENSION => Part::Dimension { extent: self.word()?, periodic: flag(1) },
            kind::NEIGHBOUR => Part::Neighbour { direction, peer: self.int()? },
            unknown => return Err(ParseErrorKind::Part(unknown)),
        })
    }

    fn byte(&mut self) -> Read<u8> {
        let byte = self.bytes.get(self.at).ok_or(ParseErrorKind::Truncated)?;
        self.at += 1;
        Ok(*byte)
    }

    fn number(&mut self) -> Read<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits.leading_zeros() < shift {
                return Err(ParseErrorKind::Value("number"));
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(ParseErrorKind::Value("number"))
    }

    fn signed(&mut self) -> Read<i64> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    fn word(&mut self) -> Read<u32> {
        u32::try_from(self.number()?).map_err(|_| ParseErrorKind::Value("number of 32 bits"))
    }

    fn int(&mut self) -> Read<i32> {
        i32::try_from(self.signed()?).map_err(|_| ParseErrorKind::Value("rank"))
    }

    fn small(&mut self, flags: u8) -> Read<u32> {
        let number = u32::from(flags);
        if number < LONG_NAME {
            return Ok(number);
        }
        let more = self.word()?;
        number.checked_add(more).ok_or(ParseErrorKind::Value("number of a name"))
    }

    fn name(&mut self) -> Read<&'a str> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if length > MAX_NAME {
            return Err(ParseErrorKind::Value("length of a name"));
        }
        let name = self.bytes.get(self.at..self.at + length).ok_or(ParseErrorKind::Truncated)?;
        self.at += length;
        core::str::from_utf8(name).map_err(|_| ParseErrorKind::Value("name"))
    }

    fn moved(&mut self, old: u64) -> Read<u64> {
        Ok(old.wrapping_add_signed(self.signed()?))
    }

    fn moved_int(&mut self, old: i32) -> Read<i32> {
        let new = i64::from(old).checked_add(self.signed()?);
        new.and_then(|new| i32::try_from(new).ok()).ok_or(ParseErrorKind::Value("peer or tag"))
    }

    fn moved_word(&mut self, old: u32) -> Read<u32> {
        let new = u32::try_from(self.moved(old.into())?);
        new.map_err(|_| ParseErrorKind::Value("communicator"))
    }

    /// Changes `last` to the envelope read, and returns the flags of its mask.
    fn envelope(&mut self, last: &mut Envelope) -> Read<u8> {
        let mask = self.byte()?;
        if mask & 1 != 0 {
            last.peer = self.moved_int(last.peer)?;
        }
        if mask & 2 != 0 {
            last.tag = self.moved_int(last.tag)?;
        }
        if mask & 4 != 0 {
            last.bytes = self.moved(last.bytes)?;
        }
        if mask & 8 != 0 {
            last.communicator = self.moved_word(last.communicator)?;
        }
        Ok(mask)
    }

    /// Identity of a request, if there is one.
    fn request(&mut self, is_there: u8, mask: u8, last: &mut Last) -> Read<Option<u64>> {
        if is_there == 0 {
            return Ok(None);
        }
        let next = last.posted.wrapping_add(1);
        last.posted = if mask & OTHER_REQUEST != 0 { self.moved(next)? } else { next };
        Ok(Some(last.posted))
    }

    fn message(&mut self, flags: u8, direction: Direction, last: &mut Last) -> Read<Message> {
        let mode = match flags >> 2 {
            0 => Mode::Standard,
            1 => Mode::Buffered,
            2 => Mode::Synchronous,
            _ => Mode::Ready,
        };
        let mask = self.envelope(last.envelope(direction))?;
        let request = self.request(flags & 2, mask, last)?;
        Ok(Message { direction, mode, envelope: *last.envelope(direction), request })
    }

    fn completed(&mut self, flags: u8, last: &mut Last) -> Read<Completed> {
        let next = last.finished.wrapping_add(1);
        let request = if flags & 4 != 0 { self.moved(next)? } else { next };
        let outcome = match flags & 3 {
            0 => Outcome::Done,
            1 => {
                self.envelope(&mut last.completed)?;
                Outcome::Received(last.completed)
            }
            2 => Outcome::Cancelled,
            _ => Outcome::Freed,
        };
        last.finished = request;
        Ok(Completed { request, outcome })
    }

    fn collective(&mut self, flags: u8, last: &mut Last) -> Read<Collective> {
        let mask = self.byte()?;
        let mut new = last.collective;
        if mask & 1 != 0 {
            new.communicator = self.moved_word(new.communicator)?;
        }
        let root = if mask & 2 != 0 { self.int()? } else { new.root.unwrap_or(0) };
        if mask & 4 != 0 {
            new.sent = self.moved(new.sent)?;
        }
        if mask & 8 != 0 {
            new.received = self.moved(new.received)?;
        }
        new.in_place = flags & 1 != 0;
        new.request = self.request(flags & 4, mask, last)?;
        last.collective = Collective { root: Some(root), ..new };
        new.root = (flags & 2 != 0).then_some(root);
        Ok(new)
    }
}
