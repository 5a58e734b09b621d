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
//! - [`streamed`] schedules are looked up during the run.
//! - [`network`] models links that messages share.
//! - [`windows`] and [`implicit`] cut time into windows and exchange [`mail`] between them.
//! - [`implicit`] runs patterns that are computed instead of stored.
//! - [`Unfinished`] names the operations and messages that a deadlocked run leaves over.
//!
//! # Rooms
//!
//! | | |
//! |---|---|
//! | `rank` | what happens on a rank at an event, for all programs and drivers: when it may begin (`Class::needs`, `Clocks::begin`), `rules`, costs with noise (`charge`, `price`), `dependencies`, `matching` |
//! | `in_order` | driver in global order: `engine`, `rules`, `execute`; `order` (which event is next); `ranks` with `clocks`, `pending`, `waiting`; `part`, some of the ranks window by window, and `origin` |
//! | [`windows`], [`mail`] | driver in windows; for computed programs `implicit::windows` |
//! | `survey`, `draft`, `schedule`, `record`, `records`, `storage` | stored programs |
//! | [`streamed`], [`implicit`] | streamed and computed programs |
//! | [`network`] | network between ranks: flat, or with shared links |
//! | `hooks`, `counters`, `unfinished`, `outcome` | output of a run |
//! | `queues` | lists, heaps, queues |
//! | `lent`, `memory`, `word`, `build_error`, `unsuitable` | lent memory, errors |
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
mod counters;
mod draft;
mod hooks;
pub mod implicit;
mod in_order;
mod lent;
pub mod mail;
mod memory;
pub mod network;
mod origin;
mod outcome;
mod parameters;
mod queues;
mod rank;
mod record;
mod records;
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
pub use counters::{Counters, RankCounters};
pub use hooks::{
    Arrived, Begun, Calculated, Handled, Matched, MessageKind, NoNoise, Noise, Observed, Observer,
    Released, Resumed, Satisfied, Sent, Silent, Taken, TraceNoise, Turn,
};
pub use in_order::clocks::ClockQueue;
pub use in_order::engine::Engine;
pub use in_order::rank::Rank;
pub use memory::{Memory, Requirements};
pub use origin::{Ancestor, Origin};
pub use outcome::{Finished, SimError};
pub use parameters::{Level, Parameters, Receive, Rendezvous, Settings};
pub use queues::queue::Entry;
pub use record::{Record, Slot};
pub use schedule::{Builder, Schedule};
pub use storage::{Storage, Stored};
pub use survey::Survey;
pub use unfinished::Unfinished;
pub use unsuitable::Unsuitable;
