//! Binary schedules: the format of LogGOPSim's `txt2bin`, byte for byte ([`Reference`],
//! [`ReferenceWriter`]), and loggap's own ([`Native`], [`NativeWriter`]) for schedules that it
//! cannot hold. `docs/goal.md` describes both byte by byte.
//!
//! | | reference (`.bin`) | ours (`.lgs`) |
//! |---|---|---|
//! | ranks | 2³² − 1 | 2³² − 1 |
//! | operations a rank | 110,127,366 | 2³¹ − 1 |
//! | dependencies a rank | 2³² − 1 | 2³² − 1 |
//! | message size | 2⁶⁴ − 1 | 2⁶⁴ − 1 |
//! | calc | whole nanoseconds | picoseconds |
//! | tag | 32 bits: higher ones are cut off | 64 bits |
//! | cpu, nic | 0 to 254 | 0 to 65,535 |
//! | order of dependency statements | of those on one operation | all |
//!
//! Readers are views over bytes, for example a memory map: nothing is copied and nothing written.
//! Each rank is checked completely, every count, index and list, before any part of it reaches the
//! sink. [`Lookup`](super::Lookup) gives random access to the operations of a file that was read
//! once.

mod bytes;
mod error;
mod native;
mod native_lookup;
mod native_writer;
mod reference;
mod reference_writer;

pub use error::{
    BinaryError, BinaryErrorKind, BinaryReadError, BinaryWriteError, Field, LookupError, Unsayable,
};
pub use native::Native;
pub use native_lookup::{EdgeSpan, LookupMemory, NativeLookup};
pub use native_writer::NativeWriter;
pub use reference::Reference;
pub use reference_writer::{ReferenceWriter, cut_tag};

#[cfg(test)]
mod tests;

/// Operation types of both formats.
const SEND: u8 = 1;
const RECEIVE: u8 = 2;
const CALC: u8 = 3;

/// Binary format of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Format {
    /// LogGOPSim's, read by [`Reference`].
    Reference,
    /// Loggap's, read by [`Native`].
    Native,
}

impl Format {
    /// Format announced by the first eight bytes, if any.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes.first_chunk() {
            Some(&native::MAGIC) => Some(Self::Native),
            Some(first) => match u64::from_le_bytes(*first) {
                reference::MAGIC | reference::MAGIC_CONSUMED => Some(Self::Reference),
                _ => None,
            },
            None => None,
        }
    }
}
