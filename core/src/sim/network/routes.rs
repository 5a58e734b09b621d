//! Routes: the links from one host to another, computed from the topology.
//!
//! Routes are minimal. Among several, a hash of source, target and seed selects one, so all
//! messages of a pair take the same route. A torus is crossed one dimension after the other, in the
//! shorter direction.

use core::fmt;
use core::num::{NonZeroU32, NonZeroU64};

use super::fabric::Fabric;
use super::topology::{DIMENSIONS, Shape, Topology};
use crate::random::Random;

/// Links from a router of a torus to others: two for each dimension.
const WAYS: u32 = 10;
const _: () = assert!(WAYS as usize == 2 * DIMENSIONS, "two a dimension");

/// Hash that selects among the equal routes of a pair of hosts.
fn choice(source: u32, target: u32, seed: u64) -> u64 {
    Random::stream(seed, u64::from(source) << 32 | u64::from(target)).draw()
}

/// Number below `count`, selected by a hash.
#[allow(clippy::cast_possible_truncation, reason = "less than the count")]
fn one_of(count: NonZeroU32, hash: u64) -> u32 {
    (hash % NonZeroU64::from(count)) as u32
}

/// Dimensions of a fat tree, and the first link of each level.
struct FatTree {
    half: NonZeroU32,
    /// Uplinks of an edge switch; also aggregation switches of a pod.
    up: NonZeroU32,
    first: u32,
    level: u32,
}

impl FatTree {
    /// Links from an edge switch to an aggregation switch of its pod, and back.
    const fn edge(&self, edge: u32, aggregation: u32) -> [u32; 2] {
        let up = self.first + edge * self.up.get() + aggregation;
        [up, up + self.level]
    }

    /// Links from an aggregation switch of a pod to one of its core switches, and back.
    const fn core(&self, pod: u32, aggregation: u32, core: u32) -> [u32; 2] {
        let half = self.half.get();
        let switch = pod * self.up.get() + aggregation;
        let up = self.first + 2 * self.level + switch * half + core;
        [up, up + self.level]
    }
}

impl Fabric for Topology {
    fn hosts(&self) -> u32 {
        self.hosts
    }

    fn links(&self) -> u32 {
        self.links
    }

    fn capacity(&self, link: u32) -> f64 {
        if link < self.host_links { self.host_capacity } else { self.inner_capacity }
    }

    fn longest_route(&self) -> u32 {
        2 + match self.shape {
            Shape::Star => 0,
            Shape::Tree { .. } | Shape::Rail { .. } => 2,
            Shape::FatTree { .. } => 4,
            Shape::Torus { sizes } => sizes.iter().map(|size| size.get() / 2).sum(),
            Shape::Dragonfly { .. } => 3,
        }
    }

    fn route(&self, source: u32, target: u32, seed: u64, mut each: impl FnMut(u32)) {
        if source == target || source >= self.hosts || target >= self.hosts {
            return;
        }
        match self.shape {
            Shape::Rail { rails, .. } if source / rails == target / rails => {
                each(2 * self.hosts + source);
                each(3 * self.hosts + target);
            }
            _ => {
                each(source);
                self.between(source, target, seed, &mut each);
                each(self.hosts + target);
            }
        }
    }
}

impl Topology {
    /// Links between the first and the last switch.
    fn between(&self, source: u32, target: u32, seed: u64, each: &mut impl FnMut(u32)) {
        let first = 2 * self.hosts;
        match self.shape {
            Shape::Star => {}
            Shape::Tree { each: hosts, leaves } => {
                let (from, to) = (source / hosts, target / hosts);
                if from != to {
                    each(first + from);
                    each(first + leaves + to);
                }
            }
            Shape::FatTree { half, up } => {
                let tree = FatTree { half, up, first, level: self.hosts / half * up.get() };
                tree.between([source / half, target / half], choice(source, target, seed), each);
            }
            Shape::Torus { sizes } => self.around(sizes, [source, target], seed, each),
            Shape::Dragonfly { groups, routers, each: hosts } => {
                let fly = Dragonfly { groups, routers, first };
                fly.between([source / hosts, target / hosts], each);
            }
            Shape::Rail { rails, nodes, leaves } => {
                let leaf = |host: u32| (host / rails / nodes) * rails.get() + host % rails;
                let (from, to) = (leaf(source), leaf(target));
                if from != to {
                    each(2 * first + from);
                    each(2 * first + leaves + to);
                }
            }
        }
    }

    /// Crosses one dimension after the other, in the shorter direction.
    fn around(
        &self,
        sizes: [NonZeroU32; DIMENSIONS],
        [source, target]: [u32; 2],
        seed: u64,
        each: &mut impl FnMut(u32),
    ) {
        let hash = choice(source, target, seed);
        // Remaining digits of both host numbers, and the distance between neighbours of a
        // dimension.
        let (mut from, mut toward) = (source, target);
        let (mut here, mut stride) = (source, 1u32);
        for (dimension, size) in (0u32..).zip(sizes) {
            let (at, to, whole) = (from % size, toward % size, size.get());
            (from, toward) = (from / size, toward / size);
            let ahead = (to + whole - at) % size;
            let back = (whole - ahead) % size;
            let tie = hash >> dimension & 1 == 0;
            let forward = ahead < back || ahead == back && tie;
            let corner = here - at * stride;
            let mut coordinate = at;
            for _ in 0..ahead.min(back) {
                let way = 2 * dimension + u32::from(!forward);
                each(2 * self.hosts + (corner + coordinate * stride) * WAYS + way);
                let step = if forward { 1 } else { whole - 1 };
                coordinate = (coordinate + step) % size;
            }
            here = corner + to * stride;
            stride *= whole;
        }
        debug_assert_eq!(here, target, "every dimension was crossed");
    }

