//! Zeroed memory from the kernel, in huge pages if available. Pages cost nothing before they are
//! touched.

use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicU64};

use loggap_core::goal::binary::EdgeSpan;
use loggap_core::sim::implicit;
use loggap_core::sim::mail::ChunkList;
use loggap_core::sim::network::{Delivery, Flow, Hop, Link, QueuedLink};
use loggap_core::sim::windows::{End, Foreign, Message, Receiving, WindowRank, WindowRecord};
use loggap_core::sim::{Ancestor, ClockQueue, Entry, Origin, Rank, Record, Slot, streamed};
use memmap2::{Advice, MmapMut, MmapOptions};

/// Smallest allocation for which huge pages are requested, bytes.
const HUGE: usize = 2 << 20;

/// Types consisting only of integers, floats and booleans, for which zeroed memory is a valid
/// value, and which need not be dropped.
///
/// # Safety
///
/// All bytes 0 must be a valid value of the type, and the type must not need dropping.
pub(crate) unsafe trait Integers {}

// SAFETY: nothing.
unsafe impl Integers for () {}
// SAFETY: an integer.
unsafe impl Integers for u32 {}
// SAFETY: an integer.
unsafe impl Integers for u64 {}
// SAFETY: integers.
unsafe impl Integers for [u32; 2] {}
// SAFETY: an integer.
unsafe impl Integers for AtomicU32 {}
// SAFETY: an integer.
unsafe impl Integers for AtomicU64 {}
// SAFETY: its fields are integers.
unsafe impl Integers for EdgeSpan {}
// SAFETY: its fields are integers.
unsafe impl Integers for Slot {}
// SAFETY: its fields are integers.
unsafe impl Integers for Record {}
// SAFETY: its fields are integers.
unsafe impl Integers for Origin {}
// SAFETY: its fields are integers.
unsafe impl Integers for Ancestor {}
// SAFETY: its fields are atomic integers.
unsafe impl Integers for streamed::Message {}
// SAFETY: its fields are integers.
unsafe impl Integers for Rank {}
// SAFETY: its fields are integers.
unsafe impl Integers for Entry {}
// SAFETY: its fields are integers.
unsafe impl Integers for ClockQueue {}
// SAFETY: its fields are integers, and `S` consists of integers.
unsafe impl<S: Integers> Integers for implicit::RankState<S> {}
// SAFETY: its fields are integers.
unsafe impl Integers for WindowRank {}
// SAFETY: its fields are integers.
unsafe impl Integers for Receiving {}
// SAFETY: its fields are atomic integers.
unsafe impl Integers for WindowRecord {}
// SAFETY: its fields are atomic integers.
unsafe impl Integers for Foreign {}
// SAFETY: its fields are atomic integers.
unsafe impl Integers for End {}
// SAFETY: its fields are atomic integers.
unsafe impl Integers for Message {}
// SAFETY: its fields are atomic integers.
unsafe impl Integers for implicit::Message {}
// SAFETY: its fields are integers.
unsafe impl Integers for implicit::Node {}
// SAFETY: its fields are atomic integers.
unsafe impl Integers for ChunkList {}

// SAFETY: a float, for which all bytes 0 is valid.
unsafe impl Integers for f64 {}
// SAFETY: its fields are numbers and booleans, for which 0 is valid.
unsafe impl Integers for Link {}
// SAFETY: its fields are numbers.
unsafe impl Integers for QueuedLink {}
// SAFETY: its fields are integers.
unsafe impl Integers for Hop {}
// SAFETY: its fields are numbers.
unsafe impl Integers for Flow {}
// SAFETY: its fields are integers.
unsafe impl Integers for Delivery {}

/// An owned array in its own mapping.
#[derive(Debug)]
pub(crate) struct Pages<T> {
    map: MmapMut,
    len: usize,
    owned: PhantomData<T>,
}

impl<T: Integers> Pages<T> {
    /// `len` elements, all bytes of which are 0.
    pub(crate) fn zeroed(len: usize) -> io::Result<Self> {
        let pages = Self::unadvised(len)?;
        if pages.map.len() >= HUGE {
            // Without huge pages it is only slower.
            let _slower = pages.map.advise(Advice::HugePage);
        }
        Ok(pages)
    }

    /// As [`Pages::zeroed`], in small pages only: for many sparsely used arrays, where a huge page
    /// for each would take more memory than is used.
    pub(crate) fn zeroed_sparse(len: usize) -> io::Result<Self> {
        let pages = Self::unadvised(len)?;
        // A kernel without huge pages returns an error, which is harmless.
        let _none = pages.map.advise(Advice::NoHugePage);
        Ok(pages)
    }

    fn unadvised(len: usize) -> io::Result<Self> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(too_large)?;
        let map = MmapOptions::new().len(bytes).no_reserve_swap().map_anon()?;
        Ok(Self { map, len, owned: PhantomData })
    }
}

impl<T> Deref for Pages<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the mapping is as long as `len` elements, aligned to a page, and was zeroed
        // initially, which `Integers` guarantees to be valid; it lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.len) }
    }
}

impl<T> DerefMut for Pages<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_zeroed_writable_and_as_long_as_asked() {
        for len in [0, 1, 1_000, 3 << 20] {
            let mut pages = Pages::<u64>::zeroed(len).unwrap();
            assert_eq!(pages.len(), len);
            assert!(pages.iter().all(|&word| word == 0));
            if let Some(last) = pages.last_mut() {
                *last = 7;
                assert_eq!(pages[len - 1], 7);
            }
        }
        assert!(Pages::<u64>::zeroed(usize::MAX / 4).is_err());
    }

    #[test]
    fn zeroed_records_and_messages_are_their_defaults() {
        let text = |value: &dyn std::fmt::Debug| format!("{value:?}");
        let record = Pages::<WindowRecord>::zeroed(1).unwrap();
        assert_eq!(text(&record[0]), text(&WindowRecord::default()));
        let message = Pages::<Message>::zeroed(1).unwrap();
        assert_eq!(text(&message[0]), text(&Message::default()));
        let chain = Pages::<ChunkList>::zeroed(1).unwrap();
        assert_eq!(text(&chain[0]), text(&ChunkList::default()));
    }
}
