//! Studies: series of simulations that answer one question.

pub mod algorithms;
pub mod contention;
pub mod in_order;
pub(crate) mod messages;
pub mod noise;
pub mod overlap;
pub mod pipelining;
pub mod sweep;

pub use crate::output::plot::chart::{Axes, Chart, Coordinates, Interval, Series};
