//! The sample store: every kept value of a measurement, on lent memory.
//!
//! One row per size, one cell per row and [`Quantity`]. A cell keeps its
//! values sorted, so medians and order statistics are reads, and the store's
//! content does not depend on the order in which samples came.

use core::fmt;
use core::ops::Range;

use super::plan_memory::RowPlan;
use super::ranges::{Span, narrow};
use super::{Experiment, Quantity, Sample};
use crate::fit::Point;
use crate::units::{Picos, SignedPicos};
use crate::wide::times;

/// Cells in a row: one per [`Quantity`].
pub const QUANTITIES: usize = 4;

/// One size's bookkeeping in the memory lent to a [`SampleStore`].
#[derive(Clone, Copy, Debug, Default)]
pub struct RowHeader {
    pub(super) size: u32,
    /// Which block of the value memory belongs to this row: rows move when a
    /// smaller size is added, values stay.
    block: u16,
    counts: [u16; QUANTITIES],
    /// Shortest delay kept by any paced round; the longest time before one.
    shortest_delay: Picos,
    /// What a planner, if there is one, intends here.
    pub(super) plan: RowPlan,
}

impl RowHeader {
    /// Which cell of the value memory is that of `quantity`.
    fn cell(&self, quantity: Quantity) -> usize {
        usize::from(self.block) * QUANTITIES + quantity.index()
    }

    /// Number of values of `quantity`.
    pub(super) fn count(&self, quantity: Quantity) -> usize {
        self.counts.get(quantity.index()).map_or(0, |&count| count.into())
    }
}

/// The memory that a [`SampleStore`] needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StoreRequirements {
    /// Length of the slice of [`RowHeader`].
    pub rows: usize,
    /// Length of the slice of values.
    pub values: usize,
}

impl StoreRequirements {
    /// What `sizes` sizes with up to `repetitions` values per quantity need;
    /// `None` beyond what one store can hold (65,535 of either).
    #[must_use]
    pub fn new(sizes: usize, repetitions: usize) -> Option<Self> {
        u16::try_from(sizes).ok()?;
        u16::try_from(repetitions).ok()?;
        let values = sizes.checked_mul(QUANTITIES)?.checked_mul(repetitions)?;
        Some(Self { rows: sizes, values })
    }
}

/// Why a sample was not taken. The store is unchanged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum StoreError {
    /// All rows hold other sizes; this many rows were lent.
    RowsFull(usize),
    /// The cell holds as many values as fit; this many.
    CellFull(usize),
    /// A burst of this many messages among bursts of another length: the
    /// first number is the burst's, the second the store's.
    MessagesDiffer(u32, u32),
    /// Gap values and timed rounds cannot be mixed in one store.
    KindsDiffer,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RowsFull(rows) => write!(f, "no room for another size: {rows} sizes fit"),
            Self::CellFull(values) => {
                write!(f, "no room for another value of this size: {values} values fit")
            }
            Self::MessagesDiffer(got, expected) => write!(
                f,
                "a burst of {got} messages among bursts of {expected}: one assessment uses one n"
            ),
            Self::KindsDiffer => f.write_str("gap values and timed rounds cannot be mixed"),
        }
    }
}

impl core::error::Error for StoreError {}

/// Sorted sample values per size and quantity, on lent memory.
#[derive(Debug)]
pub struct SampleStore<'m> {
    rows: &'m mut [RowHeader],
    values: &'m mut [u64],
    used: usize,
    per_cell: usize,
    /// Messages in a burst; 0 before the first one.
    messages: u32,
    /// Whether the gap cells hold values of `G_all`, with the sign bit
    /// flipped to keep their order, and no others hold any.
    gaps: bool,
}

impl<'m> SampleStore<'m> {
    /// An empty store. Every cell of every row can take
    /// `values.len() / (4 · rows.len())` values; see [`StoreRequirements`].
    #[must_use]
    pub fn new(rows: &'m mut [RowHeader], values: &'m mut [u64]) -> Self {
        let rows_usable = rows.len().min(usize::from(u16::MAX));
        let per_cell = values.len() / (QUANTITIES * rows_usable).max(1);
        let per_cell = per_cell.min(usize::from(u16::MAX));
        Self { rows, values, used: 0, per_cell, messages: 0, gaps: false }
    }

