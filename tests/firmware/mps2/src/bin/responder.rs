//! Answers measurements over raw Ethernet, one session after the other.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use loggap_core::measure::{Clock, ServeOptions, serve_with};
use loggap_core::random::Random;
use loggap_core::wire::{Bounds, ethernet};
use loggap_firmware_mps2::board::{Board, exit};
use loggap_firmware_mps2::link::{EthernetLink, Peer};
use loggap_firmware_mps2::{lend, stack};

fn buffer() -> Option<&'static mut [u8]> {
    Some(lend!(u8, ethernet::MAX_MESSAGE))
}

#[entry]
fn main() -> ! {
    let board = Board::take();
    let mut link = EthernetLink::new(board.nic(), Peer::FirstHello);
    let Some(buffer) = buffer() else { exit(false) };
    // Long trains would only overrun the chip's receive FIFO.
    let bounds = Bounds { messages: 1_024, ..Bounds::default() };
    // The board has no source of randomness. A product takes its nonces from
    // one; here they only have to differ.
    let mut random = Random::new(board.clock.now());
    defmt::info!("ready");
    loop {
        let options = ServeOptions { bounds, nonce: random.draw().max(1), description: [] };
        link.set_peer(Peer::FirstHello);
        match serve_with(&board.clock, &mut link, buffer, options) {
            Ok((served, ending)) => defmt::info!(
                "session rounds {=u64} received {=u64} replied {=u64} strays {=u64} foreign {=u32} dropped {=u32} stack {=usize} ending {}",
                served.rounds,
                served.received,
                served.replied,
                served.strays,
                link.foreign,
                link.dropped(),
                stack::high_water(),
                ending,
            ),
            // Nobody came for the time that the bounds allow.
            Err(error) if link.peer() == Peer::FirstHello => {
                defmt::debug!("{}", error);
            }
            Err(error) => defmt::warn!("session failed: {}", error),
        }
    }
}
