//! Processor counter: TSC on x86-64, `cntvct_el0` on aarch64.
//!
//! A reading is fenced on both sides: it happens after everything before it has completed and
//! before anything after it starts. Without the first fence, the end of a timed section could be
//! read before the section has finished; without the second, the section could start before its
//! start is read. With both, two readings with nothing in between differ by exactly the cost of
//! one, so subtracting that cost leaves zero.

/// True if the counter runs at one rate in every power state, according to CPUID.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    let highest = __cpuid(0x8000_0000).eax;
    highest >= POWER_MANAGEMENT && __cpuid(POWER_MANAGEMENT).edx & INVARIANT_TSC != 0
}

/// Name of the counter as a clock source of the kernel; `None` if there is no counter.
pub(crate) const KERNEL_NAME: Option<&str> = if cfg!(target_arch = "x86_64") {
    Some("tsc")
} else if cfg!(target_arch = "aarch64") {
    Some("arch_sys_counter")
} else {
    None
};

/// Reads the counter, fenced on both sides.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn read() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: LFENCE belongs to SSE2, which every x86-64 processor has.
    unsafe { _mm_lfence() };
    // SAFETY: RDTSC exists on every x86-64 processor, touches no memory, and
    // Linux leaves it enabled for user code (a kernel that traps it emulates
    // it).
    let ticks = unsafe { _rdtsc() };
    // SAFETY: as above.
    unsafe { _mm_lfence() };
    ticks
}

/// Always true: the architecture defines the generic timer's rate as constant.
#[cfg(target_arch = "aarch64")]
pub(crate) fn is_invariant() -> bool {
    true
}

/// Reads the counter, fenced on both sides.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(crate) fn read() -> u64 {
    let ticks: u64;
    // SAFETY: Linux gives user code access to CNTVCT_EL0; the three instructions write one register
    // and nothing else. Not declared `nomem`, so that the compiler does not move memory accesses
    // across.
    unsafe {
        core::arch::asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack, preserves_flags));
    }
    ticks
}

/// Always false: no counter is supported on this architecture.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn is_invariant() -> bool {
    false
}

/// Never called, because [`is_invariant`] and [`KERNEL_NAME`] deny a counter.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn read() -> u64 {
    0
}
