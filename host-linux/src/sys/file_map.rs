//! A file's content without a copy.

use std::fs::File;
use std::io;

use memmap2::{Advice, Mmap, MmapOptions};

/// Maps the first `length` bytes of a regular `file` for reading.
///
/// A file that another program shortens while it is mapped ends this process
/// with SIGBUS, as for every program that maps files.
pub(crate) fn map(file: &File, length: usize) -> io::Result<Mmap> {
    // SAFETY: private and read-only, so nothing here can change the file.
    // Another program that writes to it meanwhile changes what is read;
    // readers check every value they take and index nothing by a value that
    // they read twice.
    let map = unsafe { MmapOptions::new().len(length).map_copy_read_only(file) }?;
    // Without the advice reading is slower, not wrong.
    let _slower = map.advise(Advice::Sequential);
    Ok(map)
}

/// Lets the kernel expect reads in any order from here on.
pub(crate) fn advise_lookups(map: &Mmap) {
    // Without the advice reading is slower, not wrong.
    let _slower = map.advise(Advice::Normal);
}
