//! What an input decides.

/// Takes numbers from an input; zeros when it is used up.
#[derive(Debug)]
pub struct Numbers<'d>(pub &'d [u8]);

/// Values at which something may turn over.
const EDGES: [u64; 12] = [
    0,
    1,
    7,
    0x7f,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    1 << 53,
    1 << 62,
    1 << 63,
    u64::MAX,
];

impl<'d> Numbers<'d> {
    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next `count` bytes, or as many as are left.
    pub fn take(&mut self, count: usize) -> &'d [u8] {
        let (now, later) = self.0.split_at(count.min(self.0.len()));
        self.0 = later;
        now
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        let taken = self.take(N);
        bytes[..taken.len()].copy_from_slice(taken);
        bytes
    }

    pub fn byte(&mut self) -> u8 {
        self.bytes::<1>()[0]
    }

    pub fn short(&mut self) -> u16 {
        u16::from_le_bytes(self.bytes())
    }

    pub fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// Whether something seldom happens.
    pub fn seldom(&mut self) -> bool {
        self.byte() >= 0xf0
    }

    /// A number of any size, small ones and edges more often.
    pub fn number(&mut self) -> u64 {
        match self.byte() {
            edge @ 0xe0.. => EDGES[usize::from(edge) % EDGES.len()],
            0xd0.. => self.long(),
            0x80.. => u64::from(self.short()),
            small => u64::from(small),
        }
    }

    /// The same, of 32 bits.
    #[allow(clippy::cast_possible_truncation, reason = "any 32 bits will do")]
    pub fn word(&mut self) -> u32 {
        self.number() as u32
    }

    /// A double: a number, or any bits.
    pub fn double(&mut self) -> f64 {
        if self.seldom() {
            return f64::from_bits(self.long());
        }
        self.number() as f64 / 4.0
    }

    /// A length up to `most`: usually that, sometimes another.
    pub fn length(&mut self, most: usize) -> usize {
        match self.byte() {
            0xff => most.saturating_sub(1),
            0xf0.. => usize::from(self.short()).min(most),
            _ => most,
        }
    }
}
