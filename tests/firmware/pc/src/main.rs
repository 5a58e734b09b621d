//! loggap on a bare x86-64 machine: the core's self-test.

#![no_std]
#![no_main]

mod boot;
mod machine;
mod memory;
mod stack;

use core::fmt::Write;

use loggap_core::measure::Clock;
use loggap_core::selftest;

use crate::machine::{Serial, TimeStampCounter, exit};

/// Entered from `boot` in long mode, once.
#[unsafe(no_mangle)]
extern "C" fn image_main() -> ! {
    stack::paint();
    // Writing to the serial port cannot fail.
    let clock = TimeStampCounter::new();
    let started = clock.now();
    let count = selftest::run(|check| {
        let _ = writeln!(Serial, "{check}");
    });
    let time_passes = clock.now() > started;
    let _ = writeln!(Serial, "time passes: {time_passes}");
    let _ = writeln!(Serial, "stack of the self-test {}", stack::high_water());
    let _ = writeln!(Serial, "{count}");
    exit(u8::from(count.failed > 0 || !time_passes))
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = writeln!(Serial, "{info}");
    exit(1)
}
