//! Networks between ranks: where ranks are, memory, and which links were busy.

mod attributes;
mod dot;
mod graph;
mod places;

use std::io;
use std::path::{Path, PathBuf};

use loggap_core::random::Random;
use loggap_core::sim::network::{
    Fabric, Flow, Flows, FlowsError, Hop, Link, NetworkMemory, NetworkRequirements, Share,
    Topology, TopologyError, Usage,
};
use loggap_core::sim::{Entry, SimError};

pub use self::graph::{DotError, GraphError, GraphTopology};
use self::places::read;
pub use self::places::{RankPlace, read_places};
use super::{Needs, RunError};
use crate::machine::environment::memory_entry;
use crate::sys::pages::Pages;

/// The most steps of time in which links are watched, and bytes for that.
const STEPS: usize = 256;
const WATCH_BYTES: usize = 64 << 20;
/// Links that are named after a run.
const BUSIEST: usize = 24;

/// Hosts and links, before it is known for how many ranks.
#[derive(Clone, Debug)]
pub enum TopologyPlan {
    /// As [`Topology::parse`] reads it.
    Named(String),
    /// From a file of this name.
    File(PathBuf, GraphTopology),
}

impl TopologyPlan {
    /// Ends of names of files with graphs.
    const GRAPHS: [&str; 2] = ["dot", "gv"];

    /// Whether a topology of that name is in a file.
    #[must_use]
    pub fn is_file(name: &Path) -> bool {
        let end = name.extension();
        end.is_some_and(|end| Self::GRAPHS.iter().any(|graph| end == *graph))
    }

    /// Whether there are links between switches, for some number of ranks.
    #[must_use]
    pub fn has_inner_links(&self) -> bool {
        match self {
            Self::Named(name) => name != "star",
            Self::File(_, graph) => graph.has_inner_links(),
        }
    }

    /// The topology of that name, or in that file where the name ends in `.dot` or
    /// `.gv`.
    ///
    /// # Errors
    ///
    /// [`NetworkError`] where there is a file and no topology in it.
    pub fn new(name: &str) -> Result<Self, NetworkError> {
        let path = PathBuf::from(name);
        if !Self::is_file(&path) {
            return Ok(Self::Named(name.to_owned()));
        }
        let text = read(&path)?;
        let graph = GraphTopology::parse(&text)
            .map_err(|error| NetworkError::Graph(path.clone(), error))?;
        Ok(Self::File(path, graph))
    }
}

/// Hosts and links.
#[derive(Clone, Debug)]
pub enum Wiring {
    /// From a generator.
    Generated(Topology),
    /// From a file.
    Graph(GraphTopology),
}

impl Wiring {
    /// What a link joins.
    #[must_use]
    pub fn link_name(&self, link: u32) -> String {
        match self {
            Self::Generated(topology) => topology.link_name(link).to_string(),
            Self::Graph(graph) => graph.link_name(link),
        }
    }
}

impl Fabric for Wiring {
    fn hosts(&self) -> u32 {
        match self {
            Self::Generated(topology) => topology.hosts(),
            Self::Graph(graph) => graph.hosts(),
        }
    }

    fn links(&self) -> u32 {
        match self {
            Self::Generated(topology) => topology.links(),
            Self::Graph(graph) => graph.links(),
        }
    }

    fn capacity(&self, link: u32) -> f64 {
        match self {
            Self::Generated(topology) => topology.capacity(link),
            Self::Graph(graph) => graph.capacity(link),
        }
    }

    fn longest_route(&self) -> u32 {
        match self {
            Self::Generated(topology) => topology.longest_route(),
            Self::Graph(graph) => graph.longest_route(),
        }
    }

    #[inline]
    fn route(&self, source: u32, target: u32, seed: u64, each: impl FnMut(u32)) {
        match self {
            Self::Generated(topology) => topology.route(source, target, seed, each),
            Self::Graph(graph) => graph.route(source, target, seed, each),
        }
    }

    #[inline]
    fn first_link(&self, source: u32, target: u32, seed: u64) -> Option<u32> {
        match self {
            Self::Generated(topology) => Fabric::first_link(topology, source, target, seed),
            Self::Graph(graph) => graph.first_link(source, target, seed),
        }
    }
}

