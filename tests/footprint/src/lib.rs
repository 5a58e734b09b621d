//! Calls the core the way a firmware would. Only its symbols matter: a panic
//! that the optimiser cannot exclude shows as an undefined
//! `loggap_panic_was_reachable`.

#![no_std]

mod measuring;
mod streaming;

use loggap_core::fit::{Config, Node, Point, find_ranges};
use loggap_core::goal::binary::{Native, NativeWriter, Reference, ReferenceWriter};
use loggap_core::goal::text::{Block, LabelMemory, Survey, TextMemory, TextWriter, read};
use loggap_core::goal::{Edge, RankMemory, RankNode, SliceOutput};
use loggap_core::sim::Entry;
use loggap_core::sim::network::{
    Delivery, Departure, Flow, Flows, FlowsMemory, Hop, Link, Network, QueuedLink, Tenants,
    Topology, Usage,
};
use loggap_core::stats::{Confidence, Sorted};
use loggap_core::units::{Bytes, PerByte, Picos};
use loggap_core::wire::ethernet::EthernetFrame;

unsafe extern "C" {
    fn loggap_panic_was_reachable() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: never linked into a program; the symbol exists to be found.
    unsafe { loggap_panic_was_reachable() }
}

/// Sizes in the sweeps of this library.
const POINTS: usize = 64;

/// Median of `sample` with its interval's lower end.
#[unsafe(no_mangle)]
pub extern "C" fn footprint_stats(sample: &mut [u64; POINTS]) -> u64 {
    let sorted = Sorted::new(sample);
    let low = sorted.median_interval(Confidence::P95).map_or(0, |interval| interval.low);
    sorted.median().unwrap_or(0).wrapping_add(low)
}

/// Time of `bytes` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn footprint_units(per_byte: u64, bytes: u64) -> u64 {
    let time = PerByte(per_byte).times(Bytes(bytes)).and_then(|rest| rest.plus(Picos(1)));
    time.map_or(0, |picos| picos.0)
}

/// Protocol changes in a sweep.
#[unsafe(no_mangle)]
pub extern "C" fn footprint_fit(values: &[f64; POINTS], sizes: &[u64; POINTS]) -> u64 {
    let mut points = [Point::new(1, 0.0, 0.0).unwrap_or_else(|_| loop {}); POINTS];
    for ((slot, &value), &size) in points.iter_mut().zip(values).zip(sizes) {
        let Ok(point) = Point::new(size, value, 0.0) else { return 0 };
        *slot = point;
    }
    let mut nodes = [Node::default(); POINTS + 1];
    let (mut changes, mut starts) = (heapless::Vec::<_, 8>::new(), heapless::Vec::<_, 8>::new());
    match find_ranges(&[&points], &Config::default(), &mut nodes, &mut changes, &mut starts) {
        Ok(()) => changes.iter().map(|change| change.at).chain(starts).sum(),
        Err(_) => 0,
    }
}

/// Length of the message in an Ethernet frame.
#[unsafe(no_mangle)]
pub extern "C" fn footprint_wire(frame: &[u8; 64]) -> usize {
    EthernetFrame::parse(frame).map_or(0, |frame| frame.message().len())
}

/// Length of GOAL text after reading and writing it.
#[unsafe(no_mangle)]
pub extern "C" fn footprint_goal_text(text: &[u8; 4096], out: &mut [u8; 4096]) -> usize {
    let Ok(survey) = Survey::of(text) else { return 0 };
    let (mut entries, mut buckets) = ([[0; 2]; POINTS], [0; POINTS]);
    let labels = LabelMemory { entries: &mut entries, buckets: &mut buckets, seed: 0 };
    let memory = TextMemory { blocks: &mut [Block::default(); POINTS], labels };
    let mut writer = TextWriter::new(SliceOutput::new(out));
    if read(text, &survey, memory, &mut writer).is_err() {
        return 0;
    }
    writer.finish().map_or(0, |output| output.written().len())
}

/// Length of a schedule in LogGOPSim's format after a way through ours.
#[unsafe(no_mangle)]
pub extern "C" fn footprint_goal_binary(
    file: &[u8; 4096],
    ours: &mut [u8; 4096],
    out: &mut [u8; 4096],
) -> usize {
    let Ok(view) = Reference::open(file) else { return 0 };
    let mut pending = [[0; 8]; POINTS];
    let mut writer = NativeWriter::new(SliceOutput::new(ours), &mut pending);
    if view.read(&mut [0; POINTS], &mut writer).is_err() {
        return 0;
    }
    let Ok(written) = writer.finish() else { return 0 };
    let Ok(view) = Native::open(written.written()) else { return 0 };
    let mut nodes = [RankNode::EMPTY; POINTS];
    let mut edges = [Edge::default(); POINTS];
    let mut successors = [0; POINTS];
    let memory = RankMemory { nodes: &mut nodes, edges: &mut edges, successors: &mut successors };
    let mut writer = ReferenceWriter::new(SliceOutput::new(out), memory);
    if view.read(&mut writer).is_err() {
        return 0;
    }
    writer.finish().map_or(0, |output| output.written().len())
}

/// Wrong answers of the self-test, which calls every part of the core.
#[unsafe(no_mangle)]
pub extern "C" fn footprint_selftest() -> u32 {
    loggap_core::selftest::run(|_| ()).failed
}

/// When the last of some flows over a network ends, and what crosses its
/// leaves.
#[unsafe(no_mangle)]
pub extern "C" fn footprint_network(
    first: u32,
    second: u32,
    text: &[u8; 32],
    links: &mut [Link; POINTS],
    hops: &mut [Hop; POINTS],
) -> u64 {
    let width = f64::from(second);
    let topologies = [
        Topology::parse(core::str::from_utf8(text).unwrap_or_default(), first),
        Topology::star(first),
        Topology::tree(first, second, width),
        Topology::fat_tree(first, width),
        Topology::torus(&[first, second]),
        Topology::dragonfly(first, second, second),
        Topology::rail(first, second, second, width),
    ];
    let mut last = 0;
    for topology in topologies.into_iter().flatten() {
        let mut steps = [0.0; POINTS];
        let memory = FlowsMemory {
            links,
            link_queue: &mut [QueuedLink::default(); POINTS],
            changed: &mut [0; POINTS],
            hops,
            flows: &mut [Flow::default(); POINTS],
            deliveries: &mut [Delivery::default(); POINTS],
            buckets: &mut [0; POINTS],
            ends: &mut [Entry::default(); POINTS],
            ends_in_order: &mut [Entry::default(); POINTS],
            unlimited: &mut [0; POINTS],
            arrivals: &mut [Entry::default(); POINTS],
            arrivals_in_order: &mut [Entry::default(); POINTS],
        };
        let tenants = Tenants { ranks: first, hosts: &[], seed: 3, messages: 4 };
        let Ok(network) = Flows::new(&topology, tenants, memory) else { continue };
        let Some(usage) = Usage::new(&mut steps, 2) else { continue };
        let mut network = network.with_usage(usage);
        for op in 0..4 {
            let (now, volume, delay) = (op.into(), first.into(), second.into());
            let message = Departure { op, source: op, target: second, now, seq: op, volume, delay };
            if network.launch(&message, &mut ()).is_err() {
                break;
            }
        }
        while let Ok(Some(entry)) = network.first(u64::MAX, &()) {
            network.land(&mut ());
            last = entry.time().0;
        }
        last = last.wrapping_add(network.carried().filter(|carried| *carried > 1.0).count() as u64);
    }
    last
}
