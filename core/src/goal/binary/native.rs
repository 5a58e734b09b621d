//! Reader of loggap's own binary format, versions 1 and 2.
//!
//! Little-endian; every field is aligned to its size from the start of the file.
//!
//! | at | type | content |
//! |---|---|---|
//! | 0 | 8 bytes | 89 4C 47 53 0D 0A 1A 0A |
//! | 8 | u32 | version: 2 if a rank is wide, else 1 |
//! | 12 | u32 | length of this header, 64 |
//! | 16 | u64 | length of the file |
//! | 24 | u64 | operations of all ranks |
//! | 32 | u64 | dependencies of all ranks |
//! | 40 | u32 | ranks |
//! | 44 | 20 bytes | 0 |
//! | 64 | ranks × (u64, u32, u32) | start of the rank's block, its operations, its dependencies |
//! | then | | the blocks, without gaps |
//!
//! A block has 24 bytes for each operation, then 8 bytes for each dependency in the order of their
//! statements: `u32` operation, `u32` operation that it waits for, with the top bit set if it waits
//! only for the start.
//!
//! A rank is wide, and the top bit of its block's start set, if a tag does not fit into 32 bits
//! (2³² − 1 is the wildcard) or a cpu or nic into 8. Its block ends with 8 further bytes for each
//! operation: the upper half of the tag as `u32`, the upper bytes of cpu and nic, two zeros. If the
//! lower half of the tag is 2³² − 1, the upper half is stored plus 1, because 0 denotes the
//! wildcard.

use super::bytes::{Bytes, u8_in, u32_in, u64_in};
use super::error::{BinaryError, BinaryErrorKind, BinaryReadError, Field};
use super::{CALC, RECEIVE, SEND};
use crate::goal::extent::Extent;
use crate::goal::lookup::OpIndex;
use crate::goal::op::{ANY, ANY_TAG, Edge, Op, OpKind, Sink};
use crate::units::Picos;

/// Magic bytes like those of PNG: a high bit, both line ends and a DOS end of file reveal damage by
/// a transfer as text.
pub(super) const MAGIC: [u8; 8] = *b"\x89LGS\r\n\x1a\n";
pub(super) const VERSION: u32 = 1;
/// Version of files with wide ranks.
pub(super) const WIDE_VERSION: u32 = 2;
/// Length of the header, bytes.
pub(super) const HEADER: u64 = HEADER_SIZE as u64;
pub(super) const HEADER_SIZE: usize = HEADER_LENGTH as usize;
pub(super) const HEADER_LENGTH: u32 = 64;
/// Length of a table entry, bytes.
pub(super) const ENTRY: u64 = ENTRY_SIZE as u64;
pub(super) const ENTRY_SIZE: usize = 16;
/// Length of an operation, bytes.
pub(super) const OP: u64 = OP_SIZE as u64;
pub(super) const OP_SIZE: usize = 24;
/// Length of a dependency, bytes.
pub(super) const EDGE: u64 = EDGE_SIZE as u64;
pub(super) const EDGE_SIZE: usize = 8;
/// Length of the upper halves of an operation's numbers, bytes.
pub(super) const HIGH_SIZE: usize = 8;
/// Flag of a wide rank, in the start of its block.
pub(super) const WIDE: u64 = 1 << 63;
/// Flag of a dependency on a start.
pub(super) const START: u32 = 1 << 31;

/// View of a file in loggap's format, with its header and table checked.
#[derive(Clone, Copy, Debug)]
pub struct Native<'b> {
    pub(super) bytes: Bytes<'b>,
    extent: Extent,
}

impl<'b> Native<'b> {
    /// Checks header and table, in time linear in the number of ranks.
    ///
    /// # Errors
    ///
    /// The first error found, with its position.
    pub fn open(bytes: &'b [u8]) -> Result<Self, BinaryError> {
        let bytes = Bytes(bytes);
        let header = bytes.part(0, HEADER)?;
        let refuse = |at, kind| Err(BinaryError { at, rank: None, kind });
        if !header.starts_with(&MAGIC) {
            return refuse(0, BinaryErrorKind::Magic { found: u64_in(header, 0) });
        }
        match u32_in(header, 8) {
            VERSION | WIDE_VERSION => {}
            found => return refuse(8, BinaryErrorKind::Version { found }),
        }
        Field::HeaderLength.implied(HEADER, u32_in(header, 12)).at(12, None)?;
        let length = u64_in(header, 16);
        if length > bytes.length() {
            return Err(bytes.truncated(length));
        }
        Field::FileLength.implied(bytes.length(), length).at(16, None)?;
        for at in [44, 48, 52, 56, 60] {
            Field::Reserved.implied(0_u64, u32_in(header, at)).at(at as u64, None)?;
        }
        let ranks = u32_in(header, 40);
        if ranks == 0 {
            return refuse(40, BinaryErrorKind::NoRanks);
        }
        let mut view = Self { bytes, extent: Extent::default() };
        view.measure_blocks(ranks)?;
        let wide = (0..ranks).any(|rank| view.block(rank).is_ok_and(|block| block.wide));
        let version = if wide { WIDE_VERSION } else { VERSION };
        Field::Version.implied(version, u32_in(header, 8)).at(8, None)?;
        Field::Ops.implied(view.extent.ops as u64, u64_in(header, 24)).at(24, None)?;
        Field::Edges.implied(view.extent.edges as u64, u64_in(header, 32)).at(32, None)?;
        Ok(view)
    }

