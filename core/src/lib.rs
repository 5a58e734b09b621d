//! Core of loggap: measures and simulates a network link with LogP-family models, without an
//! operating system, an allocator or unsafe code.
//!
//! # Tour, from the bottom up
//!
//! - [`units`]: [`Picos`](units::Picos), [`PerByte`](units::PerByte) and
//!   [`Bytes`](units::Bytes), the integers everything else is written in.
//! - [`random`]: seeded pseudo-random numbers.
//! - [`stats`]: order statistics of borrowed samples.
//! - [`fit`]: incremental least squares, protocol-change detection,
//!   optimal segmentation.
//! - [`model`]: LogGP and LogGOPS parameter sets, profiles with one set per
//!   protocol range, closed-form predictions.
//! - [`wire`]: frames between the measuring initiator and its responder.
//! - [`measure`]: the traits [`Clock`](measure::Clock) and
//!   [`Link`](measure::Link), the timed kernels, the planner of what to
//!   measure next, the responder.
//! - [`goal`]: GOAL schedules, text and binary.
//! - [`noise`]: detours detected, traces of them, and what they cost an
//!   operation.
//! - [`sim`]: the LogGOPS simulator.
//! - [`selftest`]: known-answer tests of all of this on the machine at hand.
//!
//! # What this crate does not do
//!
//! It opens no socket, starts no thread, reads no clock of the operating
//! system and allocates nothing: callers lend memory (`&mut [T]`) and pass
//! time in. The only code that touches the outside goes through
//! [`Clock`](measure::Clock) and [`Link`](measure::Link).
//!
//! # Features
//!
//! - `defmt`: [`defmt::Format`](https://docs.rs/defmt) for the values that
//!   calls take and give, errors included. Changes nothing else.

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
