//! loggap on Linux: clocks, links, drivers and exporters around
//! [`loggap_core`].
//!
//! # Tour, from the outside in
//!
//! - [`cli`]: the command line.
//! - [`measurement`]: from the open link to the parameters.
//! - [`output`]: exporters of results.
//! - [`profile`]: the profile file.
//! - [`schedule`]: GOAL schedules in files.
//! - [`samples`]: measured rounds as comma-separated values.
//! - [`decimal`]: decimal text as exact integers.
//! - [`clock`]: [`HostClock`](clock::HostClock), the processor's own counter
//!   where it can be trusted.
//! - [`link`]: connections that carry messages: TCP, UDP, Unix sockets and
//!   shared memory.
//! - [`responder`]: the answering end of a link; [`embedded`] starts one as a
//!   second process, [`listen`] and [`lobby`] take clients one after another.
//! - [`placement`]: which cores the two ends run on.
//! - [`simulation`]: schedules under LogGOPS.
//! - [`study`]: simulations in series that answer a question.
//! - [`timeline`]: what happened when in a simulation, drawn and exported.
//! - [`drive`]: a measurement from the first batch to the last.
//! - [`environment`], [`disturbance`], [`warning`]: what numbers depend on,
//!   what disturbed a run, and what to do about it.

pub mod cli;
pub mod clock;
pub mod decimal;
pub mod disturbance;
pub mod drive;
pub mod embedded;
pub mod environment;
pub mod link;
pub mod listen;
pub mod lobby;
pub mod measurement;
pub mod output;
pub mod placement;
pub mod profile;
pub mod responder;
pub mod samples;
pub mod schedule;
pub mod simulation;
pub mod study;
mod sys;
pub mod timeline;
pub mod warning;
