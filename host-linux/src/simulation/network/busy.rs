//! Utilization of a network's links.

use loggap_core::sim::network::{Fabric, Flows, Usage};
use serde::Serialize;

use super::Wiring;

/// Limit on the links that are listed after a run.
const BUSIEST: usize = 24;

/// Utilization of a network after a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkUse {
    /// Number of hosts in the topology.
    pub hosts: u32,
    /// Number of links in the topology.
    pub links: u32,
    /// Messages with bytes that were carried by links.
    pub flows: u64,
    /// Length of a time step, ps; `None` if utilization was not recorded over time.
    pub step: Option<u64>,
    /// Links with the highest utilization, in descending order.
    pub busiest: Vec<BusyLink>,
    /// Number of further links with the same utilization as the last one listed.
    pub as_busy: usize,
}

/// Utilization of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BusyLink {
    /// Name: the nodes that it connects.
    #[serde(rename = "link")]
    pub name: String,
    /// Capacity, in units of a host's link.
    pub capacity: f64,
    /// Time needed for the bytes carried, as a share of the run.
    pub utilization: f64,
    /// Utilization in each time step; empty if it was not recorded.
    #[serde(rename = "utilization_over_time", skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<f64>,
}

impl NetworkUse {
    /// Utilization of a network after a run of `makespan` ps.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "shares of few digits")]
    pub fn of(flows: &Flows<'_, Wiring>, makespan: u64) -> Self {
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
                // Limited to 1, because rounding of sums can exceed it slightly.
                let share = |carried: &f64| (carried / whole).min(1.0);
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
            links: topology.links_there_are(),
            flows: flows.begun(),
            step: usage.map(Usage::step),
            busiest: loads.into_iter().map(busy).collect(),
            as_busy,
        }
    }
}
