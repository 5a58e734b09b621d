//! Networks between ranks.
//!
//! The engine uses a [`Network`]: it launches messages, asks for the first arrival, and lands it.
//! The network is chosen at compile time, so a flat run has no overhead. With [`Flat`] every
//! message travels alone, as in LogP. With [`Flows`] a message of s bytes is a flow of s − 1 bytes
//! over the links of its route, which flows share max-min fairly. `docs/networks.md` has the rules.
//!
//! # Parts
//!
//! | module | |
//! |---|---|
//! | `topology`, `routes` | a [`Topology`]: hosts, links and routes, computed from a few numbers |
//! | `fabric` | [`Fabric`], the trait of topologies; placement of ranks, routes of messages |
//! | `flat` | [`Flat`]: messages in flight, by o + L |
//! | `flows` | [`Flows`]: launches messages and delivers arrivals |
//! | `rates` | flows on links, and the queue of their ends |
//! | `filling` | the rates of flows after a change |
//! | `order` | in-order delivery for each pair of ranks |
//! | `observer`, `usage` | optional records of rates, and of link loads over time |
//! | `memory` | lent memory: links, flows, and a hop for each link of a flow |
//!
//! # Life of a message in flows
//!
//! 1. [`Network::launch`] finds its route and takes a flow. Its hops are added to the lists of
//!    their links, the flow to the bucket of its pair of ranks. If all its links have spare
//!    capacity, its end at rate 1 is added to the queue of ends; otherwise the links with too
//!    little are listed as changed.
//! 2. Before time advances, [`Network::first`] computes rates in one pass for everything that
//!    changed at this instant. A flow has rate 1, or a bottleneck: a full link on which no flow is
//!    faster. The queue of ends has the first end of each bottleneck, and the end of each flow
//!    without one.
//! 3. When a flow ends, it is removed from its links, which are listed as changed if they are
//!    bottlenecks. Its message waits for an earlier flow of its pair, or is added to the queue of
//!    arrivals, o + L later.
//! 4. [`Network::land`] removes it when the engine has handled its arrival.
//!
//! # Cost
//!
//! Without a bottleneck on its route a message costs time linear in the number of its links and
//! logarithmic in the number of messages under way. A pass visits all flows on each link that it
//! fills, and all links of each flow whose rate changes: a link with n flows costs O(n) at each
//! instant at which flows begin or end on it, however many do.

mod build_error;
mod fabric;
mod filling;
mod flat;
mod flows;
mod memory;
mod observer;
mod order;
mod rates;
mod routes;
#[cfg(test)]
mod tests;
mod topology;
mod usage;

pub use build_error::NetworkBuildError;
pub use fabric::{Fabric, Tenants};
pub use flat::Flat;
pub use flows::Flows;
pub use memory::{
    Delivery, Flow, Hop, Link, Memory as FlowsMemory, QueuedLink, Requirements as FlowsRequirements,
};
pub use observer::{FlowObserver, FlowRate};
pub use routes::LinkName;
pub use topology::{DIMENSIONS, Topology, TopologyError};
pub use usage::Usage;

use super::queues::chain::Chain;
use super::queues::queue::Entry;

/// A message that leaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Departure {
    /// Index of the send in the whole schedule.
    pub op: u32,
    /// Rank that sends.
    pub source: u32,
    /// Rank that receives.
    pub target: u32,
    /// Time at which the send begins, ps.
    pub now: u64,
    /// Second part of the stamp, counted within the instant.
    pub seq: u32,
    /// (s − 1)·G, ps.
    pub volume: u64,
    /// o + L, ps.
    pub delay: u64,
}

/// Error of a network during a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum NetworkStopped {
    /// A time exceeds 2⁶⁴ ps.
    Overflow,
    /// More messages are under way than there is memory for.
    Full {
        /// Capacity in messages.
        messages: usize,
    },
}

/// Messages in flight, as far as the caller stores them: a network may list those that it carries
/// through their links. `()` has none, for a network with memory of its own.
pub(in crate::sim) trait InFlight: Chain {
    /// Arrival of `message`, `delay` ps after it left.
    fn arrival(&self, message: u32, delay: u64) -> Entry;
}

/// Network between ranks.
#[allow(private_bounds, reason = "messages are stored by the engine, or not at all")]
pub trait Network {
    /// True if messages share links: they arrive with their last byte, when the network says.
    const SHARED: bool;

    /// Launches a message. `now` must not decrease.
    ///
    /// # Errors
    ///
    /// [`NetworkStopped`]; the network cannot be used after it.
    fn launch(
        &mut self,
        departure: &Departure,
        messages: &mut impl InFlight,
    ) -> Result<(), NetworkStopped>;

    /// First arrival, provided that nothing leaves before `next`, the time of the next event at a
    /// rank.
    ///
    /// # Errors
    ///
    /// As [`Network::launch`].
    fn first(
        &mut self,
        next: u64,
        messages: &impl InFlight,
    ) -> Result<Option<Entry>, NetworkStopped>;

    /// Removes the message that [`Network::first`] returned.
    fn land(&mut self, messages: &mut impl InFlight);
}

impl Chain for () {
    const END: u32 = u32::MAX;

    fn next(&self, _at: u32) -> u32 {
        Self::END
    }

    fn set_next(&mut self, _at: u32, _next: u32) {}
}

impl InFlight for () {
    fn arrival(&self, message: u32, delay: u64) -> Entry {
        Entry { time: delay, index: message, ..Entry::default() }
    }
}
