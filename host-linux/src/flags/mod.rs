//! Flags that both programs take, the texts of their values, and what is written as they say.

pub mod contention;
pub mod help;
mod judging;
pub mod measuring;
pub mod parse;
mod report;

pub(crate) use judging::{annotate, warn_of};
pub(crate) use report::{ExactArgs, ReportArgs, draw};