    /// Name of a link.
    #[must_use]
    pub const fn link_name(&self, link: u32) -> LinkName<'_> {
        LinkName { topology: self, link }
    }
}

impl FatTree {
    fn between(&self, [from, to]: [u32; 2], hash: u64, each: &mut impl FnMut(u32)) {
        if from == to {
            return;
        }
        let half = self.half;
        let (here, there) = (from / half, to / half);
        let aggregation = one_of(self.up, hash);
        each(self.edge(from, aggregation)[0]);
        if here != there {
            let core = one_of(half, hash / NonZeroU64::from(self.up));
            each(self.core(here, aggregation, core)[0]);
            each(self.core(there, aggregation, core)[1]);
        }
        each(self.edge(to, aggregation)[1]);
    }
}

/// Dimensions of a dragonfly, and the first link: those within groups come before those between
/// groups.
struct Dragonfly {
    groups: NonZeroU32,
    routers: NonZeroU32,
    first: u32,
}

impl Dragonfly {
    /// Router of `group` with the link to `other`.
    fn gateway(&self, group: u32, other: u32) -> u32 {
        let port = (other + self.groups.get() - group - 1) % self.groups;
        // Ports of a router: its share of the links to the other groups.
        let ports = (self.groups.get() - 1).div_ceil(self.routers.get());
        group * self.routers.get() + port.checked_div(ports).unwrap_or(0)
    }

    fn local(&self, from: u32, to: u32, each: &mut impl FnMut(u32)) {
        if from != to {
            each(self.first + from * self.routers.get() + to % self.routers);
        }
    }

    fn between(&self, [from, to]: [u32; 2], each: &mut impl FnMut(u32)) {
        let (here, there) = (from / self.routers, to / self.routers);
        if here == there {
            return self.local(from, to, each);
        }
        let (leave, enter) = (self.gateway(here, there), self.gateway(there, here));
        self.local(from, leave, each);
        let (groups, routers) = (self.groups.get(), self.routers.get());
        each(self.first + groups * routers * routers + here * groups + there);
        self.local(enter, to, each);
    }
}

/// Formats a link as the two ends that it joins.
#[derive(Clone, Copy, Debug)]
pub struct LinkName<'t> {
    topology: &'t Topology,
    link: u32,
}

impl fmt::Display for LinkName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Topology { shape, hosts, .. } = *self.topology;
        let (link, first) = (self.link, 2 * hosts);
        if link < hosts {
            return write!(f, "host {link} out");
        }
        if link < first {
            return write!(f, "host {} in", link - hosts);
        }
        let inner = link - first;
        match shape {
            Shape::Star => write!(f, "link {link}"),
            Shape::Tree { leaves, .. } if inner < leaves => write!(f, "leaf {inner} out"),
            Shape::Tree { leaves, .. } => write!(f, "leaf {} in", inner - leaves),
            Shape::FatTree { half, up } => {
                let links = hosts / half * up.get();
                let level = inner.checked_div(links).unwrap_or(0);
                let at = inner - level * links;
                let (edge, port) = (at / up, at % up);
                let aggregation = edge / half * up.get() + port;
                let (switch, core) = (at / half, at / half % up * half.get() + at % half);
                match level {
                    0 => write!(f, "edge {edge} to aggregation {aggregation}"),
                    1 => write!(f, "aggregation {aggregation} to edge {edge}"),
                    2 => write!(f, "aggregation {switch} to core {core}"),
                    _ => write!(f, "core {core} to aggregation {switch}"),
                }
            }
            Shape::Torus { .. } => {
                let (router, way) = (inner / WAYS, inner % WAYS);
                let sign = if way % 2 == 0 { '+' } else { '-' };
                write!(f, "router {router} dimension {} {sign}", way / 2)
            }
            Shape::Dragonfly { groups, routers, .. } => {
                let locals = groups.get() * routers.get() * routers.get();
                if inner < locals {
                    let (from, to) = (inner / routers, inner % routers);
                    return write!(f, "router {from} to {}", from - from % routers + to);
                }
                let global = inner - locals;
                write!(f, "group {} to {}", global / groups, global % groups)
            }
            Shape::Rail { leaves, .. } => match link.checked_sub(2 * first) {
                None if link < 3 * hosts => write!(f, "host {inner} to its node"),
                None => write!(f, "host {} from its node", inner - hosts),
                Some(leaf) if leaf < leaves => write!(f, "rail leaf {leaf} out"),
                Some(leaf) => write!(f, "rail leaf {} in", leaf - leaves),
            },
        }
    }
}
