//! Operations of the larger program by their indices, made as they are asked for.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use loggap_core::goal::{DependsOn, Lookup, Op, OpIndex};

use super::Extrapolation;
use super::expansion::Expansion;
use super::sequence::{Link, PlacedCall, Sequence};
use crate::sys::prefetch;

/// Operations of collectives that are kept together; beyond, all are made again when they are asked
/// for.
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

/// State of lookups: the place of each rank, and the collective operations under way.
#[derive(Debug)]
pub struct UnderWay {
    cursors: Vec<Cell<Cursor>>,
    /// By kind and rank.
    expansions: RefCell<HashMap<(u32, u32), Rc<Expansion>>>,
    kept: Cell<usize>,
}

impl UnderWay {
    /// Memory of a rank.
    pub(super) const BYTES_A_RANK: u64 = size_of::<Cell<Cursor>>() as u64;

    /// State for a program.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn new(of: &Extrapolation) -> io::Result<Self> {
        let mut cursors = super::room(of.ranks)?;
        let begin = |rank| {
            let sequence = of.mapping.source(rank);
            Cell::new(Cursor { sequence, segment: 0, begin: 0, first: 0, plain: 0 })
        };
        cursors.extend((0..of.ranks).map(begin));
        Ok(Self { cursors, expansions: RefCell::default(), kept: Cell::new(0) })
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
    Within { call: &'e PlacedCall, expansion: Rc<Expansion>, at: u32 },
}

impl<'e> ExtrapolatedLookup<'e> {
    /// View of `of`, with the state of its ranks.
    #[must_use]
    pub const fn new(of: &'e Extrapolation, under_way: &'e UnderWay) -> Self {
        Self { of, under_way }
    }

    fn sequence(&self, rank: u32) -> Option<&'e Sequence> {
        let cursor = self.under_way.cursors.get(rank as usize)?.get();
        self.of.sequences.get(cursor.sequence as usize)
    }

    fn expansion(&self, rank: u32, kind: u32) -> Rc<Expansion> {
        let UnderWay { expansions, kept, .. } = self.under_way;
        let mut expansions = expansions.borrow_mut();
        if let Some(known) = expansions.get(&(kind, rank)) {
            return Rc::clone(known);
        }
        let new = Rc::new(self.of.expansion(kind, rank));
        kept.set(kept.get() + new.kept());
        if kept.get() > KEPT {
            expansions.clear();
            kept.set(new.kept());
        }
        expansions.insert((kind, rank), Rc::clone(&new));
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
        let cell = self.under_way.cursors.get(rank as usize)?;
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
        let Cursor { begin, first, plain, .. } =
            self.under_way.cursors.get(index.rank as usize)?.get();
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
        let Cursor { begin, first, plain, .. } = self.under_way.cursors.get(rank as usize)?.get();
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
        if let Some(cursor) = self.under_way.cursors.get(rank as usize) {
            prefetch::prefetch(cursor);
        }
    }
}
