//! Simulations in time windows, on one thread or several.

mod memory;
mod run;

pub use memory::WindowMemory;
pub use run::{Ended, WindowError, run};
