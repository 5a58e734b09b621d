//! Fastest algorithm of a collective operation for each rank count and size, found by simulation,
//! and rules that tell Open MPI to use it.
//!
//! A [`Question`] names an operation, rank counts and sizes; its [`Answer`] has a [`Cell`] for each
//! pair of them, with the time of every algorithm offered there. Where parameters have intervals,
//! all algorithms are simulated with the same draws from these, and a winner counts as significant
//! if it is the fastest in at least [`TOLD_APART_PERCENT`]% of the draws.
//! [`Rules`] are the winners as few rules of the `tuned` component.

mod cell;
mod choice;
mod question;
mod rules;
mod spread;

pub use cell::{Candidate, Cell, Contest, Time, Timed};
pub use choice::{Choice, settle};
pub use question::{Answer, Case, Offer, Question, Refused, SEGMENTS, TooShort};
pub use rules::{CommunicatorRules, Rule, Rules, RulesFormat, Threshold};

/// Share of the draws, in percent, that a significant winner must win.
pub const TOLD_APART_PERCENT: usize = 95;

#[cfg(test)]
mod tests;
