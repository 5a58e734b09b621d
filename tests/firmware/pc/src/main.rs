//! loggap on a bare x86-64 machine.

#![no_std]
#![no_main]

mod boot;
mod machine;
mod memory;

use core::fmt::Write;

use loggap_core::measure::Clock;

use crate::machine::{Serial, TimeStampCounter, exit};

/// Entered from `boot` in long mode, once.
#[unsafe(no_mangle)]
extern "C" fn image_main() -> ! {
    let clock = TimeStampCounter::new();
    let _ = writeln!(Serial, "read cost {} now {}", clock.read_cost(), clock.now());
    exit(0)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = writeln!(Serial, "{info}");
    exit(1)
}
