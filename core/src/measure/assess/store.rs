//! Sample store: every stored value of a measurement, on lent memory.
//!
//! One row per size, one cell per row and [`Quantity`]. A cell keeps its values sorted, so that
//! medians and order statistics are simple reads.
//!
//! Each value is stored with the number of its block of time: the samples of a measurement, in the
//! order of their arrival, are divided into 8 to 16 blocks of equal counts. The differences between
//! blocks show how far a result is shifted by noise that lasts longer than a round, or that affects
//! several sizes at once (see [`super::interval`]).

use core::fmt;
use core::ops::Range;

use super::ranges::{SizeSpan, narrow};
use crate::fit::Point;
use crate::measure::plan::memory::RowPlan;
use crate::measure::{Experiment, Quantity, Sample};
use crate::slice::insert_first;
use crate::units::{Picos, SignedPicos};
use crate::wide::times;

/// Number of cells in a row: one per [`Quantity`].
pub const QUANTITIES: usize = 4;

/// Row of a [`SampleStore`]: a size with its counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowHeader {
    pub(in crate::measure) size: u32,
    /// Index of this row's block of the value memory. Rows are moved when a smaller size is added,
    /// values are not.
    place: u16,
    counts: [u16; QUANTITIES],
    /// Messages in an unpaced and in a paced burst of this size; 0 before the first one.
    bursts: [u32; 2],
    /// Shortest delay of a stored paced round; the longest time before one.
    shortest_delay: Picos,
    /// State of the planner for this row, if there is one.
    pub(in crate::measure) plan: RowPlan,
}

impl RowHeader {
    /// Index of the cell of `quantity` in the value memory.
    fn cell(&self, quantity: Quantity) -> usize {
        usize::from(self.place) * QUANTITIES + quantity.index()
    }

    /// Number of values of `quantity`.
    pub(in crate::measure) fn count(&self, quantity: Quantity) -> usize {
        self.counts.get(quantity.index()).map_or(0, |&count| count.into())
    }
}

/// Memory that a [`SampleStore`] needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StoreRequirements {
    /// Length of the slice of [`RowHeader`].
    pub rows: usize,
    /// Length of the slice of values.
    pub values: usize,
}

impl StoreRequirements {
    /// Requirements of `sizes` sizes with up to `repetitions` values per quantity; `None` beyond
    /// the limits of a store (65,535 of either).
    #[must_use]
    pub fn new(sizes: usize, repetitions: usize) -> Option<Self> {
        u16::try_from(sizes).ok()?;
        u16::try_from(repetitions).ok()?;
        let values = sizes.checked_mul(QUANTITIES)?.checked_mul(repetitions)?;
        Some(Self { rows: sizes, values })
    }
}

/// Reasons why a sample was not stored. The store is unchanged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum StoreError {
    /// There is no room for another size; holds the number of rows.
    RowsFull(usize),
    /// The cell is full; holds its capacity.
    CellFull(usize),
    /// A burst's number of messages (first) differs from that of the stored bursts of its size
    /// (second).
    MessagesDiffer(u32, u32),
    /// A store holds either gap values or timed rounds, not both.
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
                "a burst of {got} messages among bursts of {expected} of the same size: one size \
                 has one n"
            ),
            Self::KindsDiffer => f.write_str("gap values and timed rounds cannot be mixed"),
        }
    }
}

impl core::error::Error for StoreError {}

/// Most blocks of time; their number shares a word with the value.
pub(in crate::measure) const BLOCKS: usize = 1 << BLOCK_BITS;
const BLOCK_BITS: u32 = 4;

/// Largest magnitude of a value, in picoseconds; about six days.
const LARGEST: i64 = 1 << (63 - BLOCK_BITS);

/// Sorted sample values per size and quantity, on lent memory.
#[derive(Debug)]
pub struct SampleStore<'m> {
    rows: &'m mut [RowHeader],
    /// Values with the numbers of their blocks: see [`tagged`].
    values: &'m mut [u64],
    used: usize,
    per_cell: usize,
    /// True if the store holds values of `G_all` in the gap cells instead of timed rounds.
    gaps: bool,
    /// Samples required for a value: see [`floor`](super::floor).
    least: usize,
    /// Samples required on both sides of a change; 0 accepts any change.
    least_of_change: usize,
    /// Number of samples in a full block.
    block_length: u32,
    /// Current block, and the number of its samples.
    block: u32,
    in_block: u32,
}

