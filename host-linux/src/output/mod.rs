//! Exporters: what a command hands its results to.

mod file;
pub mod flags;
pub mod number;
pub mod plot;
pub mod table;

pub use file::{FileError, PendingFile};
