//! Networks between ranks.
//!
//! The engine sees a [`Network`]: it launches messages that leave, asks for the first
//! arrival, and lands it. Which network it is is chosen at compile time, so that a flat
//! run pays nothing. With [`Flat`] every message travels alone, as in LogP. With
//! [`Flows`] a message of s bytes is a flow of s − 1 bytes over the links of its route,
//! which flows share max-min fairly. [`Simple`] is the network that LogGOPSim calls
//! `simple`. `docs/networks.md` has the rules.
//!
//! # Parts
//!
//! | module | |
//! |---|---|
//! | `topology`, `routes` | a [`Topology`]: hosts, links and routes, computed from a few numbers |
//! | `fabric` | [`Fabric`], what a network needs of any topology; ranks on its hosts, the route of a message |
//! | `flows` | [`Flows`]: departures in, arrivals out |
//! | `rates` | which flows are on which link, and the queue of their ends |
//! | `filling` | the rates of flows after a change |
//! | `order` | messages of a pair of ranks stay in order |
//! | `observer`, `usage` | how rates change, and what links carry over time, for who asks |
//! | `memory`, `free_list` | lent memory: links, flows, and a hop for each link of a flow |
//! | `simple` | [`Simple`], on the same fabric, links and hops |
//! | `crossing` | after a flat run: the [`Taper`] at which links would decide |
//!
//! # A message on its way through flows
//!
//! 1. [`Network::launch`] finds its route and takes a flow. Its hops are put into the
//!    lists of their links, the flow into the bucket of its pair of ranks. If all its
//!    links have capacity to spare, its end at rate 1 is put into the queue of ends; if
//!    not, the links that have too little are listed as changed.
//! 2. Before time goes on, [`Network::first`] computes rates in one pass for all that
//!    changed at this instant. A flow has rate 1 or a bottleneck, a full link on which
//!    no flow is faster. The queue of ends has the first end of each bottleneck, and
//!    that of each flow without one.
//! 3. When a flow ends, it is taken off its links, which are listed as changed if they
//!    are bottlenecks. Its message waits for an earlier flow of its pair, or goes to the
//!    queue of arrivals, o + L later.
//! 4. [`Network::land`] takes it out when the engine has handled its arrival.
//!
//! # Cost
//!
//! Without a bottleneck on its route a message costs time linear in the links of that,
//! and logarithmic in the messages under way. A pass looks at all flows on each link
//! that it fills, and at all links of each flow whose rate changes: a link with n flows
//! costs time linear in n at each instant at which flows begin or end on it, however
//! many do.

mod build_error;
mod crossing;
mod fabric;
mod filling;
mod flows;
mod free_list;
mod memory;
mod observer;
#[cfg(test)]
mod oracle;
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

use super::queues::queue::Entry;

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

    /// The first arrival, if nothing leaves before `next`, the time of the next event
    /// at a rank.
    ///
    /// # Errors
    ///
    /// As [`Network::launch`].
    fn first(&mut self, next: u64) -> Result<Option<Entry>, NetworkStopped>;

    /// Whether the message that [`Network::first`] gave is still under way: then it
    /// comes again later, and not before its receiver is free, which will be at `free`
    /// as far as is known now. By default none is.
    ///
    /// # Errors
    ///
    /// As [`Network::launch`].
    #[inline]
    fn postpone(&mut self, free: u64) -> Result<bool, NetworkStopped> {
        let _ = free;
        Ok(false)
    }

    /// The message that [`Network::first`] gave has arrived.
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
