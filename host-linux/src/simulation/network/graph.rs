//! Topologies from files: any hosts, switches and links.
//!
//! Nodes whose names begin with `H` are hosts, numbered as they appear; all others
//! are switches. Each edge is a link that goes one way, as wide as its attribute
//! `capacity` says, in links of a host. Routes are minimal; where several are, a
//! hash of the pair chooses at each switch. Where an edge has a `comment`, routes
//! are given, as in the files of LogGOPSim's network: a comment lists the hosts to
//! which messages leave over the edge, `*` are all others, and a node with one
//! edge out needs none.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use loggap_core::random::Random;
use loggap_core::sim::network::Fabric;

use super::attributes::is_known;
pub use super::dot::DotError;
use super::dot::{self, Edge, Graph};

/// What the author of a graph may not have known.
const ENDS: &str =
    "; nodes whose names begin with H are hosts, and hosts do not forward messages of others";
/// No host, no link, no way.
const NONE: u32 = u32::MAX;
/// The most entries of the table of routes, two or four bytes each: 1 GiB at most.
const MOST_ROUTES: usize = 1 << 28;

/// A topology from a file; copies share what is in it.
#[derive(Clone, Debug)]
pub struct GraphTopology {
    graph: Arc<Wired>,
    host_capacity: f64,
    link_capacity: f64,
}

/// Nodes, links and routes.
#[derive(Debug)]
struct Wired {
    /// Links that lead to or from a host; the first ones.
    host_links: u32,
    links: Vec<GraphLink>,
    /// Of each host its node, ascending.
    hosts: Vec<u32>,
    names: Vec<String>,
    /// Of each node the first of the links that leave it, in `out`, and the end.
    firsts: Vec<u32>,
    out: Vec<u32>,
    ways: Ways,
    longest: u32,
    /// Attributes that mean nothing here and are not for drawing.
    unknown: Vec<String>,
}

/// A link of a topology from a file.
#[derive(Clone, Copy, Debug, PartialEq)]
struct GraphLink {
    from: u32,
    to: u32,
    capacity: f64,
}

/// How a message gets on, for each host that it goes to and each node.
#[derive(Clone, Debug)]
enum Ways {
    /// Links to go.
    Minimal(Vec<u16>),
    /// The link.
    Given(Vec<u32>),
}

/// Why a file is no topology.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum GraphError {
    /// It cannot be read.
    #[error(transparent)]
    Dot(#[from] DotError),
    /// No node is a host.
    #[error("no node is a host; their names begin with H")]
    NoHost,
    /// An edge from a node to itself.
    #[error("line {line}: an edge from {node} to itself")]
    Loop {
        /// Its line.
        line: usize,
        /// The node.
        node: String,
    },
    /// A capacity that is none.
    #[error("line {line}: capacity '{text}' is no finite number above 0, in links of a host")]
    Capacity {
        /// The line of its edge.
        line: usize,
        /// What it says.
        text: String,
    },
    /// A comment names what is no host.
    #[error("line {line}: '{name}' is no host of the graph")]
    Destination {
        /// The line of its edge.
        line: usize,
        /// The name.
        name: String,
    },
    /// Two edges of a node lead to one host, or to all others.
    #[error("line {line}: another edge of {node} leads to {destination} already")]
    Twice {
        /// The line of the second.
        line: usize,
        /// The node.
        node: String,
        /// The host, or `*`.
        destination: String,
    },
    /// There is no way, or it goes round in cycles.
    #[error("there is no way from {from} to {to}{}", if *.cycle { ": messages go round a cycle" } else { ENDS })]
    NoWay {
        /// The host that sends.
        from: String,
        /// The one that receives.
        to: String,
        /// Whether links lead on for ever.
        cycle: bool,
    },
    /// A host stands between others.
    #[error("messages from {from} to {to} would pass the host {through}; hosts are ends")]
    Through {
        /// The host that sends.
        from: String,
        /// The one that receives.
        to: String,
        /// The one between.
        through: String,
    },
    /// Too many nodes times hosts.
    #[error("{nodes} nodes and {hosts} hosts need a table of more than 2^28 routes")]
    TooLarge {
        /// Nodes, hosts and switches.
        nodes: usize,
        /// Hosts.
        hosts: usize,
    },
}

