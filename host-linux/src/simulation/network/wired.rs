//! Nodes, links and routes of a topology from a file.

use std::collections::{HashMap, VecDeque};

use super::dot::Edge;
use super::error::GraphError;

/// Sentinel: no host, no link, no route.
pub(super) const NONE: u32 = u32::MAX;

/// Graph of a topology.
#[derive(Debug)]
pub(super) struct Wired {
    /// Number of links from or to a host; these have the smallest indices.
    pub(super) host_links: u32,
    pub(super) links: Vec<GraphLink>,
    /// Node of each host, ascending.
    pub(super) hosts: Vec<u32>,
    pub(super) names: Vec<String>,
    /// For each node, index in `out` of the first link that leaves it; then the end.
    pub(super) firsts: Vec<u32>,
    pub(super) out: Vec<u32>,
    pub(super) ways: Ways,
    pub(super) longest: u32,
    /// Attributes that are neither used here nor for drawing.
    pub(super) unknown: Vec<String>,
}

/// A link of a topology from a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GraphLink {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) capacity: f64,
}

/// Routing table, for each destination host and each node.
#[derive(Clone, Debug)]
pub(super) enum Ways {
    /// Distance in links.
    Minimal(Vec<u16>),
    /// Link to take.
    Given(Vec<u32>),
}

impl Wired {
    pub(super) fn name(&self, node: u32) -> &str {
        self.names.get(node as usize).map_or("?", String::as_str)
    }

    /// Links that leave a node.
    pub(super) fn leaving(&self, node: u32) -> &[u32] {
        let at = |node: usize| self.firsts.get(node).copied().unwrap_or_default() as usize;
        self.out.get(at(node as usize)..at(node as usize + 1)).unwrap_or_default()
    }

    pub(super) fn link(&self, link: u32) -> GraphLink {
        self.links.get(link as usize).copied().unwrap_or(GraphLink {
            from: NONE,
            to: NONE,
            capacity: 1.0,
        })
    }

    /// Distances in links from each node to each host, by backward breadth-first search.
    pub(super) fn minimal(&self) -> Ways {
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
            if let Some(slot) = far.get_mut(host as usize) {
                *slot = 0;
            }
            while let Some(node) = next.pop_front() {
                // Messages do not pass through hosts.
                if is_host(node) && node != host {
                    continue;
                }
                let step = far.get(node as usize).map_or(u16::MAX, |far| far.saturating_add(1));
                for &source in backwards.get(node as usize).into_iter().flatten() {
                    if let Some(slot) = far.get_mut(source as usize)
                        && *slot > step
                    {
                        *slot = step;
                        next.push_back(source);
                    }
                }
            }
            all.extend(far);
        }
        Ways::Minimal(all)
    }

    /// Links to take from each node to each host, according to the comments.
    pub(super) fn given(&self, edges: &[Edge]) -> Result<Ways, GraphError> {
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
                // A single outgoing link takes all messages.
                let comment = if leaving.len() == 1 {
                    "*"
                } else {
                    edge.attribute("comment").unwrap_or_default()
                };
                for word in comment.split([',', ' ', '\t', '\n']).filter(|word| !word.is_empty()) {
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
                        Some(slot) if *slot == NONE => *slot = link,
                        _ => return Err(twice(word)),
                    }
                }
            }
            for slot in all.iter_mut().skip(node as usize).step_by(nodes) {
                if *slot == NONE {
                    *slot = other;
                }
            }
        }
        Ok(Ways::Given(all))
    }

    /// Links from a node to the host `target`; its links to switches if `target` is [`NONE`].
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

    /// Checks that every host reaches every other; returns the number of links of the longest
    /// route.
    pub(super) fn check(&self) -> Result<u32, GraphError> {
        let mut longest = 0;
        for (target, &to) in (0u32..).zip(&self.hosts) {
            // Known distances to the target.
            let mut far = vec![NONE; self.names.len()];
            if let Some(slot) = far.get_mut(to as usize) {
                *slot = 0;
            }
            for &from in &self.hosts {
                longest = longest.max(self.walk([from, to], target, &mut far)?);
            }
        }
        Ok(longest)
    }

    /// Number of links of the route between two hosts; stores the distances of the nodes on it.
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
            if let Some(slot) = far.get_mut(node as usize) {
                *slot = steps;
            }
        }
        Ok(steps)
    }

    /// Next link for a message to the host `target`.
    pub(super) fn next(&self, target: u32, node: u32, hash: u64) -> Option<u32> {
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

pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