    /// Sizes in the store.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.used
    }

    /// Whether the store holds no size.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Whether no further size fits.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.used >= self.rows.len().min(usize::from(u16::MAX))
    }

    /// Values that one cell can take.
    #[must_use]
    pub const fn cell_capacity(&self) -> usize {
        self.per_cell
    }

    /// Messages in a burst, `n`, once a burst is stored.
    #[must_use]
    pub const fn messages(&self) -> Option<u32> {
        if self.messages > 0 { Some(self.messages) } else { None }
    }

    /// Whether the store holds values of `G_all` instead of timed rounds.
    #[must_use]
    pub const fn holds_gaps(&self) -> bool {
        self.gaps
    }

    /// The size of row `row`, counted in ascending order of size.
    #[must_use]
    pub fn size(&self, row: usize) -> Option<u32> {
        self.header(row).map(|header| header.size)
    }

    /// The row of `size`, or where it would stand.
    ///
    /// # Errors
    ///
    /// The index at which a row of this size would be added.
    pub fn find(&self, size: u32) -> Result<usize, usize> {
        self.rows().binary_search_by_key(&size, |header| header.size)
    }

    /// The sorted values of one cell; empty for rows that do not exist.
    ///
    /// For [`Quantity::Paced`] they are `PRTT(n,d,s) − (n − 1)·d` with each
    /// round's own kept delay, for the others the elapsed time, in
    /// picoseconds.
    #[must_use]
    pub fn cell(&self, row: usize, quantity: Quantity) -> &[u64] {
        let Some(header) = self.header(row) else { return &[] };
        let start = header.cell(quantity) * self.per_cell;
        self.values.get(start..start + header.count(quantity)).unwrap_or_default()
    }

    /// Number of values in one cell.
    #[must_use]
    pub fn count(&self, row: usize, quantity: Quantity) -> usize {
        self.header(row).map_or(0, |header| header.count(quantity))
    }

    /// The shortest delay that any paced round of this row kept; `None`
    /// without paced rounds.
    #[must_use]
    pub fn shortest_delay(&self, row: usize) -> Option<Picos> {
        let header = self.header(row).filter(|header| header.count(Quantity::Paced) > 0)?;
        Some(header.shortest_delay)
    }

    /// Adds a row for `size` unless there is one, and returns its index.
    /// Rows of larger sizes move up by one.
    ///
    /// # Errors
    ///
    /// [`StoreError::RowsFull`].
    pub fn add_size(&mut self, size: u32) -> Result<usize, StoreError> {
        let row = match self.find(size) {
            Ok(row) => return Ok(row),
            Err(row) => row,
        };
        let full = StoreError::RowsFull(self.rows.len());
        if self.is_full() || self.per_cell == 0 {
            return Err(full);
        }
        let block = u16::try_from(self.used).map_err(|_| full)?;
        let tail = self.rows.get_mut(row..=self.used).ok_or(full)?;
        let shortest_delay = Picos(u64::MAX);
        insert_first(tail, RowHeader { size, block, shortest_delay, ..RowHeader::default() });
        self.used += 1;
        Ok(row)
    }

    /// Stores a timed round, adding a row for its size if needed.
    ///
    /// # Errors
    ///
    /// [`StoreError`] says which memory is full or what does not belong
    /// together; the sample is not stored.
    pub fn insert(&mut self, sample: &Sample) -> Result<(), StoreError> {
        let Experiment { quantity, messages, size, .. } = sample.experiment;
        let burst = matches!(quantity, Quantity::Gap | Quantity::Paced);
        if self.gaps {
            return Err(StoreError::KindsDiffer);
        }
        if burst && self.messages > 0 && self.messages != messages {
            return Err(StoreError::MessagesDiffer(messages, self.messages));
        }
        let header = self.insert_value(size, quantity, value_of(sample))?;
        if quantity == Quantity::Paced {
            header.shortest_delay = header.shortest_delay.min(sample.delay);
        }
        if burst {
            self.messages = messages;
        }
        Ok(())
    }

    /// Stores a value of `G_all` that somebody else has computed, adding a
    /// row for its size if needed.
    ///
    /// # Errors
    ///
    /// As [`SampleStore::insert`].
    pub fn insert_gap(&mut self, size: u32, gap: SignedPicos) -> Result<(), StoreError> {
        if !self.gaps && !self.is_empty() {
            return Err(StoreError::KindsDiffer);
        }
        self.insert_value(size, Quantity::Gap, ordered(gap))?;
        self.gaps = true;
        Ok(())
    }

    fn insert_value(
        &mut self,
        size: u32,
        quantity: Quantity,
        value: u64,
    ) -> Result<&mut RowHeader, StoreError> {
        let row = self.add_size(size)?;
        let full = StoreError::CellFull(self.per_cell);
        let header = self.rows.get_mut(row).ok_or(full)?;
        let start = header.cell(quantity) * self.per_cell;
        let count = header.counts.get_mut(quantity.index()).ok_or(full)?;
        let kept = usize::from(*count);
        if kept >= self.per_cell {
            return Err(full);
        }
        *count += 1; // at most per_cell, which fits into u16
        let cell = self.values.get_mut(start..=start + kept).unwrap_or_default();
        insert_ascending(cell, value);
        Ok(header)
    }

    /// The rows, in ascending order of size.
    pub(super) fn rows(&self) -> &[RowHeader] {
        self.rows.get(..self.used).unwrap_or_default()
    }

    /// The rows, in ascending order of size.
    pub(super) fn rows_mut(&mut self) -> &mut [RowHeader] {
        self.rows.get_mut(..self.used).unwrap_or_default()
    }

    pub(super) fn header_mut(&mut self, row: usize) -> Option<&mut RowHeader> {
        self.rows_mut().get_mut(row)
    }

    pub(super) fn header(&self, row: usize) -> Option<&RowHeader> {
        self.rows().get(row)
    }

    /// The rows of the sizes from `first` to `last`.
    pub(super) fn rows_in(&self, (first, last): Span) -> Range<usize> {
        let first = self.find(first).unwrap_or_else(|row| row);
        first..self.find(last).map_or_else(|row| row, |row| row + 1)
    }

    /// The row of a point's size; beyond all rows where there is none.
    pub(super) fn row_of(&self, point: &Point) -> usize {
        self.find(narrow(point.size())).unwrap_or(usize::MAX)
    }

    /// The row of `size`.
    pub(super) fn header_of(&mut self, size: u32) -> Option<&mut RowHeader> {
        self.find(size).ok().and_then(|row| self.header_mut(row))
    }

    /// Whether a cell has room for more than `pending` values and its rounds
    /// arrive.
    pub(super) fn takes_more(&self, row: usize, quantity: Quantity, pending: usize) -> bool {
        self.header(row).is_some_and(|header| {
            header.count(quantity) + pending < self.per_cell && header.plan.takes_rounds(quantity)
        })
    }
}

