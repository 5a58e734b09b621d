//! Computed schedules: simulated without being stored.
//!
//! A [`Program`] computes what each rank does next. Memory holds only the state of each rank, the
//! messages under way and the waiting operations. [`PatternProgram`] has the built-in patterns; a
//! [`Simulation`] runs any program, with the results of the [`Engine`](super::Engine).
//!
//! # Windows
//!
//! A message arrives at least o + L after its send began. Time is therefore cut into windows of
//! that length (the lookahead): within a window each rank can be simulated by itself, because its
//! messages arrive in later windows. Ranks can be grouped into [parts](RankRange), which run a
//! window in parallel and exchange [`Mail`] between windows; results do not depend on the
//! partition.
//!
//! On a [network](super::network) with shared links there are no windows:
//! [`Simulation::on_network`] executes the events of all ranks in the order of stamps, as the
//! engine does, and is exact.
//!
//! # Exactness
//!
//! In windows ranks are run one after the other, so stamps are not drawn in global order. The
//! elements that wait on a rank are ordered by their creation time, then by the creation time of
//! their creator, and at the start by rank; this agrees with the order of stamps as far as it
//! decides. If it leaves a tie between different ranks, and the tied messages are not
//! [interchangeable](Extent::interchangeable), the lower rank comes first and the tie is counted
//! in [`ProgramFinished::open_ties`]. If none is counted, finishing times and events equal those of
//! the engine, bit for bit.

mod driver;
mod error;
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
pub use mail::{Mail, Message, Outbox};
pub use memory::{Memory, OrderedMemory, Requirements};
pub use ordered::Ordered;
pub use pool::Node;
pub use program::{Extent, Program, Release, Transfer};
pub use programs::{
    Doubling, Halo, Linear, LinearKind, PatternProgram, Permuted, Reduction, Ring, RingKind, Round,
    Rounds, Sweep, Tree,
};
pub use rank::RankState;
pub use runner::{ProgramFinished, Simulation, check};
pub use windows::{RankRange, Windows};
