//! Collective operations as Open MPI's `tuned` component carries them out:
//! which algorithms there are, and what each rank sends.
//!
//! A [`Call`] is one algorithm on so many ranks and bytes; it gives the
//! [`Round`]s of each rank, and is a [`Source`](crate::simulation::Source) of a
//! simulation. Copies of a rank's own blocks in its memory are not counted.

mod algorithm;
mod broadcast;
mod call;
mod combine;
mod exchange;
mod operation;
mod rooted;
mod rounds;

pub use algorithm::{ALGORITHMS, Algorithm, Condition, Shape};
pub use call::{Call, Chain};
pub use operation::Operation;
pub use rounds::{Binomial, Message, Place, Round, doubled, feed, power_of_two};

#[cfg(test)]
mod tests;
