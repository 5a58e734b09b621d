//! The CMSDK timer of the board as a [`Clock`]: 32 bits counting down at
//! 25 MHz, extended to 64 in software.

use core::cell::Cell;

use loggap_core::measure::Clock;
use loggap_core::units::Picos;

use crate::mmio::Registers;

const CTRL: usize = 0x0;
const VALUE: usize = 0x4;
const RELOAD: usize = 0x8;
/// Bytes of the register window.
pub const WINDOW: usize = 0x10;
/// 25 MHz.
const PICOS_PER_TICK: u64 = 40_000;

/// A free-running 64-bit clock. A reading at least every 171 s keeps it
/// exact: the hardware counter wraps then.
pub struct Timer {
    registers: Registers,
    /// Ticks up to the last reading.
    last: Cell<u64>,
    read_cost: Picos,
}

impl Timer {
    /// Starts the timer and measures what one reading costs.
    pub fn new(registers: Registers) -> Self {
        registers.write(CTRL, 0);
        registers.write(RELOAD, u32::MAX);
        registers.write(VALUE, u32::MAX);
        registers.write(CTRL, 1);
        let mut timer = Self { registers, last: Cell::new(0), read_cost: Picos::ZERO };
        let readings = 64;
        let start = timer.now();
        for _ in 0..readings {
            timer.now();
        }
        timer.read_cost = Picos(timer.duration(timer.now() - start).0 / readings);
        timer
    }
}

impl Clock for Timer {
    fn now(&self) -> u64 {
        let elapsed = u64::from(u32::MAX - self.registers.read(VALUE));
        let last = self.last.get();
        let mut now = (last & !u64::from(u32::MAX)) | elapsed;
        if now < last {
            now += 1 << 32;
        }
        self.last.set(now);
        now
    }

    fn duration(&self, ticks: u64) -> Picos {
        Picos(ticks.saturating_mul(PICOS_PER_TICK))
    }

    fn ticks(&self, duration: Picos) -> u64 {
        duration.0.div_ceil(PICOS_PER_TICK)
    }

    fn read_cost(&self) -> Picos {
        self.read_cost
    }
}
