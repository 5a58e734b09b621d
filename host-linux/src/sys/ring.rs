//! A ring in shared memory with one producer and one consumer.
//!
//! Layout, in bytes from the start of a ring:
//!
//! ```text
//!    0  head  u64: bytes ever consumed, written by the consumer only
//!  128  data  `capacity` bytes, a power of two
//! ```
//!
//! The data are records that start at multiples of 64 bytes, so that no two
//! share a cache line: a word, then the payload. The word is 0 while there is
//! no record yet, else the payload's length plus 1, with a mark when more of
//! the same message follows. Before the producer publishes a record by
//! storing its word, it clears the word behind it. So the word that the
//! consumer looks at is never a left-over, and a short message moves between
//! the processors as one cache line. The head tells the producer what is
//! free, and is only read when the ring seems full.
//!
//! Each side keeps its own position privately and trusts nothing it reads:
//! the peer is another process and may be broken. A head or a length that
//! does not fit is [`Broken`], never an access outside the mapping.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapRaw;

const HEAD: usize = 0;
/// Two lines behind the head, because processors fetch lines in pairs.
const DATA: usize = 128;
const LINE: u64 = 64;
const WORD: usize = size_of::<u64>();
/// The word where no record is yet.
const NOTHING: u64 = 0;
/// Marks a record that the next one continues.
const MORE: u64 = 1 << 63;

/// The peer wrote counters or lengths that no producer or consumer writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Broken;

/// Whether a record ends its message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    /// The message is complete with this record.
    Last,
    /// The next record continues the same message.
    More,
}

impl Part {
    #[inline(always)]
    fn mark(self) -> u64 {
        match self {
            Self::Last => 0,
            Self::More => MORE,
        }
    }

    #[inline(always)]
    fn of(word: u64) -> Self {
        if word & MORE == 0 { Self::Last } else { Self::More }
    }
}

/// One record taken out of the ring.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Taken {
    /// The ring is empty.
    Nothing,
    /// This many bytes of a message.
    Bytes { length: usize, part: Part },
    /// A record of this many bytes, left where it is: it does not fit.
    NoRoom { length: usize },
}

/// Bytes that a ring of `capacity` data bytes takes in all.
pub(crate) const fn footprint(capacity: u64) -> u64 {
    DATA as u64 + capacity
}

/// The memory of one ring: what both ends share.
#[derive(Clone, Debug)]
struct Ring {
    /// Keeps the memory mapped.
    _mapping: Arc<MmapRaw>,
    base: NonNull<u8>,
    mask: u64,
}

// SAFETY: `base` points into the mapping that the same value keeps alive, and
// mappings may be used from any thread. Producer and Consumer are not Clone
// and change only through `&mut self`.
unsafe impl Send for Ring {}

impl Ring {
    /// The ring at `offset`, `None` unless it lies inside the mapping, is
    /// aligned, and `capacity` is a power of two of at least two lines.
    fn at(mapping: &Arc<MmapRaw>, offset: u64, capacity: u64) -> Option<Self> {
        let end = offset.checked_add(DATA as u64)?.checked_add(capacity)?;
        let fits = usize::try_from(end).is_ok_and(|end| end <= mapping.len());
        if !fits
            || !offset.is_multiple_of(LINE)
            || !capacity.is_power_of_two()
            || capacity < 2 * LINE
        {
            return None;
        }
        let offset = usize::try_from(offset).ok()?;
        // SAFETY: `offset` is inside the mapping, as checked above.
        let base = unsafe { NonNull::new(mapping.as_mut_ptr())?.add(offset) };
        Some(Self { _mapping: Arc::clone(mapping), base, mask: capacity - 1 })
    }

    #[inline(always)]
    fn capacity(&self) -> u64 {
        self.mask + 1
    }