impl<'m> SampleStore<'m> {
    /// Empty store. Every cell of every row can hold `values.len() / (4 · rows.len())` values; see
    /// [`StoreRequirements`].
    #[must_use]
    pub fn new(rows: &'m mut [RowHeader], values: &'m mut [u64]) -> Self {
        let rows_usable = rows.len().min(usize::from(u16::MAX));
        let per_cell = values.len() / (QUANTITIES * rows_usable).max(1);
        let per_cell = per_cell.min(usize::from(u16::MAX));
        Self {
            rows,
            values,
            used: 0,
            per_cell,
            gaps: false,
            least: 1,
            least_of_change: 0,
            block_length: 1,
            block: 0,
            in_block: 0,
        }
    }

    /// Sets the minimum numbers of samples behind a value and behind a change, as in
    /// [`floor`](crate::measure::floor); without a call one sample suffices.
    pub const fn claim_from(&mut self, value: usize, change: usize) {
        (self.least, self.least_of_change) = (value, change);
    }

    /// Samples required on both sides of a change.
    pub(in crate::measure) const fn least_of_change(&self) -> usize {
        self.least_of_change
    }

    /// True if a cell has the samples required for a value.
    pub(in crate::measure) fn has_value(&self, row: usize, quantity: Quantity) -> bool {
        self.count(row, quantity) >= self.least
    }

