//! Order statistics and moments of borrowed samples, and the few
//! distributions that intervals need.
//!
//! Samples are integers (picoseconds as `u64`, `i64` or
//! [`Picos`](crate::units::Picos)) in memory that the caller lends; nothing
//! is copied or allocated. Measured times are skewed and have outliers, so
//! locations are medians and their intervals are distribution-free:
//!
//! - [`Sorted`] sorts a sample in place and gives its median, quantiles and the
//!   order-statistic interval of the median.
//! - [`Moments`] is the running mean and variance.
//! - [`Confidence`] is a confidence level, with its quantiles of the normal and of Student's
//!   distribution.
//! - [`SequentialDetector`] finds steps and drift in a stream of values.
//! - [`student_upper`] is a quantile of Student's distribution by the probability beyond it.

mod confidence;
pub(crate) mod distribution;
pub(crate) mod heap_sort;
mod moments;
mod sequential;
mod sorted;

pub use confidence::Confidence;
pub use distribution::student_upper;
pub use moments::Moments;
pub use sequential::{SequentialDetector, Shift, ShiftKind};
pub use sorted::{Measure, MedianInterval, Sorted};