/// Moves all elements of `tail` up by one, the last one out, and puts `first`
/// before them. A rotation would bring its panics along.
pub(super) fn insert_first<T>(tail: &mut [T], first: T) {
    let mut next = first;
    for place in tail {
        core::mem::swap(place, &mut next);
    }
}

/// Puts `value` in its place among the ascending elements of `cell`, whose
/// last place is free.
fn insert_ascending(cell: &mut [u64], value: u64) {
    let mut next = value;
    if let Some((free, kept)) = cell.split_last_mut() {
        for place in kept.iter_mut().filter(|place| **place > value) {
            core::mem::swap(place, &mut next);
        }
        *free = next;
    }
}

/// What a cell keeps of a timed round.
fn value_of(sample: &Sample) -> u64 {
    let waits = u64::from(sample.experiment.messages).saturating_sub(1);
    match sample.experiment.quantity {
        Quantity::Paced => {
            let waited = times(sample.delay.0, waits);
            sample.elapsed.since(Picos(waited)).0
        }
        Quantity::RoundTrip | Quantity::Gap | Quantity::Receive => sample.elapsed.0,
    }
}

/// A signed value as an unsigned one of the same order.
#[allow(clippy::cast_sign_loss, reason = "a bijection that keeps the order, undone by `unordered`")]
const fn ordered(gap: SignedPicos) -> u64 {
    (gap.0 as u64) ^ (1 << 63)
}

/// Undoes [`ordered`].
#[allow(clippy::cast_possible_wrap, reason = "a bijection that keeps the order, undoes `ordered`")]
pub(super) const fn unordered(value: u64) -> SignedPicos {
    SignedPicos((value ^ (1 << 63)) as i64)
}

impl Quantity {
    /// All quantities, in the order of their cells.
    pub const ALL: [Self; QUANTITIES] = [Self::RoundTrip, Self::Gap, Self::Paced, Self::Receive];

