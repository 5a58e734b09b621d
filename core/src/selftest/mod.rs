//! Known-answer tests: does this core, as compiled for this machine, compute correctly?
//!
//! A compiler for an unusual processor, a soft-float library, a linker script or a flash memory
//! with a flipped bit can make a correct program wrong. [`run`] computes small problems with known
//! answers from every part of the core, on about 18 KiB of stack and no other memory, identically
//! on a host, in a firmware image and through the C interface.

use core::fmt;

mod basics;
mod clocks;
mod measuring;
mod scheduling;
mod simulating;

#[cfg(test)]
mod tests;

/// A problem with its known answer.
#[derive(Clone, Copy, Debug)]
struct Vector {
    name: &'static str,
    /// Computes the answer as one number; `None` if a step fails.
    compute: fn() -> Option<u64>,
    /// Answer from a source other than this core.
    answer: u64,
}

const PARTS: [&[Vector]; 5] = [
    basics::VECTORS,
    measuring::VECTORS,
    clocks::VECTORS,
    scheduling::VECTORS,
    simulating::VECTORS,
];

/// Outcome of one check; its `Display` is a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Check {
    /// Part of the core, a colon, and the quantity computed.
    pub name: &'static str,
    /// Value computed on this machine; `None` if a step failed.
    pub computed: Option<u64>,
    /// Correct value.
    pub answer: u64,
}

impl Check {
    /// True if the computed value is correct.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.computed == Some(self.answer)
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, computed, answer } = self;
        match computed {
            Some(computed) if computed == answer => write!(f, "check {name} ... ok"),
            Some(computed) => {
                write!(f, "check {name} ... FAILED: computed {computed}, right is {answer}")
            }
            None => write!(f, "check {name} ... FAILED: nothing computed, right is {answer}"),
        }
    }
}

/// Totals of a run; its `Display` is a line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Count {
    /// Checks with the correct value.
    pub passed: u32,
    /// All other checks.
    pub failed: u32,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "self-test: {} passed, {} failed", self.passed, self.failed)
    }
}

/// Runs every check and hands each one's outcome to `report`.
pub fn run(report: impl FnMut(&Check)) -> Count {
    run_all(PARTS.into_iter().flatten(), report)
}

fn run_all<'v>(
    vectors: impl IntoIterator<Item = &'v Vector>,
    mut report: impl FnMut(&Check),
) -> Count {
    let mut count = Count::default();
    for &Vector { name, compute, answer } in vectors {
        let check = Check { name, computed: compute(), answer };
        report(&check);
        if check.passed() {
            count.passed += 1;
        } else {
            count.failed += 1;
        }
    }
    count
}

/// 64-bit FNV-1a: compares many bytes by one number.
fn digest(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
