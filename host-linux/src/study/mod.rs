//! Studies: series of simulations that answer one question.

pub mod in_order;
pub(crate) mod messages;
pub mod overlap;
pub mod pipelining;
mod plot;
pub mod sweep;

pub use plot::{Axes, Chart, Coordinates, Interval, Series};
