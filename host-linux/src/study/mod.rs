//! Studies: simulations in series that answer a question.

pub mod in_order;
pub mod overlap;
pub mod pipelining;
mod plot;
pub mod sweep;

pub use plot::{Axes, Chart, Interval, Series};
