//! Which algorithm of a collective operation is the fastest where, by
//! simulation, and rules that say so to Open MPI.
//!
//! A [`Question`] names an operation, numbers of ranks and sizes; its
//! [`Answer`] has a [`Cell`] for each pair of them, with the time of every
//! algorithm that is offered there. Where parameters have intervals, the same
//! draws from these are given to all algorithms, and a winner is told apart
//! where it is the fastest in at least [`TOLD_APART_PERCENT`] of 100 draws.
//! [`Rules`] are the winners as few rules of the `tuned` component.

mod cell;
mod choice;
mod question;
mod rules;
mod spread;

pub use cell::{Candidate, Cell, Contest, Time, Timed};
pub use choice::{Choice, settle};
pub use question::{Answer, Case, Offer, Question, Refused, SEGMENTS, TooShort};
pub use rules::{CommunicatorRules, Rule, Rules, Threshold};

/// Of 100 draws, so many must be won by a winner that is told apart.
pub const TOLD_APART_PERCENT: usize = 95;

#[cfg(test)]
mod tests;
