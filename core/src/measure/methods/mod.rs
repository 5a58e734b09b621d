//! Methods other than PRTT: the LogP signature and pLogP.
//!
//! Their unit of measuring is a [`Probe`], which is timed alone. From the medians of the probes so
//! far, pure functions tell which probes are missing, and what all of them say about the link.

pub(in crate::measure) mod plogp;
pub(in crate::measure) mod probe;
pub(in crate::measure) mod probing;
pub(in crate::measure) mod signature;
#[cfg(test)]
mod tests;
