//! Simulations in time windows, on one thread or several.

mod load;
mod memory;
mod run;
mod threads;
mod workers;

pub use load::{load, partition_shift};
pub use memory::WindowMemory;
pub use run::{Completed, Resources, WindowError, run};
