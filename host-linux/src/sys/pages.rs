//! Zeroed memory straight from the kernel, in huge pages where it has them.
//! Pages cost nothing before they are touched.

use std::io;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use loggap_core::sim::windows::{Chain, Message, WindowRank, WindowRecord};
use loggap_core::sim::{Crowd, Entry, Rank, Record, Slot};
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};

/// Smaller memory is left in small pages.
const HUGE: usize = 2 << 20;

/// Types that are plain integers or truth values, or nothing but them, so that zeroed memory
/// is a value of theirs, and that need not be dropped.
///
/// # Safety
///
/// Only for such types.
pub(crate) unsafe trait Integers {}

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
unsafe impl Integers for Slot {}
// SAFETY: its fields are integers.
unsafe impl Integers for Record {}
// SAFETY: its fields are integers.
unsafe impl Integers for Rank {}
// SAFETY: its fields are integers.
unsafe impl Integers for Entry {}
// SAFETY: its fields are integers and truth values, of which 0 is one.
unsafe impl Integers for Crowd {}
// SAFETY: its fields are integers.
unsafe impl Integers for WindowRank {}
// SAFETY: its fields are atomic integers.
unsafe impl Integers for WindowRecord {}
// SAFETY: its fields are atomic integers.
unsafe impl Integers for Message {}
// SAFETY: its fields are atomic integers.
unsafe impl Integers for Chain {}

/// Elements in memory of their own.
#[derive(Debug)]
pub(crate) struct Pages<T> {
    /// Dangling if there are no bytes.
    base: NonNull<T>,
    len: usize,
    bytes: usize,
    owned: PhantomData<T>,
}

impl<T: Integers> Pages<T> {
    /// So many elements, all bytes of which are 0.
    pub(crate) fn zeroed(len: usize) -> io::Result<Self> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let bytes = len.checked_mul(size_of::<T>()).ok_or_else(too_large)?;
        let Some(length) = NonZeroUsize::new(bytes) else {
            return Ok(Self { base: NonNull::dangling(), len, bytes, owned: PhantomData });
        };
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches
        // nothing that exists.
        let base = unsafe { mmap_anonymous(None, length, protection, flags) }?;
        if bytes >= HUGE {
            // SAFETY: the range is the mapping just made; advice changes no
            // content.
            let _slower = unsafe { madvise(base, bytes, MmapAdvise::MADV_HUGEPAGE) };
        }
        Ok(Self { base: base.cast(), len, bytes, owned: PhantomData })
    }
}

impl<T> Deref for Pages<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `base` is the start of a mapping of `len` elements, aligned
        // to a page (or dangling, with no bytes), zeroed, which `Integers`
        // says is valid; it lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Pages<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `self` is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }
}

impl<T> Drop for Pages<T> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: the mapping was made by `zeroed` with these bytes, and
            // nothing borrows it any more.
            let _unmapped = unsafe { munmap(self.base.cast(), self.bytes) };
        }
    }
}

// SAFETY: it owns its elements, as a vector does.
unsafe impl<T: Send> Send for Pages<T> {}
// SAFETY: shared, it gives out shared elements only.
unsafe impl<T: Sync> Sync for Pages<T> {}

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
        let chain = Pages::<Chain>::zeroed(1).unwrap();
        assert_eq!(text(&chain[0]), text(&Chain::default()));
    }
}
