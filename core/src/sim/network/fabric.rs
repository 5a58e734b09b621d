//! What flows need to know of a network: its links, and which of them a message
//! takes.

use super::topology::Topology;

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

    /// The first link of that route.
    fn first_link(&self, source: u32, target: u32, seed: u64) -> Option<u32> {
        let mut first = None;
        self.route(source, target, seed, |link| first = first.or(Some(link)));
        first
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

    fn first_link(&self, source: u32, target: u32, _seed: u64) -> Option<u32> {
        self.first_link(source, target)
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

    fn first_link(&self, source: u32, target: u32, seed: u64) -> Option<u32> {
        F::first_link(self, source, target, seed)
    }
}
