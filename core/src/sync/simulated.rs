//! Simulated clocks with known offsets, and the network between them, to compare the result of a
//! synchronisation with the truth.
//!
//! All share one true time, in picoseconds from the beginning. A [`VirtualClock`] is too fast or
//! too slow by a drift that wanders with temperature. [`VirtualPinger`] exchanges pings between two
//! clocks over a [`Path`], whose delays scatter, differ by direction and grow while a process
//! shares its processor with another.

mod clock;
mod path;
mod pinger;

pub use clock::{ClockTruth, VirtualClock};
pub use path::{Contention, Path};
pub use pinger::{NoClock, VirtualPinger};
