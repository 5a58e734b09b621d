//! What is left when nothing can happen any more.

use core::fmt;

use super::engine::Engine;
use super::hooks::{Noise, Observer};
use super::network::Network;
use super::records::bounds;
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
            for message in self.waiting.messages(&self.records, self.rank(rank)) {
                let record = self.records.at(message);
                let (first, _) = bounds(self.firsts, record.peer);
                let op = message.wrapping_sub(first);
                tell(Unfinished::Unreceived { rank, from: record.peer, op, tag: record.tag });
            }
            let (first, ops_end) = bounds(self.firsts, rank);
            for receive in self.waiting.receives(self.rank(rank)) {
                let record = self.records.at(receive);
                let op = receive.wrapping_sub(first);
                tell(Unfinished::Waiting { rank, op, peer: record.peer, tag: record.tag });
            }
            for op in first..ops_end {
                if !self.records.at(op).started() {
                    tell(Unfinished::NeverReady { rank, op: op.wrapping_sub(first) });
                }
            }
        }
    }
}
