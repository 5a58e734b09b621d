//! Plan of a measurement: sizes, order, effort, budget.

mod batch;
pub(in crate::measure) mod bisect;
pub(in crate::measure) mod budget;
pub(in crate::measure) mod disturbed;
pub(in crate::measure) mod effort;
pub(in crate::measure) mod ladder;
pub(in crate::measure) mod memory;
pub(in crate::measure) mod planner;
pub(in crate::measure) mod warmup;
