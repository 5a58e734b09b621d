//! Simulations on this machine: memory for them.

mod memory;

pub use memory::OwnedMemory;
