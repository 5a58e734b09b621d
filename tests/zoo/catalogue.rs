//! The links, each with its truth.

use loggap::link::Waiting;
use loggap_core::units::{PerByte, Picos};
use loggap_tests::cable::{End, Kind, Offload, Shape, Shaper};
use loggap_tests::relay::{Jitter, Mishaps, Range, Wire};

use crate::measured::Noise;
use crate::measured::kinds::{Link, links, noises};

/// A link, how it is measured, and what is true of it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) transport: &'static str,
    pub(crate) waiting: Waiting,
    /// Options of `loggap measure` beside the link's own.
    pub(crate) options: &'static [&'static str],
    pub(crate) truth: Truth,
    /// Longest time that a run may take, in seconds.
    pub(crate) most_seconds: f64,
}

/// Where it is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Two namespaces and a cable.
    Cable(Kind),
    /// The relay.
    Relay(Wire),
    /// Virtual time.
    Virtual(Link, Noise),
    /// Two processes of this machine, on these processors.
    Loopback { cpus: [usize; 2], neighbour: Neighbour },
}

/// Who else runs on the processors of both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Neighbour {
    Nobody,
    /// One that takes so many percent of the second processor.
    Percent(u32),
    /// So many threads that never sleep.
    Loops(usize),
}

/// What is true of it.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    /// `G` in s/B.
    pub(crate) gap_per_byte: Value,
    /// Size in whose range it is looked for.
    pub(crate) at: u64,
    /// Half a round trip of one byte, in s.
    pub(crate) half_rtt: Value,
    pub(crate) changes: Changes,
    /// Largest deviation of a value, as a fraction.
    pub(crate) tolerance: f64,
}

/// A true value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Known(f64),
    /// What plain loops find before and after.
    Reference,
    /// Nothing to hold the result against, and why.
    Unjudged(&'static str),
}

/// Where the protocol changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Changes {
    None,
    At(u64),
    /// Ranges may divide within these sizes, or at the first that takes two
    /// packets, and nowhere else.
    Within {
        low: u64,
        high: u64,
        two_packets: u64,
    },
    Unjudged,
}

/// Time of the default budget on a slow link, with what starting and stopping takes.
const DEFAULT_SECONDS: f64 = 5.5;
/// In which the rate of a shaped link is to be known: 5 s, and 10%.
const SHAPED_SECONDS: f64 = 5.5;
const BOTH: &[End] = &[End::Server, End::Client];
const CLIENT: &[End] = &[End::Client];

/// Links of the quick part, beside those on virtual time.
const QUICK: [&str; 6] = [
    "veth tcp 100 Mb/s tbf, block",
    "veth tcp unshaped, block",
    "veth eth unshaped, block",
    "relay change at 4096 B",
    "relay loss 5%",
    "loopback tcp on one processor, block",
];

impl Entry {
    /// Whether it belongs to the quick part.
    pub(crate) fn is_quick(&self) -> bool {
        matches!(self.place, Place::Virtual(..)) || QUICK.contains(&self.name.as_str())
    }
}

pub(crate) fn catalogue() -> Vec<Entry> {
    let mut entries = Vec::new();
    entries.extend(unshaped());
    entries.extend(shaped_tcp());
    entries.extend(shaped_datagrams());
    entries.extend(relayed());
    entries.extend(virtual_links());
    entries.extend(neighbours());
    entries
}

fn unshaped() -> Vec<Entry> {
    let entry = |name: &str, transport: &'static str, kind: Kind, waiting: Waiting, at| Entry {
        name: format!("veth {transport} {name}, {}", waiting.name()),
        place: Place::Cable(kind),
        transport,
        waiting,
        options: &[],
        truth: Truth {
            gap_per_byte: Value::Reference,
            at,
            half_rtt: Value::Reference,
            changes: Changes::Unjudged,
            tolerance: 0.05,
        },
        most_seconds: DEFAULT_SECONDS,
    };
    let whole = Kind { offload: Offload::Off, ..Kind::plain(1_500) };
    let (block, poll) = (Waiting::Block, Waiting::Poll);
    vec![
        entry("unshaped", "tcp", Kind::plain(1_500), block, 32_768),
        entry("unshaped", "tcp", Kind::plain(1_500), poll, 32_768),
        entry("unshaped, MTU 576", "tcp", Kind::plain(576), block, 32_768),
        entry("unshaped, MTU 9000", "tcp", Kind::plain(9_000), block, 32_768),
        entry("unshaped, no offload", "tcp", whole, block, 32_768),
        entry("unshaped", "udp", Kind::plain(1_500), block, 8_000),
        entry("unshaped", "udp", Kind::plain(1_500), poll, 8_000),
        entry("unshaped", "eth", Kind::plain(1_500), block, 800),
        entry("unshaped", "eth", Kind::plain(1_500), poll, 800),
        entry("unshaped, MTU 9000", "eth", Kind::plain(9_000), block, 800),
    ]
}

