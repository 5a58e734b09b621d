//! Operations of the larger program by their indices, made as they are asked for.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use loggap_core::goal::{DependsOn, Lookup, Op, OpIndex};

use super::Extrapolation;
use super::expansion::Expansion;
use super::sequence::{Link, PlacedCall, Sequence};
use crate::sys::prefetch;

/// Operations of collectives that are kept together on all ranks; beyond, all are made again when
/// they are asked for.
const KEPT: usize = 1 << 23;

/// Where a rank is: a segment of its sequence.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    /// Number of the sequence.
    sequence: u32,
    segment: u32,
    /// First operation of the segment, and its element.
    begin: u32,
    first: u32,
    /// Number of elements before the collective operation at its end; 0 before the first lookup.
    plain: u32,
}

/// A [`Cursor`] that one thread uses after the other.
#[derive(Debug, Default)]
struct CursorCell([AtomicU32; 5]);

impl CursorCell {
    fn new(cursor: Cursor) -> Self {
        let cell = Self::default();
        cell.set(cursor);
        cell
    }

    #[inline]
    fn get(&self) -> Cursor {
        let [sequence, segment, begin, first, plain] =
            self.0.each_ref().map(|word| word.load(Relaxed));
        Cursor { sequence, segment, begin, first, plain }
    }

    #[inline]
    fn set(&self, Cursor { sequence, segment, begin, first, plain }: Cursor) {
        for (word, to) in self.0.iter().zip([sequence, segment, begin, first, plain]) {
            word.store(to, Relaxed);
        }
    }
}

/// Expansions of collectives, by kind and rank, and the operations in them.
#[derive(Debug, Default)]
struct Expansions {
    known: HashMap<(u32, u32), Arc<Expansion>>,
    kept: usize,
}

/// State of lookups on some of the ranks: the place of each, and the collective operations under
/// way. One thread uses it after the other.
#[derive(Debug)]
pub struct UnderWay {
    first_rank: u32,
    cursors: Vec<CursorCell>,
    expansions: Mutex<Expansions>,
    /// Share of [`KEPT`].
    kept_most: usize,
}

impl UnderWay {
    /// Memory of a rank.
    pub(super) const BYTES_A_RANK: u64 = size_of::<CursorCell>() as u64;

    /// State for `ranks` of a program.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn new(of: &Extrapolation, ranks: Range<u32>) -> io::Result<Self> {
        let (first_rank, count) = (ranks.start, ranks.end - ranks.start);
        let mut cursors = super::room(count)?;
        let begin = |rank| {
            let sequence = of.mapping.source(rank);
            CursorCell::new(Cursor { sequence, segment: 0, begin: 0, first: 0, plain: 0 })
        };
        cursors.extend(ranks.map(begin));
        let share = KEPT as u64 * u64::from(count) / u64::from(of.ranks.max(1));
        let kept_most = usize::try_from(share).unwrap_or(KEPT);
        Ok(Self { first_rank, cursors, expansions: Mutex::default(), kept_most })
    }

    #[inline]
    fn cursor(&self, rank: u32) -> Option<&CursorCell> {
        self.cursors.get(rank.wrapping_sub(self.first_rank) as usize)
    }
}

/// View of an extrapolated program.
#[derive(Clone, Copy, Debug)]
pub struct ExtrapolatedLookup<'e> {
    of: &'e Extrapolation,
    under_way: &'e UnderWay,
}

/// An operation: an element of the sequence, or one of those of a collective.
enum Place<'e> {
    Plain(u32),
    Within { call: &'e PlacedCall, expansion: Arc<Expansion>, at: u32 },
}

impl<'e> ExtrapolatedLookup<'e> {
    /// View of `of`, with the state of its ranks.
    #[must_use]
    pub const fn new(of: &'e Extrapolation, under_way: &'e UnderWay) -> Self {
        Self { of, under_way }
    }

