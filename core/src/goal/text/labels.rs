//! Labels of one rank, and the operations that they name.
//!
//! Generators number their labels (`l1`, `l2`, … in the order of the operations). Labels with the
//! same prefix and consecutive numbers, from the rank's first operation on, are therefore not
//! stored: the number gives the operation. All other labels are in a hash table in lent memory. The
//! hash is a polynomial over the label modulo 2⁶¹ − 1, evaluated at a point derived from the
//! caller's seed, so that colliding labels cannot be crafted without the seed. Results never depend
//! on the seed.

use super::cursor::{Cursor, continues_identifier, digits};
use crate::halves::{halves, whole};
use crate::random::Random;

/// Memory for the labels of one rank, and the seed of their hash.
///
/// Both slices should have [`labels_most`](super::Survey::labels_most) elements; fewer suffice if
/// labels are numbered in order. The content on entry does not matter.
#[derive(Debug)]
pub struct LabelMemory<'m> {
    /// One entry for each label.
    pub entries: &'m mut [[u64; 2]],
    /// Heads of the hash chains.
    pub buckets: &'m mut [u32],
    /// Seed of the hash; choose it at random for untrusted text.
    pub seed: u64,
}

/// Label in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Label {
    /// Offset of its first byte.
    pub(super) start: usize,
    /// Offset after its last byte.
    pub(super) end: usize,
    /// Number after the sequence's prefix, or [`NO_NUMBER`].
    number: u64,
}

impl Label {
    /// The bytes of the label.
    pub(super) fn name<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(self.start..self.end).unwrap_or(&[])
    }
}

const NO_NUMBER: u64 = u64::MAX;

/// Reason why a label was not defined.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NotDefined {
    /// It names an earlier operation of the rank.
    Duplicate,
    /// The lent memory is used up.
    Full,
    /// It is a word of the grammar.
    Reserved,
}

/// Labels of the open rank.
#[derive(Debug)]
pub(super) struct Labels<'t, 'm> {
    text: &'t [u8],
    sequence: Sequence,
    table: Table<'m>,
}

impl<'t, 'm> Labels<'t, 'm> {
    pub(super) fn new(text: &'t [u8], memory: LabelMemory<'m>) -> Self {
        Self { text, sequence: Sequence::NONE, table: Table::new(memory) }
    }

    /// Removes all labels.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.sequence.count = 0;
        if self.table.length > 0 {
            self.table.clear();
        }
    }

    /// Skips a label at the cursor; `None` without one.
    #[inline]
    pub(super) fn scan(&self, cursor: &mut Cursor<'t>) -> Option<Label> {
        let sequence = &self.sequence;
        if sequence.length > 0 && (cursor.word() ^ sequence.prefix) & sequence.mask == 0 {
            let (count, number) = digits(cursor.word_after(sequence.length));
            let end = sequence.length + count as usize;
            let leading_zero = cursor.byte_after(sequence.length) == b'0' && count > 1;
            if matches!(count, 1..8)
                && !leading_zero
                && !continues_identifier(cursor.byte_after(end))
            {
                let start = cursor.at();
                cursor.advance(end);
                return Some(Label { start, end: cursor.at(), number });
            }
        }
        self.scan_any(cursor)
    }

    #[inline(never)]
    fn scan_any(&self, cursor: &mut Cursor<'t>) -> Option<Label> {
        if !cursor.byte().is_ascii_alphabetic() {
            return None;
        }
        let (start, end) = (cursor.at(), cursor.identifier_end());
        cursor.advance(end - start);
        let name = self.text.get(start..end)?;
        let number = self.sequence.number_of(name).unwrap_or(NO_NUMBER);
        Some(Label { start, end, number })
    }

    /// Defines `label` as the name of operation `op`, the rank's newest.
    #[inline]
    pub(super) fn define(&mut self, label: Label, op: u32) -> Result<(), NotDefined> {
        let sequence = &mut self.sequence;
        if sequence.count == op && op > 0 && sequence.first + u64::from(op) == label.number {
            sequence.count += 1;
            return Ok(());
        }
        if op == 0 && label.number != NO_NUMBER {
            sequence.first = label.number;
            sequence.count = 1;
            return Ok(());
        }
        self.define_other(label, op)
    }

    #[inline(never)]
    fn define_other(&mut self, label: Label, op: u32) -> Result<(), NotDefined> {
        let name = label.name(self.text);
        if matches!(name, b"send" | b"recv" | b"calc" | b"rank" | b"num_ranks") {
            return Err(NotDefined::Reserved);
        }
        if op == 0 {
            if let Some(sequence) = Sequence::starting_with(name) {
                self.sequence = sequence;
                return Ok(());
            }
            self.sequence = Sequence::NONE;
        }
        if self.sequence.position(label.number).is_some() {
            return Err(NotDefined::Duplicate);
        }
        self.table.insert(self.text, label.start, name, op)
    }

    /// Operation that `label` names.
    #[inline]
    pub(super) fn find(&self, label: Label) -> Option<u32> {
        match self.sequence.position(label.number) {
            Some(op) => Some(op),
            None => self.find_other(label),
        }
    }

    #[inline(never)]
    fn find_other(&self, label: Label) -> Option<u32> {
        self.table.find(self.text, label.name(self.text))
    }
}