    /// Number of sizes in the store.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.used
    }

    /// True if the store contains no size.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// True if there is no room for another size.
    pub(crate) fn is_full(&self) -> bool {
        self.used >= self.rows.len().min(usize::from(u16::MAX))
    }

    /// Number of values that a cell can hold.
    pub(crate) const fn cell_capacity(&self) -> usize {
        self.per_cell
    }

    /// Number of messages `n` in a burst of row `row`, of [`Quantity::Gap`] or [`Quantity::Paced`];
    /// `None` before one is stored.
    #[must_use]
    pub fn messages(&self, row: usize, quantity: Quantity) -> Option<u32> {
        let [back_to_back, paced] = self.header(row)?.bursts;
        let messages = if quantity == Quantity::Paced { paced } else { back_to_back };
        (messages > 0).then_some(messages)
    }

    /// True if the store holds values of `G_all` instead of timed rounds.
    pub(crate) const fn holds_gaps(&self) -> bool {
        self.gaps
    }

    /// Size of row `row`; rows are numbered in ascending order of size.
    #[must_use]
    pub fn size(&self, row: usize) -> Option<u32> {
        self.header(row).map(|header| header.size)
    }

    /// Row of `size`.
    ///
    /// # Errors
    ///
    /// The index at which a row of this size would be added.
    pub fn find(&self, size: u32) -> Result<usize, usize> {
        self.rows().binary_search_by_key(&size, |header| header.size)
    }

    /// Values of one cell with their blocks, ascending; empty for rows that do not exist. Those of
    /// [`Quantity::Paced`] are `PRTT(n,d,s) − (n − 1)·d` with each round's measured delay, the
    /// others the elapsed time.
    pub(in crate::measure) fn cell(&self, row: usize, quantity: Quantity) -> &[u64] {
        let Some(header) = self.header(row) else { return &[] };
        let start = header.cell(quantity) * self.per_cell;
        self.values.get(start..start + header.count(quantity)).unwrap_or_default()
    }

    /// Number of blocks of time so far.
    pub(in crate::measure) const fn blocks(&self) -> u32 {
        self.block + (self.in_block > 0) as u32
    }

    /// Number of values in one cell.
    #[must_use]
    pub fn count(&self, row: usize, quantity: Quantity) -> usize {
        self.header(row).map_or(0, |header| header.count(quantity))
    }

    /// Shortest measured delay of this row's paced rounds; `None` if there are none.
    #[must_use]
    pub fn shortest_delay(&self, row: usize) -> Option<Picos> {
        let header = self.header(row).filter(|header| header.count(Quantity::Paced) > 0)?;
        Some(header.shortest_delay)
    }

    /// Adds a row for `size` unless it exists, and returns its index. Rows of larger sizes move up
    /// by one.
    ///
    /// # Errors
    ///
    /// [`StoreError::RowsFull`].
    pub(crate) fn add_size(&mut self, size: u32) -> Result<usize, StoreError> {
        let row = match self.find(size) {
            Ok(row) => return Ok(row),
            Err(row) => row,
        };
        let full = StoreError::RowsFull(self.rows.len());
        if self.is_full() || self.per_cell == 0 {
            return Err(full);
        }
        let place = u16::try_from(self.used).map_err(|_| full)?;
        let tail = self.rows.get_mut(row..=self.used).ok_or(full)?;
        let shortest_delay = Picos(u64::MAX);
        insert_first(tail, RowHeader { size, place, shortest_delay, ..RowHeader::default() });
        self.used += 1;
        Ok(row)
    }

    /// Removes all but the first `kept` rows; the store contains no values yet.
    pub(in crate::measure) fn keep_first(&mut self, kept: usize) {
        self.used = self.used.min(kept);
        for (place, header) in (0..).zip(self.rows_mut()) {
            header.place = place;
        }
    }

    /// Stores a timed round, adding a row for its size if needed.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if there is no room or the sample does not match those stored; it is not
    /// stored.
    pub fn insert(&mut self, sample: &Sample) -> Result<(), StoreError> {
        let Experiment { quantity, messages, size, .. } = sample.experiment;
        let burst = matches!(quantity, Quantity::Gap | Quantity::Paced);
        if self.gaps {
            return Err(StoreError::KindsDiffer);
        }
        if burst
            && let Ok(row) = self.find(size)
            && let Some(others) = self.messages(row, quantity)
            && others != messages
        {
            return Err(StoreError::MessagesDiffer(messages, others));
        }
        let header = self.insert_value(size, quantity, value_of(sample))?;
        if quantity == Quantity::Paced {
            header.shortest_delay = header.shortest_delay.min(sample.delay);
        }
        let [back_to_back, paced] = &mut header.bursts;
        match quantity {
            Quantity::Gap => *back_to_back = messages,
            Quantity::Paced => *paced = messages,
            Quantity::RoundTrip | Quantity::Receive => {}
        }
        Ok(())
    }

    /// Stores a value of `G_all` computed elsewhere, adding a row for its size if needed.
    ///
    /// # Errors
    ///
    /// As [`SampleStore::insert`].
    pub fn insert_gap(&mut self, size: u32, gap: SignedPicos) -> Result<(), StoreError> {
        if !self.gaps && !self.is_empty() {
            return Err(StoreError::KindsDiffer);
        }
        self.insert_value(size, Quantity::Gap, gap.0)?;
        self.gaps = true;
        Ok(())
    }

    fn insert_value(
        &mut self,
        size: u32,
        quantity: Quantity,
        value: i64,
    ) -> Result<&mut RowHeader, StoreError> {
        let row = self.add_size(size)?;
        let full = StoreError::CellFull(self.per_cell);
        if self.count(row, quantity) >= self.per_cell {
            return Err(full);
        }
        let block = self.next_block();
        let header = self.rows.get_mut(row).ok_or(full)?;
        let start = header.cell(quantity) * self.per_cell;
        let kept = header.count(quantity);
        if let Some(count) = header.counts.get_mut(quantity.index()) {
            *count += 1; // at most per_cell, which fits into u16
        }
        let cell = self.values.get_mut(start..=start + kept).unwrap_or_default();
        insert_ascending(cell, tagged(value, block));
        Ok(header)
    }

    /// Block of the next sample. When all block numbers are in use, pairs of neighbouring blocks
    /// are merged.
    fn next_block(&mut self) -> u32 {
        if self.in_block >= self.block_length {
            self.in_block = 0;
            self.block += 1;
        }
        if self.block as usize >= BLOCKS {
            self.merge_blocks();
            self.block /= 2;
            self.block_length = self.block_length.saturating_mul(2);
        }
        self.in_block += 1;
        self.block
    }

    /// Halves the block numbers of all samples. Unused memory is not touched: it may be far more
    /// than is ever used.
    fn merge_blocks(&mut self) {
        let Self { rows, values, used, per_cell, .. } = self;
        for header in rows.get(..*used).unwrap_or_default() {
            for quantity in Quantity::ALL {
                let start = header.cell(quantity) * *per_cell;
                let kept = values.get_mut(start..start + header.count(quantity));
                for kept in kept.unwrap_or_default() {
                    *kept = tagged(value_in(*kept), block_of(*kept) / 2);
                }
            }
        }
    }

    /// Rows in ascending order of size.
    pub(in crate::measure) fn rows(&self) -> &[RowHeader] {
        self.rows.get(..self.used).unwrap_or_default()
    }

    /// Rows in ascending order of size.
    pub(in crate::measure) fn rows_mut(&mut self) -> &mut [RowHeader] {
        self.rows.get_mut(..self.used).unwrap_or_default()
    }

    pub(in crate::measure) fn header_mut(&mut self, row: usize) -> Option<&mut RowHeader> {
        self.rows_mut().get_mut(row)
    }

    pub(in crate::measure) fn header(&self, row: usize) -> Option<&RowHeader> {
        self.rows().get(row)
    }

    /// Rows of the sizes from `first` to `last`.
    pub(in crate::measure) fn rows_in(&self, span: SizeSpan) -> Range<usize> {
        let first = self.find(span.first).unwrap_or_else(|row| row);
        first..self.find(span.last).map_or_else(|row| row, |row| row + 1)
    }

    /// Row of a point's size; past the end for unknown sizes.
    pub(in crate::measure) fn row_of(&self, point: &Point) -> usize {
        self.find(narrow(point.size())).unwrap_or(usize::MAX)
    }

    /// Row of `size`.
    pub(in crate::measure) fn header_of(&mut self, size: u32) -> Option<&mut RowHeader> {
        self.find(size).ok().and_then(|row| self.header_mut(row))
    }

    /// True if a cell has room for more than `pending` values and its rounds can be run.
    pub(in crate::measure) fn takes_more(
        &self,
        row: usize,
        quantity: Quantity,
        pending: usize,
    ) -> bool {
        self.header(row).is_some_and(|header| {
            header.count(quantity) + pending < self.per_cell && header.plan.takes_rounds(quantity)
        })
    }
}