/// Which rank is on which host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Placement {
    /// Each rank on the host of its number.
    Block,
    /// One rank after the other on hosts of different first switches.
    RoundRobin,
    /// Hosts in random order, by the seed.
    Random,
    /// As a file says, which has this name.
    Hosts(PathBuf, Vec<u32>),
}

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// There is no such topology.
    #[error("topology '{0}': {reason}", reason = reason(.1))]
    Topology(String, TopologyError),
    /// What is in a file is no topology.
    #[error("{path}: {1}", path = .0.display())]
    Graph(PathBuf, GraphError),
    /// A file cannot be read.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// The file is longer than this many bytes.
    #[error("{path}: longer than {1} bytes, the most that are read", path = .0.display())]
    TooLong(PathBuf, u64),
    /// A word is no host, or no node.
    #[error(
        "{path}: line {line}: '{word}' is no {what}; expected the {what} of each rank, as numbers from 0 on",
        path = .path.display()
    )]
    Word {
        /// The file.
        path: PathBuf,
        /// The line, from 1 on.
        line: usize,
        /// The word.
        word: String,
        /// What was expected.
        what: RankPlace,
    },
    /// The file has hosts for fewer ranks than there are.
    #[error("{path}: hosts for {1} of {2} ranks", path = .0.display())]
    TooFew(PathBuf, usize, u32),
    /// The file names a host that the topology does not have.
    #[error("{path}: rank {1} is on host {2} of {3}, counted from 0", path = .0.display())]
    Host(PathBuf, u32, u32, u32),
    /// The core refuses it.
    #[error(transparent)]
    Flows(#[from] FlowsError),
    /// The kernel has no more memory.
    #[error("there is no memory for the network: {0}")]
    Pages(io::Error),
    /// The system has not as much, which it might notice too late.
    #[error(
        "the network takes {needed} bytes of memory, and {available} are available; take a smaller topology"
    )]
    TooLarge {
        /// What it takes, in bytes.
        needed: u64,
        /// What the system can give, in bytes.
        available: u64,
    },
}

/// Why there is no such topology; here there are also files.
fn reason(error: &TopologyError) -> String {
    match error {
        TopologyError::Unknown => "expected star, tree:HOSTS[:TAPER], fat-tree:PORTS[:TAPER], \
            torus:AxBxC, dragonfly:GROUPS:ROUTERS:HOSTS, rail:HOSTS:NODES[:TAPER], or a file with a \
            graph, FILE.dot or FILE.gv"
            .to_owned(),
        other => other.to_string(),
    }
}

impl Placement {
    /// Reads the host of each rank, see [`read_places`].
    ///
    /// # Errors
    ///
    /// [`NetworkError`] names the file and the line.
    pub fn read(path: &Path) -> Result<Self, NetworkError> {
        Ok(Self::Hosts(path.to_owned(), read_places(path, RankPlace::Host)?))
    }

    /// The host of each of so many ranks; empty for each on its own.
    fn hosts(&self, ranks: u32, topology: &Wiring, seed: u64) -> Result<Vec<u32>, NetworkError> {
        match self {
            Self::Block => Ok(Vec::new()),
            Self::RoundRobin => match topology {
                Wiring::Generated(topology) => {
                    let together = topology.hosts_together();
                    let switches = (topology.hosts() / together).max(1);
                    let host = |rank: u32| rank % switches * together + rank / switches;
                    Ok((0..ranks).map(host).collect())
                }
                Wiring::Graph(graph) => {
                    let mut dealt = graph.dealt();
                    dealt.truncate(ranks as usize);
                    Ok(dealt)
                }
            },
            Self::Random => {
                let mut hosts: Vec<u32> = (0..topology.hosts()).collect();
                let mut random = Random::new(seed);
                for at in (1..hosts.len()).rev() {
                    let other = random.below(at as u64 + 1);
                    hosts.swap(at, usize::try_from(other).unwrap_or(at));
                }
                hosts.truncate(ranks as usize);
                Ok(hosts)
            }
            Self::Hosts(path, hosts) => {
                let some = hosts.get(..ranks as usize);
                let some =
                    some.ok_or_else(|| NetworkError::TooFew(path.clone(), hosts.len(), ranks))?;
                let outside = (0..).zip(some).find(|(_, host)| **host >= topology.hosts());
                if let Some((rank, &host)) = outside {
                    return Err(NetworkError::Host(path.clone(), rank, host, topology.hosts()));
                }
                Ok(some.to_vec())
            }
        }
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Block => "block".to_owned(),
            Self::RoundRobin => "round-robin".to_owned(),
            Self::Random => "random".to_owned(),
            Self::Hosts(path, _) => path.display().to_string(),
        }
    }
}

