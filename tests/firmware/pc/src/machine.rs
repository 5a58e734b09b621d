//! The three devices the image uses: the first serial port for text, QEMU's
//! debug-exit port for the result, the time-stamp counter as clock.

use core::arch::asm;
use core::fmt;

use loggap_core::measure::Clock;
use loggap_core::units::Picos;

const SERIAL: u16 = 0x3f8;
const LINE_STATUS: u16 = SERIAL + 5;
const TRANSMITTER_EMPTY: u8 = 1 << 5;
const DEBUG_EXIT: u16 = 0xf4;

fn out(port: u16, value: u8) {
    // SAFETY: the ports of this file belong to the image alone; writing them touches no memory.
    unsafe {
        asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags))
    };
}

fn input(port: u16) -> u8 {
    let value: u8;
    // SAFETY: as in `out`.
    unsafe {
        asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags))
    };
    value
}

/// The first serial port, as QEMU leaves it: 8N1, no flow control.
pub struct Serial;

impl fmt::Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            while input(LINE_STATUS) & TRANSMITTER_EMPTY == 0 {}
            out(SERIAL, byte);
        }
        Ok(())
    }
}

/// Ends the emulator with exit status `2·code + 1`.
pub fn exit(code: u8) -> ! {
    out(DEBUG_EXIT, code);
    loop {
        // SAFETY: stops the processor until the next interrupt, and interrupts are off.
        unsafe { asm!("hlt", options(nomem, nostack)) };
    }
}

/// The time-stamp counter. Its rate under emulation is QEMU's choice and
/// only serves to see that time passes: 1 ns a tick.
pub struct TimeStampCounter {
    read_cost: Picos,
}

impl TimeStampCounter {
    /// Measures what one reading costs.
    pub fn new() -> Self {
        let mut clock = Self { read_cost: Picos::ZERO };
        let readings = 64;
        let start = clock.now();
        for _ in 0..readings {
            clock.now();
        }
        clock.read_cost = Picos(clock.duration(clock.now() - start).0 / readings);
        clock
    }
}

impl Clock for TimeStampCounter {
    fn now(&self) -> u64 {
        // SAFETY: reading the counter has no effect beyond its result.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    fn duration(&self, ticks: u64) -> Picos {
        Picos(ticks.saturating_mul(1_000))
    }

    fn ticks(&self, duration: Picos) -> u64 {
        duration.0.div_ceil(1_000)
    }

    fn read_cost(&self) -> Picos {
        self.read_cost
    }
}
