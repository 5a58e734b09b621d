//! What flows need to know of a network: its links, and which of them a message
//! takes.

use super::flows::FlowsError;
use super::memory::NONE;
use super::topology::{Topology, TopologyError};

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

/// Where ranks are, and which way their messages go.
#[derive(Debug)]
pub(super) struct Routes<'m, F> {
    pub(super) fabric: F,
    /// Those of [`Tenants`].
    placement: &'m [u32],
    pub(super) seed: u64,
}

impl<'m, F: Fabric> Routes<'m, F> {
    /// Each rank has to have a host.
    pub(super) fn new(fabric: F, tenants: &Tenants<'m>) -> Result<Self, FlowsError> {
        let Tenants { ranks, hosts: placement, seed, .. } = *tenants;
        let hosts = fabric.hosts();
        if placement.is_empty() && hosts < ranks {
            return Err(FlowsError::Topology(TopologyError::TooFewHosts { hosts, ranks }));
        }
        let routes = Self { fabric, placement, seed };
        match (0..ranks).find(|&rank| routes.host_of(rank) >= hosts) {
            Some(rank) => Err(FlowsError::Placement { rank }),
            None => Ok(routes),
        }
    }

    /// The host of a rank.
    pub(super) fn host_of(&self, rank: u32) -> u32 {
        if self.placement.is_empty() {
            return rank;
        }
        self.placement.get(rank as usize).copied().unwrap_or(NONE)
    }
}

impl Fabric for Topology {
    fn hosts(&self) -> u32 {
        self.hosts()
    }

    fn links(&self) -> u32 {
        self.links()
    }

    fn capacity(&self, link: u32) -> f64 {
        self.capacity(link)
    }

    fn longest_route(&self) -> u32 {
        self.longest_route()
    }

    fn route(&self, source: u32, target: u32, seed: u64, each: impl FnMut(u32)) {
        self.route(source, target, seed, each);
    }
}

impl<F: Fabric> Fabric for &F {
    fn hosts(&self) -> u32 {
        F::hosts(self)
    }

    fn links(&self) -> u32 {
        F::links(self)
    }

    fn capacity(&self, link: u32) -> f64 {
        F::capacity(self, link)
    }

    fn longest_route(&self) -> u32 {
        F::longest_route(self)
    }

    fn route(&self, source: u32, target: u32, seed: u64, each: impl FnMut(u32)) {
        F::route(self, source, target, seed, each);
    }
}
