//! Polled driver of the SMSC LAN9118 Ethernet controller (datasheet
//! DS00002266): frames in and out through its FIFOs, no interrupts, no DMA.

use crate::mmio::Registers;

const RX_DATA_FIFO: usize = 0x00;
const TX_DATA_FIFO: usize = 0x20;
const RX_STATUS_FIFO: usize = 0x40;
const TX_STATUS_FIFO: usize = 0x48;
const ID_REV: usize = 0x50;
const BYTE_TEST: usize = 0x64;
const TX_CFG: usize = 0x70;
const HW_CFG: usize = 0x74;
const RX_DP_CTRL: usize = 0x78;
const RX_FIFO_INF: usize = 0x7c;
const TX_FIFO_INF: usize = 0x80;
const MAC_CSR_CMD: usize = 0xa4;
const MAC_CSR_DATA: usize = 0xa8;
/// Bytes of the register window.
pub const WINDOW: usize = 0x100;

const MAC_CR: u32 = 1;
const MAC_ADDRH: u32 = 2;
const MAC_ADDRL: u32 = 3;

/// Longest frame without its checksum.
pub const MAX_FRAME: usize = 1514;
const CHECKSUM: usize = 4;
/// Reads of a status register before the chip counts as dead.
const PATIENCE: u32 = 1_000_000;

/// Why the controller did not do as asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq, defmt::Format)]
pub enum Error {
    /// No LAN9118 answers at the address; the words read there.
    NotFound {
        /// BYTE_TEST, 0x8765_4321 on a live chip.
        byte_test: u32,
        /// ID_REV, 0x0118 in its upper half.
        id: u32,
    },
    /// The chip did not leave the state that the register shows.
    Stuck(usize),
    /// The frame is longer than [`MAX_FRAME`].
    TooLong(usize),
}

/// The controller, initialised and receiving.
pub struct Lan9118 {
    registers: Registers,
    address: [u8; 6],
    /// Frames that the chip flagged as damaged, and those longer than the buffer.
    pub dropped: u32,
}

impl Lan9118 {
    /// Resets the chip and switches transmitter and receiver on.
    pub fn new(registers: Registers) -> Result<Self, Error> {
        let byte_test = registers.read(BYTE_TEST);
        let id = registers.read(ID_REV);
        if byte_test != 0x8765_4321 || id >> 16 != 0x0118 {
            return Err(Error::NotFound { byte_test, id });
        }
        registers.write(HW_CFG, 1);
        wait_clear(registers, HW_CFG, 1)?;
        // Store and forward; 5 KiB of the buffer for transmission.
        registers.write(HW_CFG, (1 << 20) | (5 << 16));
        registers.write(TX_CFG, 1 << 1);
        let mut chip = Self { registers, address: [0; 6], dropped: 0 };
        let low = chip.mac_read(MAC_ADDRL)?.to_le_bytes();
        let high = chip.mac_read(MAC_ADDRH)?.to_le_bytes();
        chip.address = [low[0], low[1], low[2], low[3], high[0], high[1]];
        // Full duplex, transmitter and receiver enabled.
        chip.mac_write(MAC_CR, (1 << 20) | (1 << 3) | (1 << 2))?;
        Ok(chip)
    }

    /// The station address.
    pub fn address(&self) -> [u8; 6] {
        self.address
    }

    /// Queues `frame` (without checksum), waiting while the FIFO is full.
    pub fn send(&mut self, frame: &[u8]) -> Result<(), Error> {
        if frame.len() > MAX_FRAME {
            return Err(Error::TooLong(frame.len()));
        }
        let length = frame.len() as u32;
        let needed = (length + 3) / 4 * 4 + 8;
        let mut tries = 0;
        while self.registers.read(TX_FIFO_INF) & 0xffff < needed {
            self.drain_transmit_status();
            tries += 1;
            if tries > PATIENCE {
                return Err(Error::Stuck(TX_FIFO_INF));
            }
        }
        // First and last segment of the frame in one buffer.
        self.registers.write(TX_DATA_FIFO, (1 << 13) | (1 << 12) | length);
        self.registers.write(TX_DATA_FIFO, length);
        for chunk in frame.chunks(4) {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            self.registers.write(TX_DATA_FIFO, u32::from_le_bytes(word));
        }
        self.drain_transmit_status();
        Ok(())
    }

    /// Takes one received frame into `buffer`, if there is one, and returns
    /// its length without checksum. Damaged and overlong frames are counted
    /// in `dropped` and skipped.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let (with_checksum, length) = loop {
            if (self.registers.read(RX_FIFO_INF) >> 16) & 0xff == 0 {
                return None;
            }
            let status = self.registers.read(RX_STATUS_FIFO);
            let with_checksum = ((status >> 16) & 0x3fff) as usize;
            let length = with_checksum.saturating_sub(CHECKSUM);
            let damaged = status & (1 << 15) != 0;
            if !damaged && length <= buffer.len() {
                break (with_checksum, length);
            }
            self.dropped += 1;
            self.skip(with_checksum);
        };
        for word in 0..with_checksum.div_ceil(4) {
            let bytes = self.registers.read(RX_DATA_FIFO).to_le_bytes();
            for (i, byte) in bytes.into_iter().enumerate() {
                if let Some(slot) = buffer[..length].get_mut(word * 4 + i) {
                    *slot = byte;
                }
            }
        }
        Some(length)
    }

    fn skip(&mut self, bytes: usize) {
        if bytes >= 16 {
            self.registers.write(RX_DP_CTRL, 1 << 31);
            let _ = wait_clear(self.registers, RX_DP_CTRL, 1 << 31);
        } else {
            for _ in 0..bytes.div_ceil(4) {
                self.registers.read(RX_DATA_FIFO);
            }
        }
    }

    fn drain_transmit_status(&mut self) {
        while (self.registers.read(TX_FIFO_INF) >> 16) & 0xff != 0 {
            self.registers.read(TX_STATUS_FIFO);
        }
    }

    fn mac_read(&mut self, register: u32) -> Result<u32, Error> {
        self.registers.write(MAC_CSR_CMD, (1 << 31) | (1 << 30) | register);
        wait_clear(self.registers, MAC_CSR_CMD, 1 << 31)?;
        Ok(self.registers.read(MAC_CSR_DATA))
    }

    fn mac_write(&mut self, register: u32, value: u32) -> Result<(), Error> {
        self.registers.write(MAC_CSR_DATA, value);
        self.registers.write(MAC_CSR_CMD, (1 << 31) | register);
        wait_clear(self.registers, MAC_CSR_CMD, 1 << 31)
    }
}

fn wait_clear(registers: Registers, offset: usize, bits: u32) -> Result<(), Error> {
    for _ in 0..PATIENCE {
        if registers.read(offset) & bits == 0 {
            return Ok(());
        }
    }
    Err(Error::Stuck(offset))
}
