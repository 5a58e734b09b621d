//! Closed forms, and a slow reference implementation.

use std::format;
use std::vec;
use std::vec::Vec;

mod oracle;

use super::*;
use crate::random::Random;
use crate::with_network_memory_parts;
use oracle::Message;

const SEED: u64 = 3;
/// Number of time steps in which link loads are recorded.
const STEPS: usize = 8;

/// Send time, source, target and volume of a message without delay.
type Sent = (u64, u32, u32, u64);

const fn undelayed((now, source, target, volume): Sent) -> Message {
    Message { now, source, target, volume, delay: 0 }
}

/// Memory of these needs.
macro_rules! lend {
    ($needs:ident, $memory:ident; $($(#[$doc:meta])* $part:ident: $element:ty,)*) => {
        $memory { $($part: &mut vec![<$element>::default(); $needs.$part],)* }
    };
}

/// Calls `then` with a network for `messages` messages under way, with recorded link loads.
fn on<F: Fabric, T>(fabric: &F, messages: usize, then: impl FnOnce(&mut Flows<'_, F>) -> T) -> T {
    let needs = FlowsRequirements::new(fabric, messages);
    let memory = with_network_memory_parts!(lend needs, FlowsMemory;);
    let tenants = Tenants { ranks: fabric.hosts(), hosts: &[], seed: SEED, messages };
    let mut carried = vec![0.0; needs.links * STEPS];
    let usage = Usage::new(&mut carried, STEPS).unwrap();
    then(&mut Flows::new(fabric, tenants, memory).unwrap().with_usage(usage))
}

/// Lands the arrivals before `until`; `landed` is called with each and its time.
fn drain<F: Fabric>(network: &mut Flows<'_, F>, until: u64, mut landed: impl FnMut(u32, u64)) {
    while let Some(entry) = network.first(until, &()).unwrap().filter(|entry| entry.time < until) {
        landed(entry.index, entry.time);
        network.land(&mut ());
    }
}

const fn departure(op: u32, message: &Message) -> Departure {
    let Message { now, source, target, volume, delay } = *message;
    Departure { op, source, target, now, seq: op, volume, delay }
}

fn launch<F: Fabric>(network: &mut Flows<'_, F>, op: u32, message: &Message) {
    network.launch(&departure(op, message), &mut ()).unwrap();
}

/// Arrivals of the messages, which are in the order of time.
fn arrivals<F: Fabric>(fabric: &F, messages: &[Message]) -> Vec<u64> {
    on(fabric, messages.len(), |network| {
        let mut arrived = vec![0; messages.len()];
        for (op, message) in (0..).zip(messages) {
            drain(network, message.now, |op, time| arrived[op as usize] = time);
            launch(network, op, message);
        }
        drain(network, u64::MAX, |op, time| arrived[op as usize] = time);
        check_usage(network, messages.len());
        arrived
    })
}

/// Checks that the loads of all time steps add up to the load of each link.
fn check_usage<F: Fabric>(network: &Flows<'_, F>, messages: usize) {
    let usage = network.usage().unwrap();
    for (link, carried) in (0..).zip(network.carried()) {
        let watched: f64 = usage.of_link(link).iter().sum();
        // Each end is off by up to a picosecond.
        let most = carried * 1e-9 + messages as f64;
        assert!((watched - carried).abs() <= most, "link {link}: {watched} of {carried}");
    }
}

/// Time at which the last byte of each message has left the network; `messages` are in the order of
/// time.
fn ends<F: Fabric>(fabric: &F, messages: &[Sent]) -> Vec<u64> {
    let messages: Vec<Message> = messages.iter().copied().map(undelayed).collect();
    arrivals(fabric, &messages)
}

fn topologies() -> Vec<Topology> {
    let parse = |text| Topology::parse(text, 12).unwrap();
    let names = "star tree:4 tree:3:2.5 fat-tree:4 fat-tree:4:3 torus:4x3 torus:12 torus:3x2x2x2 \
        dragonfly:4:3:2 dragonfly:3:1:4 rail:4:2:2 rail:2:2";
    let mut all: Vec<Topology> = names.split(' ').map(parse).collect();
    all.push(Topology::torus(&[4, 4]).unwrap().with_link_capacity(0.75).unwrap());
    all.push(Topology::star(12).unwrap().with_host_capacity(2.0).unwrap());
    all
}

fn random_messages(random: &mut Random, hosts: u32) -> Vec<Message> {
    let count = 1 + random.below(60);
    let apart = [0, 1_000, 1 << 20, 1 << 30][usize::try_from(random.below(4)).unwrap()];
    // Few sizes, so that many end together, and few hosts, so that pairs meet again.
    let whole = [1, 1 << 28][usize::try_from(random.below(2)).unwrap()];
    let busy = [3, hosts][usize::try_from(random.below(2)).unwrap()];
    let mut now = 0;
    let message = |_| {
        now += random.below(apart + 1);
        let mut host = || u32::try_from(random.below(busy.into())).unwrap();
        let (source, target) = (host(), host());
        let target = if source == target { (source + 1) % busy } else { target };
        let volume = random.below((1 << 30) / whole + 1) * whole;
        let volume = if random.below(5) == 0 { 0 } else { volume };
        let delay = [2_000, 9_000_000][usize::try_from(random.below(2)).unwrap()];
        Message { now, source, target, volume, delay }
    };
    (0..count).map(message).collect()
}

#[test]
fn random_messages_arrive_when_a_slow_oracle_says() {
    for seed in 0..150 {
        let mut random = Random::new(seed);
        for topology in topologies() {
            let messages = random_messages(&mut random, topology.hosts());
            compare(&topology, &messages, &format!("seed {seed}, {topology:?}"));
        }
    }
}

/// Compares with the reference implementation; returns the arrivals.
fn compare<F: Fabric>(fabric: &F, messages: &[Message], about: &str) -> Vec<u64> {
    let (fast, slow) = (arrivals(fabric, messages), oracle::arrivals(fabric, SEED, messages));
    for (at, (&fast, slow)) in fast.iter().zip(&slow).enumerate() {
        assert!(slow.holds(fast), "{about}, message {at}: {fast} and {slow:?}");
    }
    fast
}

#[test]
fn what_begins_when_others_end_ends_when_the_slow_oracle_says() {
    // Divisible by all shares, so that many end together.
    const UNIT: u64 = 27_720_000;
    let parse = |text| Topology::parse(text, 16).unwrap();
    let tapered = "tree:4:4 tree:4:2 fat-tree:4:2 rail:4:2:2 torus:4x4 torus:16 dragonfly:4:2:2";
    for topology in topologies().into_iter().chain(tapered.split(' ').map(parse)) {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let hosts = topology.hosts();
            let message = |random: &mut Random, now: u64| {
                let mut host = || u32::try_from(random.below(hosts.into())).unwrap();
                let (source, target) = (host(), host());
                let target = if source == target { (source + 1) % hosts } else { target };
                undelayed((now, source, target, (1 + random.below(4)) * UNIT))
            };
            let count = 1 + random.below(16);
            let mut messages: Vec<Message> = (0..count).map(|_| message(&mut random, 0)).collect();
            for round in 0..4 {
                let about = format!("{topology:?}, seed {seed}, round {round}");
                let last = messages.last().unwrap().now;
                let mut begins = compare(&topology, &messages, &about);
                begins.retain(|&end| end > last && random.below(3) == 0);
                begins.sort_unstable();
                messages.extend(begins.into_iter().map(|begin| message(&mut random, begin)));
            }
        }
    }
}

#[test]
fn flows_of_links_that_are_nearly_alike_end_when_the_slow_oracle_says() {
    const UNIT: u64 = 6_000;
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let links = 1 + random.below(5);
        let base = [0.1, 0.25, 1.0 / 3.0, 0.75, 1.0][usize::try_from(random.below(5)).unwrap()];
        // Rates that differ by less than the tolerance, and slightly more.
        let capacity = |random: &mut Random| {
            let off = random.below(41) as f64 - 20.0;
            base * (1 + random.below(3)) as f64 * (1.0 + off * 1e-13)
        };
        let capacities = (0..links).map(|_| capacity(&mut random)).collect();
        let routes = (0..2 + random.below(16)).map(|_| {
            let links = u32::try_from(links).unwrap();
            let mut route: Vec<u32> = (0..links).filter(|_| random.below(2) == 0).collect();
            if route.is_empty() {
                route.push(u32::try_from(random.below(links.into())).unwrap());
            }
            route
        });
        let wires = Wires { routes: routes.collect(), capacities };
        let mut messages = Vec::new();
        let count = u32::try_from(wires.routes.len()).unwrap();
        let mut begins = vec![0; wires.routes.len()];
        for at in 0..count {
            let begin = begins[at as usize];
            messages.push(undelayed((begin, 2 * at, 2 * at + 1, (1 + random.below(4)) * UNIT)));
            if at == count / 2 {
                let ended = compare(&wires, &messages, &format!("seed {seed}, first"));
                let ended = |_| ended[usize::try_from(random.below(ended.len() as u64)).unwrap()];
                let mut later: Vec<u64> = (at + 1..count).map(ended).collect();
                later.sort_unstable();
                begins.splice(at as usize + 1.., later);
            }
        }
        compare(&wires, &messages, &format!("seed {seed}"));
    }
}

#[test]
fn a_link_that_overflows_while_others_leave_is_shared_fairly() {
    let topology = Topology::parse("dragonfly:4:2:2", 16).unwrap();
    const UNIT: u64 = 27_720_000;
    let message = |begin: u64, source, target, volume: u64| {
        undelayed((begin * UNIT, source, target, volume * UNIT))
    };
    let messages = [
        message(0, 1, 2, 1),
        message(0, 10, 3, 3),
        message(0, 1, 13, 1),
        message(0, 9, 3, 1),
        message(4, 13, 3, 1),
        message(4, 2, 3, 4),
        message(4, 0, 14, 2),
    ];
    compare(&topology, &messages, "seven messages");
}

/// Fabric of hosts and links with capacities; each message takes the links given.
struct Wires {
    capacities: Vec<f64>,
    routes: Vec<Vec<u32>>,
}

impl Fabric for Wires {
    fn hosts(&self) -> u32 {
        2 * u32::try_from(self.routes.len()).unwrap()
    }

    fn links(&self) -> u32 {
        u32::try_from(self.capacities.len()).unwrap()
    }

    fn capacity(&self, link: u32) -> f64 {
        self.capacities[link as usize]
    }

    fn longest_route(&self) -> u32 {
        u32::try_from(self.routes.iter().map(Vec::len).max().unwrap()).unwrap()
    }

    fn route(&self, source: u32, _target: u32, _seed: u64, each: impl FnMut(u32)) {
        self.routes[source as usize / 2].iter().copied().for_each(each);
    }
}

#[test]
fn what_begins_when_as_much_ends_shares_the_link() {
    let wires = Wires {
        capacities: vec![2.5, 0.5, 0.5],
        // The first two leave at a half each when the last begins.
        routes: vec![vec![0, 1], vec![0, 2], vec![0], vec![0], vec![0]],
    };
    let messages =
        [(0, 0, 1, 500), (0, 2, 3, 500), (0, 4, 5, 1_600), (0, 6, 7, 1_600), (1_000, 8, 9, 1_600)];
    // 2.5 are shared by two at 3/4, then by three at 5/6 for 850/(5/6) ps, then each is alone.
    assert_eq!(ends(&wires, &messages), [1_000, 1_000, 2_020, 2_020, 2_770]);
}

#[test]
fn flows_whose_ends_round_to_one_time_end_together() {
    let wires = Wires { capacities: vec![1.8], routes: vec![vec![0]; 3] };
    // 0.9 each until 4 and 0.6 each until 13, when the second ends; the third would end at 114 7/9,
    // and the first at 115 2/9.
    let messages = [(0, 0, 1, 101), (0, 2, 3, 9), (4, 4, 5, 97)];
    assert_eq!(ends(&wires, &messages), [115, 13, 115]);
}

#[test]
fn a_link_that_was_never_empty_is_shared_after_many_messages_as_at_first() {
    const MESSAGES: u32 = 200_000;
    const LONG: u64 = 1 << 40;
    // The first flow has half a link all the time. Narrow links limit those that follow, so all of
    // them leave capacity on link 0, where each begins at 1, until the last three fill it.
    let routes = [vec![0, 1], vec![0, 2], vec![0, 3], vec![0], vec![0], vec![0, 3]];
    let wires = Wires { capacities: vec![1.3, 0.5, 0.1, 1.0 / 3.0], routes: routes.to_vec() };
    let on_route = |route, now, volume| undelayed((now, 2 * route, 2 * route + 1, volume));
    let last = |network: &mut Flows<'_, Wires>, now| {
        drain(network, now, |_, _| {});
        for (op, volume) in [(3, 9_000_000), (4, 7_000_000), (5, 500_000)] {
            launch(network, op, &on_route(op, now, volume));
        }
        let mut ended = Vec::new();
        drain(network, u64::MAX, |op, time| ended.push((op, time)));
        ended
    };
    let mut random = Random::new(1);
    let (mut now, mut landed) = (0, 0);
    let ended = on(&wires, 1_000, |network| {
        launch(network, 0, &on_route(0, 0, LONG));
        for _ in 0..MESSAGES {
            now += random.below(2_000);
            drain(network, now, |_, _| landed += 1);
            let route = 1 + u32::try_from(random.below(2)).unwrap();
            launch(network, route, &on_route(route, now, 1 + random.below(200)));
        }
        now += 1_000_000 + now % 2;
        drain(network, now, |_, _| landed += 1);
        let ended = last(network, now);
        check_usage(network, MESSAGES as usize);
        ended
    });
    assert_eq!(landed, MESSAGES, "all but the first are through before the last begin");
    let recomputed = on(&wires, 4, |network| {
        launch(network, 0, &on_route(0, now, LONG - now / 2));
        last(network, now)
    });
    assert_eq!(ended, recomputed);
}

