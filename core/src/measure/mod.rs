//! Measuring a link: the two traits that touch the outside and the values
//! that pass between what decides and what times.
//!
//! [`Clock`] and [`Link`] are all that a host or a firmware implements. What
//! to measure next is decided by a state machine without I/O; the timed
//! kernels are generic over both traits and inlined, so that the same code
//! is timed on every host and on the device.

mod experiment;
mod link;

pub use experiment::{Experiment, Quantity, Sample};
pub use link::{Clock, Link, LinkProperties};