/// A rate, what passes at once, and the sizes that show it.
struct Rate {
    name: &'static str,
    bits: u64,
    burst: u64,
    options: &'static [&'static str],
}

/// Bytes that pass at once are few enough for 64 KiB to see the rate; at
/// 10 Gb/s 1 MiB has to.
const RATES: [Rate; 5] = [
    Rate { name: "10 Mb/s", bits: 10_000_000, burst: 5_000, options: &["--max-time", "5"] },
    Rate { name: "25 Mb/s", bits: 25_000_000, burst: 6_250, options: &["--max-time", "5"] },
    Rate { name: "100 Mb/s", bits: 100_000_000, burst: 12_500, options: &["--max-time", "5"] },
    Rate { name: "1 Gb/s", bits: 1_000_000_000, burst: 32_000, options: &["--max-time", "5"] },
    Rate {
        name: "10 Gb/s",
        bits: 10_000_000_000,
        burst: 128_000,
        options: &["-s", "1:1M", "--max-time", "5"],
    },
];

/// Bytes on the wire, Ethernet header included, for each byte of a long TCP
/// stream: 20 bytes of IP, 20 of TCP and 12 of its time stamps a packet.
fn tcp_overhead(mtu: u32) -> f64 {
    f64::from(mtu + 14) / f64::from(tcp_payload(mtu))
}

/// The same for long UDP datagrams in fragments of whole 8 bytes.
fn udp_overhead(mtu: u32) -> f64 {
    let payload = (mtu - 20) / 8 * 8;
    f64::from(payload + 34) / f64::from(payload)
}

/// Payload of a TCP segment, with time stamps.
const fn tcp_payload(mtu: u32) -> u32 {
    mtu - 52
}

/// Payload of an unfragmented UDP datagram.
const fn udp_payload(mtu: u32) -> u32 {
    mtu - 28
}

/// A shaped cable; ranges may divide where bursts of `messages` or single
/// messages begin to exceed the bucket.
fn shaped(
    (name, transport): (String, &'static str),
    (mtu, payload, offload): (u32, u32, Offload),
    shape: Shape,
    (overhead, messages): (f64, u64),
    (waiting, options): (Waiting, &'static [&'static str]),
) -> Entry {
    Entry {
        name: format!("veth {transport} {name}, {}", waiting.name()),
        place: Place::Cable(Kind { mtu, offload, shape: Some(shape) }),
        transport,
        waiting,
        options,
        truth: Truth {
            gap_per_byte: Value::Known(8.0 / shape.rate as f64 * overhead),
            at: u64::MAX,
            half_rtt: Value::Reference,
            changes: Changes::Within {
                low: shape.burst / messages / 2,
                high: 2 * shape.burst,
                two_packets: u64::from(payload) + 1,
            },
            tolerance: 0.05,
        },
        most_seconds: SHAPED_SECONDS,
    }
}

fn shaped_tcp() -> Vec<Entry> {
    const MESSAGES: u64 = 10;
    let entry = |label: &str, rate: &Rate, shaper, ends, (mtu, offload), waiting| {
        let shape = Shape { shaper, rate: rate.bits, burst: rate.burst, ends };
        let name = (format!("{} {label}", rate.name), "tcp");
        let counted = (tcp_overhead(mtu), MESSAGES);
        let link = (mtu, tcp_payload(mtu), offload);
        shaped(name, link, shape, counted, (waiting, rate.options))
    };
    let usual = (1_500, Offload::On);
    let mut entries = Vec::new();
    for rate in &RATES {
        for waiting in [Waiting::Block, Waiting::Poll] {
            entries.push(entry("tbf", rate, Shaper::Tbf, BOTH, usual, waiting));
        }
    }
    for rate in &RATES[2..4] {
        entries.push(entry("tbf one way", rate, Shaper::Tbf, CLIENT, usual, Waiting::Block));
        entries.push(entry("htb", rate, Shaper::Htb, BOTH, usual, Waiting::Block));
    }
    let hundred = &RATES[2];
    for (label, link) in [
        ("tbf, MTU 576", (576, Offload::On)),
        ("tbf, MTU 9000", (9_000, Offload::On)),
        ("tbf, no offload", (1_500, Offload::Off)),
    ] {
        entries.push(entry(label, hundred, Shaper::Tbf, BOTH, link, Waiting::Block));
    }
    entries
}

