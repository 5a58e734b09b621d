//! Topologies from files: arbitrary hosts, switches and links.
//!
//! Nodes whose names begin with `H` are hosts, numbered in the order of their appearance; all
//! others are switches. Each edge is a directed link; its attribute `capacity` is in units of a
//! host's link. Routes are minimal; among equal ones a hash of the pair of hosts chooses at each
//! switch. If any edge has a `comment`, routes are given explicitly, as in the files of LogGOPSim's
//! network: a comment lists the hosts that are reached over the edge, `*` means all others, and a
//! node with a single outgoing edge needs none.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use loggap_core::random::Random;
use loggap_core::sim::network::Fabric;

use super::attributes::is_known;
use super::dot::{self, Edge, Graph};
use super::error::GraphError;
use super::wired::{GraphLink, NONE, Ways, Wired, number};

/// Limit on the entries of the table of routes, two or four bytes each: 1 GiB at most.
const MOST_ROUTES: usize = 1 << 28;

/// Topology from a file; clones share the graph.
#[derive(Clone, Debug)]
pub struct GraphTopology {
    graph: Arc<Wired>,
    host_capacity: f64,
    link_capacity: f64,
}

impl GraphTopology {
    /// Parses a graph.
    ///
    /// # Errors
    ///
    /// [`GraphError`].
    pub fn parse(text: &str) -> Result<Self, GraphError> {
        Self::of(dot::parse(text)?)
    }

    fn of(graph: Graph) -> Result<Self, GraphError> {
        let Graph { nodes, mut edges, attributes } = graph;
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
        // Links of hosts come first; otherwise the order in the file is kept.
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
        // Order of the links of a node: those to hosts by host, then the others.
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
        let given = edges.iter().any(|edge| edge.attribute("comment").is_some());
        graph.ways = if given { graph.given(&edges)? } else { graph.minimal() };
        graph.longest = graph.check()?;
        Ok(Self { graph: Arc::new(graph), host_capacity: 1.0, link_capacity: 1.0 })
    }

    /// This topology with host links of `hosts` times the rate of one interface, and links between
    /// switches of `links` times their capacity.
    #[must_use]
    pub fn with_capacities(&self, hosts: f64, links: f64) -> Self {
        Self { host_capacity: hosts, link_capacity: links, ..self.clone() }
    }

    /// Attributes that are neither used here nor for drawing; they may be misspelt.
    #[must_use]
    pub fn unknown_attributes(&self) -> &[String] {
        &self.graph.unknown
    }

    /// True if there are links between switches.
    #[must_use]
    pub fn has_inner_links(&self) -> bool {
        (self.graph.host_links as usize) < self.graph.links.len()
    }

    /// Name of a link: the nodes that it connects.
    #[must_use]
    pub fn link_name(&self, link: u32) -> String {
        let GraphLink { from, to, .. } = self.graph.link(link);
        format!("{} to {}", self.graph.name(from), self.graph.name(to))
    }

    /// Hosts in an order in which consecutive ones have different first switches, as far as
    /// possible.
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

fn link(edge: &Edge, nodes: &[String]) -> Result<GraphLink, GraphError> {
    let Edge { from, to, line, .. } = edge;
    if from == to {
        let node = nodes.get(*from as usize).cloned().unwrap_or_default();
        return Err(GraphError::Loop { line: *line, node });
    }
    let given = edge.attribute("capacity");
    let capacity = given.map_or(Some(1.0), |text| {
        text.parse().ok().filter(|capacity: &f64| capacity.is_finite() && *capacity > 0.0)
    });
    let text = || given.unwrap_or_default().to_owned();
    let capacity = capacity.ok_or_else(|| GraphError::Capacity { line: *line, text: text() })?;
    Ok(GraphLink { from: *from, to: *to, capacity })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the links on the route between two hosts.
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