    /// How much the consumer has consumed.
    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        self.atomic(HEAD)
    }

    /// The eight bytes at `offset`, a multiple of a line inside the ring.
    #[inline(always)]
    fn atomic(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: `at` checked that the ring is inside the mapping and
        // aligned to a line; so is every offset that is passed.
        let at = unsafe { self.base.add(offset) };
        // SAFETY: valid and aligned as above for as long as `self` keeps the
        // mapping; both processes use it as an atomic only.
        unsafe { AtomicU64::from_ptr(at.cast().as_ptr()) }
    }

    /// The word that starts the record at `position`, which is a multiple of
    /// a line.
    #[inline(always)]
    fn word(&self, position: u64) -> &AtomicU64 {
        self.atomic(self.data_offset(position))
    }

    #[inline(always)]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "masked below the capacity, which fits usize as checked in `at`"
    )]
    fn data_offset(&self, position: u64) -> usize {
        DATA + (position & self.mask) as usize
    }

    /// Bytes from `position` to the end of the ring.
    #[inline(always)]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "at most the capacity, which fits usize as checked in `at`"
    )]
    fn until_end(&self, position: u64) -> usize {
        (self.capacity() - (position & self.mask)) as usize
    }

    /// Copies `bytes` to `position`, wrapping at the end. `bytes` must not
    /// be longer than the ring.
    #[inline(always)]
    fn write(&self, position: u64, bytes: &[u8]) {
        let (first, second) = bytes.split_at(bytes.len().min(self.until_end(position)));
        debug_assert!(bytes.len() as u64 <= self.capacity());
        // SAFETY: `first` ends before the end of the data.
        let to = unsafe { self.base.add(self.data_offset(position)) };
        // SAFETY: inside the data as above; `bytes` is ours and not part of
        // the mapping. The consumer does not read here before the release
        // store of the record's word, and a consumer that breaks this rule only reads
        // odd bytes.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(first).cast(), first.len()) };
        if !second.is_empty() {
            // SAFETY: the data start inside the mapping.
            let to = unsafe { self.base.add(DATA) };
            // SAFETY: `second` is shorter than the ring; else as above.
            unsafe { to.copy_from_nonoverlapping(NonNull::from(second).cast(), second.len()) };
        }
    }

    /// Copies `bytes.len()` bytes from `position`, wrapping at the end.
    /// `bytes` must not be longer than the ring.
    #[inline(always)]
    fn read(&self, position: u64, bytes: &mut [u8]) {
        debug_assert!(bytes.len() as u64 <= self.capacity());
        let until_end = bytes.len().min(self.until_end(position));
        let (first, second) = bytes.split_at_mut(until_end);
        // SAFETY: `first` ends before the end of the data.
        let from = unsafe { self.base.add(self.data_offset(position)) };
        // SAFETY: inside the data as above; `bytes` is ours and not part of
        // the mapping. The producer does not write here before the release
        // store of the head; one that breaks this rule only gives odd bytes,
        // and every byte is a valid u8.
        unsafe { from.copy_to_nonoverlapping(NonNull::from(&mut *first).cast(), first.len()) };
        if !second.is_empty() {
            // SAFETY: the data start inside the mapping.
            let from = unsafe { self.base.add(DATA) };
            // SAFETY: `second` is shorter than the ring; else as above.
            unsafe {
                from.copy_to_nonoverlapping(NonNull::from(&mut *second).cast(), second.len())
            };
        }
    }
}

/// Bytes of the ring that a record with `length` bytes of payload takes.
#[inline(always)]
fn record_bytes(length: usize) -> u64 {
    (WORD as u64 + length as u64).next_multiple_of(LINE)
}

/// The sending end.
#[derive(Debug)]
pub(crate) struct Producer {
    ring: Ring,
    tail: u64,
    /// The head as last read; it can only have grown since.
    head: u64,
}

impl Producer {
    /// The sending end of the ring at `offset`, `None` where no ring fits.
    pub(crate) fn new(mapping: &Arc<MmapRaw>, offset: u64, capacity: u64) -> Option<Self> {
        Ring::at(mapping, offset, capacity).map(|ring| Self { ring, tail: 0, head: 0 })
    }

    /// The longest payload of one record: a quarter of the ring, so that the
    /// two ends of a long message overlap.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "the capacity fits usize")]
    pub(crate) fn longest(&self) -> usize {
        (self.ring.capacity() / 4) as usize
    }

