//! What is left when nothing can happen any more.

use core::fmt;

use super::engine::Engine;
use super::hooks::{Noise, Observer};
use super::network::Network;
use super::record::Mark;
use super::records::bounds;
use super::release::Operations;
use crate::goal::ANY;
use crate::worded::worded;

worded! {
    /// Something that never came to its end.
    pub enum Unfinished {
        /// A message that no receive took.
        Unreceived {
            /// The rank that it was sent to.
            rank: u32,
            /// The rank that sent it.
            from: u32,
            /// The send, counted on that rank.
            op: u32,
            /// Its tag.
            tag: u32,
        } => "rank {rank} never receives the message with tag {} from rank {from} (its \
                 operation {op})",
                OrAny(*tag);
        /// A receive that no message came for.
        Waiting {
            /// Its rank.
            rank: u32,
            /// The receive, counted on its rank.
            op: u32,
            /// The rank that it receives from, or [`ANY`].
            peer: u32,
            /// Its tag, or [`ANY`].
            tag: u32,
        } => "rank {rank} waits for ever in operation {op} for a message from rank {} with tag {}",
                OrAny(*peer),
                OrAny(*tag);
        /// An operation that never became ready.
        NeverReady {
            /// Its rank.
            rank: u32,
            /// The operation, counted on its rank.
            op: u32,
        } => "operation {op} of rank {rank} never becomes ready";
    }
}

/// A number, or a wildcard.
struct OrAny(u32);

impl fmt::Display for OrAny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == ANY { f.write_str("any") } else { write!(f, "{}", self.0) }
    }
}

impl<N: Noise, O: Observer, W: Network> Engine<'_, '_, N, O, W> {
    /// Calls `tell` with everything that never came to its end, by rank:
    /// messages without a receive, receives without a message, operations
    /// that were never ready. After a run that went well there is nothing.
    pub fn unfinished(&self, mut tell: impl FnMut(Unfinished)) {
        for rank in 0..self.rank_count() {
            let unexpected = self.waiting.messages(&self.records, self.rank(rank));
            let posted = self.waiting.receives(self.rank(rank));
            let left = Left { ops: &self.records, firsts: self.firsts, rank };
            left.tell((unexpected, posted), |op| self.records.at(op).is(Mark::Started), &mut tell);
        }
    }
}

/// What is left on a rank.
pub(super) struct Left<'o, P> {
    pub(super) ops: &'o P,
    pub(super) firsts: &'o [u32],
    pub(super) rank: u32,
}

impl<P: Operations> Left<'_, P> {
    /// Tells of messages without a receive, receives without a message, and what was
    /// not `released`.
    pub(super) fn tell(
        &self,
        (unexpected, posted): (impl Iterator<Item = u32>, impl Iterator<Item = u32>),
        released: impl Fn(u32) -> bool,
        tell: &mut impl FnMut(Unfinished),
    ) {
        let &Self { ops, firsts, rank } = self;
        for message in unexpected {
            let (from, tag) = (ops.peer(message), ops.tag(message));
            let op = message.wrapping_sub(bounds(firsts, from).0);
            tell(Unfinished::Unreceived { rank, from, op, tag });
        }
        let (first, end) = bounds(firsts, rank);
        for receive in posted {
            let (peer, tag, op) =
                (ops.peer(receive), ops.tag(receive), receive.wrapping_sub(first));
            tell(Unfinished::Waiting { rank, op, peer, tag });
        }
        for op in (first..end).filter(|&op| !released(op)) {
            tell(Unfinished::NeverReady { rank, op: op.wrapping_sub(first) });
        }
    }
}
