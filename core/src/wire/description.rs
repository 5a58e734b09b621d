//! Text that describes the responder's environment, requested in parts.
//!
//! These frames are sent only where both sides have announced
//! [`CAPABILITY_DESCRIPTION`](super::CAPABILITY_DESCRIPTION).

use super::frame::{self, KIND_OFFSET, VERSION_AT};
use super::{FRAME_LEN, Frame, HEADER_LEN, ParseError, ParseErrorKind, VERSION};

const REQUEST_KIND: u8 = 12;

/// The kind of a [`DescriptionPart`] on the wire.
pub const DESCRIPTION_KIND: u8 = 13;

/// Longest description, in bytes.
pub const MAX_DESCRIPTION: usize = 2_048;

/// Most bytes of the text in one frame.
pub const DESCRIPTION_PART: usize = FRAME_LEN - HEADER_LEN;

/// Initiator: requests the part of the description at an offset.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DescriptionRequest {
    /// Offset of the part in the text, in bytes.
    pub offset: u32,
}

/// Responder: a part of its description.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DescriptionPart<'a> {
    /// Offset of the part in the text, in bytes.
    pub offset: u32,
    /// [`DESCRIPTION_PART`] bytes; fewer, perhaps none, at the text's end.
    pub bytes: &'a [u8],
}

impl DescriptionRequest {
    /// Parses a frame; `None` if it is of another kind or version, or not valid.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let frame = Frame::new_checked(bytes).ok()?;
        let is_one = (frame.kind(), frame.version()) == (REQUEST_KIND, VERSION);
        is_one.then(|| Self { offset: frame.sequence() })
    }

    /// Writes the whole frame.
    pub fn emit(self, bytes: &mut [u8; FRAME_LEN]) {
        let body_len = frame::body(bytes).at();
        frame::seal(bytes, REQUEST_KIND, self.offset, body_len);
    }
}

impl<'a> DescriptionPart<'a> {
    /// Part of `text` at `offset`; empty past the text's end. The text is cut at
    /// [`MAX_DESCRIPTION`] bytes.
    #[must_use]
    pub fn of(text: &'a [u8], offset: u32) -> Self {
        let text = text.get(..MAX_DESCRIPTION).unwrap_or(text);
        let rest = usize::try_from(offset).ok().and_then(|offset| text.get(offset..));
        let rest = rest.unwrap_or_default();
        let bytes = rest.get(..DESCRIPTION_PART).unwrap_or(rest);
        Self { offset, bytes }
    }

    /// Parses a frame.
    ///
    /// # Errors
    ///
    /// [`ParseError`] with the offset of the error.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let frame = Frame::new_checked(bytes)?;
        match (frame.kind(), frame.version()) {
            (DESCRIPTION_KIND, VERSION) => {}
            (DESCRIPTION_KIND, other) => {
                return Err(ParseError { at: VERSION_AT, kind: ParseErrorKind::Version(other) });
            }
            (kind, _) => {
                return Err(ParseError { at: KIND_OFFSET, kind: ParseErrorKind::Kind(kind) });
            }
        }
        Ok(Self { offset: frame.sequence(), bytes: frame.body_of() })
    }

    /// Writes the whole frame.
    pub fn emit(self, bytes: &mut [u8; FRAME_LEN]) {
        let mut body = frame::body(bytes);
        self.bytes.iter().for_each(|byte| body.u8(*byte));
        let body_len = body.at();
        frame::seal(bytes, DESCRIPTION_KIND, self.offset, body_len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;
    use std::vec::Vec;

    quickcheck! {
        fn the_parts_of_a_text_make_the_text(text: Vec<u8>, copies: u8) -> bool {
            let text = text.repeat(usize::from(copies) % 40);
            let kept = &text[..text.len().min(MAX_DESCRIPTION)];
            let (mut collected, mut frame) = (Vec::new(), [0; FRAME_LEN]);
            loop {
                let offset = u32::try_from(collected.len()).unwrap();
                DescriptionPart::of(&text, offset).emit(&mut frame);
                let part = DescriptionPart::parse(&frame).unwrap();
                assert_eq!(part.offset, offset);
                collected.extend_from_slice(part.bytes);
                if part.bytes.len() < DESCRIPTION_PART {
                    return collected == kept;
                }
            }
        }

        fn arbitrary_bytes_are_no_description(bytes: Vec<u8>) -> bool {
            DescriptionPart::parse(&bytes).is_err() && DescriptionRequest::parse(&bytes).is_none()
        }
    }

    #[test]
    fn a_request_is_read_as_it_was_written_and_nothing_else_is() {
        let mut frame = [0; FRAME_LEN];
        let request = DescriptionRequest { offset: 832 };
        request.emit(&mut frame);
        assert_eq!(DescriptionRequest::parse(&frame), Some(request));
        assert!(DescriptionPart::parse(&frame).is_err());
        DescriptionPart::of(b"text", 0).emit(&mut frame);
        assert_eq!(DescriptionRequest::parse(&frame), None);
    }
}