impl GraphTopology {
    /// Reads a graph.
    ///
    /// # Errors
    ///
    /// [`GraphError`].
    pub fn parse(text: &str) -> Result<Self, GraphError> {
        let Graph { nodes, mut edges, attributes } = dot::parse(text)?;
        let unknown = attributes.into_iter().filter(|name| !is_known(name)).collect();
        let is_host: Vec<bool> = nodes.iter().map(|name| name.starts_with('H')).collect();
        let hosts: Vec<u32> =
            (0..).zip(&is_host).filter(|(_, host)| **host).map(|(at, _)| at).collect();
        if hosts.is_empty() {
            return Err(GraphError::NoHost);
        }
        if nodes.len().saturating_mul(hosts.len()) > MOST_ROUTES {
            return Err(GraphError::TooLarge { nodes: nodes.len(), hosts: hosts.len() });
        }
        let of_host = |node: u32| is_host.get(node as usize).copied().unwrap_or(false);
        // Links of hosts come first, otherwise as they are written.
        edges.sort_by_key(|edge| !(of_host(edge.from) || of_host(edge.to)));
        let links: Result<Vec<_>, _> = edges.iter().map(|edge| link(edge, &nodes)).collect();
        let links = links?;
        let host_links = links.iter().take_while(|link| of_host(link.from) || of_host(link.to));
        let host_links = number(host_links.count());
        let mut out: Vec<u32> = (0..number(links.len())).collect();
        let from = |link: &u32| links.get(*link as usize).map_or(NONE, |link| link.from);
        let host = |link: &u32| {
            let to = links.get(*link as usize).map_or(NONE, |link| link.to);
            if of_host(to) { to } else { NONE }
        };
        // Those to hosts by host, then the others.
        out.sort_by_key(|link| (from(link), host(link)));
        let mut firsts = vec![0; nodes.len() + 1];
        for (node, first) in (0u32..).zip(&mut firsts) {
            *first = number(out.partition_point(|link| from(link) < node));
        }
        let mut graph = Wired {
            host_links,
            links,
            hosts,
            names: nodes,
            firsts,
            out,
            ways: Ways::Minimal(Vec::new()),
            longest: 0,
            unknown,
        };
        let given = edges.iter().any(|edge| comment(edge).is_some());
        graph.ways = if given { graph.given(&edges)? } else { graph.minimal() };
        graph.longest = graph.check()?;
        Ok(Self { graph: Arc::new(graph), host_capacity: 1.0, link_capacity: 1.0 })
    }

    /// The same with hosts that have `hosts` times the pace of one interface and
    /// links between switches `links` times as wide.
    #[must_use]
    pub fn with_capacities(&self, hosts: f64, links: f64) -> Self {
        Self { host_capacity: hosts, link_capacity: links, ..self.clone() }
    }

    /// Attributes that mean nothing here and are not for drawing: typing errors,
    /// perhaps.
    #[must_use]
    pub fn unknown_attributes(&self) -> &[String] {
        &self.graph.unknown
    }

    /// Whether there are links between switches.
    #[must_use]
    pub fn has_inner_links(&self) -> bool {
        (self.graph.host_links as usize) < self.graph.links.len()
    }

    /// What a link joins.
    #[must_use]
    pub fn link_name(&self, link: u32) -> String {
        let GraphLink { from, to, .. } = self.graph.link(link);
        format!("{} to {}", self.graph.name(from), self.graph.name(to))
    }

    /// Hosts, one after the other of different first switches.
    #[must_use]
    pub fn dealt(&self) -> Vec<u32> {
        let mut groups: BTreeMap<u32, VecDeque<u32>> = BTreeMap::new();
        for (host, &node) in (0..).zip(&self.graph.hosts) {
            let first = self.graph.leaving(node).first();
            let switch = first.map_or(NONE, |&link| self.graph.link(link).to);
            groups.entry(switch).or_default().push_back(host);
        }
        let mut dealt = Vec::with_capacity(self.graph.hosts.len());
        while dealt.len() < self.graph.hosts.len() {
            dealt.extend(groups.values_mut().filter_map(VecDeque::pop_front));
        }
        dealt
    }
}

impl Wired {
    fn name(&self, node: u32) -> &str {
        self.names.get(node as usize).map_or("?", String::as_str)
    }

