//! Checks of a schedule before it runs: cycles among dependencies, peers that do not exist, and
//! messages that are not received, not sent, or differ in size.
//!
//! Findings reported as certain go wrong in every run. Deadlocks across ranks are not found, for
//! example two ranks that each receive before they send; the simulator finds them.

mod finding;
mod messages;
mod order;

pub use finding::{Certainty, Envelope, Finding, Severity};
pub use messages::Message;
pub use order::Cycle;

use super::lookup::OpIndex;
use super::op::{ANY, Edge, Op, OpKind, Sink};
use super::protocol::{Misuse, Protocol};
use super::rank::{RankBuffer, RankMemory, RankNode};
use crate::worded::errors;

errors! {
    /// Reason why a schedule could not be checked.
    pub enum CheckError {
        /// The calls came in a wrong order.
        Misuse(misuse: Misuse) => "{misuse}";
        /// A rank is too large for the memory lent.
        RankMemory {
            /// Rank that is too large.
            rank: u32,
        } => "rank {rank} does not fit into the memory lent for one rank";
        /// The memory lent for messages is too small; each send and receive needs one element.
        MessageMemory => "the memory lent for messages is too small: one a send and receive";
    }
}

impl From<Misuse> for CheckError {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

/// Statistics of a check.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Checked {
    /// Number of operations on the longest chain of dependencies within a rank.
    pub depth: u32,
    /// Number of operations with a dependency, in either direction.
    pub linked: u64,
}

/// Sink that reports findings to a closure: cycles and invalid peers as they are found, messages at
/// the end.
#[derive(Debug)]
pub struct Checker<'m, F> {
    protocol: Protocol,
    rank: RankBuffer<'m>,
    ranks: u32,
    messages: Option<&'m mut [Message]>,
    used: usize,
    checked: Checked,
    report: F,
}

impl<'m, F: FnMut(Finding)> Checker<'m, F> {
    /// Creates the sink with memory for the largest rank and for every send and receive. `None` leaves
    /// messages and peers unchecked.
    pub fn new(rank: RankMemory<'m>, messages: Option<&'m mut [Message]>, report: F) -> Self {
        let (protocol, checked) = (Protocol::default(), Checked::default());
        let rank = RankBuffer::new(rank);
        Self { protocol, rank, ranks: 0, messages, used: 0, checked, report }
    }

    /// Matches messages and ends the check.
    ///
    /// # Errors
    ///
    /// [`Misuse`] if ranks are missing.
    pub fn finish(mut self) -> Result<Checked, CheckError> {
        self.protocol.finish()?;
        let messages = self.messages.unwrap_or_default().get_mut(..self.used);
        messages::match_all(messages.unwrap_or_default(), &mut self.report);
        Ok(self.checked)
    }

    /// Operation `op` of the open rank.
    const fn place(&self, op: u32) -> OpIndex {
        OpIndex { rank: self.protocol.rank(), op }
    }

    /// Notes the message of the operation at `place`.
    fn message(&mut self, place: OpIndex, op: Op) -> Result<(), CheckError> {
        let Some(messages) = &mut self.messages else { return Ok(()) };
        let message = match op.kind {
            OpKind::Send { peer, size, tag } if peer < self.ranks => {
                Message::sent(place, peer, tag, size)
            }
            OpKind::Receive { peer, size, tag } if peer < self.ranks || peer == ANY => {
                Message::received(place, peer, tag, size)
            }
            OpKind::Send { peer, .. } | OpKind::Receive { peer, .. } => {
                (self.report)(Finding::PeerOutOfRange { place, peer, ranks: self.ranks });
                return Ok(());
            }
            OpKind::Calc { .. } => return Ok(()),
        };
        *messages.get_mut(self.used).ok_or(CheckError::MessageMemory)? = message;
        self.used += 1;
        Ok(())
    }
}

impl<F: FnMut(Finding)> Sink for Checker<'_, F> {
    type Error = CheckError;

    fn ranks(&mut self, ranks: u32) -> Result<(), CheckError> {
        self.ranks = ranks;
        Ok(self.protocol.ranks(ranks)?)
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), CheckError> {
        self.rank.clear();
        Ok(self.protocol.begin_rank(rank)?)
    }

    fn op(&mut self, op: Op) -> Result<u32, CheckError> {
        let index = self.protocol.op()?;
        let place = self.place(index);
        self.rank.push_op(op).map_err(|_| CheckError::RankMemory { rank: place.rank })?;
        self.message(place, op)?;
        Ok(index)
    }

    fn edge(&mut self, edge: Edge) -> Result<(), CheckError> {
        self.protocol.edge(edge.op, edge.on)?;
        let rank = self.protocol.rank();
        self.rank.push_edge(edge).map_err(|_| CheckError::RankMemory { rank })
    }

    fn end_rank(&mut self) -> Result<(), CheckError> {
        self.protocol.end_rank()?;
        self.rank.group();
        let linked = |node: &&RankNode| node.dependencies + node.completions + node.starts > 0;
        self.checked.linked += self.rank.nodes().iter().filter(linked).count() as u64;
        let order = order::order(&mut self.rank);
        self.checked.depth = self.checked.depth.max(order.depth);
        if order.blocked > 0
            && let Some(cycle) = order::cycle(&mut self.rank)
        {
            let place = self.place(cycle.ops().first().copied().unwrap_or(0));
            (self.report)(Finding::Cycle { place, cycle, blocked: order.blocked });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
