//! Simulator of GOAL schedules under LogGOPS.
//!
//! # Tour
//!
//! - [`Parameters`], [`Settings`]: costs of messages, and how they are sent and received.
//! - [`Survey`] counts a schedule and computes the memory to lend ([`Memory`]); [`Builder`] is the
//!   sink that stores the schedule there.
//! - [`Engine`] runs it. [`Noise`] takes time from operations ([`TraceNoise`]); an [`Observer`]
//!   receives the events of the run ([`Counters`] keeps totals for each rank). Both are chosen at
//!   compile time and cost nothing when absent.
//! - [`streamed`] schedules are read from a file during the run.
//! - [`network`] models links that messages share.
//! - [`windows`] and [`implicit`] cut time into windows and exchange [`mail`] between them.
//! - [`implicit`] runs patterns that are computed instead of stored.
//! - [`Unfinished`] names the operations and messages that a deadlocked run leaves over.
//!
//! # Rooms
//!
//! | | files |
//! |---|---|
//! | a rank's rules at an event | `rules`, `charge`, `price`, `parameters`, `release` |
//! | matching of messages and receives | `matching` |
//! | driver in global order | `engine`, `engine_rules`, `event`, `execute` |
//! | its ranks, clocks and pending records | `rank`, `clocks`, `pending` |
//! | driver in windows | [`windows`], [`mail`]; for computed programs `implicit::windows` |
//! | stored programs | `survey`, `draft`, `schedule`, `record`, `records`, `storage` |
//! | streamed and computed programs | [`streamed`], [`implicit`] |
//! | network between ranks | [`network`] |
//! | output of a run | `hooks`, `counters`, `unfinished` |
//! | lists, heaps, queues | `queues` |
//! | lent memory, errors | `lent`, `memory`, `word`, `build_error`, `unsuitable` |
//!
//! # Rules
//!
//! The rules are those of `docs/simulating.md`: LogGOPSim's, with its errors corrected. Every
//! operation and message, once created, waits until its time is reached and its processor and
//! interface are free. The next event is the one with the least (time, stamp); stamps are drawn at
//! creation, so at equal times the oldest is executed first. One event creates in this order: its
//! message, then the operations that it releases, by rank; on a rank sends before receives before
//! calculations, each in the order in which they became ready.

mod build_error;
mod charge;
mod clocks;
mod counters;
mod draft;
mod engine;
mod engine_rules;
mod event;
mod execute;
mod hooks;
pub mod implicit;
mod lent;
pub mod mail;
mod matching;
mod memory;
pub mod network;
mod order;
mod parameters;
mod pending;
mod price;
mod queues;
mod rank;
mod ranks;
mod record;
mod records;
mod release;
mod rules;
mod schedule;
mod storage;
pub mod streamed;
mod survey;
mod unfinished;
mod unsuitable;
#[cfg(test)]
mod waiting_tests;
mod word;
// Partitions share 64-bit atomics, which not every firmware target has.
#[cfg(target_has_atomic = "64")]
pub mod windows;

pub use build_error::BuildError;
pub use clocks::ClockQueue;
pub use counters::{Counters, RankCounters};
pub use engine::{Engine, Finished, SimError};
pub use hooks::{
    Arrived, Begun, Calculated, Handled, Matched, MessageKind, NoNoise, Noise, Observer, Released,
    Resumed, Satisfied, Sent, Silent, Taken, TraceNoise, Turn,
};
pub use memory::{Memory, Requirements};
pub use parameters::{Level, Parameters, Receive, Rendezvous, Settings};
pub use queues::queue::Entry;
pub use rank::Rank;
pub use record::{Record, Slot};
pub use schedule::{Builder, Schedule};
pub use storage::{Storage, Stored};
pub use survey::Survey;
pub use unfinished::Unfinished;
pub use unsuitable::Unsuitable;
