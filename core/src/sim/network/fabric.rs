//! Trait by which a network uses a topology: its links, and the route of each message.

use super::Departure;
use super::build_error::NetworkBuildError;
use super::memory::NONE;
use super::topology::TopologyError;

/// Hosts, unidirectional links, and routes between hosts.
///
/// Capacities are in units of a host's link: 1 is 1/G, the rate of one interface.
pub trait Fabric {
    /// Number of hosts.
    fn hosts(&self) -> u32;

    /// Number of links, of both directions.
    fn links(&self) -> u32;

    /// Capacity of a link: finite and above 0.
    fn capacity(&self, link: u32) -> f64;

    /// Largest number of links of a route.
    fn longest_route(&self) -> u32;

    /// Calls `each` with the links from `source` to `target`, in order: no link twice, at most
    /// [`Fabric::longest_route`], and none if both are the same host. `seed` selects among equal
    /// routes; a pair always has the same one.
    fn route(&self, source: u32, target: u32, seed: u64, each: impl FnMut(u32));
}

/// Placement of ranks on hosts, and number of their messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tenants<'m> {
    /// Number of ranks.
    pub ranks: u32,
    /// Host of each rank; empty if each rank is on the host of its number.
    pub hosts: &'m [u32],
    /// Seed that selects among equal routes.
    pub seed: u64,
    /// Capacity: number of messages under way at a time.
    pub messages: usize,
}

/// Fabric with the placement of ranks.
#[derive(Debug)]
pub(super) struct PlacedFabric<'m, F> {
    pub(super) fabric: &'m F,
    /// As in [`Tenants`].
    hosts: &'m [u32],
    seed: u64,
}

/// Route from one host to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route<'m, F> {
    fabric: &'m F,
    source: u32,
    target: u32,
    seed: u64,
}

impl<F: Fabric> Route<'_, F> {
    /// True if source and target are the same host; the route then has no links.
    #[inline]
    pub(super) const fn is_local(&self) -> bool {
        self.source == self.target
    }

    /// Calls `each` with its links, in order.
    #[inline]
    pub(super) fn each_link(&self, each: impl FnMut(u32)) {
        self.fabric.route(self.source, self.target, self.seed, each);
    }
}

impl<'m, F: Fabric> PlacedFabric<'m, F> {
    /// Fails unless each rank has a host.
    pub(super) fn new(fabric: &'m F, tenants: &Tenants<'m>) -> Result<Self, NetworkBuildError> {
        let Tenants { ranks, hosts, seed, .. } = *tenants;
        let count = fabric.hosts();
        if hosts.is_empty() && count < ranks {
            let error = TopologyError::TooFewHosts { hosts: count, ranks };
            return Err(NetworkBuildError::Topology(error));
        }
        let placed = Self { fabric, hosts, seed };
        match (0..ranks).find(|&rank| placed.host_of(rank) >= count) {
            Some(rank) => Err(NetworkBuildError::Placement { rank }),
            None => Ok(placed),
        }
    }

    /// Host of a rank.
    #[inline]
    fn host_of(&self, rank: u32) -> u32 {
        if self.hosts.is_empty() {
            return rank;
        }
        self.hosts.get(rank as usize).copied().unwrap_or(NONE)
    }

    /// Route of a message.
    #[inline]
    pub(super) fn route_of(&self, message: &Departure) -> Route<'m, F> {
        let [source, target] = [message.source, message.target].map(|rank| self.host_of(rank));
        Route { fabric: self.fabric, source, target, seed: self.seed }
    }
}
