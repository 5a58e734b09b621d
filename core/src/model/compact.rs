//! Compact binary encoding of a profile, for storage on a device and transfer over a link.
//!
//! | bytes | field |
//! |---|---|
//! | 4 | the letters `LGPR` |
//! | 1 | version, 1 |
//! | 1 | number of ranges |
//! | 1 | number of changes |
//! | | the ranges, then the changes |
//! | 4 | FNV-1a of all bytes before, little endian |
//!
//! All numbers are varints: seven bits a byte, the lowest first, the top bit set on all bytes but
//! the last. Signed ones are first mapped to 0, −1, 1, −2, … (zigzag).
//!
//! A range is its first size, its length less one, a byte of flags for the optional parameters (bit
//! 0 half the round trip, 1 the send overhead, 2 the receive overhead, 3 the latency), the line of
//! the gap, the lines of the parameters present, in this order, and the latency.
//!
//! A line is one byte with the marks of its two estimates (bits 0 and 1, 2 and 3), the two
//! estimates, its centre, the value there, half the interval there and the scatter. An estimate is
//! its value, value − low and high − value; the latency is preceded by a byte with its mark.
//!
//! A change is its size, the distances down to `low` and up to `high`, one byte with its curve (0
//! gap, 1 half the round trip, 2 send, 3 receive overhead, 4 the latency) and, in bit 7, a flag
//! that a range begins there, and its height. A typical range takes 110 bytes.

use core::fmt;

use super::{Change, Estimate, Mark, Parameter, Profile, Range, SizeLine};
use crate::units::{Bytes, Picos, SignedPerByte, SignedPicos};

/// Version that [`encode`] writes and [`decode`] reads.
pub const VERSION: u8 = 1;

const MAGIC: [u8; 4] = *b"LGPR";
const CHECKSUM: usize = 4;
/// Longest varint of 64 bits, in bytes.
const LONGEST: usize = 10;
/// Longest line, in bytes: marks, two estimates, centre, value, half width and scatter.
const LINE: usize = 1 + 10 * LONGEST;
/// Longest range, in bytes: sizes and flags, four lines, the latency.
const RANGE: usize = 2 * LONGEST + 1 + 4 * LINE + 1 + 3 * LONGEST;

/// Longest change, in bytes: sizes, curve and height.
const CHANGE: usize = 3 * LONGEST + 1 + 5;

/// Upper bound for the encoded length of a profile of up to `ranges` ranges, in bytes.
#[must_use]
pub const fn most_bytes(ranges: usize) -> usize {
    MAGIC.len() + 3 + ranges * (RANGE + CHANGE) + CHECKSUM
}

/// The lent memory is too small for the profile; [`most_bytes`] is always enough.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the encoded profile does not fit into the memory lent for it")
    }
}

impl core::error::Error for NoRoom {}

/// Position and kind of an error in an encoded profile.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DecodeError {
    /// Offset of the wrong byte.
    pub at: usize,
    /// Kind of the error.
    pub kind: DecodeErrorKind,
}