    /// Puts one record in, `false` when there is no room for it yet. A
    /// payload over [`Producer::longest`] never has room.
    #[inline(always)]
    pub(crate) fn try_put(&mut self, payload: &[u8], part: Part) -> Result<bool, Broken> {
        let next = self.tail + record_bytes(payload.len());
        // The word behind the record has to be free as well.
        let end = next + LINE;
        if end - self.head > self.ring.capacity() && !self.room_up_to(end)? {
            return Ok(false);
        }
        self.ring.word(next).store(NOTHING, Ordering::Relaxed);
        self.ring.write(self.tail + WORD as u64, payload);
        let word = (payload.len() as u64 + 1) | part.mark();
        self.ring.word(self.tail).store(word, Ordering::Release);
        self.tail = next;
        Ok(true)
    }

    #[cold]
    fn room_up_to(&mut self, end: u64) -> Result<bool, Broken> {
        let head = self.ring.head().load(Ordering::Acquire);
        if head < self.head || head > self.tail {
            return Err(Broken);
        }
        self.head = head;
        Ok(end - head <= self.ring.capacity())
    }
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct Consumer {
    ring: Ring,
    head: u64,
}

impl Consumer {
    /// The receiving end of the ring at `offset`, `None` where no ring fits.
    pub(crate) fn new(mapping: &Arc<MmapRaw>, offset: u64, capacity: u64) -> Option<Self> {
        Ring::at(mapping, offset, capacity).map(|ring| Self { ring, head: 0 })
    }

    /// Takes one record out into the start of `room`.
    #[inline(always)]
    pub(crate) fn try_take(&mut self, room: &mut [u8]) -> Result<Taken, Broken> {
        let word = self.ring.word(self.head).load(Ordering::Acquire);
        if word == NOTHING {
            return Ok(Taken::Nothing);
        }
        let length = self.length(word)?;
        let Some(room) = room.get_mut(..length) else { return Ok(Taken::NoRoom { length }) };
        self.ring.read(self.head + WORD as u64, room);
        self.head += record_bytes(length);
        self.ring.head().store(self.head, Ordering::Release);
        Ok(Taken::Bytes { length, part: Part::of(word) })
    }

    /// Whether nothing is left to take, as far as the producer has published.
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.word(self.head).load(Ordering::Acquire) == NOTHING
    }