    /// Links that leave a node.
    fn leaving(&self, node: u32) -> &[u32] {
        let at = |node: usize| self.firsts.get(node).copied().unwrap_or_default() as usize;
        self.out.get(at(node as usize)..at(node as usize + 1)).unwrap_or_default()
    }

    fn link(&self, link: u32) -> GraphLink {
        self.links.get(link as usize).copied().unwrap_or(GraphLink {
            from: NONE,
            to: NONE,
            capacity: 1.0,
        })
    }

    /// Links to go from each node to each host; breadth first, backwards.
    fn minimal(&self) -> Ways {
        let nodes = self.names.len();
        let mut backwards = vec![Vec::new(); nodes];
        for link in &self.links {
            if let Some(sources) = backwards.get_mut(link.to as usize) {
                sources.push(link.from);
            }
        }
        let is_host = |node: u32| self.hosts.binary_search(&node).is_ok();
        let mut all = Vec::with_capacity(nodes * self.hosts.len());
        for &host in &self.hosts {
            let mut far = vec![u16::MAX; nodes];
            let mut next = VecDeque::from([host]);
            if let Some(place) = far.get_mut(host as usize) {
                *place = 0;
            }
            while let Some(node) = next.pop_front() {
                // Nothing passes a host.
                if is_host(node) && node != host {
                    continue;
                }
                let step = far.get(node as usize).map_or(u16::MAX, |far| far.saturating_add(1));
                for &source in backwards.get(node as usize).into_iter().flatten() {
                    if let Some(place) = far.get_mut(source as usize)
                        && *place > step
                    {
                        *place = step;
                        next.push_back(source);
                    }
                }
            }
            all.extend(far);
        }
        Ways::Minimal(all)
    }

    /// The link from each node to each host, by the comments.
    fn given(&self, edges: &[Edge]) -> Result<Ways, GraphError> {
        let nodes = self.names.len();
        let mut all = vec![NONE; nodes * self.hosts.len()];
        let hosts = self.hosts.iter().zip(0usize..);
        let numbers: HashMap<&str, usize> =
            hosts.map(|(&node, at)| (self.name(node), at)).collect();
        for node in 0..number(nodes) {
            let mut other = NONE;
            let leaving = self.leaving(node);
            for &link in leaving {
                let Some(edge) = edges.get(link as usize) else { continue };
                let twice = |destination: &str| GraphError::Twice {
                    line: edge.line,
                    node: self.name(node).to_owned(),
                    destination: destination.to_owned(),
                };
                // The only one takes everything.
                let comment =
                    if leaving.len() == 1 { "*" } else { comment(edge).unwrap_or_default() };
                for word in comment.split([',', ' ']).filter(|word| !word.is_empty()) {
                    if word == "*" {
                        if other != NONE {
                            return Err(twice(word));
                        }
                        other = link;
                        continue;
                    }
                    let host = numbers.get(word).ok_or_else(|| GraphError::Destination {
                        line: edge.line,
                        name: word.to_owned(),
                    })?;
                    match all.get_mut(host * nodes + node as usize) {
                        Some(place) if *place == NONE => *place = link,
                        _ => return Err(twice(word)),
                    }
                }
            }
            for place in all.iter_mut().skip(node as usize).step_by(nodes) {
                if *place == NONE {
                    *place = other;
                }
            }
        }
        Ok(Ways::Given(all))
    }

    /// The links that leave a node for the host `target`; those for switches where it
    /// is none.
    fn ahead(&self, node: u32, target: u32) -> &[u32] {
        let leaving = self.leaving(node);
        let host = |link: &u32| {
            let to = self.link(*link).to;
            if self.hosts.binary_search(&to).is_ok() { to } else { NONE }
        };
        let target = self.hosts.get(target as usize).copied().unwrap_or(NONE);
        let first = leaving.partition_point(|link| host(link) < target);
        let end = leaving.partition_point(|link| host(link) <= target);
        leaving.get(first..end).unwrap_or_default()
    }