fn shaped_datagrams() -> Vec<Entry> {
    let udp = |rate: &Rate, mtu: u32| {
        let shape = Shape { shaper: Shaper::Tbf, rate: rate.bits, burst: rate.burst, ends: BOTH };
        let name = (format!("{} tbf, MTU {mtu}", rate.name), "udp");
        let counted = (udp_overhead(mtu), 10);
        let link = (mtu, udp_payload(mtu), Offload::On);
        shaped(name, link, shape, counted, (Waiting::Block, rate.options))
    };
    // A frame cannot exceed a bucket that lets frames pass: the first of a burst is not shaped,
    // and the gap is n/(n - 1) times the rate's. With 64 messages that is 1.6%.
    let ethernet = |rate: &Rate| {
        let shape = Shape { shaper: Shaper::Tbf, rate: rate.bits, burst: 3_100, ends: BOTH };
        // 64 messages of 1,496 bytes take 77 ms at 10 Mb/s, and every size has such rounds.
        let options: &'static [&'static str] = &["-n", "64", "--max-time", "10"];
        let name = (format!("{} tbf", rate.name), "eth");
        let link = (1_500, 1_500, Offload::On);
        let entry = shaped(name, link, shape, (1.0, 64), (Waiting::Block, options));
        Entry { most_seconds: 11.0, ..entry }
    };
    vec![
        udp(&RATES[1], 1_500),
        udp(&RATES[2], 1_500),
        udp(&RATES[2], 9_000),
        udp(&RATES[2], 576),
        ethernet(&RATES[0]),
        ethernet(&RATES[1]),
    ]
}

/// A wire of one protocol: `g` 60 us, `G` 10 ns a byte.
fn wire(latency: Picos) -> Wire {
    let gap_per_byte = PerByte::from_picos(10_000).unwrap();
    let range = Range { first: 1, gap: micros(60), gap_per_byte };
    Wire { latency, ranges: vec![range], jitter: Jitter::None, mishaps: Mishaps::default() }
}

fn micros(micros: u64) -> Picos {
    Picos::from_micros(micros).unwrap()
}

/// A relayed link is as exact as this machine forwards datagrams, within a
/// few us: shorter latencies are measured but not judged.
fn relay(name: &str, wire: Wire) -> Entry {
    let last = wire.ranges.last().unwrap();
    let half_rtt = wire.latency.seconds() + wire.jitter.of_round_trip() / 2.0;
    let exact = wire.latency >= micros(200);
    let limited = Value::Unjudged("limited by the host");
    let changes = match wire.ranges[..] {
        [_, Range { first, .. }] => Changes::At(first as u64),
        _ => Changes::None,
    };
    Entry {
        name: format!("relay {name}"),
        transport: "udp",
        waiting: Waiting::Poll,
        options: &["-s", "1:16K"],
        truth: Truth {
            gap_per_byte: Value::Known(last.gap_per_byte.seconds()),
            at: u64::MAX,
            half_rtt: if exact { Value::Known(half_rtt) } else { limited },
            changes,
            tolerance: 0.05,
        },
        place: Place::Relay(wire),
        most_seconds: DEFAULT_SECONDS,
    }
}

