//! Reader of the format of LogGOPSim's `txt2bin`.
//!
//! Little-endian, unaligned. Offsets in the table count from byte 8.
//!
//! | at | type | content |
//! |---|---|---|
//! | 0 | u64 | 4223 |
//! | 8 | u32 | ranks |
//! | 12, 13 | u8 | highest cpu, highest nic |
//! | 14 | ranks × (u64, u64) | start and end of each rank's block |
//! | then | | the blocks, without gaps |
//!
//! A block has `u32` operations, `u32` roots, the roots (operations without dependencies,
//! ascending), 39 bytes for each operation, and the successors of all operations, `u32` each: for
//! each operation first those that wait for its completion, then those that wait for its start.

use super::bytes::{Bytes, u8_in, u32_in, u64_in};
use super::error::{BinaryError, BinaryErrorKind, BinaryReadError, Field};
use super::{CALC, RECEIVE, SEND};
use crate::goal::extent::Extent;
use crate::goal::lookup::{DependsOn, Lookup, OpIndex};
use crate::goal::op::{ANY, ANY_TAG, Edge, Op, OpKind, Sink};
use crate::units::Picos;

pub(super) const MAGIC: u64 = 4_223;
pub(super) const MAGIC_CONSUMED: u64 = 2_342;
/// Offset from which the table counts.
pub(super) const BASE: u64 = 8;
/// Offset of the table.
pub(super) const TABLE: u64 = TABLE_AT as u64;
pub(super) const TABLE_AT: usize = 14;
/// Length of a table entry, bytes.
pub(super) const ENTRY: u64 = 16;
/// Length of an operation, bytes.
pub(super) const NODE: u64 = NODE_SIZE as u64;
pub(super) const NODE_SIZE: usize = 39;

/// View of a file in the reference's format, with its header and table checked.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'b> {
    bytes: Bytes<'b>,
    highest_cpu: u16,
    highest_nic: u16,
    extent: Extent,
}

impl<'b> Reference<'b> {
    /// Checks header and table, in time linear in the number of ranks.
    ///
    /// # Errors
    ///
    /// The first error found, with its position.
    pub fn open(bytes: &'b [u8]) -> Result<Self, BinaryError> {
        let bytes = Bytes(bytes);
        let header = bytes.part(0, TABLE)?;
        let refuse = |at, kind| Err(BinaryError { at, rank: None, kind });
        match u64_in(header, 0) {
            MAGIC => {}
            MAGIC_CONSUMED => return refuse(0, BinaryErrorKind::Consumed),
            found => return refuse(0, BinaryErrorKind::Magic { found }),
        }
        let mut view = Self {
            bytes,
            highest_cpu: u8_in(header, 12).into(),
            highest_nic: u8_in(header, 13).into(),
            extent: Extent::default(),
        };
        let ranks = u32_in(header, 8);
        if ranks == 0 {
            return refuse(8, BinaryErrorKind::NoRanks);
        }
        view.measure_blocks(ranks)?;
        Ok(view)
    }

    /// Checks that the blocks follow each other up to the end of the file, and sums up their
    /// counts.
    fn measure_blocks(&mut self, ranks: u32) -> Result<(), BinaryError> {
        let mut start = TABLE + u64::from(ranks) * ENTRY;
        if start > self.bytes.length() {
            return Err(self.bytes.truncated(start));
        }
        for rank in 0..ranks {
            let block = self.block(rank, start)?;
            let extent = Extent::of_rank(block.ops as usize, block.successors as usize);
            self.extent = self.extent.with(extent);
            start = block.end;
        }
        Field::FileLength.implied(start, self.bytes.length()).at(self.bytes.length(), None)
    }

    /// Parts of the block of `rank`, which must start at byte `start`.
    fn block(&self, rank: u32, start: u64) -> Result<Block, BinaryError> {
        let entry = TABLE + u64::from(rank) * ENTRY;
        let place = self.bytes.u64(entry)?;
        Field::BlockStart.implied(start - BASE, place).at(entry, Some(rank))?;
        let end = self.bytes.u64(entry + 8)?.saturating_add(BASE);
        if end > self.bytes.length() {
            return Err(self.bytes.truncated(end));
        }
        let head = if end < start + 8 { None } else { Some(self.bytes.part(start, 8)?) };
        let (ops, roots) = head.map_or((0, 0), |head| (u32_in(head, 0), u32_in(head, 4)));
        let nodes = start + 8 + 4 * u64::from(roots);
        let successors = nodes + NODE * u64::from(ops);
        let count = end.checked_sub(successors).filter(|bytes| bytes.is_multiple_of(4));
        match count.and_then(|bytes| u32::try_from(bytes / 4).ok()) {
            Some(count) if head.is_some() && roots <= ops => {
                Ok(Block { ops, roots, nodes, first_successor: successors, successors: count, end })
            }
            _ => {
                let bytes = end.saturating_sub(start);
                let kind = BinaryErrorKind::BlockSize { bytes, ops: u64::from(ops) };
                Err(BinaryError { at: start, rank: Some(rank), kind })
            }
        }
    }

