//! Simulations in windows of time, on one or several threads.

mod computed;
mod load;
mod memory;
mod parts;
mod run;
mod streamed;
mod threads;
mod workers;

pub(super) use computed::run_in_parts;
pub(super) use streamed::{EXTRAPOLATED, run_streamed};
pub use load::{Across, Split, load, load_across, partition_shift};
pub use memory::WindowMemory;
pub use parts::Reached;
pub use run::{Ended, Resources, WindowError, WindowRun, run};
