//! loggap under MPI: the MPI link, clocks that agree over ranks, and
//! collective operations.
//!
//! # Tour, from the outside in
//!
//! - [`cli`]: the command line of `loggap-mpi`, which every rank runs.
//! - [`job`]: the ranks of this job, what all of them run, and how they are led.
//! - [`place`]: where ranks run, and which of them share processors.
//! - [`link`]: two ranks as a [`loggap_core::measure::Link`].
//! - [`matrix`]: parameters of many pairs, and who is slow.
//! - [`pairs`]: which ranks measure with which at the same time.
//! - [`collective`]: collective operations, from a common start to the last
//!   exit.
//! - [`algorithm`]: which algorithms collective operations use, and what those
//!   should take.
//! - [`clocks`]: clocks that agree over ranks.
//! - [`waiting`]: how a rank waits for messages about measuring.
//! - [`watch`]: ends the job where a rank waits for one that never comes.
//! - [`library`]: which MPI this is, and the settings that move its changes of
//!   protocol.

pub mod algorithm;
pub mod cli;
pub mod clocks;
pub mod collective;
pub mod job;
pub mod library;
pub mod link;
pub mod matrix;
pub mod pairs;
pub mod place;
mod sys;
pub mod waiting;
pub mod watch;