    /// The length that `word` says, if a producer could have put it in.
    #[inline(always)]
    fn length(&self, word: u64) -> Result<usize, Broken> {
        let length = usize::try_from((word & !MORE).wrapping_sub(1)).map_err(|_| Broken)?;
        if length as u64 <= self.ring.capacity() - 2 * LINE { Ok(length) } else { Err(Broken) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::mapping::SharedMemory;
    use quickcheck::quickcheck;
    use std::num::NonZeroUsize;

    const CAPACITY: u64 = 4_096;

    fn memory() -> Arc<MmapRaw> {
        let length = usize::try_from(footprint(CAPACITY)).unwrap();
        Arc::new(SharedMemory::create(NonZeroUsize::new(length).unwrap()).unwrap().map().unwrap())
    }

    fn ends() -> (Producer, Consumer) {
        let memory = memory();
        (Producer::new(&memory, 0, CAPACITY).unwrap(), Consumer::new(&memory, 0, CAPACITY).unwrap())
    }

    quickcheck! {
        fn records_come_out_whole_and_in_order(lengths: Vec<u16>) -> bool {
            let (mut producer, mut consumer) = ends();
            let longest = producer.longest();
            let mut waiting = std::collections::VecDeque::new();
            let mut room = vec![0; longest];
            let mut take = |waiting: &mut std::collections::VecDeque<(Vec<u8>, Part)>| {
                let taken = consumer.try_take(&mut room).unwrap();
                match (taken, waiting.pop_front()) {
                    (Taken::Nothing, None) => true,
                    (Taken::Bytes { length, part }, Some((sent, sent_part))) =>
                        room[..length] == sent[..] && part == sent_part,
                    _ => false,
                }
            };
            for (index, length) in lengths.into_iter().enumerate() {
                let length = usize::from(length) % (longest + 1);
                let payload: Vec<u8> = (0..length).map(|at| u8::try_from((at * 31 + index) % 251).unwrap()).collect();
                let part = if index % 3 == 0 { Part::More } else { Part::Last };
                while !producer.try_put(&payload, part).unwrap() {
                    if waiting.is_empty() || !take(&mut waiting) {
                        return false;
                    }
                }
                waiting.push_back((payload, part));
            }
            while !waiting.is_empty() {
                if !take(&mut waiting) {
                    return false;
                }
            }
            take(&mut waiting)
        }

        fn any_word_the_peer_writes_is_refused_or_harmless(word: u64) -> bool {
            let (_, mut consumer) = ends();
            consumer.ring.word(0).store(word, Ordering::Relaxed);
            let mut room = [0; 512];
            match consumer.try_take(&mut room) {
                Err(Broken) => (word & !MORE).wrapping_sub(1) > CAPACITY - 2 * LINE,
                Ok(Taken::Nothing) => word == NOTHING,
                Ok(Taken::Bytes { length, .. } | Taken::NoRoom { length }) =>
                    length as u64 + 1 == word & !MORE,
            }
        }
    }

    #[test]
    fn what_a_payload_left_behind_is_never_taken_for_a_record() {
        let (mut producer, mut consumer) = ends();
        // Every line of the ring, each of which could start a record, begins
        // with what would be the word of a short record.
        let mut payload = [0; 1_000];
        payload.chunks_mut(8).for_each(|word| word[0] = 3);
        for length in (0..payload.len()).step_by(7).chain([1_000; 40]) {
            assert_eq!(producer.try_put(&payload[..length], Part::Last), Ok(true));
            let taken = consumer.try_take(&mut [0; 1_000]);
            assert_eq!(taken, Ok(Taken::Bytes { length, part: Part::Last }));
            assert_eq!(consumer.try_take(&mut [0; 1_000]), Ok(Taken::Nothing));
        }
    }

    #[test]
    fn a_record_that_does_not_fit_stays() {
        let (mut producer, mut consumer) = ends();
        assert_eq!(producer.try_put(&[7; 100], Part::Last), Ok(true));
        assert_eq!(consumer.try_take(&mut [0; 99]), Ok(Taken::NoRoom { length: 100 }));
        let mut room = [0; 100];
        assert_eq!(
            consumer.try_take(&mut room),
            Ok(Taken::Bytes { length: 100, part: Part::Last })
        );
        assert_eq!(room, [7; 100]);
    }

    #[test]
    fn a_full_ring_takes_no_more_until_a_record_is_taken_out() {
        let (mut producer, mut consumer) = ends();
        let mut put = 0;
        while producer.try_put(&[1; 56], Part::Last).unwrap() {
            put += 1;
        }
        assert_eq!(put, CAPACITY / LINE - 1);
        assert_eq!(
            consumer.try_take(&mut [0; 56]),
            Ok(Taken::Bytes { length: 56, part: Part::Last })
        );
        assert_eq!(producer.try_put(&[1; 56], Part::Last), Ok(true));
        assert_eq!(producer.try_put(&[1; 56], Part::Last), Ok(false));
    }

    #[test]
    fn a_head_ahead_of_the_tail_is_broken() {
        let (mut producer, _) = ends();
        while producer.try_put(&[0; 500], Part::Last).unwrap() {}
        producer.ring.head().store(CAPACITY * 9, Ordering::Relaxed);
        assert_eq!(producer.try_put(&[0; 500], Part::Last), Err(Broken));
    }

    #[test]
    fn rings_outside_the_memory_are_refused() {
        let memory = memory();
        assert!(Producer::new(&memory, 64, CAPACITY).is_none());
        assert!(Producer::new(&memory, 0, CAPACITY * 2).is_none());
        assert!(Producer::new(&memory, 0, CAPACITY - 64).is_none());
        assert!(Consumer::new(&memory, 8, CAPACITY / 2).is_none());
        assert!(Consumer::new(&memory, u64::MAX - 63, CAPACITY).is_none());
    }
}
