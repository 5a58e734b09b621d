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
pub use load::{Across, Split, load, load_across, partition_shift};
pub use memory::WindowMemory;
pub use parts::Reached;
pub use run::{Ended, Resources, WindowError, WindowRun, run};
pub(super) use streamed::run_streamed;
