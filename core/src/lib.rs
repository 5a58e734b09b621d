//! Core of loggap: measures and simulates a network link with LogP-family models, without an
//! operating system, an allocator or unsafe code.
//!
//! # Tour, from the bottom up
//!
//! - [`units`]: [`Picos`](units::Picos), [`PerByte`](units::PerByte) and
//!   [`Bytes`](units::Bytes), the integer types used by everything else.
//! - [`random`]: seeded pseudo-random numbers.
//! - [`stats`]: order statistics of borrowed samples.
//! - [`fit`]: incremental least squares, protocol-change detection,
//!   optimal segmentation.
//! - [`model`]: LogGOPS parameter sets, profiles with one set per protocol range, closed-form
//!   predictions.
//! - [`wire`]: control frames between the measuring initiator and its responder.
//! - [`measure`]: the traits [`Clock`](measure::Clock) and
//!   [`Link`](measure::Link), the timed kernels, both ends of a session, the
//!   planner, the assessment.
//! - [`goal`]: GOAL schedules, text and binary.
//! - [`noise`]: detection and traces of operating-system noise, and the delay
//!   that it causes to an operation.
//! - [`sim`]: the LogGOPS simulator.
//! - [`sync`]: offset and drift of clocks, and trees that synchronise many.
//! - [`selftest`]: known-answer tests of all of this, to run on the target.
//!
//! # What this crate does not do
//!
//! It opens no socket, starts no thread, reads no clock of the operating
//! system and allocates nothing: callers lend memory (`&mut [T]`) and pass
//! time in. All I/O goes through [`Clock`](measure::Clock) and
//! [`Link`](measure::Link).
//!
//! # Features
//!
//! - `defmt`: [`defmt::Format`](https://docs.rs/defmt) for all public value
//!   types, including errors. Changes nothing else.

#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::std_instead_of_core, clippy::alloc_instead_of_core)]

#[cfg(test)]
extern crate std;

pub mod fit;
pub mod goal;
pub mod measure;
pub mod model;
pub mod noise;
mod number;
pub mod random;
pub mod selftest;
pub mod sim;
mod slice;
pub mod stats;
pub mod sync;
pub mod units;
mod wide;
pub mod wire;
mod worded;
