//! Memory-mapped files.

use std::fs::File;
use std::io;

use memmap2::{Advice, Mmap, MmapOptions};

/// Maps the first `length` bytes of a regular `file` for reading.
///
/// If another program shortens the file while it is mapped, this process ends with SIGBUS, like any
/// program that maps files.
pub(crate) fn map(file: &File, length: usize) -> io::Result<Mmap> {
    // SAFETY: private and read-only, so nothing here can change the file. Another program that
    // writes to it changes what is read; readers check every value they take and never index by a
    // value that they read twice.
    let map = unsafe { MmapOptions::new().len(length).map_copy_read_only(file) }?;
    // Without the advice reading is only slower.
    let _slower = map.advise(Advice::Sequential);
    Ok(map)
}

/// Tells the kernel to expect reads in any order from now on.
pub(crate) fn advise_lookups(map: &Mmap) {
    // Without the advice reading is only slower.
    let _slower = map.advise(Advice::Normal);
}
