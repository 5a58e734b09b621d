//! Huge pages for memory that is not written yet.

use std::mem::MaybeUninit;

/// Bytes of a huge page, on the processors where they are that long.
const BYTES: usize = 2 << 20;

/// True where the system gives huge pages to those who ask for them.
pub(crate) fn is_given() -> bool {
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    setting.is_ok_and(|text| !text.contains("[never]"))
}

/// Asks for huge pages in `memory`, as far as they fit into it. False where the
/// system gives none.
pub(crate) fn advise<T>(memory: &mut [MaybeUninit<T>]) -> bool {
    let bytes = size_of_val(memory);
    let begin = memory.as_mut_ptr();
    let skipped = begin.addr().next_multiple_of(BYTES) - begin.addr();
    let length = bytes.saturating_sub(skipped) / BYTES * BYTES;
    if !is_given() || length == 0 {
        return is_given();
    }
    // SAFETY: `skipped` is less than `bytes`, as `length` is more than 0.
    let first = unsafe { begin.byte_add(skipped) };
    // SAFETY: the range is within `memory`, which is borrowed for writing; advice
    // about the size of pages does not change what they hold.
    unsafe { nix::libc::madvise(first.cast(), length, nix::libc::MADV_HUGEPAGE) == 0 }
}
