//! loggap in a Cortex-M4F: what the images of this package share.
#![no_std]

use core::panic::PanicInfo;

use cortex_m as _;
use defmt_semihosting as _;

pub mod board;
pub mod lan9118;
pub mod lend;
pub mod link;
pub mod mmio;
pub mod simulate;
pub mod stack;
pub mod timer;

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    defmt::error!("{}", defmt::Display2Format(info));
    board::exit(false)
}
