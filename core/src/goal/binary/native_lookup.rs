//! Random access to loggap's format, where the dependencies of a rank are in the order of their
//! statements.
//!
//! The dependencies are divided into spans of 32. For each span the highest operation named up to
//! it, and the lowest named from it on, are stored. If statements follow the operations that they
//! name, as in recorded or generated schedules, the dependencies of an operation are in one or two
//! spans.

use core::ops::Range;

use super::bytes::Bytes;
use super::error::{BinaryError, LookupError};
use super::native::{Block, EDGE, EDGE_SIZE, Native, OP, dependencies};
use crate::goal::lookup::{DependsOn, Lookup, OpIndex};
use crate::goal::op::{Edge, Op};

/// Number of dependencies in a span.
const SPAN: usize = 32;
const SPAN_BYTES: usize = SPAN * EDGE_SIZE;
/// Spans that a lookup may inspect on average, in addition to `LOOKS` in all.
const LOOKS_EACH: u64 = 64;
const LOOKS: u64 = 1 << 22;

/// Bounds of the operations named in a span.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Highest in this span and the preceding ones.
    most: u32,
    /// Lowest in this span and the following ones.
    least: u32,
}

/// Bounds of a span of 32 dependencies.
#[derive(Clone, Copy, Debug)]
pub struct EdgeSpan {
    /// Bounds of the operations that wait.
    waiting: Bounds,
    /// Bounds of the operations waited for.
    awaited: Bounds,
}

/// Side of a dependency: the operation that waits, or the one waited for.
type Side = fn(&EdgeSpan) -> Bounds;
const WAITING: Side = |span| span.waiting;
const AWAITED: Side = |span| span.awaited;

impl Default for EdgeSpan {
    fn default() -> Self {
        let none = Bounds { most: 0, least: u32::MAX };
        Self { waiting: none, awaited: none }
    }
}

impl Bounds {
    const fn add(&mut self, op: u32) {
        if op > self.most {
            self.most = op;
        }
        if op < self.least {
            self.least = op;
        }
    }
}

/// Memory of [`Native::lookup`].
#[derive(Debug)]
pub struct LookupMemory<'m> {
    /// [`Native::spans`] elements.
    pub spans: &'m mut [EdgeSpan],
    /// One element more than ranks.
    pub firsts: &'m mut [u32],
}

/// Random access to a file in loggap's format.
#[derive(Clone, Copy, Debug)]
pub struct NativeLookup<'b> {
    view: Native<'b>,
    spans: &'b [EdgeSpan],
    /// First span of each rank.
    firsts: &'b [u32],
}

impl<'b> Native<'b> {
    /// Number of spans of all ranks, for [`LookupMemory`].
    #[must_use]
    pub fn spans(&self) -> u64 {
        let of = |rank| self.block(rank).map_or(0, |block| spans_of(&block));
        (0..self.extent().ranks).map(of).sum()
    }

    /// Random access to a file that was [read](Native::read) without an error.
    ///
    /// # Errors
    ///
    /// [`LookupError`], also if the order of the dependencies makes lookups slow.
    pub fn lookup(self, memory: LookupMemory<'b>) -> Result<NativeLookup<'b>, LookupError> {
        let LookupMemory { spans, firsts } = memory;
        let full = LookupError::Full;
        let (mut first, mut looks, mut allowed) = (0_u32, 0, LOOKS);
        for rank in 0..self.extent().ranks {
            let block = self.block(rank)?;
            *firsts.get_mut(rank as usize).ok_or(full)? = first;
            let end = u32::try_from(u64::from(first) + spans_of(&block)).map_err(|_| full)?;
            let spans = spans.get_mut(first as usize..end as usize).ok_or(full)?;
            note(spans, edges_of(self.bytes, &block)?);
            for side in [WAITING, AWAITED] {
                looks +=
                    ranges(spans, side, block.ops).map(|range| range.len() as u64).sum::<u64>();
            }
            allowed += LOOKS_EACH * (u64::from(block.ops) + u64::from(block.edges));
            if looks > allowed {
                return Err(LookupError::Scattered { rank });
            }
            first = end;
        }
        *firsts.get_mut(self.extent().ranks as usize).ok_or(full)? = first;
        Ok(NativeLookup { view: self, spans, firsts })
    }
}

const fn spans_of(block: &Block) -> u64 {
    (block.edges as u64).div_ceil(SPAN as u64)
}

fn edges_of<'b>(bytes: Bytes<'b>, block: &Block) -> Result<&'b [u8], BinaryError> {
    bytes.part(block.start + OP * u64::from(block.ops), EDGE * u64::from(block.edges))
}