    /// Whether every host reaches every other; the most links of a route.
    fn check(&self) -> Result<u32, GraphError> {
        let mut longest = 0;
        for (target, &to) in (0u32..).zip(&self.hosts) {
            // Links to go from each node on the way to it, where that is known.
            let mut far = vec![NONE; self.names.len()];
            if let Some(place) = far.get_mut(to as usize) {
                *place = 0;
            }
            for &from in &self.hosts {
                longest = longest.max(self.walk([from, to], target, &mut far)?);
            }
        }
        Ok(longest)
    }

    /// Links from one host to another; notes what is found on the way.
    fn walk(&self, [from, to]: [u32; 2], target: u32, far: &mut [u32]) -> Result<u32, GraphError> {
        let ends = || [from, to].map(|node| self.name(node).to_owned());
        let no_way = |cycle| {
            let [from, to] = ends();
            GraphError::NoWay { from, to, cycle }
        };
        let known = |far: &[u32], node: u32| far.get(node as usize).copied().unwrap_or(NONE);
        let (mut node, mut passed) = (from, Vec::new());
        while known(far, node) == NONE {
            passed.push(node);
            if passed.len() > self.names.len() {
                return Err(no_way(true));
            }
            let link = self.next(target, node, 0).ok_or_else(|| no_way(false))?;
            node = self.link(link).to;
            if node != to && self.hosts.binary_search(&node).is_ok() {
                let [from, to] = ends();
                return Err(GraphError::Through { from, to, through: self.name(node).to_owned() });
            }
        }
        let mut steps = known(far, node);
        for node in passed.into_iter().rev() {
            steps += 1;
            if let Some(place) = far.get_mut(node as usize) {
                *place = steps;
            }
        }
        Ok(steps)
    }

    /// The link that a message for the host `target` takes next.
    fn next(&self, target: u32, node: u32, hash: u64) -> Option<u32> {
        let table = target as usize * self.names.len();
        match &self.ways {
            Ways::Given(links) => {
                links.get(table + node as usize).copied().filter(|link| *link != NONE)
            }
            Ways::Minimal(far) => {
                let far = |node: u32| far.get(table + node as usize).copied().unwrap_or(u16::MAX);
                let here = far(node).checked_sub(1).filter(|_| far(node) != u16::MAX)?;
                let leaving = self.ahead(node, if here == 0 { target } else { NONE });
                let on = |link: &&u32| far(self.link(**link).to) == here;
                let count = leaving.iter().filter(on).count() as u64;
                let chosen = usize::try_from(hash.checked_rem(count)?).ok()?;
                leaving.iter().filter(on).nth(chosen).copied()
            }
        }
    }
}

impl Fabric for GraphTopology {
    fn hosts(&self) -> u32 {
        number(self.graph.hosts.len())
    }

    fn links(&self) -> u32 {
        number(self.graph.links.len())
    }

    fn capacity(&self, link: u32) -> f64 {
        let of_host = link < self.graph.host_links;
        self.graph.link(link).capacity
            * if of_host { self.host_capacity } else { self.link_capacity }
    }

    fn longest_route(&self) -> u32 {
        self.graph.longest
    }

