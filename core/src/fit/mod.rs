//! Lines and protocol changes in a sweep over message sizes.
//!
//! Values are picoseconds, sizes bytes, slopes picoseconds per byte; `g` is
//! always the value at one byte.
//!
//! - [`GrowingLine`]: incremental least squares.
//! - [`Line`]: the same of a window, points of which are taken back.
//! - [`MisfitLine`]: a weighted line that tells noise from misfit.
//! - [`Segmentation`]: optimal piecewise-linear fit of a stored sweep.
//! - [`ChangeDetector`]: changes found while a sweep runs, by looking ahead.

mod detector;
mod double;
mod growing;
mod line;
mod look_ahead;
mod misfit;
mod node;
mod noise;
mod partition;
mod point;
mod report;
mod segment;
mod segmentation;
mod select;
mod split;

#[cfg(test)]
mod rates;
#[cfg(test)]
mod trials;

pub use detector::Detector;
pub use growing::GrowingLine;
pub use line::Line;
pub use look_ahead::{ChangeDetector, Detected, LookAhead, MOST_AHEAD};
pub use misfit::MisfitLine;
pub use node::Node;
pub use partition::Cell;
pub use point::{Point, PointError};
pub use segment::{Change, Estimate, Segment};
pub use segmentation::{Config, Fit, FitError, Requirements, Segmentation};
