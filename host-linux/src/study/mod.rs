//! Studies: simulations in series that answer a question of the literature.

pub mod in_order;
pub mod overlap;
pub mod pipelining;
mod plot;

pub use plot::{Axes, Chart, Interval, Series};