    /// Checks that the blocks follow each other up to the end of the file, and sums up their
    /// counts.
    fn measure_blocks(&mut self, ranks: u32) -> Result<(), BinaryError> {
        let mut start = HEADER + u64::from(ranks) * ENTRY;
        if start > self.bytes.length() {
            return Err(self.bytes.truncated(start));
        }
        for rank in 0..ranks {
            let block = self.block(rank)?;
            let entry = HEADER + u64::from(rank) * ENTRY;
            Field::BlockStart.implied(start, block.start).at(entry, Some(rank))?;
            start = start.saturating_add(block.length());
            let extent = Extent::of_rank(block.ops as usize, block.edges as usize);
            self.extent = self.extent.with(extent);
        }
        Field::FileLength.implied(start, self.bytes.length()).at(self.bytes.length(), None)
    }

    pub(super) fn block(&self, rank: u32) -> Result<Block, BinaryError> {
        let entry = self.bytes.part(HEADER + u64::from(rank) * ENTRY, ENTRY)?;
        let start = u64_in(entry, 0);
        let (ops, edges) = (u32_in(entry, 8), u32_in(entry, 12));
        Ok(Block { start: start & !WIDE, ops, edges, wide: start & WIDE != 0 })
    }

    /// Upper halves of the operations of a block; none of a rank that is not wide.
    fn highs(&self, block: &Block) -> Result<&'b [[u8; HIGH_SIZE]], BinaryError> {
        let length = if block.wide { HIGH_SIZE as u64 * u64::from(block.ops) } else { 0 };
        Ok(self.bytes.part(block.first_high(), length)?.as_chunks().0)
    }

    /// Operation at an index; `None` past the last.
    #[inline]
    pub(super) fn op(&self, OpIndex { rank, op }: OpIndex) -> Option<Op> {
        let block = self.block(rank).ok().filter(|block| op < block.ops)?;
        let record = self.bytes.part(block.start + OP * u64::from(op), OP).ok()?;
        decode(record.first_chunk::<OP_SIZE>()?, self.highs(&block).ok()?.get(op as usize)).ok()
    }

    /// Size of the schedule.
    #[must_use]
    pub const fn extent(&self) -> Extent {
        self.extent
    }

    /// Reads all ranks into `sink`, each after it was checked.
    ///
    /// # Errors
    ///
    /// The first error of the file with its position, or the error of the sink. The sink then holds
    /// an incomplete schedule.
    pub fn read<S: Sink>(&self, sink: &mut S) -> Result<(), BinaryReadError<S::Error>> {
        sink.ranks(self.extent.ranks).map_err(|error| BinaryReadError::Sink { rank: 0, error })?;
        for rank in 0..self.extent.ranks {
            let block = self.block(rank)?;
            let ops = self.bytes.part(block.start, OP * u64::from(block.ops))?;
            let first_edge = block.start + OP * u64::from(block.ops);
            let edges = self.bytes.part(first_edge, EDGE * u64::from(block.edges))?;
            let ops = Operations { ops, highs: self.highs(&block)? };
            check(rank, &block, ops, edges)?;
            feed(rank, ops, edges, sink).map_err(|error| BinaryReadError::Sink { rank, error })?;
        }
        Ok(())
    }
}

/// Position and counts of a rank's block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) start: u64,
    pub(super) ops: u32,
    pub(super) edges: u32,
    /// True if its operations have upper halves.
    pub(super) wide: bool,
}

impl Block {
    pub(super) const fn length(&self) -> u64 {
        self.first_high() - self.start
            + if self.wide { HIGH_SIZE as u64 * self.ops as u64 } else { 0 }
    }

    /// Offset of the upper halves.
    const fn first_high(&self) -> u64 {
        self.start.saturating_add(OP * self.ops as u64 + EDGE * self.edges as u64)
    }
}