#[test]
fn a_queue_of_as_many_ends_as_messages_is_enough() {
    for links in 2..12u32 {
        let alone = (0..links).map(|link| vec![link]);
        let wires = Wires {
            capacities: vec![1.0; links as usize],
            routes: alone.chain([(0..links).collect()]).collect(),
        };
        let message = |at: u32| (0, 2 * at, 2 * at + 1, 10_000 - 100 * u64::from(at));
        let mut messages: Vec<Sent> = (0..links).map(message).collect();
        messages.push((0, 2 * links, 2 * links + 1, 100));
        // A half each until the last is complete.
        let mut expected: Vec<u64> = messages.iter().map(|message| message.3 + 100).collect();
        *expected.last_mut().unwrap() = 200;
        assert_eq!(ends(&wires, &messages), expected, "{links} links");
    }
}

#[test]
fn links_are_those_that_join_something() {
    let count = |topology: Result<Topology, _>| topology.unwrap().links_there_are();
    assert_eq!(count(Topology::torus(&[4, 4])), 2 * 16 + 16 * 4);
    assert_eq!(count(Topology::torus(&[3, 1, 2])), 2 * 6 + 6 * 4);
    assert_eq!(count(Topology::dragonfly(4, 2, 2)), 2 * 16 + 4 * 2 + 4 * 3);
}

