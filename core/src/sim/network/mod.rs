//! Networks between ranks.
//!
//! With [`Flat`] every message travels alone, as in LogGP. With [`Flows`] a
//! message of s bytes is a flow of s − 1 bytes over the links of a [`Fabric`],
//! such as a [`Topology`], which flows share max-min fairly. [`Simple`] is the
//! network that LogGOPSim calls `simple`. `docs/networks.md` has the rules. Which of
//! them it is is chosen at compile time, so that a flat run pays nothing.

mod build_error;
mod crossing;
mod fabric;
mod filling;
mod flows;
mod free_list;
mod memory;
mod observer;
mod order;
mod rates;
mod routes;
mod simple;
#[cfg(test)]
mod simple_tests;
#[cfg(test)]
mod tests;
mod topology;
mod usage;

pub use build_error::NetworkBuildError;
pub use crossing::{Crossing, Taper};
pub use fabric::{Fabric, Tenants};
pub use flows::Flows;
pub use memory::{
    Delivery, Flow, Hop, Link, Memory as FlowsMemory, QueuedLink, Requirements as FlowsRequirements,
};
pub use observer::{FlowObserver, FlowRate, Unobserved};
pub use routes::LinkName;
pub use simple::{
    Memory as SimpleMemory, Requirements as SimpleRequirements, Simple, Transmission,
};
pub use topology::{DIMENSIONS, Topology, TopologyError};
pub use usage::Usage;

use super::queue::Entry;

/// A message leaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Departure {
    /// The send, counted over the whole schedule.
    pub op: u32,
    /// The rank that sends.
    pub source: u32,
    /// The rank that the message goes to.
    pub target: u32,
    /// When.
    pub now: u64,
    /// Counts what was created at that instant.
    pub seq: u32,
    /// s.
    pub bytes: u64,
    /// (s − 1)·G, in ps.
    pub volume: u64,
    /// o + L, in ps.
    pub delay: u64,
}

/// Why a network cannot go on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum NetworkStopped {
    /// A time past 2⁶⁴ ps.
    Overflow,
    /// More messages are under way than there is memory for.
    Full {
        /// The memory is for so many.
        messages: usize,
    },
}

/// What is between ranks.
pub trait Network {
    /// Whether messages share links, so that they arrive when the network says.
    const SHARED: bool;

    /// Whether links are charged for a message's bytes in place of its receiver, so
    /// that what arrives is its last byte.
    const CHARGES: bool = Self::SHARED;

    /// A message leaves; `now` never decreases.
    ///
    /// # Errors
    ///
    /// [`NetworkStopped`]; the network is of no further use then.
    fn launch(&mut self, departure: &Departure) -> Result<(), NetworkStopped>;

    /// What arrives next, if nothing leaves before `next`, the
    /// time of the next event at a rank.
    ///
    /// # Errors
    ///
    /// As [`Network::launch`].
    fn first(&mut self, next: u64) -> Result<Option<Entry>, NetworkStopped>;

    /// Whether what would arrive next is still on its way: then it comes again
    /// later, and not before its receiver is free, which will be at `free` as far
    /// as is known now.
    ///
    /// # Errors
    ///
    /// As [`Network::launch`].
    #[inline]
    fn postpone(&mut self, free: u64) -> Result<bool, NetworkStopped> {
        let _ = free;
        Ok(false)
    }

    /// What arrives next has arrived.
    fn land(&mut self);
}

/// Messages do not meet; o + L later the first byte is there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flat;

impl Network for Flat {
    const SHARED: bool = false;

    #[inline]
    fn launch(&mut self, _departure: &Departure) -> Result<(), NetworkStopped> {
        Ok(())
    }

    #[inline]
    fn first(&mut self, _next: u64) -> Result<Option<Entry>, NetworkStopped> {
        Ok(None)
    }

    #[inline]
    fn land(&mut self) {}
}
