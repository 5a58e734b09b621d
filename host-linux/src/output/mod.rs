//! Exporters of results.

mod agreement;
mod calls;
mod changes;
pub mod comparison;
pub mod csv;
pub(crate) mod exposition;
mod fields;
mod file;
#[cfg(test)]
mod fixtures;
pub mod flags;
mod heading;
pub mod junit;
pub mod methods;
pub mod number;
pub(crate) mod openmetrics;
pub mod plot;
pub mod profiles;
mod quantity;
pub mod screen;
pub mod table;
mod tail;
mod text;
mod versioned;
pub mod warnings;

pub use fields::Fields;
pub(crate) use file::is_standard_output;
pub use file::{FileError, PendingFile, remove_unfinished};
pub(crate) use text::wrap;
pub use versioned::Versioned;
