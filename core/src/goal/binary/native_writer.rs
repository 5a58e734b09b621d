//! Writer of loggap's own binary format.

use super::bytes::Record;
use super::error::{BinaryWriteError, Unsayable};
use super::native::{
    Block, EDGE_SIZE, ENTRY, ENTRY_SIZE, HEADER, HEADER_LENGTH, HEADER_SIZE, HIGH_SIZE, MAGIC,
    OP_SIZE, START, VERSION, WIDE, WIDE_VERSION, is_wide,
};
use super::{CALC, RECEIVE, SEND};
use crate::goal::op::{ANY, Edge, Op, OpKind, Sink};
use crate::goal::output::Output;
use crate::goal::protocol::Protocol;
use crate::halves::halves;

/// Sink that writes loggap's own format.
#[derive(Debug)]
pub struct NativeWriter<'m, O> {
    output: O,
    protocol: Protocol,
    /// Encoded dependencies of the open rank, from the first element on; for a wide rank also the
    /// upper halves of its operations, from the last element down.
    pending: &'m mut [[u8; EDGE_SIZE]],
    /// Number of upper halves of the open rank; 0 if it is not wide.
    high: u32,
    /// True if a rank was wide.
    wide: bool,
    /// Number of operations and of dependencies of the open rank.
    open: (u32, u32),
    /// Number of operations and of dependencies of the ranks before.
    closed: (u64, u64),
    /// Offset of the open rank's block.
    start: u64,
}

impl<'m, O: Output> NativeWriter<'m, O> {
    /// Largest number of operations of a rank; the top bit of an index marks dependencies on
    /// starts.
    pub const MOST_OPS: u32 = START - 1;

    /// Writes to `output`. `pending` needs an element for each dependency of the largest rank, and
    /// one more for each operation of the largest rank if a tag needs more than 32 bits or a cpu or
    /// nic more than
    /// 8. Its content on entry does not matter.
    pub fn new(output: O, pending: &'m mut [[u8; EDGE_SIZE]]) -> Self {
        let protocol = Protocol::default();
        Self {
            output,
            protocol,
            pending,
            high: 0,
            wide: false,
            open: (0, 0),
            closed: (0, 0),
            start: 0,
        }
    }

    /// Checks that every rank was written, completes the header and returns the output.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::goal::Misuse) if ranks are missing, or the error of the output.
    pub fn finish(mut self) -> Result<O, BinaryWriteError<O::Error>> {
        let ranks = self.protocol.finish()?;
        let header = Record::<{ HEADER_SIZE }>::new()
            .add(MAGIC)
            .add(if self.wide { WIDE_VERSION } else { VERSION }.to_le_bytes())
            .add(HEADER_LENGTH.to_le_bytes())
            .add(self.start.to_le_bytes())
            .add(self.closed.0.to_le_bytes())
            .add(self.closed.1.to_le_bytes())
            .add(ranks.to_le_bytes());
        self.output.patch(0, header.bytes()).map_err(BinaryWriteError::Output)?;
        Ok(self.output)
    }
}

impl<O: Output> NativeWriter<'_, O> {
    /// Stores the upper halves of operation `index`. All operations of a wide rank have them.
    fn note_high(
        &mut self,
        index: u32,
        high: [u8; HIGH_SIZE],
    ) -> Result<(), BinaryWriteError<O::Error>> {
        let full = BinaryWriteError::RankMemory { rank: self.protocol.rank() };
        let free = self.pending.get_mut(self.open.1 as usize..).ok_or(full)?;
        let full = BinaryWriteError::RankMemory { rank: self.protocol.rank() };
        let first = free.len().checked_sub(index as usize + 1).ok_or(full)?;
        if let Some((own, before)) = free.get_mut(first..).and_then(<[_]>::split_first_mut) {
            *own = high;
            if self.high == 0 {
                before.fill([0; HIGH_SIZE]);
            }
        }
        self.high = index + 1;
        Ok(())
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
        self.high = 0;
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
        let [low, high] = halves(tag);
        let record = Record::<{ OP_SIZE }>::new()
            .add(size.to_le_bytes())
            .add(peer.to_le_bytes())
            .add(low.to_le_bytes())
            .add([kind, op.cpu.to_le_bytes()[0], op.nic.to_le_bytes()[0]]);
        self.output.append(record.bytes()).map_err(BinaryWriteError::Output)?;
        if self.high > 0 || is_wide(&op) {
            let [_, cpu] = op.cpu.to_le_bytes();
            let [_, nic] = op.nic.to_le_bytes();
            // The wildcard's upper half wraps to 0, as in a rank that is not wide.
            let upper = high.wrapping_add(u32::from(low == ANY));
            let high = Record::new().add(upper.to_le_bytes()).add([cpu, nic]);
            self.note_high(index, *high.bytes())?;
        }
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
        let room = self.pending.len().saturating_sub(self.high as usize);
        let slot = self.pending.get_mut(..room).and_then(|room| room.get_mut(self.open.1 as usize));
        let slot = slot.ok_or(full)?;
        *slot = *Record::new().add(op.to_le_bytes()).add(on.to_le_bytes()).bytes();
        self.open.1 = count;
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), Self::Error> {
        self.protocol.end_rank()?;
        let (ops, edges) = self.open;
        let pending = self.pending.get(..edges as usize).unwrap_or_default();
        self.output.append(pending.as_flattened()).map_err(BinaryWriteError::Output)?;
        let highs = self.pending.len().saturating_sub(self.high as usize);
        for high in self.pending.get(highs..).unwrap_or_default().iter().rev() {
            self.output.append(high).map_err(BinaryWriteError::Output)?;
        }
        let wide = self.high > 0;
        self.wide |= wide;
        let entry = Record::<{ ENTRY_SIZE }>::new()
            .add((self.start | if wide { WIDE } else { 0 }).to_le_bytes())
            .add(ops.to_le_bytes())
            .add(edges.to_le_bytes());
        let at = HEADER + ENTRY * u64::from(self.protocol.rank());
        self.output.patch(at, entry.bytes()).map_err(BinaryWriteError::Output)?;
        self.start += Block { start: self.start, ops, edges, wide }.length();
        self.closed.0 += u64::from(ops);
        self.closed.1 += u64::from(edges);
        Ok(())
    }
}
