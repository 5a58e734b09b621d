//! What flows need to know of a network: its links, and which of them a message
//! takes.

use super::Departure;
use super::build_error::NetworkBuildError;
use super::memory::NONE;
use super::topology::TopologyError;

/// Hosts, links that go one way, and routes from host to host.
///
/// Capacities count in links of a host: 1 is 1/G, the pace of one interface.
pub trait Fabric {
    /// Hosts.
    fn hosts(&self) -> u32;

    /// Links, of both directions.
    fn links(&self) -> u32;

    /// How wide a link is: a finite number above 0.
    fn capacity(&self, link: u32) -> f64;

    /// The most links of a route.
    fn longest_route(&self) -> u32;

    /// Calls `each` with the links from `source` to `target`, in order, none twice
    /// and as many as [`Fabric::longest_route`] at most; with none for a host and
    /// itself. `seed` chooses among equal routes, always the same for a pair.
    fn route(&self, source: u32, target: u32, seed: u64, each: impl FnMut(u32));
}

/// Who sends how much over a network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tenants<'m> {
    /// Ranks.
    pub ranks: u32,
    /// The host of each rank; empty where each rank is on the host of its
    /// number.
    pub hosts: &'m [u32],
    /// Chooses among equal routes.
    pub seed: u64,
    /// Messages that may be under way at a time.
    pub messages: usize,
}

/// A fabric and the hosts that ranks are on.
#[derive(Debug)]
pub(super) struct PlacedFabric<'m, F> {
    pub(super) fabric: &'m F,
    /// Those of [`Tenants`].
    hosts: &'m [u32],
    seed: u64,
}

/// The way from one host to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route<'m, F> {
    fabric: &'m F,
    source: u32,
    target: u32,
    seed: u64,
}

impl<F: Fabric> Route<'_, F> {
    /// Whether it is from a host to itself, over no links.
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
    /// Each rank has to have a host.
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

    /// The host of a rank.
    #[inline]
    fn host_of(&self, rank: u32) -> u32 {
        if self.hosts.is_empty() {
            return rank;
        }
        self.hosts.get(rank as usize).copied().unwrap_or(NONE)
    }

    /// The way of a message from its source to its target.
    #[inline]
    pub(super) fn route_of(&self, message: &Departure) -> Route<'m, F> {
        let [source, target] = [message.source, message.target].map(|rank| self.host_of(rank));
        Route { fabric: self.fabric, source, target, seed: self.seed }
    }
}
