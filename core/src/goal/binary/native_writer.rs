//! Writes our own binary format.

use super::bytes::Record;
use super::error::{BinaryWriteError, Unsayable};
use super::native::{
    EDGE, EDGE_SIZE, ENTRY, ENTRY_SIZE, HEADER, HEADER_LENGTH, HEADER_SIZE, MAGIC, OP, OP_SIZE,
    START, VERSION,
};
use super::{CALC, RECEIVE, SEND};
use crate::goal::op::{ANY, Edge, Op, OpKind, Sink};
use crate::goal::output::Output;
use crate::goal::protocol::Protocol;

/// A sink that writes our own format.
#[derive(Debug)]
pub struct NativeWriter<'m, O> {
    output: O,
    protocol: Protocol,
    /// Dependencies of the open rank, encoded.
    pending: &'m mut [[u8; EDGE_SIZE]],
    /// Operations and dependencies of the open rank.
    open: (u32, u32),
    /// Operations and dependencies of the ranks before.
    closed: (u64, u64),
    /// Where the open rank's block starts.
    start: u64,
}

impl<'m, O: Output> NativeWriter<'m, O> {
    /// The top bit of an operation's number marks dependencies on starts.
    pub const MOST_OPS: u32 = START - 1;

    /// Writes to `output`, with `pending` for the dependencies of the rank
    /// that has the most. Its content on entry does not matter.
    pub fn new(output: O, pending: &'m mut [[u8; EDGE_SIZE]]) -> Self {
        let protocol = Protocol::default();
        Self { output, protocol, pending, open: (0, 0), closed: (0, 0), start: 0 }
    }

    /// Checks that every rank was written, completes the header and gives
    /// the output back.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::goal::Misuse) when ranks are missing; the output refuses bytes.
    pub fn finish(mut self) -> Result<O, BinaryWriteError<O::Error>> {
        let ranks = self.protocol.finish()?;
        let header = Record::<{ HEADER_SIZE }>::new()
            .add(MAGIC)
            .add(VERSION.to_le_bytes())
            .add(HEADER_LENGTH.to_le_bytes())
            .add(self.start.to_le_bytes())
            .add(self.closed.0.to_le_bytes())
            .add(self.closed.1.to_le_bytes())
            .add(ranks.to_le_bytes());
        self.output.patch(0, header.bytes()).map_err(BinaryWriteError::Output)?;
        Ok(self.output)
    }
}

impl<O: Output> Sink for NativeWriter<'_, O> {
    type Error = BinaryWriteError<O::Error>;

    fn ranks(&mut self, ranks: u32) -> Result<(), Self::Error> {
        self.protocol.ranks(ranks)?;
        self.start = HEADER + ENTRY * u64::from(ranks);
        self.output.reserve(self.start).map_err(BinaryWriteError::Output)
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), Self::Error> {
        self.protocol.begin_rank(rank)?;
        self.open = (0, 0);
        Ok(())
    }

    fn op(&mut self, op: Op) -> Result<u32, Self::Error> {
        let index = self.protocol.op()?;
        let rank = self.protocol.rank();
        if index >= Self::MOST_OPS {
            return Err(BinaryWriteError::RankTooLarge { rank, most: Self::MOST_OPS });
        }
        let (kind, peer, size, tag) = match op.kind {
            OpKind::Send { peer: ANY, .. } => {
                return Err(BinaryWriteError::Op { rank, op: index, why: Unsayable::SendToAny });
            }
            OpKind::Send { peer, size, tag } => (SEND, peer, size, tag),
            OpKind::Receive { peer, size, tag } => (RECEIVE, peer, size, tag),
            OpKind::Calc { duration } => (CALC, 0, duration.0, 0),
        };
        let record = Record::<{ OP_SIZE }>::new()
            .add(size.to_le_bytes())
            .add(peer.to_le_bytes())
            .add(tag.to_le_bytes())
            .add([kind, op.cpu, op.nic]);
        self.output.append(record.bytes()).map_err(BinaryWriteError::Output)?;
        self.open.0 = index + 1;
        Ok(index)
    }

    fn edge(&mut self, Edge { op, on, start }: Edge) -> Result<(), Self::Error> {
        self.protocol.edge(op, on)?;
        let on = if start { on | START } else { on };
        let rank = self.protocol.rank();
        let full = BinaryWriteError::RankMemory { rank };
        let count = self.open.1.checked_add(1);
        let count = count.ok_or(BinaryWriteError::RankTooLarge { rank, most: u32::MAX })?;
        let slot = self.pending.get_mut(self.open.1 as usize).ok_or(full)?;
        *slot = *Record::new().add(op.to_le_bytes()).add(on.to_le_bytes()).bytes();
        self.open.1 = count;
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), Self::Error> {
        self.protocol.end_rank()?;
        let (ops, edges) = self.open;
        let pending = self.pending.get(..edges as usize).unwrap_or_default();
        self.output.append(pending.as_flattened()).map_err(BinaryWriteError::Output)?;
        let entry = Record::<{ ENTRY_SIZE }>::new()
            .add(self.start.to_le_bytes())
            .add(ops.to_le_bytes())
            .add(edges.to_le_bytes());
        let at = HEADER + ENTRY * u64::from(self.protocol.rank());
        self.output.patch(at, entry.bytes()).map_err(BinaryWriteError::Output)?;
        self.start += OP * u64::from(ops) + EDGE * u64::from(edges);
        self.closed.0 += u64::from(ops);
        self.closed.1 += u64::from(edges);
        Ok(())
    }
}