#[test]
fn routes_join_hosts_link_by_link_within_their_length() {
    for topology in topologies() {
        let mut names = Vec::new();
        for source in 0..topology.hosts() {
            for target in 0..topology.hosts() {
                let mut route = Vec::new();
                topology.route(source, target, 5, |link| route.push(link));
                assert_eq!(route.is_empty(), source == target);
                assert!(route.len() <= topology.longest_route() as usize);
                assert!(route.iter().all(|&link| link < topology.links()));
                let mut once = route.clone();
                once.sort_unstable();
                once.dedup();
                assert_eq!(once.len(), route.len(), "no link twice");
                names.extend(route);
            }
        }
        names.sort_unstable();
        names.dedup();
        let mut texts: Vec<_> =
            names.iter().map(|&link| format!("{}", topology.link_name(link))).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), names.len(), "every link of {topology:?} has its own name");
    }
}

#[test]
fn eight_flows_over_a_taper_of_four_take_four_times() {
    let topology = Topology::tree(16, 8, 4.0).unwrap();
    let messages: Vec<Sent> = (0..8).map(|source| (0, source, 8 + source, 999_999)).collect();
    assert_eq!(ends(&topology, &messages), [4 * 999_999; 8]);
    let inside: Vec<Sent> = (0..8).map(|source| (0, source, (source + 1) % 8, 9)).collect();
    assert_eq!(ends(&topology, &inside), [9; 8], "a leaf does not block");
}

