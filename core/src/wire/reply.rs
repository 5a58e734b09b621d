//! What a responder says, as it writes it: without a copy of lists.

use super::codec::Writer;
use super::frame;
use super::{FRAME_LEN, Refusal, Welcome};
use crate::units::Picos;

/// A control frame of a responder.
#[derive(Clone, Copy, Debug)]
pub enum Reply<'a> {
    /// Accepts the session.
    Welcome(&'a Welcome),
    /// Does not go on; nothing follows.
    Refuse(&'a Refusal),
    /// Another initiator is being served.
    Queue {
        /// Initiators before this one, the one being served included.
        position: u32,
    },
    /// Waits for the first message of a batch.
    Ready {
        /// Sequence number of the batch.
        sequence: u32,
    },
    /// After the last reply of a batch with timed rounds.
    Report {
        /// Sequence number of the batch.
        sequence: u32,
        /// For each round of the batch the time spent in the receive calls
        /// after the first.
        values: &'a [Picos],
    },
    /// Has dropped what was under way.
    Synced {
        /// Of the question.
        token: u32,
        /// Data messages received in this session, stray ones included.
        received: u64,
        /// Data messages sent in this session.
        replied: u64,
    },
}

impl Reply<'_> {
    /// Writes the whole frame.
    pub fn emit(&self, bytes: &mut [u8; FRAME_LEN]) {
        let (kind, sequence) = match *self {
            Self::Welcome(_) => (2, 0),
            Self::Refuse(_) => (3, 0),
            Self::Queue { .. } => (4, 0),
            Self::Ready { sequence } => (6, sequence),
            Self::Report { sequence, .. } => (7, sequence),
            Self::Synced { token, .. } => (9, token),
        };
        frame::emit(bytes, kind, sequence, |body| self.emit_body(body));
    }

    fn emit_body(&self, body: &mut Writer<'_>) {
        match *self {
            Self::Welcome(welcome) => {
                body.u8(welcome.version);
                body.u8(0);
                body.u16(0);
                body.u32(welcome.capabilities);
                welcome.bounds.emit(body);
            }
            Self::Refuse(refusal) => refusal.emit(body),
            Self::Queue { position } => body.u32(position),
            Self::Ready { .. } => {}
            Self::Report { values, .. } => {
                body.u64(values.len() as u64);
                for value in values {
                    body.u64(value.0);
                }
            }
            Self::Synced { received, replied, .. } => {
                body.u64(received);
                body.u64(replied);
            }
        }
    }
}
