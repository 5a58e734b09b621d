//! Parsers of command-line values, with one syntax for all subcommands.
//!
//! Each function fits clap's `value_parser`. Sizes take `K`, `M`, `G` (and `KiB`, `MiB`, `GiB`) as
//! powers of 1024; percentages may have a `%`; times without a unit are seconds, and parameters of
//! messages nanoseconds.

mod axis;
mod number;
mod ranks;
mod sizes;

pub use axis::{AxisError, axis};
pub use number::{
    NumberError, duration, factor, handler_time, percent, seed, session_time, threads, time,
    time_per_byte,
};
pub use ranks::{RanksError, rank_count, rank_counts};
pub use sizes::{SizeError, Sizes, message_sizes, size, sizes};
