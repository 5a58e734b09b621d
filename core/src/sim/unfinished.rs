//! Report of the operations and messages that did not complete.

use core::fmt;

use super::rank::dependencies::Operations;
use super::record::widen;
use super::records::bounds;
use crate::goal::{ANY, ANY_TAG};
use crate::worded::worded;

worded! {
    /// An operation or message that did not complete.
    pub enum Unfinished {
        /// A message without a matching receive.
        Unreceived {
            /// Rank that it was sent to.
            rank: u32,
            /// Rank that sent it.
            from: u32,
            /// Index of the send on the sending rank.
            op: u32,
            /// Tag of the message.
            tag: u64,
        } => "rank {rank} never receives the message with tag {} from rank {from} (its \
                 operation {op})",
                TagOrAny(*tag);
        /// A posted receive without a matching message.
        Waiting {
            /// Rank that receives.
            rank: u32,
            /// Index of the receive on its rank.
            op: u32,
            /// Source rank of the receive, or [`ANY`].
            peer: u32,
            /// Tag of the receive, or [`ANY_TAG`].
            tag: u64,
        } => "rank {rank} waits for ever in operation {op} for a message from rank {} with tag {}",
                OrAny(*peer),
                TagOrAny(*tag);
        /// An operation with an unfulfilled dependency.
        NeverReady {
            /// Rank of the operation.
            rank: u32,
            /// Index of the operation on its rank.
            op: u32,
        } => "operation {op} of rank {rank} never becomes ready";
    }
}

/// Formats a tag, or the wildcard as "any".
struct TagOrAny(u64);

impl fmt::Display for TagOrAny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == ANY_TAG { f.write_str("any") } else { write!(f, "{}", self.0) }
    }
}

/// Formats a rank, or the wildcard as "any".
struct OrAny(u32);

impl fmt::Display for OrAny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == ANY { f.write_str("any") } else { write!(f, "{}", self.0) }
    }
}

/// Reports what did not complete on one rank.
pub(super) struct Left<'o, P, F, T> {
    pub(super) ops: &'o P,
    pub(super) firsts: &'o [u32],
    /// Rank of the first of `firsts`; sends of others are numbered on their rank.
    pub(super) first_rank: u32,
    pub(super) rank: u32,
    /// Index in the whole schedule of the operation of a record.
    pub(super) number: F,
    pub(super) tell: T,
}

impl<P: Operations, F: Fn(u32) -> u32, T: FnMut(Unfinished)> Left<'_, P, F, T> {
    /// As [`bounds`]; of another process 0.
    fn bounds(&self, rank: u32) -> (u32, u32) {
        let place = rank.wrapping_sub(self.first_rank);
        if (place as usize) < self.firsts.len() - 1 { bounds(self.firsts, place) } else { (0, 0) }
    }

    /// Reports messages without a receive.
    pub(super) fn unreceived(&mut self, unexpected: impl Iterator<Item = u32>) {
        let rank = self.rank;
        for message in unexpected {
            let (from, tag) = (self.ops.peer(message), widen(self.ops.tag(message)));
            let op = (self.number)(message).wrapping_sub(self.bounds(from).0);
            (self.tell)(Unfinished::Unreceived { rank, from, op, tag });
        }
    }

    /// Reports a receive without a message.
    pub(super) fn waiting(&mut self, receive: u32) {
        let (rank, first) = (self.rank, self.bounds(self.rank).0);
        let (peer, tag) = (self.ops.peer(receive), widen(self.ops.tag(receive)));
        let op = (self.number)(receive).wrapping_sub(first);
        (self.tell)(Unfinished::Waiting { rank, op, peer, tag });
    }

    /// Reports operations for which `released` is false.
    pub(super) fn never_ready(&mut self, released: impl Fn(u32) -> bool) {
        let (rank, (first, end)) = (self.rank, self.bounds(self.rank));
        for op in (first..end).filter(|&op| !released(op)) {
            (self.tell)(Unfinished::NeverReady { rank, op: op.wrapping_sub(first) });
        }
    }
}
