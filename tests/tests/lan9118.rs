//! The board's Ethernet driver against a chip of our own, as the emulated one
//! never delivers a damaged frame.

#![allow(
    dead_code,
    unreachable_pub,
    missing_debug_implementations,
    clippy::manual_div_ceil,
    reason = "the driver is the firmware's, which has lints of its own"
)]

#[path = "../firmware/mps2/src/lan9118.rs"]
mod lan9118;

/// The registers of the datasheet that the driver uses, over two FIFOs.
mod mmio {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    #[derive(Default)]
    struct Chip {
        statuses: VecDeque<u32>,
        /// The words of each frame that is not yet taken out.
        frames: VecDeque<VecDeque<u32>>,
    }

    thread_local! {
        static CHIP: RefCell<Chip> = RefCell::default();
    }

    #[derive(Clone, Copy, Eq, PartialEq)]
    pub enum Damage {
        None,
        Flagged,
    }

    /// The frame arrives, with its checksum behind it.
    pub fn deliver(frame: &[u8], damage: Damage) {
        let mut bytes = frame.to_vec();
        bytes.extend([0xee; 4]);
        let status = (bytes.len() as u32) << 16 | u32::from(damage == Damage::Flagged) << 15;
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let words = bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
        CHIP.with_borrow_mut(|chip| {
            chip.statuses.push_back(status);
            chip.frames.push_back(words.collect());
        });
    }

    #[derive(Clone, Copy)]
    pub struct Registers;

    impl Registers {
        pub fn read(self, offset: usize) -> u32 {
            CHIP.with_borrow_mut(|chip| match offset {
                0x00 => {
                    let word = chip.frames[0].pop_front().expect("no word of the next frame");
                    if chip.frames[0].is_empty() {
                        chip.frames.pop_front();
                    }
                    word
                }
                0x40 => chip.statuses.pop_front().expect("no status of no frame"),
                0x50 => 0x0118_0000,
                0x64 => 0x8765_4321,
                0x7c => (chip.statuses.len() as u32) << 16,
                _ => 0,
            })
        }

        pub fn write(self, offset: usize, value: u32) {
            // Fast forward, which the chip refuses for what is left of a few words.
            if offset == 0x78 && value == 1 << 31 {
                let frame = CHIP.with_borrow_mut(|chip| chip.frames.pop_front()).unwrap();
                assert!(frame.len() >= 4, "too short to skip");
            }
        }
    }
}

use mmio::{Damage, deliver};

#[test]
fn damaged_and_overlong_frames_are_skipped_and_those_behind_them_taken() {
    let mut chip = lan9118::Lan9118::new(mmio::Registers).unwrap();
    let mut buffer = [0; 100];
    assert_eq!(chip.receive(&mut buffer), None);
    let good = [[1_u8; 61], [2; 61]];
    deliver(&[9; 64], Damage::Flagged);
    deliver(&[8; 3], Damage::Flagged);
    deliver(&good[0], Damage::None);
    deliver(&[7; 101], Damage::None);
    deliver(&good[1], Damage::None);
    deliver(&[6; 64], Damage::Flagged);
    for frame in good {
        assert_eq!(chip.receive(&mut buffer), Some(61));
        assert_eq!(buffer[..61], frame);
    }
    assert_eq!(chip.receive(&mut buffer), None);
    assert_eq!(chip.dropped, 4);
}
