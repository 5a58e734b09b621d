//! Networks between ranks: topologies, placement of ranks, memory, utilization of links.

mod attributes;
mod busy;
mod dot;
mod error;
mod graph;
mod locations;
mod memory;
mod placement;
mod wired;
mod wiring;

use loggap_core::sim::SimError;
use loggap_core::sim::network::{
    Fabric, Flows, FlowsRequirements, Tenants, Topology, TopologyError, Usage,
};

pub use self::busy::{BusyLink, NetworkUse};
pub use self::error::{DotError, GraphError, NetworkError, PairsError};
pub use self::graph::GraphTopology;
pub use self::locations::{RankLocation, read_locations};
use self::memory::OwnedFlows;
pub use self::placement::Placement;
pub use self::wiring::{TopologyPlan, Wiring};
use super::{Needs, RunError};
use crate::machine::kernel_files::memory_entry;
use crate::sys::pages::Pages;

/// Limits on recording utilization over time: steps, and bytes.
const STEPS: usize = 256;
const WATCH_BYTES: usize = 64 << 20;

/// Description of a network, independent of the number of ranks.
#[derive(Clone, Debug)]
pub struct NetworkPlan {
    /// Hosts and links.
    pub topology: TopologyPlan,
    /// Factor on the capacity of links between switches.
    pub link_capacity: f64,
    /// Placement of ranks on hosts.
    pub placement: Placement,
    /// Seed for the choice among equal routes and for random placement.
    pub seed: u64,
    /// True to record the utilization of links over time.
    pub watched: bool,
}

impl NetworkPlan {
    /// This plan without recording of utilization over time.
    #[must_use]
    pub fn unwatched(&self) -> Self {
        Self { watched: false, ..self.clone() }
    }

    /// Topology for `ranks` ranks with `interfaces` interfaces each.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Topology`].
    pub fn topology(&self, ranks: u32, interfaces: usize) -> Result<Wiring, NetworkError> {
        let interfaces = u8::try_from(interfaces).unwrap_or(u8::MAX).max(1);
        let name = match &self.topology {
            TopologyPlan::Named(name) => name,
            TopologyPlan::File(path, graph) => {
                let failed = |error| NetworkError::Topology(path.display().to_string(), error);
                let factor = self.link_capacity;
                if !(factor.is_finite() && factor > 0.0) {
                    return Err(failed(TopologyError::Capacity));
                }
                let hosts = graph.hosts();
                if hosts < ranks && !matches!(self.placement, Placement::Hosts(..)) {
                    return Err(failed(TopologyError::TooFewHosts { hosts, ranks }));
                }
                return Ok(Wiring::Graph(graph.with_capacities(interfaces.into(), factor)));
            }
        };
        let failed = |error| NetworkError::Topology(name.clone(), error);
        // A file of hosts may place several ranks on a host, so fewer hosts may suffice.
        let asked = if matches!(self.placement, Placement::Hosts(..))
            && Topology::parse(name, ranks.max(1)).is_err()
        {
            1
        } else {
            ranks.max(1)
        };
        let topology = Topology::parse(name, asked).map_err(failed)?;
        let topology = topology.with_link_capacity(self.link_capacity).map_err(failed)?;
        topology.with_host_capacity(interfaces.into()).map(Wiring::Generated).map_err(failed)
    }

    /// True if all ranks are placed on hosts with the same first switch. False for graphs from
    /// files, for which this is not determined, and for random placements that have this property
    /// by chance.
    #[must_use]
    pub fn is_below_one_switch(&self, ranks: u32) -> bool {
        let Ok(Wiring::Generated(topology)) = self.topology(ranks, 1) else { return false };
        let together = topology.hosts_together().max(1);
        match &self.placement {
            Placement::Block => ranks <= together,
            Placement::RoundRobin | Placement::Random => topology.hosts() <= together,
            Placement::Hosts(_, hosts) => {
                let mut switches = hosts.iter().take(ranks as usize).map(|host| host / together);
                let first = switches.next();
                switches.all(|switch| Some(switch) == first)
            }
        }
    }

