//! Network `simple`: cases computed by hand, and invariants.

use std::vec;
use std::vec::Vec;

use super::*;
use crate::random::Random;

const NANO: u64 = 1000;

/// Send time, source, target, bytes, delay; times in ns.
type Message = (u64, u32, u32, u64, u64);

/// Times at which each message leaves the network and arrives, ps, and the number of polls; `free`
/// is the time passed as that at which receivers are free. Times of `messages` are in units of
/// `unit` ps, and ascending.
fn arrivals(topology: Topology, messages: &[Message], unit: u64, free: u64) -> (Vec<u64>, usize) {
    let needs = SimpleRequirements::new(&topology, messages.len());
    let memory = SimpleMemory {
        links: &mut vec![Link::default(); needs.links],
        hops: &mut vec![Hop::default(); needs.hops],
        transmissions: &mut vec![Transmission::default(); needs.transmissions],
        polls: &mut vec![Entry::default(); needs.polls],
        alone: &mut vec![Entry::default(); needs.alone],
    };
    let tenants =
        Tenants { ranks: topology.hosts(), hosts: &[], seed: 3, messages: messages.len() };
    let mut network = Simple::new(&topology, tenants, memory).unwrap();
    let mut arrived = vec![0; messages.len()];
    let mut polled = 0;
    let mut drain = |network: &mut Simple<'_, Topology>, until: u64| {
        while let Some(entry) = network.first(until).unwrap().filter(|entry| entry.time < until) {
            polled += 1;
            if !network.postpone(free).unwrap() {
                assert_eq!(arrived[entry.index as usize], 0, "a message arrives once");
                arrived[entry.index as usize] = entry.time;
                network.land();
            }
        }
    };
    for (op, &(now, source, target, bytes, delay)) in (0..).zip(messages) {
        let (now, delay) = (now * unit, delay * unit);
        drain(&mut network, now);
        let departure = Departure { op, source, target, now, seq: op, bytes, volume: 0, delay };
        network.launch(&departure).unwrap();
    }
    drain(&mut network, u64::MAX);
    (arrived, polled)
}

/// Arrivals on a star of eight hosts, ns.
fn over_star(messages: &[Message]) -> Vec<u64> {
    let (arrived, _) = arrivals(Topology::star(8).unwrap(), messages, NANO, 0);
    assert!(arrived.iter().all(|time| time % NANO == 0), "{arrived:?}");
    arrived.iter().map(|time| time / NANO).collect()
}

#[test]
fn a_message_alone_arrives_o_and_l_later_or_when_its_bytes_are_through() {
    for (bytes, arrival) in [(0, 4000), (1, 4000), (4000, 4000), (4001, 4001), (90_000, 90_000)] {
        assert_eq!(over_star(&[(0, 0, 1, bytes, 4000)]), [arrival], "{bytes}");
        // To itself: no links, but bytes.
        assert_eq!(over_star(&[(0, 1, 1, bytes, 4000)]), [arrival], "{bytes}");
    }
}

#[test]
fn two_that_share_a_link_are_polled_in_halving_steps_until_both_are_through() {
    // Polls at 100, 1050, 1525, 1763, 1882, 1941, 1971, 1986, 1993, 1997, 1999, 2000.
    let (arrived, polled) = arrivals(
        Topology::star(8).unwrap(),
        &[(0, 0, 2, 1000, 100), (0, 1, 2, 1000, 100)],
        NANO,
        0,
    );
    assert_eq!(arrived, [2_000_000; 2]);
    assert_eq!(polled, 2 * 12);
    // Messages on other links are not slowed down.
    let apart = over_star(&[(0, 0, 2, 1000, 100), (0, 1, 3, 1000, 100)]);
    assert_eq!(apart, [1000; 2]);
}

#[test]
fn the_greatest_congestion_on_a_route_counts() {
    // The second shares host 0's link with the first and host 2's with the third:
    // 300 B at 1/2. When the others have left, it is alone.
    let all = [(0, 0, 1, 300, 0), (0, 0, 2, 300, 0), (0, 3, 2, 300, 0)];
    assert_eq!(over_star(&all), [600; 3]);
    let longer = [(0, 0, 1, 300, 0), (0, 0, 2, 900, 0), (0, 3, 2, 300, 0)];
    assert_eq!(over_star(&longer), [600, 1200, 600]);
}

