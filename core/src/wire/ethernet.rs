//! Messages as raw Ethernet frames, without IP: the format of the `eth` link on hosts and firmware.
//!
//! | bytes | field |
//! |---|---|
//! | 0..6 | destination address |
//! | 6..12 | source address |
//! | 12..14 | EtherType 0x88B5 (IEEE 802 local experimental 1), big endian |
//! | 14..16 | the letters `LG` |
//! | 16..18 | message length, big endian |
//! | 18.. | the message, then padding up to the minimum frame of 60 bytes |
//!
//! The header contains the length, since Ethernet pads short frames.

use core::fmt;

use crate::slice::copy;

/// IEEE 802 local experimental EtherType 1.
pub const ETHER_TYPE: u16 = 0x88b5;
/// Bytes before the message.
pub const HEADER: usize = 18;
/// Shortest frame in bytes, without checksum.
pub const MIN_FRAME: usize = 60;
/// Longest frame in bytes, without checksum, on an Ethernet with the usual 1500 bytes of payload.
pub const MAX_FRAME: usize = 1_514;
/// Longest message in a frame of [`MAX_FRAME`] bytes.
pub const MAX_MESSAGE: usize = MAX_FRAME - HEADER;
/// A station address.
pub type Address = [u8; 6];
/// The address of every station.
pub const BROADCAST: Address = [0xff; 6];

const MARK: [u8; 2] = *b"LG";

/// Reasons why a frame contains no message of this protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum FrameError {
    /// The frame is shorter than its header or than its length field states.
    Truncated {
        /// Bytes required.
        needed: usize,
        /// Bytes present.
        had: usize,
    },
    /// The frame's EtherType or mark is that of another protocol.
    Foreign {
        /// Offset of the first byte that differs.
        at: usize,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, had } => {
                write!(f, "Ethernet frame of {had} bytes where {needed} are needed")
            }
            Self::Foreign { at } => {
                write!(f, "byte {at} of the Ethernet frame: not EtherType 0x88b5 with mark LG")
            }
        }
    }
}

impl core::error::Error for FrameError {}

/// A received frame whose header and length have been checked.
#[derive(Clone, Copy, Debug)]
pub struct EthernetFrame<'a> {
    destination: Address,
    source: Address,
    message: &'a [u8],
}

impl<'a> EthernetFrame<'a> {
    /// Checks `bytes`, a frame without its checksum.
    ///
    /// # Errors
    ///
    /// [`FrameError`]. Frames of other protocols are common on a shared network; skip them.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let truncated = |needed| FrameError::Truncated { needed, had: bytes.len() };
        let (header, rest) = bytes.split_first_chunk::<HEADER>().ok_or(truncated(HEADER))?;
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, kind @ .., m0, m1, l0, l1] = *header;
        if kind != ETHER_TYPE.to_be_bytes() {
            return Err(FrameError::Foreign { at: 12 });
        }
        if [m0, m1] != MARK {
            return Err(FrameError::Foreign { at: 14 });
        }
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        let message = rest.get(..length).ok_or(truncated(HEADER + length))?;
        let destination = [d0, d1, d2, d3, d4, d5];
        Ok(Self { destination, source: [s0, s1, s2, s3, s4, s5], message })
    }

    /// Destination: a station, [`BROADCAST`] or a group.
    #[must_use]
    pub const fn destination(&self) -> Address {
        self.destination
    }

    /// Source address.
    #[must_use]
    pub const fn source(&self) -> Address {
        self.source
    }

    /// Message without header and padding.
    #[must_use]
    pub const fn message(&self) -> &'a [u8] {
        self.message
    }
}

/// Header of a message of `length` bytes; `None` if the length does not fit into its field.
#[must_use]
pub fn header(destination: Address, source: Address, length: usize) -> Option<[u8; HEADER]> {
    let [d0, d1, d2, d3, d4, d5] = destination;
    let [s0, s1, s2, s3, s4, s5] = source;
    let [k0, k1] = ETHER_TYPE.to_be_bytes();
    let [m0, m1] = MARK;
    let [l0, l1] = u16::try_from(length).ok()?.to_be_bytes();
    Some([d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, k0, k1, m0, m1, l0, l1])
}

/// Writes `message` as a frame from `source` to `destination` into `frame` and returns the frame's
/// length; `None` if it does not fit. [`MAX_FRAME`] bytes are enough for every message of up to
/// [`MAX_MESSAGE`].
#[must_use]
pub fn emit(
    destination: Address,
    source: Address,
    message: &[u8],
    frame: &mut [u8],
) -> Option<usize> {
    let header = header(destination, source, message.len())?;
    let total = (HEADER + message.len()).max(MIN_FRAME);
    let frame = frame.get_mut(..total)?;
    let (first, rest) = frame.split_first_chunk_mut::<HEADER>()?;
    *first = header;
    let (payload, padding) = rest.split_at_mut_checked(message.len())?;
    copy(message, payload);
    padding.fill(0);
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    const HERE: Address = [2, 0, 0, 0, 0, 1];
    const THERE: Address = [2, 0, 0, 0, 0, 2];

    #[test]
    fn a_short_message_is_padded_and_keeps_its_length() {
        let mut frame = [0xaa; MAX_FRAME];
        assert_eq!(emit(THERE, HERE, b"x", &mut frame), Some(MIN_FRAME));
        let parsed = EthernetFrame::parse(&frame[..MIN_FRAME]).unwrap();
        assert_eq!((parsed.source(), parsed.message()), (HERE, &b"x"[..]));
        assert_eq!(parsed.destination(), THERE);
        assert!(frame[19..MIN_FRAME].iter().all(|&b| b == 0));
    }

    #[test]
    fn frames_of_others_are_named_as_such() {
        let mut frame = [0; MIN_FRAME];
        assert_eq!(emit(THERE, HERE, b"abc", &mut frame), Some(MIN_FRAME));
        frame[13] ^= 1;
        assert_eq!(EthernetFrame::parse(&frame).unwrap_err(), FrameError::Foreign { at: 12 });
        frame[13] ^= 1;
        frame[15] ^= 1;
        assert_eq!(EthernetFrame::parse(&frame).unwrap_err(), FrameError::Foreign { at: 14 });
    }

    #[test]
    fn a_length_past_the_end_is_truncated() {
        let mut frame = [0; MIN_FRAME];
        assert_eq!(emit(THERE, HERE, b"abc", &mut frame), Some(MIN_FRAME));
        frame[17] = 43;
        let error = FrameError::Truncated { needed: 61, had: 60 };
        assert_eq!(EthernetFrame::parse(&frame).unwrap_err(), error);
        assert_eq!(emit(THERE, HERE, &[0; MAX_MESSAGE + 1], &mut [0; MAX_FRAME]), None);
    }

    quickcheck! {
        fn what_is_emitted_is_parsed(message: std::vec::Vec<u8>) -> bool {
            let mut frame = [0; MAX_FRAME];
            match emit(THERE, HERE, &message, &mut frame) {
                Some(n) => EthernetFrame::parse(&frame[..n]).is_ok_and(|f| f.message() == message),
                None => message.len() > MAX_MESSAGE,
            }
        }

        fn arbitrary_bytes_never_panic(bytes: std::vec::Vec<u8>) -> bool {
            EthernetFrame::parse(&bytes).map_or(true, |f| f.message().len() + HEADER <= bytes.len())
        }
    }
}