fn relayed() -> Vec<Entry> {
    let plain = wire(micros(300));
    let second = PerByte::from_picos(25_000).unwrap();
    let second = Range { first: 4_096, gap: micros(150), gap_per_byte: second };
    let change = Wire { ranges: vec![plain.ranges[0], second], ..plain.clone() };
    let slow = relay("L 5 ms", wire(micros(5_000)));

    let mut satellite = relay("L 300 ms", wire(micros(300_000)));
    satellite.options = &["-s", "1:16K", "--max-time", "10"];
    satellite.most_seconds = 11.0;
    satellite.truth.tolerance = 0.02;
    // A handful of rounds fits into the time: enough for the round trip only.
    satellite.truth.gap_per_byte = Value::Unjudged("10 us of 300 ms");
    let jitter = |jitter| Wire { jitter, ..wire(micros(500)) };
    let mishaps = |mishaps| Wire { mishaps, ..wire(micros(300)) };
    let none = Mishaps::default();
    vec![
        relay("L 1 us", wire(micros(1))),
        relay("L 50 us", wire(micros(50))),
        relay("L 300 us", plain),
        slow,
        satellite,
        relay("change at 4096 B", change),
        relay("uniform jitter 100 us", jitter(Jitter::Uniform(micros(100)))),
        relay("exponential jitter 50 us", jitter(Jitter::Exponential(micros(50)))),
        relay("loss 1%", mishaps(Mishaps { loss: 0.01, ..none })),
        relay("loss 5%", mishaps(Mishaps { loss: 0.05, ..none })),
        relay("reordering 1%", mishaps(Mishaps { reordering: 0.01, ..none })),
        relay("duplication 1%", mishaps(Mishaps { duplication: 0.01, ..none })),
    ]
}

fn virtual_links() -> Vec<Entry> {
    let entry = |noise: (&str, Noise), link: &Link| {
        let last = link.truths.last().unwrap();
        let first = link.truths[0];
        let sum = first.latency.0 + first.send_overhead.0 + first.recv_overhead.0;
        let straight = link.bend.last <= link.bend.first;
        Entry {
            name: format!("virtual {}, {}", link.name, noise.0),
            place: Place::Virtual(link.clone(), noise.1),
            transport: "-",
            waiting: Waiting::Poll,
            options: &[],
            truth: Truth {
                gap_per_byte: if straight {
                    Value::Known(last.gap_per_byte.seconds())
                } else {
                    Value::Unjudged("bends")
                },
                at: u64::MAX,
                half_rtt: Value::Known(Picos(sum).seconds()),
                changes: match link.truths[..] {
                    [_, second] => Changes::At(second.first_size.into()),
                    _ => Changes::None,
                },
                tolerance: 0.05,
            },
            most_seconds: DEFAULT_SECONDS,
        }
    };
    let links = links();
    let pairs = noises().into_iter().flat_map(|noise| links.iter().map(move |link| (noise, link)));
    pairs.map(|(noise, link)| entry(noise, link)).collect()
}

fn neighbours() -> Vec<Entry> {
    let entry = |name: String, cpus, neighbour, waiting: Waiting| Entry {
        name: format!("loopback tcp {name}, {}", waiting.name()),
        place: Place::Loopback { cpus, neighbour },
        transport: "tcp",
        waiting,
        options: &[],
        truth: Truth {
            gap_per_byte: Value::Reference,
            at: 32_768,
            half_rtt: Value::Reference,
            changes: Changes::Unjudged,
            tolerance: 0.05,
        },
        most_seconds: DEFAULT_SECONDS,
    };
    let mut entries: Vec<Entry> = [10, 50, 100]
        .map(|percent| {
            let name = format!("beside a neighbour of {percent}%");
            entry(name, [0, 1], Neighbour::Percent(percent), Waiting::Poll)
        })
        .into();
    entries.push(entry("on one processor".to_owned(), [0, 0], Neighbour::Nobody, Waiting::Block));
    // The plain loops run alone before and after: what is left of the time says the same.
    let mut busy =
        entry("beside four loops".to_owned(), [0, 1], Neighbour::Loops(4), Waiting::Poll);
    busy.truth = Truth { changes: Changes::None, tolerance: 0.25, ..busy.truth };
    busy.most_seconds = 2.75;
    entries.push(busy);
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_costs_its_share_of_the_headers() {
        // 1,448 bytes of payload in a frame of 1,514.
        assert!((tcp_overhead(1_500) - 1.045_58).abs() < 1e-5);
        // 1,480 bytes of a datagram in a frame of 1,514.
        assert!((udp_overhead(1_500) - 1.022_97).abs() < 1e-5);
        assert!((udp_overhead(576) - 586.0 / 552.0).abs() < 1e-9);
    }

    #[test]
    fn names_are_unique_and_the_quick_part_names_links_that_exist() {
        let entries = catalogue();
        let mut names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), entries.len());
        assert!(QUICK.iter().all(|name| names.contains(name)));
    }
}