    /// What a round of `messages` messages with `delay` between them is for:
    /// the columns n and d of a sample file say it all.
    #[must_use]
    pub const fn of(messages: u32, delay: Picos) -> Self {
        match (messages, delay) {
            (0 | 1, Picos::ZERO) => Self::RoundTrip,
            (0 | 1, _) => Self::Receive,
            (_, Picos::ZERO) => Self::Gap,
            _ => Self::Paced,
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;
    use std::vec;
    use std::vec::Vec;

    fn sample(quantity: Quantity, size: u32, delay: u64, elapsed: u64) -> Sample {
        let messages = if matches!(quantity, Quantity::Gap | Quantity::Paced) { 10 } else { 1 };
        let experiment = Experiment { quantity, messages, delay: Picos(delay), size };
        Sample { experiment, delay: Picos(delay), elapsed: Picos(elapsed) }
    }

    quickcheck! {
        fn cells_are_sorted_and_complete_whatever_the_order(samples: Vec<(u8, u8, u64)>) -> bool {
            let needed = StoreRequirements::new(8, samples.len()).unwrap();
            let (mut rows, mut values) = (vec![RowHeader::default(); needed.rows], vec![0; needed.values]);
            let mut store = SampleStore::new(&mut rows, &mut values);
            let quantity = |q: u8| Quantity::ALL[usize::from(q % 4)];
            for &(q, s, elapsed) in &samples {
                store.insert(&sample(quantity(q), u32::from(s % 8), 0, elapsed)).unwrap();
            }
            (0..8_u8).all(|size| (0..4_u8).all(|q| {
                let of_cell = |&&(cq, cs, _): &&(u8, u8, u64)| cq % 4 == q && cs % 8 == size;
                let mut expected: Vec<u64> = samples.iter().filter(of_cell).map(|s| s.2).collect();
                expected.sort_unstable();
                let row = store.find(u32::from(size)).unwrap_or(usize::MAX);
                store.cell(row, quantity(q)) == expected
            }))
        }

        fn gap_values_keep_their_order_and_sign(a: i64, b: i64) -> bool {
            let (a, b) = (SignedPicos(a), SignedPicos(b));
            a.cmp(&b) == ordered(a).cmp(&ordered(b)) && unordered(ordered(a)) == a
        }
    }

    #[test]
    fn paced_rounds_are_kept_without_their_delay() {
        let (mut rows, mut values) = ([RowHeader::default(); 1], [0; 8]);
        let mut store = SampleStore::new(&mut rows, &mut values);
        store.insert(&sample(Quantity::Paced, 5, 1_000, 9_700)).unwrap();
        store.insert(&sample(Quantity::Paced, 5, 900, 8_700)).unwrap();
        assert_eq!(store.cell(0, Quantity::Paced), [600, 700]);
        assert_eq!(store.shortest_delay(0), Some(Picos(900)));
        assert_eq!(store.shortest_delay(1), None);
    }

    #[test]
    fn what_does_not_fit_is_refused_and_changes_nothing() {
        let (mut rows, mut values) = ([RowHeader::default(); 2], [0; 8]);
        let mut store = SampleStore::new(&mut rows, &mut values);
        store.insert(&sample(Quantity::Gap, 5, 0, 1)).unwrap();
        store.insert(&sample(Quantity::Gap, 7, 0, 2)).unwrap();
        let third_size = store.insert(&sample(Quantity::Gap, 6, 0, 3));
        assert_eq!(third_size, Err(StoreError::RowsFull(2)));
        assert_eq!(store.insert(&sample(Quantity::Gap, 7, 0, 3)), Err(StoreError::CellFull(1)));
        let mut longer = sample(Quantity::Gap, 7, 0, 3);
        longer.experiment.messages = 11;
        assert_eq!(store.insert(&longer), Err(StoreError::MessagesDiffer(11, 10)));
        assert_eq!(store.insert_gap(5, SignedPicos(1)), Err(StoreError::KindsDiffer));
        assert_eq!(
            (store.cell(0, Quantity::Gap), store.cell(1, Quantity::Gap)),
            (&[1][..], &[2][..])
        );
    }

    #[test]
    fn a_store_without_memory_refuses_everything() {
        let mut store = SampleStore::new(&mut [], &mut []);
        assert_eq!(store.insert(&sample(Quantity::Gap, 5, 0, 1)), Err(StoreError::RowsFull(0)));
        assert!(store.is_full() && store.is_empty() && store.cell(0, Quantity::Gap).is_empty());
    }

    #[test]
    fn messages_and_delay_tell_the_quantity() {
        for quantity in Quantity::ALL {
            let paced = matches!(quantity, Quantity::Paced | Quantity::Receive);
            let made = sample(quantity, 1, u64::from(paced), 1).experiment;
            assert_eq!(Quantity::of(made.messages, made.delay), quantity);
        }
    }
}
