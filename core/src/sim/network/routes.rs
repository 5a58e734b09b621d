//! Routes: the links from one host to another, computed.
//!
//! Routes are minimal. Where there are several, a hash of source, target and a
//! seed chooses, so that all messages of a pair take the same one; a torus is
//! crossed dimension after dimension, the shorter way round.

use core::fmt;

use super::topology::{DIMENSIONS, Shape, Topology};
use crate::random::Random;

/// Links of a router of a torus to others: two a dimension.
const WAYS: u32 = 10;
const _: () = assert!(WAYS as usize == 2 * DIMENSIONS, "two a dimension");

/// Which of several equal routes a pair of hosts takes.
fn choice(source: u32, target: u32, seed: u64) -> u64 {
    Random::stream(seed, u64::from(source) << 32 | u64::from(target)).draw()
}

/// One of `count`, by a hash.
#[allow(clippy::cast_possible_truncation, reason = "less than the count")]
const fn one_of(count: u32, hash: u64) -> u32 {
    if count == 0 { 0 } else { (hash % count as u64) as u32 }
}

/// Switches of a fat tree, and where the links of each level begin.
struct FatTree {
    half: u32,
    first: u32,
    level: u32,
}

impl FatTree {
    /// From an edge switch to one of its pod's aggregations, and back.
    const fn edge(&self, edge: u32, aggregation: u32) -> [u32; 2] {
        let up = self.first + edge * self.half + aggregation;
        [up, up + self.level]
    }

    /// From an aggregation of a pod to one of its cores, and back.
    const fn core(&self, pod: u32, aggregation: u32, core: u32) -> [u32; 2] {
        let up = self.first + 2 * self.level + (pod * self.half + aggregation) * self.half + core;
        [up, up + self.level]
    }
}

impl Topology {
    /// Calls `each` with the links from `source` to `target`, in order; with
    /// none for a host and itself.
    pub fn route(&self, source: u32, target: u32, seed: u64, mut each: impl FnMut(u32)) {
        if source == target || source >= self.hosts || target >= self.hosts {
            return;
        }
        if let Shape::Rail { rails, .. } = self.shape
            && source / rails == target / rails
        {
            each(2 * self.hosts + source);
            each(3 * self.hosts + target);
            return;
        }
        each(source);
        self.between(source, target, seed, &mut each);
        each(self.hosts + target);
    }

    /// The links between the first and the last switch.
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
            Shape::FatTree { half } => {
                let tree = FatTree { half, first, level: self.hosts };
                tree.between([source / half, target / half], choice(source, target, seed), each);
            }
            Shape::Torus { sizes } => self.around(sizes, [source, target], seed, each),
            Shape::Dragonfly { groups, routers, each: hosts } => {
                let fly = Dragonfly { groups, routers, first };
                fly.between([source / hosts, target / hosts], each);
            }
            Shape::Rail { rails, nodes, leaves } => {
                let leaf = |host: u32| (host / rails / nodes) * rails + host % rails;
                let (from, to) = (leaf(source), leaf(target));
                if from != to {
                    each(2 * first + from);
                    each(2 * first + leaves + to);
                }
            }
        }
    }

    /// Dimension after dimension, the shorter way round.
    fn around(
        &self,
        sizes: [u32; DIMENSIONS],
        [source, target]: [u32; 2],
        seed: u64,
        each: &mut impl FnMut(u32),
    ) {
        let hash = choice(source, target, seed);
        let (mut here, mut stride) = (source, 1u32);
        for (dimension, size) in (0u32..).zip(sizes) {
            let at = here / stride % size;
            let to = target / stride % size;
            let ahead = (to + size - at) % size;
            let back = (size - ahead) % size;
            let tie = hash >> dimension & 1 == 0;
            let forward = ahead < back || ahead == back && tie;
            let corner = here - at * stride;
            let mut place = at;
            for _ in 0..ahead.min(back) {
                let way = 2 * dimension + u32::from(!forward);
                each(2 * self.hosts + (corner + place * stride) * WAYS + way);
                let step = if forward { 1 } else { size - 1 };
                place = (place + step) % size;
            }
            here = corner + to * stride;
            stride *= size;
        }
        debug_assert_eq!(here, target, "every dimension was crossed");
    }

    /// The most links of a route.
    #[must_use]
    pub fn longest_route(&self) -> u32 {
        2 + match self.shape {
            Shape::Star => 0,
            Shape::Tree { .. } | Shape::Rail { .. } => 2,
            Shape::FatTree { .. } => 4,
            Shape::Torus { sizes } => sizes.iter().map(|size| size / 2).sum(),
            Shape::Dragonfly { .. } => 3,
        }
    }

    /// A link's name.
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
        let aggregation = one_of(half, hash);
        each(self.edge(from, aggregation)[0]);
        if here != there {
            let core = one_of(half, hash / u64::from(half.max(1)));
            each(self.core(here, aggregation, core)[0]);
            each(self.core(there, aggregation, core)[1]);
        }
        each(self.edge(to, aggregation)[1]);
    }
}

/// Routers of a dragonfly, and where their links begin: those within groups,
/// then those between groups.
struct Dragonfly {
    groups: u32,
    routers: u32,
    first: u32,
}

impl Dragonfly {
    /// The router of `group` that has the link to `other`.
    const fn gateway(&self, group: u32, other: u32) -> u32 {
        let port = (other + self.groups - group - 1) % self.groups;
        let ports = (self.groups - 1).div_ceil(self.routers);
        group * self.routers + port / if ports == 0 { 1 } else { ports }
    }

    fn local(&self, from: u32, to: u32, each: &mut impl FnMut(u32)) {
        if from != to {
            each(self.first + from * self.routers + to % self.routers);
        }
    }

    fn between(&self, [from, to]: [u32; 2], each: &mut impl FnMut(u32)) {
        let (here, there) = (from / self.routers, to / self.routers);
        if here == there {
            return self.local(from, to, each);
        }
        let (leave, enter) = (self.gateway(here, there), self.gateway(there, here));
        self.local(from, leave, each);
        let locals = self.groups * self.routers * self.routers;
        each(self.first + locals + here * self.groups + there);
        self.local(enter, to, each);
    }
}

/// Names a link: what it joins.
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
            Shape::FatTree { half } => {
                let (level, at) = (inner / hosts, inner % hosts);
                let (switch, port) = (at / half, at % half);
                let pod = switch / half;
                match level {
                    0 => write!(f, "edge {switch} to aggregation {}", pod * half + port),
                    1 => write!(f, "aggregation {} to edge {switch}", pod * half + port),
                    2 => write!(f, "aggregation {switch} to core {}", switch % half * half + port),
                    _ => write!(f, "core {} to aggregation {switch}", switch % half * half + port),
                }
            }
            Shape::Torus { .. } => {
                let (router, way) = (inner / WAYS, inner % WAYS);
                let sign = if way % 2 == 0 { '+' } else { '-' };
                write!(f, "router {router} dimension {} {sign}", way / 2)
            }
            Shape::Dragonfly { groups, routers, .. } => {
                let locals = groups * routers * routers;
                if inner < locals {
                    let (from, to) = (inner / routers, inner % routers);
                    return write!(f, "router {from} to {}", from / routers * routers + to);
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
