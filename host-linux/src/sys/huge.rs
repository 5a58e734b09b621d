//! Huge pages for memory that has not been written yet.

use std::mem::MaybeUninit;

/// Assumed size of a huge page, bytes.
const BYTES: usize = 2 << 20;

/// True if the system provides huge pages on request (`always` or `madvise`).
pub(crate) fn is_given() -> bool {
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    setting.is_ok_and(|text| !text.contains("[never]"))
}

/// Requests huge pages for the aligned part of `memory`. False if the system provides none.
pub(crate) fn advise<T>(memory: &mut [MaybeUninit<T>]) -> bool {
    let bytes = size_of_val(memory);
    let begin = memory.as_mut_ptr();
    let skipped = begin.addr().next_multiple_of(BYTES) - begin.addr();
    let length = bytes.saturating_sub(skipped) / BYTES * BYTES;
    if !is_given() || length == 0 {
        return is_given();
    }
    // SAFETY: `skipped` is less than `bytes`, because `length` is greater than 0.
    let first = unsafe { begin.byte_add(skipped) };
    // SAFETY: the range is within `memory`, which is borrowed mutably; advice about the page size
    // does not change the content.
    unsafe { nix::libc::madvise(first.cast(), length, nix::libc::MADV_HUGEPAGE) == 0 }
}