/// Inserts `kept` into the ascending elements of `cell`, whose last element is free.
fn insert_ascending(cell: &mut [u64], kept: u64) {
    let mut next = kept;
    if let Some((free, rest)) = cell.split_last_mut() {
        for place in rest.iter_mut().filter(|place| **place > kept) {
            core::mem::swap(place, &mut next);
        }
        *free = next;
    }
}

/// Value stored for a timed round, in picoseconds.
fn value_of(sample: &Sample) -> i64 {
    let waits = u64::from(sample.experiment.messages).saturating_sub(1);
    let elapsed = match sample.experiment.quantity {
        Quantity::Paced => sample.elapsed.since(Picos(times(sample.delay.0, waits))),
        Quantity::RoundTrip | Quantity::Gap | Quantity::Receive => sample.elapsed,
    };
    i64::try_from(elapsed.0).unwrap_or(i64::MAX)
}

/// Packs a value and its block into one number with the order of the values.
#[allow(clippy::cast_sign_loss, reason = "not negative: shifted by the largest magnitude")]
const fn tagged(value: i64, block: u32) -> u64 {
    let value = if value < -LARGEST { -LARGEST } else { value };
    let value = if value >= LARGEST { LARGEST - 1 } else { value };
    ((value + LARGEST) as u64) << BLOCK_BITS | block as u64
}

/// Unpacks the value of [`tagged`].
#[allow(clippy::cast_possible_wrap, reason = "60 bits")]
pub(in crate::measure) const fn value_in(kept: u64) -> i64 {
    (kept >> BLOCK_BITS) as i64 - LARGEST
}