    fn route(&self, source: u32, target: u32, seed: u64, mut each: impl FnMut(u32)) {
        let graph = &*self.graph;
        let node = |host: u32| graph.hosts.get(host as usize).copied();
        let (Some(mut at), Some(to)) = (node(source), node(target)) else { return };
        let mut random = Random::stream(seed, u64::from(source) << 32 | u64::from(target));
        for _ in 0..graph.longest {
            if at == to {
                return;
            }
            let Some(link) = graph.next(target, at, random.draw()) else { return };
            each(link);
            at = graph.link(link).to;
        }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn comment(edge: &Edge) -> Option<&str> {
    let found = edge.attributes.iter().find(|(name, _)| name == "comment");
    found.map(|(_, value)| value.as_str())
}

fn link(edge: &Edge, nodes: &[String]) -> Result<GraphLink, GraphError> {
    let Edge { from, to, line, attributes } = edge;
    if from == to {
        let node = nodes.get(*from as usize).cloned().unwrap_or_default();
        return Err(GraphError::Loop { line: *line, node });
    }
    let given = attributes.iter().find(|(name, _)| name == "capacity");
    let capacity = given.map_or(Some(1.0), |(_, text)| {
        text.parse().ok().filter(|capacity: &f64| capacity.is_finite() && *capacity > 0.0)
    });
    let text = || given.map(|(_, text)| text.clone()).unwrap_or_default();
    let capacity = capacity.ok_or_else(|| GraphError::Capacity { line: *line, text: text() })?;
    Ok(GraphLink { from: *from, to: *to, capacity })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the links from one host to another.
    fn way(graph: &GraphTopology, from: u32, to: u32, seed: u64) -> Vec<String> {
        let mut names = Vec::new();
        graph.route(from, to, seed, |link| names.push(graph.link_name(link)));
        names
    }

    #[test]
    fn minimal_routes_are_shortest_and_equal_ones_are_all_taken() {
        let graph = GraphTopology::parse(
            "graph { H0 -- A; H1 -- B; A -- X -- B; A -- Y -- B; A -- P -- Q -- B [capacity=8] }",
        )
        .unwrap();
        assert_eq!((graph.hosts(), graph.links(), graph.longest_route()), (2, 18, 4));
        let ways: Vec<_> = (0..40).map(|seed| way(&graph, 0, 1, seed)).collect();
        let through = |middle: &str| {
            [
                "H0 to A".to_owned(),
                format!("A to {middle}"),
                format!("{middle} to B"),
                "B to H1".to_owned(),
            ]
        };
        for middle in ["X", "Y"] {
            assert!(ways.iter().any(|way| *way == through(middle)), "{middle}");
        }
        assert!(ways.iter().all(|way| *way == through("X") || *way == through("Y")));
        assert!(way(&graph, 1, 1, 0).is_empty());
        // Links of hosts come first.
        let wide = graph.with_capacities(2.0, 0.5);
        let capacities: Vec<f64> = (0..wide.links()).map(|link| wide.capacity(link)).collect();
        assert_eq!(capacities[..4], [2.0; 4]);
        assert!(capacities[4..].iter().all(|wide| [0.5, 4.0].contains(wide)));
        assert_eq!(graph.dealt(), [0, 1]);
    }

    #[test]
    fn comments_give_routes_that_need_not_be_shortest() {
        let graph = GraphTopology::parse(
            "digraph { H0 -> S [comment=\"x\"]; H1 -> T; H2 -> T; \
             S -> H0 [comment=\"H0\"]; S -> T [comment=\"H1\"]; S -> U [comment=\"*\"]; U -> T; \
             T -> H1 [comment=\"H1\"]; T -> H2 [comment=\"H2\"]; T -> S [comment=\"*\"]; }",
        )
        .unwrap();
        assert_eq!(way(&graph, 0, 1, 0), ["H0 to S", "S to T", "T to H1"]);
        assert_eq!(way(&graph, 0, 2, 7), ["H0 to S", "S to U", "U to T", "T to H2"]);
        assert_eq!(way(&graph, 2, 0, 0), ["H2 to T", "T to S", "S to H0"]);
        assert_eq!(graph.longest_route(), 4);
        assert_eq!(graph.dealt(), [0, 1, 2]);
    }

    #[test]
    fn what_makes_no_topology_is_named() {
        for (text, words) in [
            ("digraph { a -> b }", "no node is a host"),
            ("digraph { H0 -> H0 }", "to itself"),
            ("digraph {\n H0 -> S [capacity=0] }", "line 2: capacity '0'"),
            ("graph { H0 -- S; H1 -- T }", "no way from H1 to H0"),
            ("graph { H0 -- H1 -- H2 }", "no way from H2 to H0"),
            (
                "digraph { H0->S [comment=\"*\"]; H1->S; S->T [comment=\"H1\"]; S->H0 [comment=\"H0\"]; T->S }",
                "from H0 to H1: messages go round",
            ),
            (
                "digraph { H0->S; H1->S; S->H0 [comment=\"H0,H9\"]; S->H1 [comment=\"*\"] }",
                "'H9' is no host",
            ),
            (
                "digraph { H0->S; H1->S; S->H0 [comment=\"*\"]; S->H1 [comment=\"*\"] }",
                "leads to * already",
            ),
            ("digraph { H0->S; H1->S; S->H0 [comment=\"H0\"]; S->H1 }", "no way from H0 to H1"),
            ("digraph { H0->H1 [comment=\"*\"]; H1->H2; H2->H0 }", "would pass the host"),
        ] {
            let error = GraphTopology::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
