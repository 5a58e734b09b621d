//! Simulations on this machine: schedules from files and patterns, memory
//! for them, noise.

mod implicit;
mod memory;
mod noise;
mod run;
mod source;
pub mod windows;

pub use implicit::{PatternError, bytes_needed, run_pattern};
pub use memory::OwnedMemory;
pub use noise::{NoiseError, NoiseSource};
pub use run::{RunError, makespan};
pub use source::{Limit, LoadError, Needs, Source};