    /// Allocates a network for `ranks` ranks with `interfaces` interfaces each and `messages`
    /// messages in flight.
    ///
    /// # Errors
    ///
    /// [`NetworkError`].
    pub fn place(
        &self,
        ranks: u32,
        interfaces: usize,
        messages: usize,
    ) -> Result<PlacedNetwork, NetworkError> {
        let topology = self.topology(ranks, interfaces)?;
        let needed = self.bytes(ranks, messages);
        // Overcommitment might hide that the memory does not suffice.
        if let Some(available) =
            memory_entry("MemAvailable").filter(|available| needed > *available)
        {
            return Err(NetworkError::TooLarge { needed, available });
        }
        let hosts = self.placement.hosts(ranks, &topology, self.seed)?;
        let steps = self.steps(&topology);
        let needs = FlowsRequirements::new(&topology, messages);
        let memory = OwnedFlows::new(&needs).map_err(NetworkError::Pages)?;
        let carried = Pages::zeroed(steps * needs.links).map_err(NetworkError::Pages)?;
        let seed = self.seed;
        Ok(PlacedNetwork { topology, hosts, ranks, seed, messages, memory, steps, carried })
    }

    /// Number of time steps in which utilization is recorded.
    fn steps(&self, topology: &Wiring) -> usize {
        let row = (topology.links() as usize).saturating_mul(size_of::<f64>());
        if self.watched { (WATCH_BYTES / row.max(1)).clamp(2, STEPS) } else { 0 }
    }

    /// Memory of the network in bytes; saturating.
    #[must_use]
    pub fn bytes(&self, ranks: u32, messages: usize) -> u64 {
        let Ok(topology) = self.topology(ranks, 1) else { return 0 };
        let watched = self.steps(&topology).saturating_mul(topology.links() as usize);
        let watched = watched.saturating_mul(size_of::<f64>()) as u64;
        let network = FlowsRequirements::new(&topology, messages).bytes().saturating_add(watched);
        network.saturating_add(u64::from(ranks) * size_of::<u32>() as u64)
    }
}

/// Number of messages in flight to allocate memory for: `times` the usual number, but not more than
/// operations.
pub(super) fn messages(needs: &Needs, times: usize) -> usize {
    let ops = usize::try_from(needs.ops).unwrap_or(usize::MAX);
    usual_messages(needs.ranks as usize).saturating_mul(times).min(ops.max(1))
}

/// Usual number of messages in flight for `ranks` ranks.
pub(super) fn usual_messages(ranks: usize) -> usize {
    const EACH_RANK: usize = 16;
    const LEAST: usize = 1 << 12;
    ranks.saturating_mul(EACH_RANK).max(LEAST)
}

/// Factor by which the memory for messages grows when it was too small.
pub(super) const MORE_MESSAGES: usize = 8;

/// Calls `run` with a multiple of the usual number of messages, and again with more memory while
/// that is too small.
pub(super) fn with_more_memory<T>(
    times: &mut usize,
    mut run: impl FnMut(usize) -> Result<T, RunError>,
) -> Result<T, RunError> {
    loop {
        match run(*times) {
            Err(RunError::Stopped(SimError::NetworkFull { .. })) => {
                *times = times.saturating_mul(MORE_MESSAGES);
            }
            other => return other,
        }
    }
}

/// A network for a given number of ranks on hosts, with its memory.
#[derive(Debug)]
pub struct PlacedNetwork {
    topology: Wiring,
    hosts: Vec<u32>,
    ranks: u32,
    seed: u64,
    messages: usize,
    memory: OwnedFlows,
    steps: usize,
    carried: Pages<f64>,
}

impl PlacedNetwork {
    /// The network, in this memory.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Flows`].
    pub fn lend(&mut self) -> Result<Flows<'_, Wiring>, NetworkError> {
        let Self { topology, hosts, ranks, seed, messages, memory, steps, carried } = self;
        let tenants = Tenants { ranks: *ranks, hosts, seed: *seed, messages: *messages };
        let flows = Flows::new(topology, tenants, memory.lend())?;
        Ok(match Usage::new(carried, *steps) {
            Some(usage) => flows.with_usage(usage),
            None => flows,
        })
    }
}