    fn sequence(&self, rank: u32) -> Option<&'e Sequence> {
        let cursor = self.under_way.cursor(rank)?.get();
        self.of.sequences.get(cursor.sequence as usize)
    }

    fn expansion(&self, rank: u32, kind: u32) -> Arc<Expansion> {
        let expansions = self.under_way.expansions.lock();
        let mut expansions = expansions.unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = expansions.known.get(&(kind, rank)) {
            return Arc::clone(known);
        }
        let new = Arc::new(self.of.expansion(kind, rank));
        expansions.kept += new.kept();
        if expansions.kept > self.under_way.kept_most {
            expansions.known.clear();
            expansions.kept = new.kept();
        }
        expansions.known.insert((kind, rank), Arc::clone(&new));
        new
    }

    /// Moves the cursor of `rank` to the segment before or behind it, until `place` finds what is
    /// looked for in it: the segment, its first element, and the collective operation at its end.
    fn walk<T>(
        &self,
        rank: u32,
        sequence: &'e Sequence,
        mut place: impl FnMut(Cursor, Option<&'e PlacedCall>) -> Walk<T>,
    ) -> Option<T> {
        let cell = self.under_way.cursor(rank)?;
        let mut cursor = cell.get();
        let length = |segment: u32, call: &PlacedCall| {
            let plain = call.element - sequence.segment(segment);
            plain + self.expansion(rank, call.kind).len()
        };
        loop {
            let call = sequence.calls.get(cursor.segment as usize);
            cursor.first = sequence.segment(cursor.segment);
            let end = call.map_or(sequence.len(), |call| call.element);
            cursor.plain = end.saturating_sub(cursor.first);
            match place(cursor, call) {
                Walk::Found(found) => {
                    cell.set(cursor);
                    return Some(found);
                }
                Walk::Before => {
                    cursor.segment = cursor.segment.checked_sub(1)?;
                    let call = sequence.calls.get(cursor.segment as usize)?;
                    cursor.begin -= length(cursor.segment, call);
                }
                Walk::Behind => {
                    cursor.begin += length(cursor.segment, call?);
                    cursor.segment += 1;
                }
            }
        }
    }

    #[inline]
    fn place(&self, index: OpIndex) -> Option<(&'e Sequence, Place<'e>)> {
        let sequence = self.sequence(index.rank)?;
        let Cursor { begin, first, plain, .. } = self.under_way.cursor(index.rank)?.get();
        // Mostly in the same segment as the last one.
        let at = index.op.wrapping_sub(begin);
        if at < plain {
            return Some((sequence, Place::Plain(first + at)));
        }
        self.search(sequence, index)
    }

    #[inline(never)]
    fn search(
        &self,
        sequence: &'e Sequence,
        OpIndex { rank, op }: OpIndex,
    ) -> Option<(&'e Sequence, Place<'e>)> {
        let found = self.walk(rank, sequence, |cursor, call| {
            let Some(at) = op.checked_sub(cursor.begin) else { return Walk::Before };
            if at < cursor.plain {
                return Walk::Found(Place::Plain(cursor.first + at));
            }
            let Some(call) = call else { return Walk::Behind };
            let (expansion, at) = (self.expansion(rank, call.kind), at - cursor.plain);
            if at < expansion.len() {
                Walk::Found(Place::Within { call, expansion, at })
            } else {
                Walk::Behind
            }
        })?;
        Some((sequence, found))
    }

    /// First operation of `element`, and the collective operation that it is.
    #[inline]
    fn begin(&self, rank: u32, sequence: &'e Sequence, link: Link) -> Option<(u32, Option<u32>)> {
        let element = link.element();
        let Cursor { begin, first, plain, .. } = self.under_way.cursor(rank)?.get();
        let at = element.wrapping_sub(first);
        if at < plain {
            return Some((begin + at, None));
        }
        self.walk(rank, sequence, |cursor, call| {
            if element < cursor.first {
                Walk::Before
            } else if call.is_some_and(|call| call.element < element) {
                Walk::Behind
            } else {
                let kind = call.filter(|_| link.is_call()).map(|call| call.kind);
                Walk::Found((cursor.begin + (element - cursor.first), kind))
            }
        })
    }

    /// Number of operations that one waits for which waits for these elements.
    fn count(&self, rank: u32, sequence: &Sequence, links: &[Link]) -> Option<u32> {
        let mut count = 0u32;
        for link in links {
            count += match link.is_call() {
                false => 1,
                true => {
                    let kind = sequence.kind_of(link.element())?;
                    u32::try_from(self.expansion(rank, kind).last().len()).ok()?
                }
            };
        }
        Some(count)
    }
}

/// Where something is, seen from a segment.
enum Walk<T> {
    Found(T),
    Before,
    Behind,
}

impl Lookup for ExtrapolatedLookup<'_> {
    fn op(&self, index: OpIndex) -> Option<Op> {
        let (sequence, place) = self.place(index)?;
        match place {
            Place::Plain(element) => {
                self.of.placed(*sequence.ops.get(element as usize)?, index.rank)
            }
            Place::Within { call, expansion, at } => {
                let op = *sequence.ops.get(call.element as usize)?;
                Some(Op { kind: expansion.operation(at, call.tag)?, ..op })
            }
        }
    }

    fn dependencies(&self, index: OpIndex) -> Option<u32> {
        let (sequence, place) = self.place(index)?;
        let element = match place {
            Place::Plain(element) => element,
            Place::Within { call, expansion, at } => match expansion.stage_of(at).checked_sub(1) {
                Some(before) => return u32::try_from(expansion.stage(before)?.len()).ok(),
                None => call.element,
            },
        };
        self.count(index.rank, sequence, sequence.waits(element))
    }

    fn dependents(&self, index: OpIndex, mut tell: impl FnMut(u32, DependsOn)) -> Option<()> {
        let OpIndex { rank, op } = index;
        let (sequence, place) = self.place(index)?;
        let element = match place {
            Place::Plain(element) => element,
            Place::Within { call, expansion, at } => {
                if let Some(next) = expansion.stage(expansion.stage_of(at) + 1) {
                    next.for_each(|next| tell(op - at + next, DependsOn::End));
                    return Some(());
                }
                call.element
            }
        };
        for link in sequence.dependents(element) {
            let (begin, kind) = self.begin(rank, sequence, *link)?;
            let first = match kind {
                Some(kind) => self.expansion(rank, kind).stage(0)?,
                None => 0..1,
            };
            first.for_each(|at| tell(begin + at, link.event()));
        }
        Some(())
    }

    fn roots(&self, rank: u32, mut tell: impl FnMut(u32)) -> Option<()> {
        let sequence = self.sequence(rank)?;
        for link in &sequence.roots {
            let (begin, kind) = self.begin(rank, sequence, *link)?;
            let first = match kind {
                Some(kind) => self.expansion(rank, kind).stage(0)?,
                None => 0..1,
            };
            first.for_each(|at| tell(begin + at));
        }
        Some(())
    }

    #[inline]
    fn prefetch_rank(&self, rank: u32) {
        if let Some(cursor) = self.under_way.cursor(rank) {
            prefetch::prefetch(cursor);
        }
    }
}
