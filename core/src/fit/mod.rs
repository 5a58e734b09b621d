//! Lines, ranges and protocol changes in sweeps over message sizes.
//!
//! Values are picoseconds, sizes bytes, slopes picoseconds per byte; `g` is
//! always the value at one byte.
//!
//! - [`mark_outliers`]: excludes single disturbances; to be called first.
//! - [`find_ranges`]: the protocol changes of several curves, and the ranges of
//!   sizes described by one line each.
//! - [`Line`]: the line of a range, with parameters that are never negative.
//! - [`GrowingLine`]: incremental least squares.
//! - [`ChangeDetector`]: streaming detection of changes during a sweep.

mod change;
mod cover;
mod curve;
mod detector;
mod growing;
mod jumps;
mod line;
mod look_ahead;
mod point;
mod ranges;

#[cfg(test)]
mod rates;
#[cfg(test)]
mod trials;

#[cfg(test)]
use crate::random::Random;
pub use change::Change;
pub use cover::Node;
pub use curve::mark_outliers;
pub use detector::Detector;
pub use growing::GrowingLine;
pub use line::{Bound, Line};
pub use look_ahead::{ChangeDetector, Detected, LookAhead, MOST_AHEAD};
pub use point::{Point, PointError};
pub use ranges::{Config, FitError, MAX_CURVES, Requirements, find_ranges};
