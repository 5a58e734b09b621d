//! How deep the stack went: what is below it is painted at the start, and
//! what is no longer paint later was used.

use core::ptr;

const PAINT: u64 = 0xa5a5_5a5a_c3c3_3c3c;
/// Left alone below the local variable of the one who paints.
const MARGIN: usize = 512;

unsafe extern "C" {
    /// Lowest word of the stack.
    static stack_bottom: u64;
    /// Where it begins.
    static stack_top: u64;
}

/// Paints from the lowest word of the stack to just below this call.
pub fn paint() {
    let here = 0u64;
    let bottom = &raw const stack_bottom as usize;
    let top = (&raw const here as usize & !7) - MARGIN;
    for address in (bottom..top).step_by(8) {
        // SAFETY: aligned words between the end of the image and the stack
        // pointer: nothing lives there.
        unsafe { ptr::write_volatile(address as *mut u64, PAINT) };
    }
}

/// Bytes of stack used since [`paint`], at most.
pub fn high_water() -> usize {
    let bottom = &raw const stack_bottom as usize;
    let top = &raw const stack_top as usize;
    let painted = (bottom..top).step_by(8).take_while(|address| {
        // SAFETY: aligned words that only the stack uses; reading them has no
        // effect.
        unsafe { ptr::read_volatile(*address as *const u64) == PAINT }
    });
    top - bottom - painted.count() * 8
}
