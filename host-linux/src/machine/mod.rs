//! This machine: its clocks and processors, and what disturbs a run on it.

pub mod buffer;
pub mod canaries;
pub mod clock;
pub mod distance;
pub mod disturbance;
pub mod environment;
pub mod interruptions;
pub(crate) mod kernel_files;
pub(crate) mod near;
pub mod noise;
pub mod placement;
pub mod warning;
