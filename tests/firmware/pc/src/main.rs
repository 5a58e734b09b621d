//! loggap on a bare x86-64 machine: the core's self-test.

#![no_std]
#![no_main]

mod boot;
mod machine;
mod memory;

use core::fmt::Write;

use loggap_core::measure::Clock;
use loggap_core::selftest;

use crate::machine::{Serial, TimeStampCounter, exit};

/// Entered from `boot` in long mode, once.
#[unsafe(no_mangle)]
extern "C" fn image_main() -> ! {
    // Writing to the serial port cannot fail.
    let clock = TimeStampCounter::new();
    let started = clock.now();
    let count = selftest::run(|check| {
        let verdict = if check.passed() { "ok" } else { "FAILED" };
        let _ = writeln!(Serial, "check {} ... {verdict}", check.name);
        if !check.passed() {
            let _ = writeln!(Serial, "computed {:?}, right is {}", check.computed, check.answer);
        }
    });
    let time_passes = clock.now() > started;
    let _ = writeln!(Serial, "time passes: {time_passes}");
    let _ = writeln!(Serial, "self-test: {} passed, {} failed", count.passed, count.failed);
    exit(u8::from(count.failed > 0 || !time_passes))
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = writeln!(Serial, "{info}");
    exit(1)
}