/// Operations of a block.
#[derive(Clone, Copy)]
struct Operations<'b> {
    ops: &'b [u8],
    highs: &'b [[u8; HIGH_SIZE]],
}

impl Operations<'_> {
    /// Decodes the operations, each or an error.
    fn decoded(self) -> impl Iterator<Item = Result<Op, BinaryErrorKind>> {
        let mut highs = self.highs.iter();
        self.ops.as_chunks::<{ OP_SIZE }>().0.iter().map(move |record| decode(record, highs.next()))
    }
}

/// Dependencies of a block.
pub(super) fn dependencies(edges: &[u8]) -> impl Iterator<Item = Edge> {
    edges.as_chunks::<{ EDGE_SIZE }>().0.iter().map(|record| {
        let (op, on) = (u32_in(record, 0), u32_in(record, 4));
        Edge { op, on: on & !START, start: on & START != 0 }
    })
}

fn check(rank: u32, block: &Block, ops: Operations<'_>, edges: &[u8]) -> Result<(), BinaryError> {
    let error = |at, kind| BinaryError { at, rank: Some(rank), kind };
    if block.ops >= START {
        let kind = BinaryErrorKind::OpIndex { found: block.ops - 1, ops: START };
        return Err(error(HEADER + u64::from(rank) * ENTRY + 8, kind));
    }
    let mut wide = false;
    for (index, op) in (0..).zip(ops.decoded()) {
        wide |= is_wide(&op.map_err(|kind| error(block.start + OP * index, kind))?);
    }
    let entry = HEADER + u64::from(rank) * ENTRY;
    Field::Wide.implied(wide, block.wide).at(entry, Some(rank))?;
    let first = block.start + OP * u64::from(block.ops);
    for (index, edge) in (0..).zip(dependencies(edges)) {
        let found = edge.op.max(edge.on);
        if found >= block.ops {
            let kind = BinaryErrorKind::OpIndex { found, ops: block.ops };
            return Err(error(first + EDGE * index, kind));
        }
    }
    Ok(())
}

/// Passes a checked block to `sink`.
fn feed<S: Sink>(
    rank: u32,
    ops: Operations<'_>,
    edges: &[u8],
    sink: &mut S,
) -> Result<(), S::Error> {
    sink.begin_rank(rank)?;
    for op in ops.decoded().flatten() {
        sink.op(op)?;
    }
    dependencies(edges).try_for_each(|edge| sink.edge(edge))?;
    sink.end_rank()
}

/// Decodes an operation of 24 bytes: size or picoseconds, peer, tag, type, cpu, nic, zeros; in a
/// wide rank with the upper halves of tag, cpu and nic. Peer and tag of a calculation are 0.
#[inline]
pub(super) fn decode(
    record: &[u8; OP_SIZE],
    high: Option<&[u8; HIGH_SIZE]>,
) -> Result<Op, BinaryErrorKind> {
    let (size, peer, low) = (u64_in(record, 0), u32_in(record, 8), u32_in(record, 12));
    let upper = high.map_or(0, |high| u64::from(u32_in(high, 0)));
    let tag = match upper.checked_sub(u64::from(low == ANY)) {
        Some(upper) => upper << 32 | u64::from(low),
        None => ANY_TAG,
    };
    let kind = match u8_in(record, 16) {
        SEND if peer == ANY => return Err(BinaryErrorKind::SendToAny),
        SEND => OpKind::Send { peer, size, tag },
        RECEIVE => OpKind::Receive { peer, size, tag },
        CALC => OpKind::Calc { duration: Picos(size) },
        found => return Err(BinaryErrorKind::OpType { found }),
    };
    let unused = if matches!(kind, OpKind::Calc { .. }) { u64::from(peer) | tag } else { 0 };
    let zeros = high.map_or(0, |high| u8_in(high, 6) | u8_in(high, 7)) | u8_in(record, 19);
    let reserved = u64::from(zeros) | u64::from(u32_in(record, 20)) | unused;
    if reserved != 0 {
        let field = Field::Reserved;
        return Err(BinaryErrorKind::Field { field, expected: 0, found: reserved });
    }
    let unit = |at: usize| {
        u16::from_le_bytes([u8_in(record, 17 + at), high.map_or(0, |high| u8_in(high, 4 + at))])
    };
    Ok(Op { kind, cpu: unit(0), nic: unit(1) })
}

/// True if the tag needs more than 32 bits, or the cpu or nic more than 8.
pub(super) fn is_wide(op: &Op) -> bool {
    let tag = match op.kind {
        OpKind::Send { tag, .. } | OpKind::Receive { tag, .. } if tag != ANY_TAG => tag,
        _ => 0,
    };
    tag >= ANY.into() || op.cpu.max(op.nic) > u8::MAX.into()
}
