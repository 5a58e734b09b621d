//! Methods other than PRTT: the LogP signature and pLogP.

pub(in crate::measure) mod plogp;
pub(in crate::measure) mod samples;
pub(in crate::measure) mod signature;