/// Sequence of labels that have the same prefix and are numbered like the operations.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    /// Prefix, with its first byte in the lowest byte.
    prefix: u64,
    /// Mask of the bytes of the prefix.
    mask: u64,
    /// Length of the prefix, 1 to 8; 0 without a sequence.
    length: usize,
    /// Number in the label of operation 0.
    first: u64,
    /// Number of operations in the sequence.
    count: u32,
}

impl Sequence {
    const NONE: Self = Self { prefix: 0, mask: 0, length: 0, first: 0, count: 0 };
    /// Largest number of digits; numbers of this length add up without overflow.
    const MOST_DIGITS: usize = 18;

    /// Sequence that starts with `name`; `None` unless it is a prefix and a number.
    fn starting_with(name: &[u8]) -> Option<Self> {
        let tail = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let run = name.get(name.len() - tail..)?;
        // Leading zeros are part of the prefix, but the last digit is a number.
        let zeros =
            run.iter().take_while(|&&byte| byte == b'0').count().min(tail.saturating_sub(1));
        let length = name.len() - tail + zeros;
        if !(1..=8).contains(&length) {
            return None;
        }
        let first = number_in(name.get(length..)?)?;
        let prefix = name.get(..length)?.iter().rev().fold(0, |word, &b| word << 8 | u64::from(b));
        Some(Self { prefix, mask: u64::MAX >> (64 - 8 * length), length, first, count: 1 })
    }

    /// Number after the prefix in `name`; `None` if `name` has another form.
    fn number_of(&self, name: &[u8]) -> Option<u64> {
        let prefix = self.prefix.to_le_bytes();
        match self.length {
            0 => None,
            length => number_in(name.strip_prefix(prefix.get(..length)?)?),
        }
    }

    /// Operation whose label has this number.
    #[inline]
    fn position(&self, number: u64) -> Option<u32> {
        let offset = number.wrapping_sub(self.first);
        u32::try_from(offset).ok().filter(|&offset| offset < self.count)
    }
}

/// Value of `name` if it is a number without leading zeros.
fn number_in(name: &[u8]) -> Option<u64> {
    let canonical = match name {
        [] => false,
        [b'0'] => true,
        [first, ..] => *first != b'0',
    };
    if !canonical || name.len() > Sequence::MOST_DIGITS || !name.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(name.iter().fold(0, |sum, &byte| sum * 10 + u64::from(byte - b'0')))
}

/// Chained hash table. An entry has the label's offset in the text (48 bits), 16 bits of its hash,
/// its operation and the next entry of its chain.
#[derive(Debug)]
struct Table<'m> {
    memory: LabelMemory<'m>,
    /// Point at which the hash polynomial is evaluated.
    point: u64,
    length: usize,
    /// Number of buckets in use: 0 or a power of two.
    active: usize,
}

const END_OF_CHAIN: u32 = u32::MAX;
const LEAST_BUCKETS: usize = 16;

impl<'m> Table<'m> {
    fn new(memory: LabelMemory<'m>) -> Self {
        let point = hash_point(memory.seed);
        Self { memory, point, length: 0, active: 0 }
    }