/// Computes the bounds of the spans of these dependencies.
fn note(spans: &mut [EdgeSpan], edges: &[u8]) {
    let mut before = EdgeSpan::default();
    for (span, edges) in spans.iter_mut().zip(edges.chunks(SPAN_BYTES)) {
        *span = EdgeSpan::default();
        for edge in dependencies(edges) {
            span.waiting.add(edge.op);
            span.awaited.add(edge.on);
        }
        for (here, before) in
            [(&mut span.waiting, &mut before.waiting), (&mut span.awaited, &mut before.awaited)]
        {
            before.most = before.most.max(here.most);
            here.most = before.most;
        }
    }
    let mut after = EdgeSpan::default();
    for span in spans.iter_mut().rev() {
        for (here, after) in
            [(&mut span.waiting, &mut after.waiting), (&mut span.awaited, &mut after.awaited)]
        {
            after.least = after.least.min(here.least);
            here.least = after.least;
        }
    }
}

/// Range of spans that can name `op`, one of the `ops` operations of a rank.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "no more than there are spans")]
fn range(spans: &[EdgeSpan], side: Side, op: u32, ops: u32) -> Range<usize> {
    // Dependencies are usually spread evenly over the operations.
    let guess = u64::from(op) * spans.len() as u64 / u64::from(ops.max(1));
    let first = first_near(spans, guess as usize, |span| side(span).most < op);
    let later = spans.get(first..).unwrap_or_default();
    first..first + later.iter().take_while(|span| side(span).least <= op).count()
}

/// Partition point, searched from a guess on.
#[inline]
fn first_near<T>(all: &[T], guess: usize, is_before: impl Fn(&T) -> bool) -> usize {
    let is_before_at = |at: usize| all.get(at).is_some_and(&is_before);
    let (mut low, mut high) = (guess.min(all.len()), guess.min(all.len()));
    let mut step = 1;
    while low > 0 && !is_before_at(low - 1) {
        high = low - 1;
        low = low.saturating_sub(step);
        step *= 2;
    }
    while high < all.len() && is_before_at(high) {
        low = high + 1;
        high = all.len().min(high + step);
        step *= 2;
    }
    low + all.get(low..high).map_or(0, |between| between.partition_point(is_before))
}

/// Range of spans for each operation below `ops`, in ascending order.
fn ranges(spans: &[EdgeSpan], side: Side, ops: u32) -> impl Iterator<Item = Range<usize>> {
    let (mut first, mut end) = (0, 0);
    (0..ops).map(move |op| {
        while spans.get(first).is_some_and(|span| side(span).most < op) {
            first += 1;
        }
        while spans.get(end).is_some_and(|span| side(span).least <= op) {
            end += 1;
        }
        first..end
    })
}

/// Dependencies of a range of spans.
fn within(edges: &[u8], spans: Range<usize>) -> impl Iterator<Item = Edge> {
    let first = spans.start.saturating_mul(SPAN_BYTES);
    let end = spans.end.saturating_mul(SPAN_BYTES).min(edges.len());
    dependencies(edges.get(first..end).unwrap_or_default())
}

/// Spans, operations and dependencies of a rank.
struct RankLookup<'b> {
    spans: &'b [EdgeSpan],
    block: Block,
    edges: &'b [u8],
}

impl<'b> RankLookup<'b> {
    /// Dependencies that may name an operation.
    #[inline]
    fn near(&self, side: Side, op: u32) -> impl Iterator<Item = Edge> + use<'b> {
        within(self.edges, range(self.spans, side, op, self.block.ops))
    }
}

impl<'b> NativeLookup<'b> {
    #[inline]
    fn rank(&self, rank: u32) -> Option<RankLookup<'b>> {
        let firsts = self.firsts.get(rank as usize..)?;
        let (&[first, end], _) = firsts.split_first_chunk()?;
        let spans = self.spans.get(first as usize..end as usize)?;
        let block = self.view.block(rank).ok()?;
        Some(RankLookup { spans, block, edges: edges_of(self.view.bytes, &block).ok()? })
    }
}

impl Lookup for NativeLookup<'_> {
    fn op(&self, index: OpIndex) -> Option<Op> {
        self.view.op(index)
    }

    fn dependencies(&self, index: OpIndex) -> Option<u32> {
        let near = self.rank(index.rank)?.near(WAITING, index.op);
        u32::try_from(near.filter(|edge| edge.op == index.op).count()).ok()
    }

    fn dependents(&self, index: OpIndex, mut tell: impl FnMut(u32, DependsOn)) -> Option<()> {
        for edge in self.rank(index.rank)?.near(AWAITED, index.op) {
            if edge.on == index.op {
                tell(edge.op, if edge.start { DependsOn::Start } else { DependsOn::End });
            }
        }
        Some(())
    }

    fn roots(&self, rank: u32, tell: impl FnMut(u32)) -> Option<()> {
        let RankLookup { spans, block, edges } = self.rank(rank)?;
        (0..block.ops)
            .zip(ranges(spans, WAITING, block.ops))
            .filter(|(op, spans)| !within(edges, spans.clone()).any(|edge| edge.op == *op))
            .map(|(op, _)| op)
            .for_each(tell);
        Some(())
    }
}
