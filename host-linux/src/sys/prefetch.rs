//! Prefetching into the processor's cache.

/// Reads the line of the first byte of `place` into all caches, on x86-64; elsewhere nothing.
#[inline]
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables, reason = "x86-64 only"))]
pub(crate) fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has SSE; a prefetch does not change memory.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
}
