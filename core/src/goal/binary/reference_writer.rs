//! Writer of the format of LogGOPSim's `txt2bin`, byte for byte.

use super::bytes::Record;
use super::error::{BinaryWriteError, Unsayable};
use super::reference::{BASE, ENTRY, MAGIC, NODE, NODE_SIZE, TABLE, TABLE_AT};
use super::{CALC, RECEIVE, SEND};
use crate::goal::op::{ANY, Edge, Op, OpKind, Sink};
use crate::goal::output::Output;
use crate::goal::protocol::Protocol;
use crate::goal::rank::{RankBuffer, RankMemory, RankNode};
use crate::halves::halves;

/// Sink that writes the reference's format, with [`cut_tag`] applied to each tag.
#[derive(Debug)]
pub struct ReferenceWriter<'m, O> {
    output: O,
    protocol: Protocol,
    rank: RankBuffer<'m>,
    /// Offset of the open rank's block, counted from [`BASE`].
    start: u64,
    highest_cpu: u8,
    highest_nic: u8,
}

impl<'m, O: Output> ReferenceWriter<'m, O> {
    /// Largest number of operations of a rank: LogGOPSim multiplies their numbers by the node size
    /// in 32 bits.
    pub const MOST_OPS: u32 = u32::MAX / 39;

    /// Writes to `output`, with `memory` for the largest rank.
    pub fn new(output: O, memory: RankMemory<'m>) -> Self {
        Self {
            output,
            protocol: Protocol::default(),
            rank: RankBuffer::new(memory),
            start: 0,
            highest_cpu: 0,
            highest_nic: 0,
        }
    }

    /// Checks that every rank was written, completes the header and returns the output.
    ///
    /// # Errors
    ///
    /// [`Misuse`](crate::goal::Misuse) if ranks are missing, or the error of the output.
    pub fn finish(mut self) -> Result<O, BinaryWriteError<O::Error>> {
        let ranks = self.protocol.finish()?;
        let header = Record::<{ TABLE_AT }>::new()
            .add(MAGIC.to_le_bytes())
            .add(ranks.to_le_bytes())
            .add([self.highest_cpu, self.highest_nic]);
        self.output.patch(0, header.bytes()).map_err(BinaryWriteError::Output)?;
        Ok(self.output)
    }

    /// Writes the complete rank; returns the length of its block.
    fn write_block(&mut self) -> Result<u64, O::Error> {
        let Self { output, rank, .. } = self;
        rank.group();
        let roots = || (0_u32..).zip(rank.nodes()).filter(|(_, node)| node.dependencies == 0);
        let counts =
            [rank.nodes().len(), roots().count()].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        output.append(&counts[0].to_le_bytes())?;
        output.append(&counts[1].to_le_bytes())?;
        for (index, _) in roots() {
            output.append(&index.to_le_bytes())?;
        }
        for node in rank.nodes() {
            output.append(encode(node).bytes())?;
        }
        for successor in rank.successors() {
            output.append(&successor.to_le_bytes())?;
        }
        let nodes = rank.nodes().len() as u64;
        Ok(8 + 4 * u64::from(counts[1]) + NODE * nodes + 4 * rank.successors().len() as u64)
    }
}

impl<O: Output> Sink for ReferenceWriter<'_, O> {
    type Error = BinaryWriteError<O::Error>;

    fn ranks(&mut self, ranks: u32) -> Result<(), Self::Error> {
        self.protocol.ranks(ranks)?;
        let head = TABLE + ENTRY * u64::from(ranks);
        self.start = head - BASE;
        self.output.reserve(head).map_err(BinaryWriteError::Output)
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), Self::Error> {
        self.protocol.begin_rank(rank)?;
        self.rank.clear();
        Ok(())
    }

    fn op(&mut self, op: Op) -> Result<u32, Self::Error> {
        let index = self.protocol.op()?;
        let rank = self.protocol.rank();
        if index >= Self::MOST_OPS {
            return Err(BinaryWriteError::RankTooLarge { rank, most: Self::MOST_OPS });
        }
        if let Some(why) = unsayable(op) {
            return Err(BinaryWriteError::Op { rank, op: index, why });
        }
        self.rank.push_op(op).map_err(|_| BinaryWriteError::RankMemory { rank })?;
        self.highest_cpu = self.highest_cpu.max(op.cpu.to_le_bytes()[0]);
        self.highest_nic = self.highest_nic.max(op.nic.to_le_bytes()[0]);
        Ok(index)
    }

    fn edge(&mut self, edge: Edge) -> Result<(), Self::Error> {
        self.protocol.edge(edge.op, edge.on)?;
        let rank = self.protocol.rank();
        self.rank.push_edge(edge).map_err(|_| BinaryWriteError::RankMemory { rank })
    }

    fn end_rank(&mut self) -> Result<(), Self::Error> {
        self.protocol.end_rank()?;
        let length = self.write_block().map_err(BinaryWriteError::Output)?;
        let end = self.start + length;
        let entry = Record::<16>::new().add(self.start.to_le_bytes()).add(end.to_le_bytes());
        let at = TABLE + ENTRY * u64::from(self.protocol.rank());
        self.start = end;
        self.output.patch(at, entry.bytes()).map_err(BinaryWriteError::Output)
    }
}

/// Property of `op` that the format cannot express or LogGOPSim cannot read.
fn unsayable(op: Op) -> Option<Unsayable> {
    match op.kind {
        _ if op.cpu.max(op.nic) >= u8::MAX.into() => Some(Unsayable::Unit255),
        OpKind::Send { peer: ANY, .. } => Some(Unsayable::SendToAny),
        OpKind::Calc { duration } if !duration.0.is_multiple_of(1_000) => {
            Some(Unsayable::FractionOfNano)
        }
        _ => None,
    }
}

/// Tag in LogGOPSim's 32 bits: the lower half. It is the wildcard for the wildcard, and also for
/// any other tag with that lower half.
#[must_use]
pub const fn cut_tag(tag: u64) -> u32 {
    halves(tag)[0]
}

/// Encodes the 39 bytes of a node.
fn encode(node: &RankNode) -> Record<{ NODE_SIZE }> {
    let (kind, peer, size, tag) = match node.op.kind {
        OpKind::Send { peer, size, tag } => (SEND, peer, size, tag),
        OpKind::Receive { peer, size, tag } => (RECEIVE, peer, size, tag),
        OpKind::Calc { duration } => (CALC, 0, duration.0 / 1_000, 0),
    };
    Record::new()
        .add(node.dependencies.to_le_bytes())
        .add([kind])
        .add(peer.to_le_bytes())
        .add(size.to_le_bytes())
        .add(cut_tag(tag).to_le_bytes())
        .add([node.op.cpu.to_le_bytes()[0], node.op.nic.to_le_bytes()[0]])
        .add(node.completions.to_le_bytes())
        .add(node.first.to_le_bytes())
        .add(node.starts.to_le_bytes())
        .add((node.first + node.completions).to_le_bytes())
}
