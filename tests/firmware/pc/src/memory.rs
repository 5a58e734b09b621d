//! The five memory functions that compiled Rust calls and no C library
//! provides here.

use core::arch::asm;

/// Copies `n` bytes from `source` to `target`.
///
/// # Safety
///
/// As of C's memcpy: both regions valid, not overlapping.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcpy(target: *mut u8, source: *const u8, n: usize) -> *mut u8 {
    // SAFETY: the caller vouches for n bytes at both places; the direction flag is clear by the ABI.
    unsafe {
        asm!("rep movsb", inout("rcx") n => _, inout("rdi") target => _, inout("rsi") source => _, options(nostack, preserves_flags))
    };
    target
}

/// Copies `n` bytes between regions that may overlap.
///
/// # Safety
///
/// As of C's memmove: both regions valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memmove(target: *mut u8, source: *const u8, n: usize) -> *mut u8 {
    if (target as usize).wrapping_sub(source as usize) >= n {
        // SAFETY: no byte of the source is overwritten before it is read.
        return unsafe { memcpy(target, source, n) };
    }
    // SAFETY: the caller vouches for n bytes at both places; from the last byte down no source byte
    // is overwritten before it is read, and n > 0 here.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rcx") n => _,
            inout("rdi") target.add(n - 1) => _, inout("rsi") source.add(n - 1) => _, options(nostack));
    }
    target
}

/// Sets `n` bytes to `value`.
///
/// # Safety
///
/// As of C's memset: the region is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memset(target: *mut u8, value: i32, n: usize) -> *mut u8 {
    // SAFETY: the caller vouches for n bytes at target.
    unsafe {
        asm!("rep stosb", inout("rcx") n => _, inout("rdi") target => _, in("al") value as u8, options(nostack, preserves_flags))
    };
    target
}

/// Compares `n` bytes.
///
/// # Safety
///
/// As of C's memcmp: both regions valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
    for i in 0..n {
        // SAFETY: i < n, and the caller vouches for n bytes at both places.
        let (x, y) = unsafe { (a.add(i).read_volatile(), b.add(i).read_volatile()) };
        if x != y {
            return i32::from(x) - i32::from(y);
        }
    }
    0
}

/// Whether `n` bytes differ: zero when they do not.
///
/// # Safety
///
/// As of C's memcmp: both regions valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: the caller vouches for n bytes at both places.
    unsafe { memcmp(a, b, n) }
}
