//! Collective operations as implemented by Open MPI's `tuned` component: the algorithms, and the
//! messages of each rank.
//!
//! A [`Call`] is one algorithm with a rank count and a size. It yields the [`Round`]s of each rank,
//! and is a [`Source`](crate::simulation::Source) for simulations. Copies of blocks within a rank's
//! memory are not counted.

mod algorithm;
mod broadcast;
mod call;
mod combine;
mod exchange;
mod fixed;
mod known;
mod lists;
mod operation;
mod rooted;
mod rounds;

pub use algorithm::{ALGORITHMS, Algorithm, Condition, STAND_INS, Shape};
pub use call::{Call, Chain};
pub use known::{COMPONENTS, Chosen, FixedRules, REDUCTIONS};
pub use lists::{all_to_all, allgather, linear, reduce_scatter};
pub use operation::Operation;
pub(crate) use rounds::write_op;
pub use rounds::{
    Binomial, Dependency, Message, Place, Placement, Round, doubled, feed, power_of_two,
    write_rounds,
};

#[cfg(test)]
mod tests;