/// Unpacks the block of [`tagged`].
#[allow(clippy::cast_possible_truncation, reason = "four bits")]
pub(in crate::measure) const fn block_of(kept: u64) -> u32 {
    (kept & (BLOCKS as u64 - 1)) as u32
}

impl Quantity {
    /// All quantities, in the order of their cells.
    pub const ALL: [Self; QUANTITIES] = [Self::RoundTrip, Self::Gap, Self::Paced, Self::Receive];

    /// Quantity measured by a round of `messages` messages with `delay` between them, as given by
    /// the columns n and d of a sample file.
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

    fn values_of(store: &SampleStore<'_>, row: usize, quantity: Quantity) -> Vec<i64> {
        store.cell(row, quantity).iter().map(|&kept| value_in(kept)).collect()
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
                // Values are limited to six days.
                let kept = |value: u64| i64::try_from(value).unwrap_or(i64::MAX).min((1 << 59) - 1);
                let mut expected: Vec<i64> =
                    samples.iter().filter(of_cell).map(|sample| kept(sample.2)).collect();
                expected.sort_unstable();
                let row = store.find(u32::from(size)).unwrap_or(usize::MAX);
                values_of(&store, row, quantity(q)) == expected
            }))
        }

        fn values_keep_their_order_sign_and_block(a: i64, b: i64, block: u8) -> bool {
            let (a, b) = (a / 32, b / 32);
            let kept = tagged(a, u32::from(block % 16));
            (a <= b || kept > tagged(b, 15))
                && value_in(kept) == a
                && block_of(kept) == u32::from(block % 16)
        }

        fn blocks_are_eight_to_sixteen_of_equally_many_samples(count: u16) -> bool {
            let count = usize::from(count % 3_000) + 16;
            let (mut rows, mut values) = (vec![RowHeader::default()], vec![0; 4 * count]);
            let mut store = SampleStore::new(&mut rows, &mut values);
            for value in 0..count {
                store.insert(&sample(Quantity::Gap, 1, 0, value as u64)).unwrap();
            }
            let mut sizes = [0_usize; 16];
            for &kept in store.cell(0, Quantity::Gap) {
                // Values and blocks both ascend.
                let length = store.block_length as usize;
                let expected = usize::try_from(value_in(kept)).unwrap() / length;
                if block_of(kept) as usize != expected {
                    return false;
                }
                sizes[expected] += 1;
            }
            let blocks = store.blocks() as usize;
            let whole = sizes[..blocks - 1].iter().all(|&size| size == sizes[0]);
            (8..=16).contains(&blocks) && whole && sizes[blocks - 1] <= sizes[0]
        }
    }

    #[test]
    fn paced_rounds_are_kept_without_their_delay() {
        let (mut rows, mut values) = ([RowHeader::default(); 1], [0; 8]);
        let mut store = SampleStore::new(&mut rows, &mut values);
        store.insert(&sample(Quantity::Paced, 5, 1_000, 9_700)).unwrap();
        store.insert(&sample(Quantity::Paced, 5, 900, 8_700)).unwrap();
        assert_eq!(values_of(&store, 0, Quantity::Paced), [600, 700]);
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
        let values = |row| values_of(&store, row, Quantity::Gap);
        assert_eq!((values(0), values(1)), (vec![1], vec![2]));
    }

    #[test]
    fn bursts_may_differ_in_length_between_sizes_but_not_within_one() {
        let (mut rows, mut values) = ([RowHeader::default(); 2], [0; 16]);
        let mut store = SampleStore::new(&mut rows, &mut values);
        let mut shorter = sample(Quantity::Gap, 9, 0, 3);
        shorter.experiment.messages = 4;
        store.insert(&sample(Quantity::Gap, 5, 0, 1)).unwrap();
        store.insert(&shorter).unwrap();
        let messages = |row| store.messages(row, Quantity::Gap);
        assert_eq!((messages(0), messages(1)), (Some(10), Some(4)));
        assert_eq!(store.messages(0, Quantity::Paced), None);
        shorter.experiment.messages = 5;
        assert_eq!(store.insert(&shorter), Err(StoreError::MessagesDiffer(5, 4)));
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
