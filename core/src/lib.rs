//! Core of loggap: measures and simulates a network link with LogP-family models, without an
//! operating system, an allocator or unsafe code.
//!
//! ```
//! use loggap_core::measure::*;
//! use loggap_core::units::Picos;
//! # use core::{cell::RefCell, ops::ControlFlow};
//! # let truths = [Truth { latency: Picos(5_000_000), ..Truth::default() }];
//! # let simulated = RefCell::new(Simulated::new(&truths, Disturbance::default(), Picos(0)));
//! # let (clock, link) = (Shared(&simulated), Shared(&simulated));
//! // `clock` and `link` are the device's implementations of `Clock` and `Link`.
//! let (mut outgoing, mut incoming) = ([0; 512], [0; 512]);
//! let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
//! let options = SessionOptions::default();
//! let mut initiator =
//!     Initiator::connect(clock, link, buffers, options, |_| ControlFlow::Break(())).unwrap();
//! let experiment =
//!     Experiment { quantity: Quantity::RoundTrip, messages: 1, delay: Picos(0), size: 64 };
//! let outcome = initiator.measure(&experiment).unwrap();
//! # let Outcome::Sample(sample) = outcome else { panic!() };
//! # assert_eq!(sample.elapsed, Picos(2 * 5_000_000));
//! ```
//!
//! To begin with: [`Initiator`](measure::Initiator) measures, and
//! [`ResponderState`](measure::ResponderState) answers, a state machine without I/O:
//! [`handle`](measure::ResponderState::handle) each message, send what
//! [`poll_transmit`](measure::ResponderState::poll_transmit) gives, until there is an
//! [`ending`](measure::ResponderState::ending).
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
//! - [`trace`]: records of traced MPI calls as bytes.
//! - [`selftest`]: known-answer tests of all of this, to run on the target.
//!
//! # What this crate does not do
//!
//! It opens no socket, starts no thread, reads no clock of the operating
//! system and allocates nothing: callers lend memory (`&mut [T]`) and pass
//! time in. All I/O goes through [`Clock`](measure::Clock) and
//! [`Link`](measure::Link).
//!
//! It measures no link by itself, either: a host or a firmware implements two traits and runs it.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `defmt` | `defmt::Format` for all public value types, errors included |

#![no_std]
#![forbid(unsafe_code)]
#![warn(clippy::std_instead_of_core, clippy::alloc_instead_of_core)]

#[cfg(test)]
extern crate std;

pub mod fit;
pub mod goal;
mod halves;
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
pub mod trace;
pub mod units;
mod wide;
pub mod wire;
mod worded;