#[test]
fn a_ring_on_a_torus_meets_nobody_but_a_shift_does() {
    let topology = Topology::torus(&[8, 8]).unwrap();
    let shift = |by: u32| {
        let message = |host: u32| (0, host, host / 8 * 8 + (host + by) % 8, 5_000_000);
        (0..64).map(message).collect::<Vec<Sent>>()
    };
    assert_eq!(ends(&topology, &shift(1)), [5_000_000; 64]);
    // Each link has the flows of three sources.
    assert_eq!(ends(&topology, &shift(3)), [15_000_000; 64]);
}

#[test]
fn a_torus_of_one_dimension_is_a_ring() {
    let ring = Topology::parse("torus:16", 16).unwrap();
    assert_eq!(ring.links_there_are(), 2 * 16 + 16 * 2);
    let shift = |by: u32| -> Vec<Sent> {
        (0..16).map(|host| (0, host, (host + by) % 16, 5_000_000)).collect()
    };
    for (by, flows_of_a_link) in [(1, 1), (3, 3), (7, 7), (15, 1), (13, 3)] {
        assert_eq!(ends(&ring, &shift(by)), [flows_of_a_link * 5_000_000; 16], "by {by}");
    }
}

#[test]
fn max_min_is_fair_to_a_flow_over_two_links() {
    // Link 0 out has flows to 1 and 2; link 2 in has flows from 0, 3 and 4.
    let topology = Topology::star(5).unwrap();
    let messages = [(0, 0, 1, 600), (0, 0, 2, 300), (0, 3, 2, 300), (0, 4, 2, 300)];
    // Into 2 at a third each until 900; the other has two thirds until 900.
    assert_eq!(ends(&topology, &messages), [900, 900, 900, 900]);
}

