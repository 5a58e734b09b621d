//! Simulations in time windows, on one thread or several.

mod crew;
mod load;
mod memory;
mod run;

pub use load::{load, partition_shift};
pub use memory::WindowMemory;
pub use run::{Ended, Means, WindowError, run};
