//! A file's content without a copy.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::slice;

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, munmap};

/// A regular file's content, mapped for reading and unmapped when dropped.
///
/// A file that another program shortens while it is mapped ends this process
/// with SIGBUS, as for every program that maps files.
#[derive(Debug)]
pub(crate) struct FileMap {
    base: NonNull<u8>,
    length: NonZeroUsize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and nothing
// here writes to it.
unsafe impl Send for FileMap {}
// SAFETY: as for Send; all access is reading.
unsafe impl Sync for FileMap {}

impl FileMap {
    /// Maps the first `length` bytes of `file`.
    pub(crate) fn new(file: &File, length: NonZeroUsize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice, so it
        // replaces nothing; private, so nothing here can change the file.
        let base =
            unsafe { mmap(None, length, ProtFlags::PROT_READ, MapFlags::MAP_PRIVATE, file, 0) }?;
        // SAFETY: exactly the mapping just made; the advice changes only how
        // the kernel reads ahead. Without it reading is slower, not wrong.
        let _slower = unsafe { madvise(base, length.get(), MmapAdvise::MADV_SEQUENTIAL) };
        Ok(Self { base: base.cast(), length })
    }

    /// The content.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `base` is mapped for reading over `length` bytes while
        // `self` lives. Another program that writes to the file meanwhile
        // changes what is read; readers check every value they take and
        // index nothing by a value that they read twice.
        unsafe { slice::from_raw_parts(self.base.as_ptr(), self.length.get()) }
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped, and no slice outlives `self`.
        // Failure would only leave it mapped.
        let _still_mapped = unsafe { munmap(self.base.cast(), self.length.get()) };
    }
}
