//! Which links of a network were busy.

use loggap_core::sim::network::{Fabric, FlowObserver, Flows, Simple, Usage};

use super::Wiring;

/// Links that are named after a run.
const BUSIEST: usize = 24;

/// What became of a network's links.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkUse {
    /// Hosts of the topology.
    pub hosts: u32,
    /// Links of the topology.
    pub links: u32,
    /// Messages that had bytes which links carried.
    pub flows: u64,
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
    /// Of LogGOPSim's network, which does not count what links carry.
    #[must_use]
    pub fn of_simple(network: &Simple<'_, Wiring>) -> Self {
        let topology = network.fabric();
        let (hosts, links) = (topology.hosts(), topology.links_there_are());
        Self { hosts, links, flows: network.begun(), ..Self::default() }
    }

    /// Of a network after a run that took `makespan` ps.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "shares of few digits")]
    pub fn of<T: FlowObserver>(flows: &Flows<'_, Wiring, T>, makespan: u64) -> Self {
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
                // Sums are rounded: a full step may be a little more.
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
