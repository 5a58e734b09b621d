//! Time that the operating system takes from a program: detours detected,
//! traces of them, generated or measured, and what they cost an operation.
//!
//! # Semantics
//!
//! A trace is repeated for ever with its length as period; every rank runs
//! through it from a phase of its own. An operation that holds a processor
//! during \[t, t + d) loses
//!
//! - what is left of a detour under way at t, and
//! - the whole of every detour that starts inside (t, t + d).
//!
//! The lost time does not lengthen the window in which detours are counted;
//! so an operation's noise depends on its own start and length alone. These
//! are the rules of LogGOPSim, with its slips mended: the first detour of
//! the trace counts, an operation may be as long as the trace or longer, the
//! phase is taken modulo the length of the trace (not the length less the
//! operation's), the last detour counts once, and phases come from a seed.

mod detect;
mod generate;
mod text;
mod trace;

pub use detect::{Detected, Detector, DetectorMemory, NoiseSummary};
pub use generate::{exponential, periodic};
pub use text::{NoiseError, NoiseErrorKind, count, read, write};
pub use trace::{Detour, InvalidTrace, Phases, Trace, sum_up};
