//! Assessment of samples: points, ranges, lines, intervals.

pub(in crate::measure) mod assessment;
pub mod floor;
pub(in crate::measure) mod interval;
pub(in crate::measure) mod ranges;
pub(in crate::measure) mod spread;
pub(in crate::measure) mod store;
pub(in crate::measure) mod table;
pub(in crate::measure) mod warning;
