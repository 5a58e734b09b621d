//! loggap in a Cortex-M4F.
#![no_std]
#![no_main]

mod lan9118;
mod mmio;
mod timer;

use cortex_m as _;
use cortex_m_rt::entry;
use defmt_semihosting as _;
use loggap_core::measure::Clock;

use crate::lan9118::Lan9118;
use crate::mmio::Registers;
use crate::timer::Timer;

#[entry]
fn main() -> ! {
    // SAFETY: the memory map of the MPS2 AN386 (ARM DAI 0386, table 3-2) has these devices there.
    let (eth, timer0) = unsafe { (Registers::at(0x4020_0000, lan9118::WINDOW), Registers::at(0x4000_0000, timer::WINDOW)) };
    let clock = Timer::new(timer0);
    let mut nic = match Lan9118::new(eth) { Ok(n) => n, Err(e) => { defmt::error!("nic: {}", e); loop {} } };
    defmt::info!("address {=[u8;6]:x}, read cost {=u64} ps", nic.address(), clock.read_cost().0);
    let mut frame = [0u8; 64];
    frame[..6].copy_from_slice(&[0xff; 6]);
    frame[6..12].copy_from_slice(&nic.address());
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    nic.send(&frame).ok();
    let mut buf = [0u8; 1514];
    let t0 = clock.now();
    loop {
        if let Some(n) = nic.receive(&mut buf) {
            defmt::info!("got {=usize} bytes at {=u64} us: {=[u8]:x}", n, clock.duration(clock.now()-t0).0/1_000_000, &buf[..18]);
            let mut a=[0u8;6]; a.copy_from_slice(&buf[6..12]);
            buf[..6].copy_from_slice(&a);
            buf[6..12].copy_from_slice(&nic.address());
            nic.send(&buf[..n]).ok();
        }
    }
}
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! { loop {} }
