//! Registered memory.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use ibverbs_sys as ffi;
use memmap2::{MmapOptions, MmapRaw};

use super::device::{Domain, access, not_null};
use crate::machine::kernel_files::memory_entry;

/// Page size of registered memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PageSize {
    /// Default page size.
    Usual,
    /// Huge pages from the system's reserved pool.
    Huge,
}

/// Memory registered for local and remote access, with every page present; deregistered when
/// dropped.
///
/// The device, and through it the peer, may write at any time: the bytes are only accessed through
/// raw pointers and atomics, never through a reference.
#[derive(Debug)]
pub(crate) struct Region {
    registration: NonNull<ffi::ibv_mr>,
    map: MmapRaw,
    /// The protection domain must outlive the registration.
    _domain: Arc<Domain>,
}

// SAFETY: the mapping is accessed through raw pointers and atomics only, and libibverbs may be
// called from any thread.
unsafe impl Send for Region {}
impl Region {
    /// Registers `length` zeroed bytes in pages of the given size.
    pub(crate) fn register(
        domain: &Arc<Domain>,
        length: usize,
        pages: PageSize,
    ) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        options.populate();
        match pages {
            PageSize::Usual => options.len(length),
            // Huge pages can only be unmapped as a whole.
            PageSize::Huge => options.len(length.next_multiple_of(huge_page())).huge(None),
        };
        let map = MmapRaw::from(options.map_anon()?);
        let flags = access().0.cast_signed();
        // SAFETY: the domain is alive, and the mapping has this length and outlives the
        // registration.
        let raw =
            unsafe { ffi::ibv_reg_mr(domain.raw(), map.as_mut_ptr().cast(), map.len(), flags) };
        Ok(Self { registration: not_null(raw)?, map, _domain: Arc::clone(domain) })
    }

    /// Address that a peer uses.
    pub(crate) fn address(&self) -> u64 {
        self.map.as_ptr() as u64
    }

    /// Remote key that a peer uses.
    pub(crate) fn remote_key(&self) -> u32 {
        // SAFETY: the registration is alive, and its keys do not change.
        unsafe { (*self.registration.as_ptr()).rkey }
    }

    pub(super) fn local_key(&self) -> u32 {
        // SAFETY: as above.
        unsafe { (*self.registration.as_ptr()).lkey }
    }

    /// Length in bytes.
    pub(crate) fn length(&self) -> usize {
        self.map.len()
    }

    /// True if the `length` bytes from `offset` on are within the region.
    #[inline]
    pub(super) fn holds(&self, offset: usize, length: usize) -> bool {
        offset.checked_add(length).is_some_and(|end| end <= self.map.len())
    }

    /// Copies `bytes` to `offset`; false if they do not fit.
    #[inline]
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        if !self.holds(offset, bytes.len()) {
            return false;
        }
        // SAFETY: it lies within the mapping, as checked above.
        let to = unsafe { self.map.as_mut_ptr().add(offset) };
        // SAFETY: as above for the target; the source is not within the mapping, to which no
        // references exist.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        true
    }

    /// Copies from `offset` into `bytes`; false if the region ends before. If the peer writes at
    /// the same time, which it must not, the result may be torn.
    #[inline]
    pub(crate) fn read(&self, offset: usize, bytes: &mut [u8]) -> bool {
        if !self.holds(offset, bytes.len()) {
            return false;
        }
        // SAFETY: it lies within the mapping, as checked above.
        let from = unsafe { self.map.as_ptr().add(offset) };
        // SAFETY: as above for the source, all bytes of which are initialised; the
        // target is not within the mapping.
        unsafe { from.copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
        true
    }

    /// Byte at `offset`, 0 beyond the end. An acquire load: what was written before the byte is
    /// visible afterwards.
    #[inline]
    pub(crate) fn byte(&self, offset: usize) -> u8 {
        if !self.holds(offset, 1) {
            return 0;
        }
        // SAFETY: it lies within the mapping, as checked above.
        let byte = unsafe { self.map.as_mut_ptr().add(offset) };
        // SAFETY: valid for as long as the mapping, and only accessed by atomics and the device.
        unsafe { AtomicU8::from_ptr(byte) }.load(Ordering::Acquire)
    }

    /// Sets the byte at `offset`: a release store, visible to a peer that is notified afterwards.
    #[inline]
    pub(crate) fn set_byte(&self, offset: usize, value: u8) {
        if !self.holds(offset, 1) {
            return;
        }
        // SAFETY: it lies within the mapping, as checked above.
        let byte = unsafe { self.map.as_mut_ptr().add(offset) };
        // SAFETY: valid for as long as the mapping, and only accessed by atomics and the device.
        unsafe { AtomicU8::from_ptr(byte) }.store(value, Ordering::Release);
    }

    /// Little-endian 32-bit number at `offset`; 0 beyond the end, or if `offset` is not a multiple
    /// of 4.
    #[inline]
    pub(crate) fn number(&self, offset: usize) -> u32 {
        if !self.holds(offset, 4) || !offset.is_multiple_of(4) {
            return 0;
        }
        // SAFETY: it lies within the mapping, as checked above.
        let number = unsafe { self.map.as_mut_ptr().add(offset) }.cast::<u32>();
        // SAFETY: aligned, because the mapping begins on a page; valid for as long as the mapping,
        // and only accessed by atomics and the device.
        u32::from_le(unsafe { AtomicU32::from_ptr(number) }.load(Ordering::Acquire))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: it was registered once; the queue that used it was destroyed before.
        let _no_one_to_tell = unsafe { ffi::ibv_dereg_mr(self.registration.as_ptr()) };
    }
}

/// Size of a huge page, bytes; 2 MiB if the system does not report it.
fn huge_page() -> usize {
    let said = memory_entry("Hugepagesize").and_then(|bytes| usize::try_from(bytes).ok());
    said.unwrap_or(2 << 20)
}
