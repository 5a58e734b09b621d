//! The simulator: schedules under LogGOPS.
//!
//! # Tour
//!
//! - [`Parameters`], [`Settings`]: what messages cost, and how they are
//!   received and sent.
//! - [`Survey`] counts a schedule and says how much memory to lend
//!   ([`Memory`]); [`Builder`] is the sink that puts it there.
//! - [`Engine`] runs it. [`Noise`] takes time from operations
//!   ([`TraceNoise`]), an [`Observer`] is told what happens ([`Counters`]
//!   for each rank); both are chosen at compile time, and
//!   without them nothing is paid for them.
//! - [`streamed`] schedules are read from a file while they run.
//! - [`network`] lets messages share links.
//! - [`windows`] and [`implicit`] cut time into windows, and send [`mail`]
//!   from one to the next.
//! - [`implicit`] runs patterns that are computed instead of stored.
//! - [`Unfinished`] names what is left when a run cannot go on.
//!
//! # Rooms
//!
//! | | files |
//! |---|---|
//! | what a rank does at an event | `rules`, `charge`, `price`, `parameters`, `release` |
//! | who meets whom | `matching` |
//! | the driver in global order | `engine`, `engine_rules`, `event`, `execute`, `clocks`, `rank`, `pending` |
//! | the driver in windows | [`windows`], [`mail`]; of computed programs `implicit::windows` |
//! | stored programs | `survey`, `draft`, `schedule`, `record`, `records`, `storage` |
//! | programs read as they run, and computed ones | [`streamed`], [`implicit`] |
//! | between ranks | [`network`] |
//! | what is told of a run | `hooks`, `counters`, `unfinished` |
//! | lists, heaps, queues | `queues` |
//! | what is lent, and what can go wrong | `lent`, `memory`, `word`, `build_error`, `unsuitable` |
//!
//! # Rules
//!
//! Those of `docs/simulating.md`, which are LogGOPSim's with its errors
//! mended. Every operation and message, once created, waits until its time
//! has come and its processor and interface are free; the next event is the
//! one with the least (time, stamp), where stamps are drawn at creation. So
//! at equal times the oldest comes first; what one event creates has the
//! order: message, then released operations by rank, on a rank sends before
//! receives before calculations, each in the order in which it became ready.

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
mod parameters;
mod pending;
mod price;
mod queues;
mod rank;
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
// Partitions share 64-bit times, which not every firmware's processor can.
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
pub use matching::match_index::MatchIndex;
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
