//! Exporters: what a command hands its results to.

mod file;

pub use file::{FileError, PendingFile};