#[test]
fn messages_of_a_pair_arrive_in_their_order() {
    let topology = Topology::star(3).unwrap();
    // The first has half of the link into 2 until the end; those without bytes and the short one
    // would arrive before it.
    let messages = [
        (0, 0, 2, 1_000),
        (0, 1, 2, 1_000),
        (10, 0, 2, 0),
        (20, 0, 2, 5),
        (30, 0, 2, 0),
        (40, 0, 1, 0),
        (50, 1, 2, 0),
    ];
    let ended = ends(&topology, &messages);
    let first = ended[0];
    assert_eq!(ended[2..5], [first; 3]);
    assert_eq!(ended[5], 40, "another pair");
    assert_eq!(ended[6], ended[1]);
}

#[test]
fn a_message_that_would_be_through_past_all_times_is_refused() {
    let half = Topology::torus(&[2, 2]).unwrap().with_link_capacity(0.5).unwrap();
    for (early, is_refused) in [(0, true), (1, true), (2, false)] {
        let message = undelayed((u64::MAX - early, 0, 1, 1));
        let first = on(&half, 1, |network| {
            network.launch(&departure(0, &message), &mut ())?;
            network.first(u64::MAX, &())
        });
        assert_eq!(first == Err(NetworkStopped::Overflow), is_refused, "{early} ps before");
        assert_eq!(first.is_ok_and(|first| first.is_some()), !is_refused, "{early} ps before");
    }
}

