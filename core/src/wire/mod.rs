//! Control frames between the initiator of a measurement and its responder.
//!
//! Control and data share one link. A control frame is always
//! [`FRAME_LEN`] bytes long, little endian, and begins with [`MAGIC`], whose
//! first byte no data message ever begins with: data messages begin with a
//! round's tag, which is below 128. Every control frame carries a version,
//! a kind, a sequence number and a checksum; `docs/protocol.md` gives the
//! bytes.
//!
//! There are two levels. [`Frame`] is a checked view of bytes: length, magic,
//! body length and checksum hold, its accessors cannot fail. [`Message`] is a
//! valid value: every field is in its range, [`Message::parse`] is total over
//! arbitrary bytes and [`Message::emit`] cannot fail. The two ends, which may
//! have little room, read and write [`Request`]s and [`Reply`]s instead: the
//! same frames by who sends them, without copies of their lists. The text by
//! which a responder describes itself has types of its own, [`DescriptionRequest`]
//! and [`DescriptionPart`]: a firmware without a description does not link them.

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

/// The version of the protocol that this crate speaks.
pub const VERSION: u8 = 2;

/// Bit of [`Hello::capabilities`] and [`Welcome::capabilities`]: this side can
/// ask for, or give, a description of the responder's environment.
pub const CAPABILITY_DESCRIPTION: u32 = 1;

/// The kind of [`Message::Hello`] on the wire.
pub const HELLO_KIND: u8 = 1;

/// Most different rounds that one batch announces.
pub const ROUNDS_PER_BATCH: usize = 16;

#[cfg(test)]
mod tests;
