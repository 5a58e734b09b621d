//! Clocks whose true offset is known, and the network between them: what a
//! synchronisation finds on them can be compared with the truth.
//!
//! All share one true time, in picoseconds from the begin. A [`VirtualClock`]
//! runs too fast or too slow by a drift that wanders with temperature;
//! [`VirtualPinger`] exchanges pings between two of them over a [`Path`],
//! whose delays scatter, differ by direction and grow while a process shares
//! its processor with another.

mod clock;
mod path;
mod pinger;

pub use clock::{ClockTruth, VirtualClock};
pub use path::{Contention, Path};
pub use pinger::{NoClock, VirtualPinger};