/// A network, before it is known for how many ranks.
#[derive(Clone, Debug)]
pub struct NetworkPlan {
    /// Hosts and links.
    pub topology: TopologyPlan,
    /// How much wider than the topology says links between switches are.
    pub link_capacity: f64,
    /// Which rank is on which host.
    pub placement: Placement,
    /// Chooses among equal routes, and places ranks at random.
    pub seed: u64,
    /// Whether links are watched over time.
    pub watched: bool,
}

impl NetworkPlan {
    /// The same without an eye on links.
    #[must_use]
    pub fn unwatched(&self) -> Self {
        Self { watched: false, ..self.clone() }
    }

    /// The topology for so many ranks of so many interfaces.
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
        // A file of hosts may place several ranks on one.
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

    /// Memory and places for so many ranks, interfaces of a rank, and
    /// messages under way at a time.
    ///
    /// # Errors
    ///
    /// [`NetworkError`].
    pub fn place(
        &self,
        (ranks, interfaces): (u32, usize),
        messages: usize,
    ) -> Result<PlacedNetwork, NetworkError> {
        let topology = self.topology(ranks, interfaces)?;
        let needs = NetworkRequirements::new(&topology, messages);
        let steps = self.steps(&topology);
        let needed = self.bytes(ranks, messages);
        if let Some(available) =
            memory_entry("MemAvailable").filter(|available| needed > *available)
        {
            return Err(NetworkError::TooLarge { needed, available });
        }
        Ok(PlacedNetwork {
            hosts: self.placement.hosts(ranks, &topology, self.seed)?,
            topology,
            ranks,
            seed: self.seed,
            messages,
            links: Pages::zeroed(needs.links).map_err(NetworkError::Pages)?,
            shares: Pages::zeroed(needs.links).map_err(NetworkError::Pages)?,
            relieved: Pages::zeroed(needs.links).map_err(NetworkError::Pages)?,
            hops: Pages::zeroed(needs.hops).map_err(NetworkError::Pages)?,
            flows: Pages::zeroed(messages).map_err(NetworkError::Pages)?,
            ends: Pages::zeroed(messages).map_err(NetworkError::Pages)?,
            ends_in_order: Pages::zeroed(needs.in_order).map_err(NetworkError::Pages)?,
            arrivals_in_order: Pages::zeroed(needs.in_order).map_err(NetworkError::Pages)?,
            affected: Pages::zeroed(messages).map_err(NetworkError::Pages)?,
            arrivals: Pages::zeroed(messages).map_err(NetworkError::Pages)?,
            steps,
            carried: Pages::zeroed(steps * needs.links).map_err(NetworkError::Pages)?,
        })
    }

    /// Steps of time in which each link is watched.
    fn steps(&self, topology: &Wiring) -> usize {
        let row = (topology.links() as usize).saturating_mul(size_of::<f32>());
        if self.watched { (WATCH_BYTES / row.max(1)).clamp(2, STEPS) } else { 0 }
    }

    /// Bytes that it takes; saturating.
    #[must_use]
    pub fn bytes(&self, ranks: u32, messages: usize) -> u64 {
        let Ok(topology) = self.topology(ranks, 1) else { return 0 };
        let watched = self.steps(&topology).saturating_mul(topology.links() as usize);
        let watched = watched.saturating_mul(size_of::<f32>()) as u64;
        NetworkRequirements::new(&topology, messages)
            .bytes()
            .saturating_add(watched)
            .saturating_add(u64::from(ranks) * size_of::<u32>() as u64)
    }
}

/// Messages under way at a time that there is memory for, in multiples of what is
/// usual; no more than operations.
pub(super) fn messages(needs: &Needs, times: usize) -> usize {
    let ops = usize::try_from(needs.ops).unwrap_or(usize::MAX);
    usual_messages(needs.ranks as usize).saturating_mul(times).min(ops.max(1))
}

/// Messages under way at a time that are usual for so many ranks.
pub(super) fn usual_messages(ranks: usize) -> usize {
    const EACH_RANK: usize = 16;
    const LEAST: usize = 1 << 12;
    ranks.saturating_mul(EACH_RANK).max(LEAST)
}

