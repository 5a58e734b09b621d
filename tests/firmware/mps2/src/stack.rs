//! How deep the stack went: what is below it is painted at the start, and
//! what is no longer paint later was used.

use core::ptr;

const PAINT: u32 = 0xa5a5_5a5a;
/// Left alone below the stack pointer of the one who paints.
const MARGIN: usize = 256;

unsafe extern "C" {
    /// End of what the linker placed in RAM: the stack grows down to here.
    static __sheap: u32;
    /// Where the stack begins.
    static _stack_start: u32;
}

/// Paints from the lowest word of the stack to just below this call.
pub fn paint() {
    let bottom = &raw const __sheap as usize;
    let top = cortex_m::register::msp::read() as usize - MARGIN;
    for address in (bottom..top).step_by(4) {
        // SAFETY: aligned words of RAM between the linker's data and the
        // stack pointer: nothing lives there.
        unsafe { ptr::write_volatile(address as *mut u32, PAINT) };
    }
}

/// Bytes of stack used since [`paint`], at most.
pub fn high_water() -> usize {
    let bottom = &raw const __sheap as usize;
    let top = &raw const _stack_start as usize;
    let painted = (bottom..top).step_by(4).take_while(|address| {
        // SAFETY: aligned words of RAM that only the stack uses; reading
        // them has no effect.
        unsafe { ptr::read_volatile(*address as *const u32) == PAINT }
    });
    top - bottom - painted.count() * 4
}
