//! Frames between the measuring initiator and its responder.

pub mod ethernet;
