//! Single-producer, single-consumer ring in shared memory.
//!
//! Layout, in bytes from the start of a ring:
//!
//! ```text
//!    0  head  u64: bytes ever consumed, written by the consumer only
//!  128  data  `capacity` bytes, a power of two
//! ```
//!
//! The data are records that start at multiples of 64 bytes, so that no two share a cache line: a
//! word, then the payload. The word is 0 while there is no record, else the payload's length plus
//! 1, with a flag if more records of the same message follow. Before the producer publishes a
//! record by storing its word, it clears the next record's word. So the consumer never reads stale
//! data as a word, and a short message moves between the processors as one cache line. The head
//! tells the producer which part is free, and is read only when the ring seems full.
//!
//! Each side keeps its own position privately and does not trust what it reads: the peer is another
//! process and may be broken. An invalid head or length results in [`Broken`], never in an access
//! outside the mapping.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapRaw;

const HEAD: usize = 0;
/// Two cache lines after the head, because processors fetch lines in pairs.
const DATA: usize = 128;
const LINE: u64 = 64;
const WORD: usize = size_of::<u64>();
/// Word of a record that has not been published.
const NOTHING: u64 = 0;
/// Flag in a word: the next record continues the message.
const MORE: u64 = 1 << 63;

/// The peer wrote a head or length that no correct producer or consumer writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Broken;

/// Position of a record in its message.
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
    /// A record was removed from the ring: length of its payload, and position in the message.
    Bytes { length: usize, part: Part },
    /// A record stays in the ring, because its payload, of this length, does not fit into the buffer.
    NoRoom { length: usize },
}

/// Total size in bytes of a ring with `capacity` data bytes.
pub(crate) const fn footprint(capacity: u64) -> u64 {
    DATA as u64 + capacity
}

/// Memory of a ring, as both ends map it.
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
    /// The ring at `offset`. `None` unless it lies inside the mapping and is aligned, and
    /// `capacity` is a power of two of at least two cache lines.
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

    /// Number of bytes ever consumed.
    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        self.atomic(HEAD)
    }

    /// The eight bytes at `offset`, which is a multiple of a cache line inside the ring.
    #[inline(always)]
    fn atomic(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: `at` checked that the ring is inside the mapping and aligned to a cache line; so
        // is every offset passed here.
        let at = unsafe { self.base.add(offset) };
        // SAFETY: valid and aligned as above for as long as `self` keeps the mapping; both
        // processes access it only as an atomic.
        unsafe { AtomicU64::from_ptr(at.cast().as_ptr()) }
    }

    /// Word of the record at `position`, which is a multiple of a cache line.
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

    /// Copies `bytes` to `position`, wrapping at the end. `bytes` must not be longer than the ring.
    #[inline(always)]
    fn write(&self, position: u64, bytes: &[u8]) {
        let (first, second) = bytes.split_at(bytes.len().min(self.until_end(position)));
        debug_assert!(bytes.len() as u64 <= self.capacity());
        // SAFETY: `first` ends before the end of the data.
        let to = unsafe { self.base.add(self.data_offset(position)) };
        // SAFETY: inside the data as above; `bytes` is not part of the mapping. The consumer does
        // not read here before the release store of the record's word; a consumer that breaks this
        // rule only reads wrong bytes.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(first).cast(), first.len()) };
        if !second.is_empty() {
            // SAFETY: the data start inside the mapping.
            let to = unsafe { self.base.add(DATA) };
            // SAFETY: `second` is shorter than the ring; otherwise as above.
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
        // SAFETY: inside the data as above; `bytes` is not part of the mapping. The producer does
        // not write here before the release store of the head; one that breaks this rule only
        // yields wrong bytes, and every byte is a valid u8.
        unsafe { from.copy_to_nonoverlapping(NonNull::from(&mut *first).cast(), first.len()) };
        if !second.is_empty() {
            // SAFETY: the data start inside the mapping.
            let from = unsafe { self.base.add(DATA) };
            // SAFETY: `second` is shorter than the ring; otherwise as above.
            unsafe {
                from.copy_to_nonoverlapping(NonNull::from(&mut *second).cast(), second.len())
            };
        }
    }
}

/// Bytes in the ring of a record with `length` bytes of payload.
#[inline(always)]
fn record_bytes(length: usize) -> u64 {
    (WORD as u64 + length as u64).next_multiple_of(LINE)
}

/// The sending end.
#[derive(Debug)]
pub(crate) struct Producer {
    ring: Ring,
    tail: u64,
    /// Head as last read; it can only have advanced since.
    head: u64,
}

impl Producer {
    /// Sending end of the ring at `offset`; `None` if no ring fits there.
    pub(crate) fn new(mapping: &Arc<MmapRaw>, offset: u64, capacity: u64) -> Option<Self> {
        Ring::at(mapping, offset, capacity).map(|ring| Self { ring, tail: 0, head: 0 })
    }

    /// Longest payload of a record: a quarter of the ring, so that sending and receiving of a long
    /// message overlap.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "the capacity fits usize")]
    pub(crate) fn longest(&self) -> usize {
        (self.ring.capacity() / 4) as usize
    }

    /// Appends a record; `false` if there is no space yet. A payload longer than
    /// [`Producer::longest`] never fits.
    #[inline(always)]
    pub(crate) fn try_put(&mut self, payload: &[u8], part: Part) -> Result<bool, Broken> {
        let next = self.tail + record_bytes(payload.len());
        // The word after the record must be free as well.
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
    /// Receiving end of the ring at `offset`; `None` if no ring fits there.
    pub(crate) fn new(mapping: &Arc<MmapRaw>, offset: u64, capacity: u64) -> Option<Self> {
        Ring::at(mapping, offset, capacity).map(|ring| Self { ring, head: 0 })
    }

    /// Moves a record's payload to the start of `room`.
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

    /// True if the producer has published no further record.
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.word(self.head).load(Ordering::Acquire) == NOTHING
    }

    /// Payload length in `word`, if a correct producer could have written it.
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
        // Every cache line of the ring, each of which could start a record, begins with the word of
        // a short record.
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