/// How many times as much memory for messages is taken where it was too little.
pub(super) const MORE_MESSAGES: usize = 8;

/// Runs with memory for so many `times` the usual number of messages; anew with more
/// where there are more.
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

/// A network of its size, and its memory.
#[derive(Debug)]
pub struct PlacedNetwork {
    topology: Wiring,
    hosts: Vec<u32>,
    ranks: u32,
    seed: u64,
    messages: usize,
    links: Pages<Link>,
    shares: Pages<Share>,
    relieved: Pages<u32>,
    hops: Pages<Hop>,
    flows: Pages<Flow>,
    ends: Pages<Entry>,
    ends_in_order: Pages<Entry>,
    arrivals_in_order: Pages<Entry>,
    affected: Pages<u32>,
    arrivals: Pages<Entry>,
    steps: usize,
    carried: Pages<f32>,
}

impl PlacedNetwork {
    /// The network.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Flows`].
    pub fn lend(&mut self) -> Result<Flows<'_, &Wiring>, NetworkError> {
        let memory = NetworkMemory {
            links: &mut self.links,
            shares: &mut self.shares,
            relieved: &mut self.relieved,
            hops: &mut self.hops,
            flows: &mut self.flows,
            ends: &mut self.ends,
            ends_in_order: &mut self.ends_in_order,
            arrivals_in_order: &mut self.arrivals_in_order,
            affected: &mut self.affected,
            arrivals: &mut self.arrivals,
        };
        let ranks = (self.ranks, &*self.hosts);
        let flows = Flows::new(&self.topology, ranks, (self.seed, self.messages), memory)?;
        Ok(match Usage::new(&mut self.carried, self.steps) {
            Some(usage) => flows.with_usage(usage),
            None => flows,
        })
    }
}

/// What became of a network's links.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkUse {
    /// Hosts of the topology.
    pub hosts: u32,
    /// Links of the topology.
    pub links: u32,
    /// Length of a step of time, in ps, where links were watched.
    pub step: Option<u64>,
    /// The links that were busy for the greatest share of the run, in
    /// descending order.
    pub busiest: Vec<BusyLink>,
    /// Links that are not listed and were as busy as the last one listed.
    pub as_busy: usize,
}

/// A link, and how busy it was.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BusyLink {
    /// What it joins.
    pub name: String,
    /// How wide it is, in links of a host.
    pub capacity: f64,
    /// The share of the run that it needed for what it carried.
    pub utilization: f64,
    /// The same of each step of time, where links were watched.
    pub over_time: Vec<f64>,
}

impl NetworkUse {
    /// Of a network after a run that took `makespan` ps.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "shares of few digits")]
    pub fn of(flows: &Flows<'_, &Wiring>, makespan: u64) -> Self {
        let topology = flows.fabric();
        let load = |(link, carried): (u32, f64)| (carried / topology.capacity(link), link);
        let mut loads: Vec<(f64, u32)> =
            (0..).zip(flows.carried()).map(load).filter(|(load, _)| *load > 0.0).collect();
        loads.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let last = loads.get(BUSIEST - 1).map(|last| last.0);
        let as_busy = |(load, _): &&(f64, u32)| last.is_some_and(|last| *load >= last);
        let as_busy = loads.iter().skip(BUSIEST).take_while(as_busy).count();
        loads.truncate(BUSIEST);
        let usage = flows.usage();
        let busy = |(load, link): (f64, u32)| {
            let capacity = topology.capacity(link);
            let steps = |usage: &Usage<'_>| {
                let whole = capacity * usage.step() as f64;
                // Summed in single precision: a full step may be a little more.
                let share = |carried: &f32| (f64::from(*carried) / whole).min(1.0);
                let row = usage.of_link(link).iter().map(share);
                let steps = makespan.div_ceil(usage.step().max(1));
                row.take(usize::try_from(steps).unwrap_or(usize::MAX)).collect()
            };
            BusyLink {
                name: topology.link_name(link),
                capacity,
                utilization: load / makespan.max(1) as f64,
                over_time: usage.map(steps).unwrap_or_default(),
            }
        };
        Self {
            hosts: topology.hosts(),
            links: topology.links(),
            step: usage.map(Usage::step),
            busiest: loads.into_iter().map(busy).collect(),
            as_busy,
        }
    }
}