#[test]
fn hostile_topologies_are_refused() {
    use TopologyError as E;
    let refused = |text: &str, ranks| Topology::parse(text, ranks).err();
    assert_eq!(refused("ring", 4), Some(E::Unknown));
    assert_eq!(refused("tree", 4), Some(E::Unknown));
    assert_eq!(refused("tree:8:4:2", 4), Some(E::Unknown));
    assert_eq!(refused("tree:0:4", 4), Some(E::Zero));
    assert_eq!(refused("tree:8:0", 4), Some(E::Capacity));
    assert_eq!(refused("tree:8:-1", 4), Some(E::Unknown));
    for word in [".5", "2.5.1", "1e3", "1234567890123456", "+1", "4x"] {
        assert_eq!(refused(&format!("tree:8:{word}"), 4), Some(E::Unknown), "{word}");
    }
    let width =
        |taper: &str| Topology::parse(&format!("tree:8:{taper}"), 4).unwrap().link_capacity();
    for (taper, links) in
        [("2.5", 3.2f64), ("0.125", 64.0), ("", 8.0), ("1.2500000000000000001", 6.4)]
    {
        assert_eq!(width(taper).to_bits(), links.to_bits(), "{taper}");
    }
    assert!(
        Topology::tree(4, 8, f64::NAN).is_err() && Topology::tree(4, 8, f64::INFINITY).is_err()
    );
    assert_eq!(refused("tree:8:nan", 4), Some(E::Unknown));
    assert_eq!(refused("tree:8:inf", 4), Some(E::Unknown));
    assert_eq!(refused("fat-tree:5", 4), Some(E::OddPorts { ports: 5 }));
    assert_eq!(refused("fat-tree:4", 17), Some(E::TooFewHosts { hosts: 16, ranks: 17 }));
    assert_eq!(refused("fat-tree:4000000000", 4), Some(E::TooLarge));
    assert_eq!(refused("torus:2x2x2x2x2x2", 4), Some(E::Dimensions { dimensions: 6 }));
    assert_eq!(refused("torus:0x4", 4), Some(E::Zero));
    assert_eq!(refused("torus:65536x65536", 4), Some(E::TooLarge));
    assert_eq!(refused("dragonfly:65536:65536:65536", 4), Some(E::TooLarge));
    assert_eq!(refused("rail:8:4000000000", 4), Some(E::TooLarge));
    assert_eq!(refused("star", u32::MAX), Some(E::TooLarge));
    assert_eq!(refused("tree:4294967295", 4), Some(E::TooLarge));
    assert_eq!(refused("star", 0), Some(E::Zero));
}

#[test]
fn too_little_memory_and_bad_places_are_refused() {
    let topology = Topology::star(2).unwrap();
    let none = Flows::new(
        &topology,
        Tenants { ranks: 2, messages: 1, ..Tenants::default() },
        FlowsMemory::default(),
    );
    assert_eq!(none.err(), Some(NetworkBuildError::Full));
    let on = |ranks, placement: &[u32]| {
        let memory = FlowsMemory {
            links: &mut [Link::default(); 4],
            link_queue: &mut [QueuedLink::default(); 4],
            changed: &mut [0; 4],
            ..FlowsMemory::default()
        };
        Flows::new(&topology, Tenants { ranks, hosts: placement, ..Tenants::default() }, memory)
            .err()
    };
    assert_eq!(on(2, &[1, 0]), None);
    assert_eq!(on(2, &[1]), Some(NetworkBuildError::Placement { rank: 1 }));
    assert_eq!(on(2, &[1, 2]), Some(NetworkBuildError::Placement { rank: 1 }));
    let few = TopologyError::TooFewHosts { hosts: 2, ranks: 3 };
    assert_eq!(on(3, &[]), Some(NetworkBuildError::Topology(few)));
}

#[test]
fn steps_of_time_grow_and_keep_what_links_carried() {
    let mut carried = vec![0.0; 2 * 4];
    let mut usage = Usage::new(&mut carried, 4).unwrap();
    let hops = [Hop { link: 1, ..Hop::default() }];
    let flow = |since, rate| Flow { since, rate, ..Flow::default() };
    usage.add_flow(&hops, 0..1, &flow(0, 1.0), 3);
    assert_eq!((usage.step(), usage.of_link(1)), (1, &[1., 1., 1., 0.][..]));
    usage.add_flow(&hops, 0..1, &flow(3, 0.5), 13);
    assert_eq!((usage.step(), usage.of_link(1)), (4, &[3.5, 2., 2., 0.5][..]));
    // A small volume is not lost beside a large time.
    usage.add_flow(&hops, 0..1, &flow(0, 1.0), 1 << 40);
    let before = usage.of_link(1)[0];
    usage.add_flow(&hops, 0..1, &flow(0, 1.0), 1);
    assert!((usage.of_link(1)[0] - before - 1.0).abs() < 1e-9);
}
