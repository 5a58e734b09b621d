//! loggap on Linux: clocks, links, drivers and exporters around
//! [`loggap_core`].
//!
//! # Tour, from the outside in
//!
//! - [`cli`]: the subcommands of `loggap`.
//! - [`flags`]: flags that `loggap` and `loggap-mpi` share, and the texts of their values.
//! - [`drive`]: the driver, from the options of a measurement to its assessed result.
//! - [`terminal`]: console, exit codes, Ctrl-C, progress, named files.
//! - [`serve`]: the answering end of a link.
//! - [`link`]: connections that carry messages: TCP, UDP, Unix sockets,
//!   shared memory, raw Ethernet.
//! - [`machine`]: clock, placement, environment, and what disturbs a run.
//! - [`profile`], [`samples`]: the files of a measurement.
//! - [`output`]: exporters of results.
//! - [`compare`]: profiles of a link from before and after.
//! - [`assertion`]: limits that a profile has to keep.
//! - [`schedule`], [`simulation`]: GOAL schedules in files, and their simulation under LogGOPS.
//! - [`study`]: parameter studies made of many simulations.
//! - [`collective`]: algorithms of collective operations as MPI libraries implement them.
//! - [`best`]: the fastest of these algorithms by size and rank count, and tuning rules for Open
//!   MPI.
//! - [`sensitivity`]: derivative of the makespan with respect to each parameter.
//! - [`timeline`]: timeline of a simulation, drawn and exported.
//! - [`trace`]: traces of MPI programs.
//! - [`decimal`]: decimal text as exact integers.

pub mod assertion;
pub mod best;
pub mod check;
pub mod cli;
pub mod collective;
pub mod compare;
pub mod decimal;
pub mod drive;
pub mod flags;
pub mod link;
pub mod machine;
pub mod output;
pub mod profile;
pub mod samples;
pub mod schedule;
pub mod sensitivity;
pub mod serve;
mod side_by_side;
pub mod simulation;
pub mod study;
mod sys;
pub mod terminal;
pub mod timeline;
pub mod trace;
