//! Operating-system noise: detection of detours, traces of them (measured or generated), and the
//! delay that they cause to an operation.
//!
//! # Semantics
//!
//! A trace repeats for ever with its length as period; every rank starts at a phase of its own. An
//! operation that holds a processor during \[t, t + d) is delayed by
//!
//! - the remainder of a detour under way at t, and
//! - the full duration of every detour that starts inside (t, t + d).
//!
//! The delay does not lengthen the interval in which detours are counted, so an operation's noise
//! depends only on its own start and length. These are the rules of LogGOPSim, with its errors
//! corrected: the first detour of the trace counts, an operation may be as long as the trace or
//! longer, the phase is taken modulo the length of the trace (not the length less the operation's),
//! the last detour counts once, and phases come from a seed.

mod detect;
mod generate;
mod text;
mod trace;

pub use detect::{Detected, Detector, DetectorMemory, NoiseSummary};
pub use generate::{exponential, periodic};
pub use text::{NoiseError, NoiseErrorKind, count, read, write};
pub use trace::{Detour, InvalidTrace, Phases, Trace, sum_up};
