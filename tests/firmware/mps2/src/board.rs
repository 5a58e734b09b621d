//! The board: its devices, and how a program ends.

use core::arch::asm;

use crate::lan9118::{self, Lan9118};
use crate::mmio::Registers;
use crate::timer::{self, Timer};

/// What the images use of the board.
pub struct Board {
    /// The first CMSDK timer.
    pub clock: Timer,
    /// The Ethernet controller, not initialised.
    pub ethernet: Registers,
}

impl Board {
    /// Takes the devices, and paints the stack. To be called once.
    pub fn take() -> Self {
        crate::stack::paint();
        // SAFETY: the memory map of the MPS2 AN386 (ARM DAI 0386, table 3-2)
        // has the Ethernet controller there.
        let ethernet = unsafe { Registers::at(0x4020_0000, lan9118::WINDOW) };
        // SAFETY: and the first timer there.
        let timer = unsafe { Registers::at(0x4000_0000, timer::WINDOW) };
        Self { clock: Timer::new(timer), ethernet }
    }

    /// The Ethernet controller, or the end of the program with the reason.
    pub fn nic(&self) -> Lan9118 {
        match Lan9118::new(self.ethernet) {
            Ok(nic) => nic,
            Err(error) => {
                defmt::error!("no Ethernet: {}", error);
                exit(false)
            }
        }
    }
}

/// Ends the emulator, with status 0 or 1.
pub fn exit(success: bool) -> ! {
    const SYS_EXIT: u32 = 0x18;
    let reason: u32 = if success { 0x2_0026 } else { 0x2_0023 };
    loop {
        // SAFETY: a semihosting call; ends the emulator and touches no
        // memory of this program.
        unsafe { asm!("bkpt 0xab", in("r0") SYS_EXIT, in("r1") reason, options(nostack)) };
    }
}