/// Kinds of errors in an encoded profile.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum DecodeErrorKind {
    /// The encoding is incomplete.
    Truncated,
    /// The encoding does not begin with `LGPR`.
    Magic,
    /// Unknown version.
    Version(u8),
    /// Checksum mismatch.
    Checksum {
        /// Checksum that is stored.
        found: u32,
        /// Checksum of the bytes.
        computed: u32,
    },
    /// More ranges or changes than the room allows.
    TooMany(u8),
    /// A number that exceeds its type or is not in its shortest form.
    Number,
    /// This field has an invalid value.
    Field(&'static str),
    /// Bytes follow the last field.
    Trailing,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no profile: at byte {}: ", self.at)?;
        match self.kind {
            DecodeErrorKind::Truncated => f.write_str("the bytes end"),
            DecodeErrorKind::Magic => f.write_str("not the letters LGPR"),
            DecodeErrorKind::Version(version) => {
                write!(f, "version {version}, where {VERSION} is known")
            }
            DecodeErrorKind::Checksum { found, computed } => {
                write!(f, "checksum {found:#010x}, the bytes have {computed:#010x}")
            }
            DecodeErrorKind::TooMany(count) => write!(f, "{count} entries, more than fit"),
            DecodeErrorKind::Number => f.write_str("a number too large or not in its short form"),
            DecodeErrorKind::Field(name) => write!(f, "{name} out of range"),
            DecodeErrorKind::Trailing => f.write_str("more bytes than the profile has"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// Writes `profile` to the front of `bytes` and returns the length.
///
/// # Errors
///
/// [`NoRoom`] if `bytes` is too short; its content is then undefined.
pub fn encode<const N: usize>(profile: &Profile<N>, bytes: &mut [u8]) -> Result<usize, NoRoom> {
    encode_parts(
        profile.ranges.iter().copied().map(Ok),
        profile.changes.iter().copied().map(Ok),
        bytes,
    )
}

/// As [`encode`], for a profile whose parts are created one by one, such as from another
/// representation on a device.
///
/// # Errors
///
/// The first error among `ranges` and `changes`; [`NoRoom`] if `bytes` is too short or there are
/// more than 255 parts. The content of `bytes` is then undefined.
pub fn encode_parts<E: From<NoRoom>>(
    ranges: impl ExactSizeIterator<Item = Result<Range, E>>,
    changes: impl ExactSizeIterator<Item = Result<Change, E>>,
    bytes: &mut [u8],
) -> Result<usize, E> {
    let mut writer = Writer { bytes, at: 0 };
    for byte in MAGIC {
        writer.byte(byte)?;
    }
    writer.byte(VERSION)?;
    writer.byte(u8::try_from(ranges.len()).map_err(|_| NoRoom)?)?;
    writer.byte(u8::try_from(changes.len()).map_err(|_| NoRoom)?)?;
    for range in ranges {
        writer.range(&range?)?;
    }
    for change in changes {
        let change = change?;
        writer.number(change.at.0)?;
        writer.number(change.at.0.wrapping_sub(change.low.0))?;
        writer.number(change.high.0.wrapping_sub(change.at.0))?;
        writer.byte(change.parameter as u8 | u8::from(change.splits) << 7)?;
        writer.number(zigzag(change.jump_ppm.into()))?;
    }
    let sum = fnv1a(writer.bytes.get(..writer.at).unwrap_or_default());
    for byte in sum.to_le_bytes() {
        writer.byte(byte)?;
    }
    Ok(writer.at)
}

/// Decodes a profile that fills `bytes` exactly.
///
/// # Errors
///
/// [`DecodeError`] with position and kind; nothing is read past the end.
pub fn decode<const N: usize>(bytes: &[u8]) -> Result<Profile<N>, DecodeError> {
    let mut profile = Profile::default();
    // The pushes cannot fail: the counts are checked.
    let keep = |part: Part<'_>| match part {
        Part::Range(range) => {
            let _ = profile.ranges.push(*range);
        }
        Part::Change(change) => {
            let _ = profile.changes.push(*change);
        }
    };
    decode_parts(bytes, N, keep)?;
    Ok(profile)
}

/// A part of a profile.
#[derive(Clone, Copy, Debug)]
pub enum Part<'p> {
    /// A range.
    Range(&'p Range),
    /// A change; changes follow all ranges.
    Change(&'p Change),
}

/// As [`decode`], but passes each part to `each` once it is read; at most `most` ranges and `most`
/// changes.
///
/// # Errors
///
/// As [`decode`]; parts passed before the error are invalid.
pub fn decode_parts(
    bytes: &[u8],
    most: usize,
    mut each: impl FnMut(Part<'_>),
) -> Result<(), DecodeError> {
    let error = |at, kind| Err(DecodeError { at, kind });
    let mut reader = Reader { bytes, at: 0 };
    for byte in MAGIC {
        if reader.byte()? != byte {
            return error(reader.at - 1, DecodeErrorKind::Magic);
        }
    }
    let version = reader.byte()?;
    if version != VERSION {
        return error(reader.at - 1, DecodeErrorKind::Version(version));
    }
    let Some((body, sum)) = bytes.split_last_chunk::<CHECKSUM>() else {
        return error(bytes.len(), DecodeErrorKind::Truncated);
    };
    let (found, computed) = (u32::from_le_bytes(*sum), fnv1a(body));
    if found != computed {
        return error(body.len(), DecodeErrorKind::Checksum { found, computed });
    }
    reader.bytes = body;
    let ranges = reader.count(most)?;
    let changes = reader.count(most)?;
    for _ in 0..ranges {
        each(Part::Range(&reader.range()?));
    }
    for _ in 0..changes {
        let at = reader.number()?;
        let low = Bytes(at.wrapping_sub(reader.number()?));
        let high = Bytes(at.wrapping_add(reader.number()?));
        let curve = reader.byte()?;
        let parameter = Parameter::ALL.get(usize::from(curve & 0x7f)).copied();
        let unknown = || reader.error(DecodeErrorKind::Field("curve of a change"));
        let parameter = parameter.ok_or_else(unknown)?;
        let jump = i32::try_from(from_zigzag(reader.number()?));
        let jump = jump.map_err(|_| reader.error(DecodeErrorKind::Field("height of a change")));
        let (at, jump_ppm, splits) = (Bytes(at), jump?, curve > 0x7f);
        each(Part::Change(&Change { at, low, high, parameter, jump_ppm, splits }));
    }
    if reader.at < body.len() {
        return error(reader.at, DecodeErrorKind::Trailing);
    }
    Ok(())
}

fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

const fn zigzag(value: i64) -> u64 {
    (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned()
}

const fn from_zigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ (value & 1).cast_signed().wrapping_neg()
}

struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn byte(&mut self, byte: u8) -> Result<(), NoRoom> {
        *self.bytes.get_mut(self.at).ok_or(NoRoom)? = byte;
        self.at += 1;
        Ok(())
    }

    fn number(&mut self, mut value: u64) -> Result<(), NoRoom> {
        while value > 0x7f {
            self.byte(value.to_le_bytes()[0] | 0x80)?;
            value >>= 7;
        }
        self.byte(value.to_le_bytes()[0])
    }

    fn estimate(&mut self, estimate: &Estimate<i64>) -> Result<(), NoRoom> {
        let Estimate { value, low, high, .. } = *estimate;
        self.number(zigzag(value))?;
        self.number(value.wrapping_sub(low).cast_unsigned())?;
        self.number(high.wrapping_sub(value).cast_unsigned())
    }

    fn line(&mut self, line: &SizeLine) -> Result<(), NoRoom> {
        let SizeLine { at_one, per_byte, centre, at_centre, centre_half_width, scatter_ppm } = line;
        self.byte(at_one.mark as u8 | (per_byte.mark as u8) << 2)?;
        self.estimate(&at_one.map(|time| time.0))?;
        self.estimate(&per_byte.map(|slope| slope.0))?;
        self.number(centre.0)?;
        self.number(zigzag(at_centre.0))?;
        self.number(centre_half_width.0)?;
        self.number(u64::from(*scatter_ppm))
    }

    fn range(&mut self, range: &Range) -> Result<(), NoRoom> {
        let lines = [range.half_rtt, range.send_overhead, range.recv_overhead];
        let known = lines.iter().map(Option::is_some).chain([range.latency.is_some()]);
        let flags = known.zip(0..).fold(0, |flags, (known, bit)| flags | u8::from(known) << bit);
        self.number(range.first.0)?;
        self.number(range.last.0.wrapping_sub(range.first.0))?;
        self.byte(flags)?;
        self.line(&range.gap)?;
        for line in lines.iter().flatten() {
            self.line(line)?;
        }
        let Some(latency) = range.latency else { return Ok(()) };
        self.byte(latency.mark as u8)?;
        self.estimate(&latency.map(|time| time.0))
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError { at: self.at.saturating_sub(1), kind }
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        let error = DecodeError { at: self.at, kind: DecodeErrorKind::Truncated };
        let byte = self.bytes.get(self.at).ok_or(error)?;
        self.at += 1;
        Ok(*byte)
    }

    fn count(&mut self, most: usize) -> Result<u8, DecodeError> {
        let count = self.byte()?;
        if usize::from(count) <= most {
            Ok(count)
        } else {
            Err(self.error(DecodeErrorKind::TooMany(count)))
        }
    }

    fn number(&mut self) -> Result<u64, DecodeError> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // At most ten bytes, of which the tenth has one bit; the last byte is not zero.
            if shift > 63 || (shift == 63 && bits > 1) || (shift > 0 && byte == 0) {
                return Err(self.error(DecodeErrorKind::Number));
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    fn estimate(&mut self, mark: Mark) -> Result<Estimate<i64>, DecodeError> {
        let value = from_zigzag(self.number()?);
        let low = value.wrapping_sub(self.number()?.cast_signed());
        let high = value.wrapping_add(self.number()?.cast_signed());
        Ok(Estimate { value, low, high, mark })
    }

    fn mark(&self, bits: u8) -> Result<Mark, DecodeError> {
        let mark = Mark::ALL.get(usize::from(bits)).copied();
        mark.ok_or(self.error(DecodeErrorKind::Field("mark")))
    }

    fn line(&mut self) -> Result<SizeLine, DecodeError> {
        let marks = self.byte()?;
        let (first, second) = (self.mark(marks & 3)?, self.mark(marks >> 2)?);
        let at_one = self.estimate(first)?.map(SignedPicos);
        let per_byte = self.estimate(second)?.map(SignedPerByte);
        let centre = Bytes(self.number()?);
        let at_centre = SignedPicos(from_zigzag(self.number()?));
        let centre_half_width = Picos(self.number()?);
        let scatter = u32::try_from(self.number()?);
        let scatter_ppm = scatter.map_err(|_| self.error(DecodeErrorKind::Field("scatter")))?;
        Ok(SizeLine { at_one, per_byte, centre, at_centre, centre_half_width, scatter_ppm })
    }

    fn range(&mut self) -> Result<Range, DecodeError> {
        let first = self.number()?;
        let last = first.checked_add(self.number()?);
        let last = last.ok_or(self.error(DecodeErrorKind::Field("last size")))?;
        let flags = self.byte()?;
        if flags > 0xf {
            return Err(self.error(DecodeErrorKind::Field("flags")));
        }
        let gap = self.line()?;
        let mut known = |bit: u8| {
            let is_known = flags & (1 << bit) != 0;
            is_known.then(|| self.line()).transpose()
        };
        let (half_rtt, send_overhead, recv_overhead) = (known(0)?, known(1)?, known(2)?);
        let latency = if flags & 8 == 0 {
            None
        } else {
            let bits = self.byte()?;
            let mark = self.mark(bits)?;
            Some(self.estimate(mark)?.map(SignedPicos))
        };
        let (first, last) = (Bytes(first), Bytes(last));
        Ok(Range { first, last, gap, half_rtt, send_overhead, recv_overhead, latency })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;
    use std::vec::Vec;

    /// A profile of arbitrary numbers in which every range has other parameters.
    fn profile(numbers: &[i64]) -> Profile<4> {
        let mut numbers = numbers.iter().copied().cycle();
        let mut next = || numbers.next().unwrap_or(7);
        let marks = [Mark::Converged, Mark::BudgetSpent, Mark::Misfit];
        let mut profile = Profile::default();
        for parts in 0..4_u8 {
            let mut line = || SizeLine {
                at_one: Estimate {
                    value: SignedPicos(next()),
                    low: SignedPicos(next()),
                    high: SignedPicos(next()),
                    mark: marks[usize::from(parts) % 3],
                },
                per_byte: Estimate::exact(SignedPerByte(next())),
                centre: Bytes(next().cast_unsigned()),
                at_centre: SignedPicos(next()),
                centre_half_width: Picos(next().cast_unsigned()),
                scatter_ppm: u32::try_from(next() & 0xffff_ffff).unwrap(),
            };
            let range = Range {
                first: Bytes(u64::from(parts) * 1_000 + 1),
                last: Bytes(u64::from(parts) * 1_000 + 1_000),
                gap: line(),
                half_rtt: (parts & 1 != 0).then(&mut line),
                send_overhead: (parts & 2 != 0).then(&mut line),
                recv_overhead: (parts == 3).then(&mut line),
                latency: (parts > 1).then(|| line().at_one),
            };
            profile.ranges.push(range).unwrap();
        }
        let at = Bytes(1_001);
        let (low, high) = (Bytes(900), Bytes(1_200));
        let parameter = Parameter::RecvOverhead;
        let change = Change { at, low, high, parameter, jump_ppm: -14_000, splits: true };
        profile.changes.push(change).unwrap();
        profile
    }

    fn encoded(profile: &Profile<4>) -> Vec<u8> {
        let mut bytes = [0; most_bytes(4)];
        let length = encode(profile, &mut bytes).unwrap();
        bytes[..length].to_vec()
    }

    quickcheck! {
        fn what_is_encoded_is_decoded(numbers: Vec<i64>) -> bool {
            let profile = profile(&numbers);
            decode(&encoded(&profile)) == Ok(profile)
        }

        fn what_is_decoded_is_encoded_to_the_same_bytes(bytes: Vec<u8>) -> bool {
            // The header and checksum are valid, so that the fields are reached.
            let mut all = MAGIC.to_vec();
            all.extend([VERSION, 1, 1]);
            all.extend(bytes.iter().map(|byte| byte & 0x3f));
            all.extend(fnv1a(&all).to_le_bytes());
            decode::<4>(&all).map_or(true, |profile| encoded(&profile) == all)
        }

        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) -> bool {
            decode::<4>(&bytes).map_or_else(|error| error.at <= bytes.len(), |_| true)
        }
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let bytes = encoded(&profile(&[3, -70_000, 1 << 40]));
        for at in 0..bytes.len() {
            assert!(decode::<4>(&bytes[..at]).is_err());
            let mut wrong = bytes.clone();
            wrong[at] ^= 1 << (at % 8);
            assert!(decode::<4>(&wrong).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_number_has_one_form_only() {
        for bytes in
            [&[0x80, 0][..], &[0xff; 11], &[255, 255, 255, 255, 255, 255, 255, 255, 255, 2]]
        {
            assert!(Reader { bytes, at: 0 }.number().is_err(), "{bytes:?}");
        }
        for value in [0, 127, 128, u64::MAX] {
            let mut bytes = [0; LONGEST];
            Writer { bytes: &mut bytes, at: 0 }.number(value).unwrap();
            assert_eq!(Reader { bytes: &bytes, at: 0 }.number(), Ok(value));
        }
    }

    #[test]
    fn a_profile_with_more_ranges_than_fit_is_refused() {
        let bytes = encoded(&profile(&[1]));
        let error = DecodeError { at: 5, kind: DecodeErrorKind::TooMany(4) };
        assert_eq!(decode::<3>(&bytes), Err(error));
    }

    #[test]
    fn too_little_memory_is_an_error_at_every_length() {
        let profile = profile(&[5]);
        let needed = encoded(&profile).len();
        for length in 0..needed {
            assert_eq!(encode(&profile, &mut std::vec![0; length]), Err(NoRoom));
        }
    }
}
