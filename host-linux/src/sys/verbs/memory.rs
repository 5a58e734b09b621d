//! Memory that a device may reach.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use ibverbs_sys as ffi;
use memmap2::{MmapOptions, MmapRaw};

use super::device::{Domain, access, not_null};
use crate::machine::environment::memory_entry;

/// The pages that memory is made of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PageSize {
    /// Those of every process.
    Usual,
    /// Huge ones, of those that the system has reserved.
    Huge,
}

/// Memory registered for local and remote access, with every page present;
/// given back when dropped.
///
/// The device, and the peer by it, write at any time: the bytes are only
/// reached through raw pointers and atomics, never through a reference.
#[derive(Debug)]
pub(crate) struct Region {
    registration: NonNull<ffi::ibv_mr>,
    map: MmapRaw,
    /// What registered it goes after it.
    _domain: Arc<Domain>,
}

// SAFETY: the mapping is reached through raw pointers and atomics only, and
// libibverbs may be called from any thread.
unsafe impl Send for Region {}
impl Region {
    /// So many zeroed bytes; of such pages.
    pub(crate) fn register(
        domain: &Arc<Domain>,
        length: usize,
        pages: PageSize,
    ) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        options.populate();
        match pages {
            PageSize::Usual => options.len(length),
            // Huge pages are given back whole only.
            PageSize::Huge => options.len(length.next_multiple_of(huge_page())).huge(None),
        };
        let map = MmapRaw::from(options.map_anon()?);
        let flags = access().0.cast_signed();
        // SAFETY: the domain is alive, and the mapping is as long and lives until the registration is gone.
        let raw =
            unsafe { ffi::ibv_reg_mr(domain.raw(), map.as_mut_ptr().cast(), map.len(), flags) };
        Ok(Self { registration: not_null(raw)?, map, _domain: Arc::clone(domain) })
    }

    /// Where a peer finds it.
    pub(crate) fn address(&self) -> u64 {
        self.map.as_ptr() as u64
    }

    /// The key by which a peer may reach it.
    pub(crate) fn remote_key(&self) -> u32 {
        // SAFETY: the registration is alive, and its keys do not change.
        unsafe { (*self.registration.as_ptr()).rkey }
    }

    pub(super) fn local_key(&self) -> u32 {
        // SAFETY: as above.
        unsafe { (*self.registration.as_ptr()).lkey }
    }

    /// Bytes of it.
    pub(crate) fn length(&self) -> usize {
        self.map.len()
    }

    /// Whether there are `length` bytes from `offset` on.
    #[inline]
    pub(super) fn holds(&self, offset: usize, length: usize) -> bool {
        offset.checked_add(length).is_some_and(|end| end <= self.map.len())
    }

    /// Copies `bytes` to `offset`; false where they do not fit.
    #[inline]
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        if !self.holds(offset, bytes.len()) {
            return false;
        }
        // SAFETY: it lies within the mapping, as was just checked.
        let to = unsafe { self.map.as_mut_ptr().add(offset) };
        // SAFETY: as above for the target; the source is not within the mapping, to
        // which nobody has a reference.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        true
    }

    /// Copies from `offset` into `bytes`; false where there is less. What a
    /// peer writes meanwhile comes torn, which is the peer's mistake.
    #[inline]
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) -> bool {
        if !self.holds(offset, bytes.len()) {
            return false;
        }
        // SAFETY: it lies within the mapping, as was just checked.
        let from = unsafe { self.map.as_ptr().add(offset) };
        // SAFETY: as above for the source, all bytes of which are initialised; the
        // target is not within the mapping.
        unsafe { from.copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
        true
    }

    /// The byte at `offset`, 0 beyond the end. What was written before it is
    /// seen as well.
    #[inline]
    pub(crate) fn byte(&self, offset: usize) -> u8 {
        if !self.holds(offset, 1) {
            return 0;
        }
        // SAFETY: it lies within the mapping, as was just checked.
        let byte = unsafe { self.map.as_mut_ptr().add(offset) };
        // SAFETY: valid for as long as the mapping, and only reached by atomics and
        // the device.
        unsafe { AtomicU8::from_ptr(byte) }.load(Ordering::Acquire)
    }

    /// Sets the byte at `offset`; what a peer is told afterwards finds it so.
    #[inline]
    pub(crate) fn set_byte(&self, offset: usize, value: u8) {
        if !self.holds(offset, 1) {
            return;
        }
        // SAFETY: it lies within the mapping, as was just checked.
        let byte = unsafe { self.map.as_mut_ptr().add(offset) };
        // SAFETY: valid for as long as the mapping, and only reached by atomics and
        // the device.
        unsafe { AtomicU8::from_ptr(byte) }.store(value, Ordering::Release);
    }

    /// The number at `offset`, in the order of bytes of a peer that writes
    /// least significant bytes first; 0 where there is none.
    #[inline]
    pub(crate) fn number(&self, offset: usize) -> u32 {
        if !self.holds(offset, 4) || !offset.is_multiple_of(4) {
            return 0;
        }
        // SAFETY: it lies within the mapping, as was just checked.
        let number = unsafe { self.map.as_mut_ptr().add(offset) }.cast::<u32>();
        // SAFETY: aligned, as the mapping begins on a page; valid for as long as the
        // mapping, and only reached by atomics and the device.
        u32::from_le(unsafe { AtomicU32::from_ptr(number) }.load(Ordering::Acquire))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: it was registered once; the queue that used it is destroyed before.
        let _no_one_to_tell = unsafe { ffi::ibv_dereg_mr(self.registration.as_ptr()) };
    }
}

/// Bytes of a huge page of this system; 2 MiB where it does not say.
fn huge_page() -> usize {
    let said = memory_entry("Hugepagesize").and_then(|bytes| usize::try_from(bytes).ok());
    said.unwrap_or(2 << 20)
}
