//! Layout shared by all control frames of all versions.

use super::codec::{Reader, Writer};
use super::{ParseError, ParseErrorKind, VERSION};

/// First bytes of every control frame: `Λgp` in UTF-8.
pub const MAGIC: [u8; 4] = [0xce, 0x9b, b'g', b'p'];

/// Length of every control frame on the wire, in bytes.
pub const FRAME_LEN: usize = 448;

/// Length of the header, in bytes.
pub const HEADER_LEN: usize = 16;

/// Offset of the kind, in bytes.
pub const KIND_OFFSET: usize = 5;
/// Offset of the version, in bytes.
pub(super) const VERSION_AT: usize = 4;
const BODY_LEN_AT: usize = 6;
const SEQUENCE_AT: usize = 8;
const CHECKSUM_AT: usize = 12;

/// A control frame whose length, magic, body length and checksum were checked.
///
/// ```text
/// offset  0      4        5     6            8         12        16
///         magic  version  kind  body length  sequence  checksum  body, zeros
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Frame<T: AsRef<[u8]>> {
    bytes: T,
    header: Header,
}

/// Fields of the header.
#[derive(Clone, Copy, Debug)]
struct Header {
    version: u8,
    kind: u8,
    body_len: u16,
    sequence: u32,
}

impl<T: AsRef<[u8]>> Frame<T> {
    /// Checks `bytes`; those past [`FRAME_LEN`] are ignored.
    ///
    /// # Errors
    ///
    /// [`ParseError`] with the offset of the first error. The version is not checked, since the
    /// kind decides whether it matters.
    pub fn new_checked(bytes: T) -> Result<Self, ParseError> {
        let all = bytes.as_ref();
        let error = |at, kind| Err(ParseError { at, kind });
        let Some(frame) = all.first_chunk::<FRAME_LEN>() else {
            return match all.first_chunk() {
                Some(start) if *start != MAGIC => error(0, ParseErrorKind::Magic),
                _ => error(all.len(), ParseErrorKind::Truncated(FRAME_LEN - all.len())),
            };
        };
        let mut fields = Reader::new(frame, 0);
        if fields.u32().to_le_bytes() != MAGIC {
            return error(0, ParseErrorKind::Magic);
        }
        let header = Header {
            version: fields.u8(),
            kind: fields.u8(),
            body_len: fields.u16(),
            sequence: fields.u32(),
        };
        let found = fields.u32();
        let Some(used) = frame.get(..HEADER_LEN + usize::from(header.body_len)) else {
            return error(BODY_LEN_AT, ParseErrorKind::BodyLength(header.body_len));
        };
        let computed = checksum(used);
        if computed != found {
            return error(CHECKSUM_AT, ParseErrorKind::Checksum { found, computed });
        }
        Ok(Self { bytes, header })
    }

    /// Version of the protocol.
    pub const fn version(&self) -> u8 {
        self.header.version
    }

    /// Kind of the frame.
    pub const fn kind(&self) -> u8 {
        self.header.kind
    }

    /// Sequence number, whose meaning depends on the kind.
    pub const fn sequence(&self) -> u32 {
        self.header.sequence
    }

    /// Body without padding.
    pub fn body(&self) -> &[u8] {
        self.header.body(self.bytes.as_ref())
    }
}

impl<'a> Frame<&'a [u8]> {
    /// Body with the lifetime of the bytes.
    pub(super) fn body_of(&self) -> &'a [u8] {
        self.header.body(self.bytes)
    }
}

impl Header {
    fn body<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        frame.get(HEADER_LEN..HEADER_LEN + usize::from(self.body_len)).unwrap_or_default()
    }
}

/// Clears the frame and returns a writer for its body.
#[inline(never)]
pub(super) fn body(bytes: &mut [u8; FRAME_LEN]) -> Writer<'_> {
    bytes.fill(0);
    let (_, body) = bytes.split_at_mut(HEADER_LEN);
    Writer::new(body)
}

/// Completes a frame whose body of `body_len` bytes was written.
#[inline(never)]
pub(super) fn seal(bytes: &mut [u8; FRAME_LEN], kind: u8, sequence: u32, body_len: usize) {
    let mut header = Writer::new(bytes);
    header.u32(u32::from_le_bytes(MAGIC));
    header.u8(VERSION);
    header.u8(kind);
    header.u16(u16::try_from(body_len).unwrap_or(u16::MAX));
    header.u32(sequence);
    let sum = checksum(bytes.get(..HEADER_LEN + body_len).unwrap_or_default());
    if let Some(slot) = bytes.get_mut(CHECKSUM_AT..).and_then(<[u8]>::first_chunk_mut) {
        *slot = sum.to_le_bytes();
    }
}

/// FNV-1a over the frame without the checksum field. Detects every change of a single byte, since
/// each step is a bijection of states.
fn checksum(frame: &[u8]) -> u32 {
    const OFFSET_BASIS: u32 = 0x811c_9dc5;
    const PRIME: u32 = 0x0100_0193;
    let mut state = OFFSET_BASIS;
    for (at, byte) in frame.iter().enumerate() {
        if !(CHECKSUM_AT..HEADER_LEN).contains(&at) {
            state = (state ^ u32::from(*byte)).wrapping_mul(PRIME);
        }
    }
    state
}

const _: () = assert!(SEQUENCE_AT + 4 == CHECKSUM_AT && CHECKSUM_AT + 4 == HEADER_LEN);
const _: () = assert!(MAGIC[0] >= 128, "tags of data messages are below 128");
