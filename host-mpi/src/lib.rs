//! loggap under MPI: the MPI link, clocks that agree over all ranks, and
//! collective operations.
//!
//! # Tour, from the outside in
//!
//! - [`cli`]: the command line of `loggap-mpi`, which every rank runs.
//! - [`job`]: ranks of this job, the check that all run the same, control messages.
//! - [`place`]: machines and processors of the ranks, and which ranks share processors.
//! - [`link`]: two ranks as a [`loggap_core::measure::Link`].
//! - [`matrix`]: parameters of many pairs, and slow machines, ranks and pairs.
//! - [`slower`]: outlier tests that name these.
//! - [`pairs`]: pairs of ranks to measure, and which of them at the same time.
//! - [`collective`]: collective operations, from a common start to the last
//!   exit.
//! - [`algorithm`]: algorithms of collective operations, and their predicted times.
//! - [`application`]: a whole program as it ran, and as its trace is simulated.
//! - [`clocks`]: clocks that agree over all ranks, and studies of their synchronisation.
//! - [`processes`]: exchange of messages between processes that simulate a schedule together.
//! - [`progress`]: whether messages move while a program computes.
//! - [`waiting`]: waits for control messages.
//! - [`watch`]: watchdog that ends the job if a rank waits in vain for another one.
//! - `sys/trace`, the package `loggap-mpi-trace`: the library that `trace` preloads.
//! - [`library`]: MPI implementation, and its settings that move protocol changes.

pub mod algorithm;
pub mod application;
pub mod cli;
pub mod clocks;
pub mod collective;
pub mod job;
pub mod library;
pub mod link;
pub mod matrix;
pub mod pairs;
pub mod place;
pub mod processes;
pub mod progress;
pub mod slower;
mod sys;
pub mod waiting;
pub mod watch;