    fn clear(&mut self) {
        self.length = 0;
        self.active = 0;
    }

    fn find(&self, text: &[u8], name: &[u8]) -> Option<u32> {
        let hash = hash_of(name, self.point);
        let mut next = *self.memory.buckets.get(self.bucket(hash)?)?;
        while let Some(&[place, chain]) = self.memory.entries.get(next as usize) {
            let [after, op] = halves(chain);
            if place >> 48 == tag_of(hash) && identifier_at(text, place & PLACE) == name {
                return Some(op);
            }
            next = after;
        }
        None
    }

    fn insert(
        &mut self,
        text: &[u8],
        start: usize,
        name: &[u8],
        op: u32,
    ) -> Result<(), NotDefined> {
        if self.find(text, name).is_some() {
            return Err(NotDefined::Duplicate);
        }
        if self.length >= self.active {
            self.grow(text);
        }
        let hash = hash_of(name, self.point);
        let place = start as u64 & PLACE | tag_of(hash) << 48;
        self.link(self.length, place, op, hash).ok_or(NotDefined::Full)?;
        self.length += 1;
        Ok(())
    }

    /// Inserts entry `index` at the head of its chain.
    fn link(&mut self, index: usize, place: u64, op: u32, hash: u64) -> Option<()> {
        let bucket = self.bucket(hash)?;
        let number = u32::try_from(index).ok().filter(|&number| number != END_OF_CHAIN)?;
        let entry = self.memory.entries.get_mut(index)?;
        let head = self.memory.buckets.get_mut(bucket)?;
        *entry = [place, whole([*head, op])];
        *head = number;
        Some(())
    }

    /// Doubles the number of buckets in use, as far as the lent memory allows.
    fn grow(&mut self, text: &[u8]) {
        let wanted = (self.active * 2).max(LEAST_BUCKETS);
        let lent = self.memory.buckets.len();
        let most = if lent == 0 { 0 } else { 1 << lent.ilog2() };
        let buckets = wanted.min(most);
        if buckets == self.active {
            return;
        }
        self.active = buckets;
        if let Some(heads) = self.memory.buckets.get_mut(..buckets) {
            heads.fill(END_OF_CHAIN);
        }
        for index in 0..self.length {
            let Some(&[place, chain]) = self.memory.entries.get(index) else { return };
            let name = identifier_at(text, place & PLACE);
            let [_, op] = halves(chain);
            let _ = self.link(index, place, op, hash_of(name, self.point));
        }
    }

    fn bucket(&self, hash: u64) -> Option<usize> {
        usize::try_from(hash & (self.active.checked_sub(1)? as u64)).ok()
    }
}

/// Bits of an entry that hold the offset.
const PLACE: u64 = (1 << 48) - 1;

const fn tag_of(hash: u64) -> u64 {
    hash >> 40 & 0xffff
}

/// Identifier at offset `place`.
fn identifier_at(text: &[u8], place: u64) -> &[u8] {
    let rest = usize::try_from(place).ok().and_then(|at| text.get(at..)).unwrap_or(&[]);
    let end = rest.iter().position(|&byte| !continues_identifier(byte)).unwrap_or(rest.len());
    rest.get(..end).unwrap_or(&[])
}

/// The prime 2⁶¹ − 1.
const PRIME: u64 = (1 << 61) - 1;

/// Derives the evaluation point from `seed`.
const fn hash_point(seed: u64) -> u64 {
    Random::new(seed).draw() % (PRIME - 1) + 1
}

/// Hash of a label: the polynomial whose coefficients are its bytes, seven at a time, evaluated at
/// `point` modulo 2⁶¹ − 1.
fn hash_of(name: &[u8], point: u64) -> u64 {
    name.chunks(7).fold(0, |sum, chunk| {
        let coefficient = chunk.iter().fold(0_u64, |word, &byte| word << 8 | u64::from(byte));
        let product = u128::from(sum + coefficient) * u128::from(point);
        remainder(product)
    })
}