#[test]
fn a_message_keeps_its_links_until_it_is_polled() {
    // The first has no bytes left at 1000, and is not polled before 4000.
    let first = (0, 0, 2, 1000, 4000);
    assert_eq!(over_star(&[first, (1001, 1, 2, 1000, 0)]), [4000, 3001]);
    assert_eq!(over_star(&[first, (999, 1, 2, 1000, 0)]), [4000, 2999]);
    // A message that enters when the first would have left alone finds it gone.
    assert_eq!(over_star(&[first, (1000, 1, 2, 1000, 0)]), [4000, 2000]);
    // The same if another message causes the poll, on other links.
    let third = (1100, 1, 2, 1000, 0);
    assert_eq!(over_star(&[first, (1000, 5, 6, 1, 0), third]), [4000, 1001, 2100]);
}

#[test]
fn what_is_under_way_is_not_polled_before_its_receiver_is_free() {
    let star = Topology::star(8).unwrap();
    let (arrived, polled) = arrivals(star, &[(0, 0, 1, 5000, 4000)], NANO, 7_000_000);
    assert_eq!((arrived, polled), (vec![7_000_000], 2));
    let (arrived, polled) = arrivals(star, &[(0, 0, 1, 3000, 4000)], NANO, 7_000_000);
    assert_eq!((arrived, polled), (vec![4_000_000], 1), "the engine makes it wait");
}

#[test]
fn looks_that_are_closer_than_a_unit_stop_no_message() {
    // Each update is a picosecond, 10 units, among up to 200 messages.
    let messages: Vec<Message> = (0..200).map(|at| (at, 0, 1, 1, 0)).collect();
    let (arrived, _) = arrivals(Topology::star(2).unwrap(), &messages, 1, 0);
    let last = *arrived.iter().max().unwrap();
    assert!((200_000..400_000).contains(&last), "{last}");
}

#[test]
fn times_and_sizes_past_their_range_are_refused() {
    let star = Topology::star(2).unwrap();
    let pair = Tenants { ranks: 2, messages: 1, ..Tenants::default() };
    let needs = SimpleRequirements::new(&star, 1);
    let mut links = vec![Link::default(); needs.links];
    let mut hops = vec![Hop::default(); needs.hops];
    for (bytes, now, delay) in
        [(u64::MAX, 0, 0), (u64::MAX / 10_000 + 1, 0, 0), (1, u64::MAX, 0), (0, u64::MAX, 1)]
    {
        let memory = SimpleMemory {
            links: &mut links,
            hops: &mut hops,
            transmissions: &mut [Transmission::default()],
            polls: &mut [Entry::default()],
            alone: &mut [Entry::default()],
        };
        let mut network = Simple::new(&star, pair, memory).unwrap();
        let departure =
            Departure { op: 0, source: 0, target: 1, now, seq: 0, bytes, volume: 0, delay };
        let stopped = network.launch(&departure).and_then(|()| network.postpone(0)).unwrap_err();
        assert_eq!(stopped, NetworkStopped::Overflow, "{bytes} {now} {delay}");
    }
    let none = Simple::new(&star, pair, SimpleMemory::default());
    assert_eq!(none.unwrap_err(), NetworkBuildError::Full);
}

#[test]
fn every_message_arrives_once_and_none_before_it_could_alone() {
    let mut random = Random::new(11);
    for round in 0..60 {
        let topology = Topology::parse(["torus:3x3", "tree:3:3", "star"][round % 3], 9).unwrap();
        let mut now = 0;
        let mut rank = || u32::try_from(random.below(9)).unwrap();
        let ends: Vec<[u32; 2]> = (0..40).map(|_| [rank(), rank()]).collect();
        let messages: Vec<Message> = ends
            .iter()
            .map(|&[source, target]| {
                now += random.below(3) * random.below(400);
                (now, source, target, random.below(2000), random.below(3) * random.below(900))
            })
            .collect();
        let unit = [NANO, 1, 333][round / 3 % 3];
        let (arrived, _) = arrivals(topology, &messages, unit, 0);
        let bytes: u64 = messages.iter().map(|message| message.3).sum();
        for (&(now, _, _, bytes_own, delay), &at) in messages.iter().zip(&arrived) {
            let alone = (delay * unit).max(bytes_own * NANO);
            assert!(at >= now * unit + alone, "{at} of {now} + {alone}");
            // All bytes in sequence, and all waits for polls.
            assert!(at <= (now + 1800) * unit + (bytes + 40 * 900) * NANO, "{at}");
        }
    }
}