    /// Size of the schedule; [`Reference::read`] needs as many elements of scratch memory as the
    /// largest rank has operations.
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
    pub fn read<S: Sink>(
        &self,
        scratch: &mut [u32],
        sink: &mut S,
    ) -> Result<(), BinaryReadError<S::Error>> {
        let ranks = self.extent.ranks;
        sink.ranks(ranks).map_err(|error| BinaryReadError::Sink { rank: 0, error })?;
        let mut start = TABLE + u64::from(ranks) * ENTRY;
        for rank in 0..ranks {
            let block = self.block(rank, start)?;
            start = block.end;
            Checker { view: self, rank, block: &block }.check(scratch)?;
            self.feed(rank, &block, sink)?;
        }
        Ok(())
    }

    fn feed<S: Sink>(
        &self,
        rank: u32,
        block: &Block,
        sink: &mut S,
    ) -> Result<(), BinaryReadError<S::Error>> {
        let refused = |error| BinaryReadError::Sink { rank, error };
        sink.begin_rank(rank).map_err(refused)?;
        let nodes = self.bytes.part(block.nodes, NODE * u64::from(block.ops))?;
        let nodes = nodes.chunks_exact(NODE_SIZE);
        for node in nodes.clone() {
            let op =
                decode(node).map_err(|kind| BinaryError { at: block.nodes, rank: None, kind })?;
            sink.op(op).map_err(refused)?;
        }
        for (on, node) in (0..).zip(nodes) {
            for (list, start) in [(List::Completions, false), (List::Starts, true)] {
                for op in self.list(block, list, node)? {
                    sink.edge(Edge { op, on, start }).map_err(refused)?;
                }
            }
        }
        sink.end_rank().map_err(refused)
    }

    /// Successors in one of a node's lists.
    #[inline]
    fn list(
        &self,
        block: &Block,
        list: List,
        node: &[u8],
    ) -> Result<impl Iterator<Item = u32> + use<'b>, BinaryError> {
        let (length, first) = list.of(node);
        let at = block.first_successor + 4 * u64::from(if length == 0 { 0 } else { first });
        let bytes = self.bytes.part(at, 4 * u64::from(length))?;
        Ok(bytes.as_chunks().0.iter().map(|chunk| u32::from_le_bytes(*chunk)))
    }
}

/// Random access.
impl Reference<'_> {
    fn block_of(&self, rank: u32) -> Option<Block> {
        let start = self.bytes.u64(TABLE + u64::from(rank) * ENTRY).ok()?.checked_add(BASE)?;
        if start > self.bytes.length() { None } else { self.block(rank, start).ok() }
    }

    /// Block of an operation, and its node.
    fn node(&self, OpIndex { rank, op }: OpIndex) -> Option<(Block, &[u8])> {
        let block = self.block_of(rank).filter(|block| op < block.ops)?;
        let node = self.bytes.part(block.nodes + NODE * u64::from(op), NODE).ok()?;
        Some((block, node))
    }
}

impl Lookup for Reference<'_> {
    fn op(&self, index: OpIndex) -> Option<Op> {
        decode(self.node(index)?.1).ok()
    }

    fn dependencies(&self, index: OpIndex) -> Option<u32> {
        Some(u32_in(self.node(index)?.1, 0))
    }

    fn dependents(&self, index: OpIndex, mut tell: impl FnMut(u32, DependsOn)) -> Option<()> {
        let (block, node) = self.node(index)?;
        for (list, depends_on) in
            [(List::Starts, DependsOn::Start), (List::Completions, DependsOn::End)]
        {
            self.list(&block, list, node).ok()?.for_each(|op| tell(op, depends_on));
        }
        Some(())
    }

    fn roots(&self, rank: u32, tell: impl FnMut(u32)) -> Option<()> {
        let block = self.block_of(rank)?;
        let length = 4 * u64::from(block.roots);
        let roots = self.bytes.part(block.nodes.checked_sub(length)?, length).ok()?;
        roots.as_chunks().0.iter().map(|root| u32::from_le_bytes(*root)).for_each(tell);
        Some(())
    }
}

/// Parts of a rank's block, by their offsets in the file.
#[derive(Clone, Copy, Debug)]
struct Block {
    ops: u32,
    roots: u32,
    nodes: u64,
    first_successor: u64,
    successors: u32,
    end: u64,
}

/// List of successors of a node.
#[derive(Clone, Copy)]
enum List {
    Completions,
    Starts,
}

