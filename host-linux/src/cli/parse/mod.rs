//! Values of the command line, written in the same way everywhere.
//!
//! Each function fits clap's `value_parser`. Sizes take `K`, `M`, `G` as
//! powers of 1024; percentages are percentages with or without `%`; times
//! without a unit are seconds.

mod axis;
mod number;
mod sizes;

pub use axis::{AxisError, axis};
pub use number::{
    NumberError, duration, nanos, nanos_per_byte, percent, seed, time, time_per_byte,
};
pub use sizes::{SizeError, Sizes, message_sizes, size, sizes};
