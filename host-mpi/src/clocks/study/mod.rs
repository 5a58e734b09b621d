//! Studies of synchronisation on virtual clocks, whose true times are known, and of
//! [recorded](super::record) ones.
//!
//! [`trial()`] synchronises over the tree, as `sync` does. [`patience()`], [`drift()`] and
//! [`schemes()`] repeat studies of Hoefler, Schneider and Lumsdaine ("Accurately Measuring
//! Collective Operations at Massive Scale", 2008, called "the slides" here).
//!
//! All clocks share one true time, in picoseconds from the beginning. A virtual clock is too fast
//! or too slow by a drift that wanders with temperature. Pings between two clocks pass a path whose
//! delays scatter, differ by direction and grow while a process shares its processor with another.

mod clock;
mod cluster;
mod drift;
mod errors;
mod path;
mod patience;
mod pinger;
mod schemes;
mod trial;

pub use drift::{DriftStudy, SpanRow, WanderRow, drift};
pub(crate) use drift::{Fit, undisturbed};
pub use errors::Errors;
pub use patience::{PatienceRow, knee, patience, resampled};
pub use schemes::{SchemeRow, schemes};
pub use trial::{Scenario, TrialReport, trial};

use loggap_core::units::Picos;
use serde::Serializer;

/// Picoseconds in a second.
const SECOND: u64 = 1_000_000_000_000;

/// Serialises a time in seconds.
fn seconds<S: Serializer>(time: &Picos, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.seconds())
}
