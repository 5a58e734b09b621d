//! Control frames between the initiator of a measurement and its responder.
//!
//! Control and data share one link. A control frame is always [`FRAME_LEN`] bytes long, little
//! endian, and begins with [`MAGIC`]. No data message begins with the first byte of [`MAGIC`]: data
//! messages begin with a round's tag, which is below 128. Every control frame has a version, a
//! kind, a sequence number and a checksum; `docs/protocol.md` gives the bytes.
//!
//! There are two levels. [`Frame`] is a view of bytes whose length, magic, body length and checksum
//! were checked; its accessors cannot fail. [`Message`] is an owned, valid value: every field is in
//! its range, [`Message::parse`] accepts arbitrary bytes without panicking, and [`Message::emit`]
//! cannot fail. The two ends may have little memory and use [`Request`] and [`Reply`] instead,
//! which are the same frames, divided by sender, without copies of their lists. The description of
//! a responder has types of its own, [`DescriptionRequest`] and [`DescriptionPart`]; a firmware
//! without a description does not link them.

mod admission;
mod bounds;
mod codec;
mod description;
mod error;
pub mod ethernet;
mod frame;
mod message;
mod reply;
mod request;
mod round;

pub use admission::Admission;
pub use bounds::{Bounds, Limited, Refusal, Versions};
pub use description::{
    DESCRIPTION_KIND, DESCRIPTION_PART, DescriptionPart, DescriptionRequest, MAX_DESCRIPTION,
};
pub use error::{ParseError, ParseErrorKind};
pub use frame::{FRAME_LEN, Frame, HEADER_LEN, KIND_OFFSET, MAGIC};
pub use message::{Hello, Message, Welcome};
pub use reply::Reply;
pub use request::{Request, RoundList};
pub use round::{ReplyPolicy, Round, Rounds, tag_of};

/// Version of the protocol implemented here.
pub const VERSION: u8 = 2;

/// Bit of [`Hello::capabilities`] and [`Welcome::capabilities`]: this end can request, or provide,
/// a description of the responder's environment.
pub const CAPABILITY_DESCRIPTION: u32 = 1;

/// Kind of [`Message::Hello`] on the wire.
pub const HELLO_KIND: u8 = 1;

/// Most different rounds in one batch.
pub const ROUNDS_PER_BATCH: usize = 16;

#[cfg(test)]
mod tests;