impl List {
    /// Length and first element.
    fn of(self, node: &[u8]) -> (u32, u32) {
        match self {
            Self::Completions => (u32_in(node, 23), u32_in(node, 27)),
            Self::Starts => (u32_in(node, 31), u32_in(node, 35)),
        }
    }
}

/// Check of one block before it is used.
struct Checker<'v, 'b> {
    view: &'v Reference<'b>,
    rank: u32,
    block: &'v Block,
}

impl Checker<'_, '_> {
    fn error(&self, at: u64, kind: BinaryErrorKind) -> BinaryError {
        BinaryError { at, rank: Some(self.rank), kind }
    }

    /// Checks the block, counting dependencies in `scratch`.
    fn check(&self, scratch: &mut [u32]) -> Result<(), BinaryError> {
        let needed = self.view.extent.ops_most;
        let Some(waiting) = scratch.get_mut(..self.block.ops as usize) else {
            return Err(self.error(self.block.nodes, BinaryErrorKind::Memory { needed }));
        };
        waiting.fill(0);
        let bytes = self.view.bytes.part(self.block.nodes, NODE * u64::from(self.block.ops))?;
        let nodes = bytes.chunks_exact(NODE_SIZE);
        let available = u64::from(self.block.successors);
        let mut successors = 0;
        for (index, node) in (0..).zip(nodes.clone()) {
            let at = self.block.nodes + NODE * index;
            self.check_node(node).map_err(|kind| self.error(at, kind))?;
            for (list, field) in [(List::Completions, 23), (List::Starts, 31)] {
                successors += u64::from(list.of(node).0);
                // Lists that overlap could cost quadratic time.
                if successors <= available {
                    self.count(list, node, waiting).map_err(|kind| self.error(at + field, kind))?;
                }
            }
        }
        Field::Successors
            .implied(available, successors)
            .at(self.block.first_successor, Some(self.rank))?;
        for ((index, node), waiting) in (0..).zip(nodes).zip(waiting.iter()) {
            Field::Dependencies
                .implied(*waiting, u32_in(node, 0))
                .at(self.block.nodes + NODE * index, Some(self.rank))?;
        }
        self.check_roots(waiting)
    }

    fn check_node(&self, node: &[u8]) -> Result<(), BinaryErrorKind> {
        let op = decode(node)?;
        let units = [(op.cpu, self.view.highest_cpu), (op.nic, self.view.highest_nic)];
        match units.into_iter().find(|(found, highest)| found > highest) {
            Some((found, highest)) => Err(BinaryErrorKind::Unit { highest, found }),
            None => Ok(()),
        }
    }

    /// Counts the dependencies in a list of successors.
    fn count(&self, list: List, node: &[u8], waiting: &mut [u32]) -> Result<(), BinaryErrorKind> {
        let available = self.block.successors;
        let (length, first) = list.of(node);
        if length > 0 && first.checked_add(length).is_none_or(|end| end > available) {
            return Err(BinaryErrorKind::List { first, length, available });
        }
        let successors = self.view.list(self.block, list, node).map_err(|error| error.kind)?;
        for found in successors {
            let ops = self.block.ops;
            let slot = waiting.get_mut(found as usize);
            let slot = slot.ok_or(BinaryErrorKind::OpIndex { found, ops })?;
            *slot = slot.saturating_add(1);
        }
        Ok(())
    }

    /// Checks that the roots are the operations without dependencies, in order.
    fn check_roots(&self, waiting: &[u32]) -> Result<(), BinaryError> {
        let free = (0_u32..).zip(waiting).filter(|&(_, &count)| count == 0);
        let mut at = self.block.nodes - 4 * u64::from(self.block.roots);
        let count = free.clone().count() as u64;
        Field::RootCount.implied(count, self.block.roots).at(at - 4, Some(self.rank))?;
        for (index, _) in free {
            let found = self.view.bytes.u32(at)?;
            Field::Root.implied(index, found).at(at, Some(self.rank))?;
            at += 4;
        }
        Ok(())
    }
}

/// Decodes the 39 bytes of a node.
#[inline]
fn decode(node: &[u8]) -> Result<Op, BinaryErrorKind> {
    let (peer, size) = (u32_in(node, 5), u64_in(node, 9));
    let tag = match u32_in(node, 17) {
        ANY => ANY_TAG,
        tag => tag.into(),
    };
    let kind = match u8_in(node, 4) {
        SEND if peer == ANY => return Err(BinaryErrorKind::SendToAny),
        SEND => OpKind::Send { peer, size, tag },
        RECEIVE => OpKind::Receive { peer, size, tag },
        CALC => {
            let duration = Picos::from_nanos(size);
            OpKind::Calc { duration: duration.ok_or(BinaryErrorKind::Duration { found: size })? }
        }
        found => return Err(BinaryErrorKind::OpType { found }),
    };
    Ok(Op { kind, cpu: u8_in(node, 21).into(), nic: u8_in(node, 22).into() })
}
