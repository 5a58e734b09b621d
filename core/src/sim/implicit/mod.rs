//! Simulation of schedules that are computed instead of stored.
//!
//! A [`Program`] tells what each rank does next, so that nothing is kept but
//! the state of each rank, the messages under way and the operations that
//! wait. [`PatternProgram`] has the built-in patterns; a [`Simulation`] runs
//! any program, with the results of the [`Engine`](super::Engine).
//!
//! [`Lanes`] are a program under several parameters in one simulation.
//!
//! # How it runs
//!
//! A message arrives at least o + L after its send began. So time is cut
//! into windows of that length, and in a window every rank can be simulated
//! by itself: what it sends concerns later windows only. So ranks can be
//! grouped into [parts](RankRange), which run a window side by side and exchange
//! [`Mail`] between windows; results do not depend on the parts.
//!
//! On a [network](super::network) whose links messages share, there are no
//! windows: [`Simulation::on_network`] runs one event of all ranks after the
//! other, in the order of stamps, as the engine does, and is exact.
//!
//! # When it is exact
//!
//! In windows ranks are run one after the other, so nobody draws stamps in the order in
//! which things happen. What waits on a rank is ordered by when it was
//! created, then by when that which created it was created, and at the start
//! by rank; that is the order of stamps as far as it goes. Where it leaves a
//! tie between different ranks open, and where the tie is between messages
//! that are not [interchangeable](Program::interchangeable), the lower rank
//! comes first, and the tie is counted in [`ProgramFinished::open_ties`]. When none
//! was counted, finishing times and events are those of the engine, bit for
//! bit.

mod driver;
mod error;
mod lanes;
mod mail;
mod memory;
mod ordered;
mod pool;
mod program;
mod programs;
mod rank;
mod runner;
mod step;
mod windows;

pub use error::ImplicitError;
pub use lanes::{LaneMemory, LaneState, Lanes};
pub use mail::{Mail, Message, Outbox};
pub use memory::{Memory, OrderedMemory, Requirements};
pub use ordered::Ordered;
pub use pool::Node;
pub use program::{Program, Release, Transfer};
pub use programs::{
    Doubling, Linear, LinearKind, PatternProgram, Reduction, Ring, RingKind, Round, Rounds, Tree,
    TreeKind,
};
pub use rank::RankState;
pub use runner::{ProgramFinished, Simulation};
pub use windows::{RankRange, Windows};