/// `product` modulo 2⁶¹ − 1, for products below 2¹²³.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the first is masked to 61 bits, the second below 2^62"
)]
const fn remainder(product: u128) -> u64 {
    let folded = (product as u64 & PRIME) + (product >> 61) as u64;
    if folded >= PRIME { (folded - PRIME) % PRIME } else { folded }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;
    use std::collections::HashMap;
    use std::format;
    use std::string::String;
    use std::vec;
    use std::vec::Vec;

    /// Defines `names` in order and compares every lookup with a map.
    fn agrees_with_a_map(names: &[String], seed: u64, buckets: usize) {
        let text = names.join(" ");
        let mut entries = vec![[7; 2]; names.len()];
        let mut heads = vec![9; buckets];
        let memory = LabelMemory { entries: &mut entries, buckets: &mut heads, seed };
        let mut labels = Labels::new(text.as_bytes(), memory);
        let mut cursor = Cursor::new(text.as_bytes(), 0);
        let mut map = HashMap::new();
        let mut op = 0;
        for name in names {
            let label = labels.scan(&mut cursor).unwrap();
            assert_eq!(label.name(text.as_bytes()), name.as_bytes());
            cursor.skip_blanks();
            if map.contains_key(name) {
                assert_eq!(labels.define(label, op), Err(NotDefined::Duplicate), "{names:?}");
            } else {
                assert_eq!(labels.define(label, op), Ok(()), "{names:?}");
                map.insert(name, op);
                op += 1;
            }
        }
        let mut cursor = Cursor::new(text.as_bytes(), 0);
        for name in names {
            let label = labels.scan(&mut cursor).unwrap();
            cursor.skip_blanks();
            assert_eq!(labels.find(label), map.get(name).copied(), "{name} of {names:?}");
        }
    }

    quickcheck! {
        fn lookups_equal_those_of_a_map(codes: Vec<u16>, seed: u64, buckets: u8) -> () {
            let prefixes = ["l", "l0", "x1_", "sends", "a_very_long_prefix"];
            let names: Vec<String> = codes
                .iter()
                .map(|c| format!("{}{}", prefixes[usize::from(c % 5)], c / 5 % 30))
                .collect();
            agrees_with_a_map(&names, seed, usize::from(buckets % 64) + 1);
        }
    }

    #[test]
    fn a_sequence_broken_anywhere_still_finds_all() {
        for broken in 0..12 {
            let names: Vec<String> = (0..12)
                .map(|k| if k == broken { "other".into() } else { format!("l{}", k + 5) })
                .collect();
            agrees_with_a_map(&names, 1, 16);
        }
    }

    #[test]
    fn numbered_labels_need_no_memory() {
        let text = "s9 s10 s11 s10";
        let memory = LabelMemory { entries: &mut [], buckets: &mut [], seed: 0 };
        let mut labels = Labels::new(text.as_bytes(), memory);
        let mut cursor = Cursor::new(text.as_bytes(), 0);
        for op in 0..3 {
            let label = labels.scan(&mut cursor).unwrap();
            cursor.skip_blanks();
            assert_eq!(labels.define(label, op), Ok(()));
        }
        let label = labels.scan(&mut cursor).unwrap();
        assert_eq!(labels.find(label), Some(1));
        assert_eq!(labels.define(label, 3), Err(NotDefined::Duplicate));
    }

    #[test]
    fn long_numbers_and_leading_zeros_are_labels_of_their_own() {
        let names =
            ["a99999999", "a100000000", "a0100000001", "a100000001", "a18446744073709551615"];
        agrees_with_a_map(&names.map(String::from), 3, 8);
        agrees_with_a_map(&["a00", "a01", "a02", "a1", "a0", "a"].map(String::from), 3, 8);
    }

    #[test]
    fn a_full_table_says_so() {
        let text = "x y";
        let mut entries = [[0; 2]; 1];
        let memory = LabelMemory { entries: &mut entries, buckets: &mut [0], seed: 0 };
        let mut labels = Labels::new(text.as_bytes(), memory);
        let mut cursor = Cursor::new(text.as_bytes(), 0);
        let first = labels.scan(&mut cursor).unwrap();
        cursor.skip_blanks();
        let second = labels.scan(&mut cursor).unwrap();
        assert_eq!(labels.define(first, 0), Ok(()));
        assert_eq!(labels.define(second, 1), Err(NotDefined::Full));
        assert_eq!(labels.find(first), Some(0));
    }
}
