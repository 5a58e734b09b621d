//! Networks: what a topology is called, its routes, and messages on it.

use std::path::PathBuf;

use loggap::simulation::{GraphTopology, NetworkPlan, Placement, TopologyPlan, Wiring};
use loggap_core::sim::network::{Departure, Fabric, Network, NetworkStopped, Topology};

use super::Numbers;
use oracle::Message;

#[path = "../../../core/src/sim/network/tests/oracle.rs"]
mod oracle;

/// Hosts and links of a topology on which messages travel.
const MOST_LINKS: u32 = 1 << 12;
/// Links of a route that is looked at.
const LONGEST_ROUTE: u32 = 1 << 10;
/// Chooses among equal routes.
const SEED: u64 = 7;
/// Messages of one run.
const MOST_MESSAGES: usize = 48;

/// The name of a topology up to the end of its line, or a graph up to a zero, then
/// numbers for its routes and for messages on it.
pub fn topology(data: &[u8]) {
    let graph = data.iter().position(|&byte| byte == 0).filter(|end| data[..*end].contains(&b'{'));
    let end = graph.or_else(|| data.iter().position(|&byte| byte == b'\n')).unwrap_or(data.len());
    let (name, rest) = data.split_at(end);
    let mut numbers = Numbers(rest);
    let ranks = u32::from(numbers.short()).max(1);
    let Ok(name) = std::str::from_utf8(name) else { return };
    let (source, topology) = if graph.is_some() {
        let Ok(graph) = GraphTopology::parse(name) else { return };
        (TopologyPlan::File(PathBuf::new(), graph.clone()), Wiring::Graph(graph))
    } else {
        let Ok(topology) = Topology::parse(name, ranks) else { return };
        (TopologyPlan::Named(name.to_owned()), Wiring::Generated(topology))
    };
    let hosts = topology.hosts();
    // A ring of millions has routes of millions.
    let pairs = if topology.longest_route() <= LONGEST_ROUTE { 8 } else { 0 };
    for _ in 0..pairs {
        let (source, target) = (numbers.word() % hosts, numbers.word() % hosts);
        let mut links = 0;
        topology.route(source, target, SEED, |link| {
            links += 1;
            assert!(link < topology.links() && topology.capacity(link) > 0.0, "link {link}");
            assert!(!topology.link_name(link).is_empty());
        });
        assert!(links <= topology.longest_route() && (links == 0) == (source == target));
    }
    if topology.links() <= MOST_LINKS {
        let plan = NetworkPlan {
            topology: source,
            placement: Placement::Block,
            link_capacity: 1.0,
            seed: SEED,
            watched: false,
        };
        if let Ok(mut placed) = plan.place(hosts, 1, MOST_MESSAGES)
            && let Ok(mut flows) = placed.lend()
        {
            let arrived = run(&mut flows, hosts, Numbers(numbers.0));
            check_arrivals(&topology, &arrived.unwrap_or_default());
        }
    }
}

/// Messages arrive when the slow oracle says.
fn check_arrivals(topology: &impl Fabric, arrived: &[(Departure, u64)]) {
    let message = |&(departure, _): &(Departure, u64)| {
        let Departure { now, source, target, volume, delay, .. } = departure;
        Message { now, source, target, volume, delay }
    };
    let messages: Vec<Message> = arrived.iter().map(message).collect();
    let expected = oracle::arrivals(topology, SEED, &messages);
    for ((departure, time), expected) in arrived.iter().zip(expected) {
        assert!(expected.holds(*time), "{time} for {expected:?}: {departure:?} of {messages:?}");
    }
}

/// Every message arrives, once, not before it could alone, and time goes on. When each
/// arrived, unless a time was past its range.
fn run<N: Network>(
    network: &mut N,
    hosts: u32,
    mut numbers: Numbers<'_>,
) -> Option<Vec<(Departure, u64)>> {
    let mut arrived = Vec::new();
    let mut earliest = Vec::new();
    let mut last = 0;
    // What arrives before `until`, the last possible time included; false where a time is past its range.
    let mut drain = |network: &mut N,
                     earliest: &mut Vec<Option<u64>>,
                     arrived: &mut [(Departure, u64)],
                     until: u64| {
        loop {
            let entry = match network.first(until, &()) {
                Ok(entry) => entry.filter(|entry| entry.time().0 < until || until == u64::MAX),
                Err(NetworkStopped::Overflow) => return false,
                Err(NetworkStopped::Full { .. }) => panic!("there is room for every message"),
            };
            let Some(entry) = entry else { return true };
            let (time, op) = (entry.time().0, entry.index());
            let alone = earliest[op as usize].take().expect("a message arrives once");
            // Rates are doubles, and ends are rounded.
            let alone = alone - (1 + (alone >> 50)).min(alone);
            assert!(time >= alone && time >= last, "{time} of {alone} after {last}");
            last = time;
            arrived[op as usize].1 = time;
            network.land(&mut ());
        }
    };
    let mut now = 0_u64;
    for op in 0..48_u32 {
        if numbers.is_empty() {
            break;
        }
        let departure = drawn(&mut numbers, hosts, (op, now));
        let Departure { volume, delay, .. } = departure;
        now = departure.now;
        if !drain(network, &mut earliest, &mut arrived, now) {
            return None;
        }
        match network.launch(&departure, &mut ()) {
            Ok(()) => {}
            Err(NetworkStopped::Overflow) => return None,
            Err(NetworkStopped::Full { .. }) => panic!("there is room for every message"),
        }
        let alone = volume.checked_add(delay);
        earliest.push(alone.and_then(|alone| now.checked_add(alone)));
        arrived.push((departure, 0));
    }
    if !drain(network, &mut earliest, &mut arrived, u64::MAX) {
        return None;
    }
    assert!(earliest.iter().all(Option::is_none), "every message arrives");
    // At the last possible time nothing but what is there is asked for.
    Some(arrived).filter(|_| now < u64::MAX)
}

/// A message after `now`: mostly small numbers, and now and then some near the end of
/// their range.
fn drawn(numbers: &mut Numbers<'_>, hosts: u32, (op, now): (u32, u64)) -> Departure {
    let mut long = || numbers.long() >> (numbers.byte() % 64);
    let (pause, volume) = (long(), long());
    let delay = u64::from(numbers.short());
    let (source, target) = (numbers.word() % hosts, numbers.word() % hosts);
    let now = now.saturating_add(pause);
    Departure { op, source, target, now, seq: op, volume, delay }
}
