//! Memory-mapped registers.

/// A block of 32-bit device registers at a fixed address.
#[derive(Clone, Copy)]
pub struct Registers {
    base: usize,
    bytes: usize,
}

impl Registers {
    /// The block of `bytes` bytes at `base`.
    ///
    /// # Safety
    ///
    /// `base` is 4-byte aligned and every aligned 32-bit word of the block
    /// is a device register for the whole life of the program.
    pub const unsafe fn at(base: usize, bytes: usize) -> Self {
        Self { base, bytes }
    }

    /// Reads the register at byte `offset`.
    pub fn read(self, offset: usize) -> u32 {
        assert!(offset < self.bytes && offset % 4 == 0);
        // SAFETY: inside the block and aligned by the assertion; a register by the contract of `at`.
        unsafe { ((self.base + offset) as *const u32).read_volatile() }
    }

    /// Writes `value` to the register at byte `offset`.
    pub fn write(self, offset: usize, value: u32) {
        assert!(offset < self.bytes && offset % 4 == 0);
        // SAFETY: inside the block and aligned by the assertion; a register by the contract of `at`.
        unsafe { ((self.base + offset) as *mut u32).write_volatile(value) }
    }
}
