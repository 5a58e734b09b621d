//! Checks of the fit, the change detectors, the wire format, and a session on virtual time.

use core::cell::RefCell;
use core::ops::ControlFlow;

use super::{Vector, digest};
use crate::fit::{ChangeDetector, Config, Line, LookAhead, Node, Point, find_ranges};
use crate::measure::{
    Buffers, Disturbance, Experiment, Initiator, Outcome, Quantity, SessionOptions, Shared,
    Simulated, Truth,
};
use crate::units::{PerByte, Picos};
use crate::wire::ethernet::{self, EthernetFrame};
use crate::wire::{FRAME_LEN, Message};

pub(super) const VECTORS: &[Vector] = &[
    Vector { name: "fit: the gap of points on a line", compute: line_gap, answer: 300_000 },
    Vector { name: "fit: their gap per byte", compute: line_slope, answer: 80 },
    Vector { name: "fit: a change of protocol at 512", compute: change, answer: 512 },
    Vector { name: "fit: the gap per byte beyond it", compute: slope_beyond, answer: 40 },
    Vector { name: "fit: a change seen while points arrive", compute: seen, answer: 512 },
    Vector { name: "wire: the bytes of a synchronisation", compute: frame, answer: SYNC },
    Vector { name: "wire: a flipped bit is refused", compute: flipped, answer: 1 },
    // Header, mark and length take 18 bytes; short frames are padded to 60.
    Vector { name: "wire: an Ethernet frame of one byte", compute: one_byte, answer: 60_001 },
    // 2·(L + o_s + o_r + 99·G).
    Vector {
        name: "measure: the round trip of a known link",
        compute: || exchange(Quantity::RoundTrip, 1),
        answer: 2 * (5_000_000 + 1_000_000 + 500_000 + 99 * 3_000),
    },
    // A round trip, plus nine gaps of g + 99·G.
    Vector {
        name: "measure: ten messages back to back",
        compute: || exchange(Quantity::Gap, 10),
        answer: 2 * 6_797_000 + 9 * (1_500_000 + 99 * 3_000),
    },
];

/// FNV-1a of the frame as laid out in docs/protocol.md, computed outside of this crate.
const SYNC: u64 = 0x53b0_004f_aec9_9a68;

const SIZES: [u64; 12] = [1, 2, 8, 32, 64, 128, 256, 511, 512, 600, 800, 1_024];

/// 300 ns plus 80 ps per byte; from `change` bytes on 900 ns plus 40 ps per byte.
#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
fn point(size: u64, change: u64) -> Point {
    let rest = size - 1;
    let value = if size >= change { 900_000 + 40 * rest } else { 300_000 + 80 * rest };
    Point::new(size, value as f64, 0.0).unwrap_or_default()
}

/// Rounds to an integer; `None` if `value` is further than a millionth from it.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be a small whole number"
)]
fn whole(value: f64) -> Option<u64> {
    let nearest = libm::round(value);
    let near = (value - nearest).abs() <= nearest.abs() * 1e-6;
    (near && (0.0..1e15).contains(&nearest)).then_some(nearest as u64)
}

fn line_gap() -> Option<u64> {
    whole(Line::fit(&SIZES.map(|size| point(size, u64::MAX)))?.at_one())
}

fn line_slope() -> Option<u64> {
    whole(Line::fit(&SIZES.map(|size| point(size, u64::MAX)))?.slope())
}

fn change() -> Option<u64> {
    let points = SIZES.map(|size| point(size, 512));
    let mut nodes = [Node::default(); SIZES.len() + 1];
    let (mut changes, mut starts) = (heapless::Vec::<_, 3>::new(), heapless::Vec::<_, 3>::new());
    find_ranges(&[&points], &Config::default(), &mut nodes, &mut changes, &mut starts).ok()?;
    let [change] = changes.into_array().ok()?;
    (starts.as_slice() == [1, change.at]).then_some(change.at)
}

fn slope_beyond() -> Option<u64> {
    let points = SIZES.map(|size| point(size, 512));
    let beyond = points.iter().position(|point| point.size() >= 512)?;
    whole(Line::fit(points.get(beyond..)?)?.slope())
}

/// Change reported by the paper's detector, which stores no points.
fn seen() -> Option<u64> {
    let mut detector = ChangeDetector::new(LookAhead::default());
    let found = SIZES.map(|size| detector.push(point(size, 512)));
    let mut changes = found.into_iter().chain([detector.finish()]).flatten();
    let first = changes.next()?;
    changes.next().is_none().then_some(first.at)
}

fn synchronisation() -> [u8; FRAME_LEN] {
    let mut frame = [0; FRAME_LEN];
    Message::Sync { token: 0x0102_0304 }.emit(&mut frame);
    frame
}

fn frame() -> Option<u64> {
    let frame = synchronisation();
    let parsed = Message::parse(&frame).ok()?;
    (parsed == Message::Sync { token: 0x0102_0304 }).then(|| digest(&frame))
}

fn flipped() -> Option<u64> {
    let mut frame = synchronisation();
    *frame.get_mut(9)? ^= 0x40;
    Some(u64::from(Message::parse(&frame).is_err()))
}

fn one_byte() -> Option<u64> {
    let mut frame = [0xff; ethernet::MIN_FRAME];
    let length = ethernet::emit(ethernet::BROADCAST, [2; 6], &[9], &mut frame)?;
    let parsed = EthernetFrame::parse(frame.get(..length)?).ok()?;
    let whole = parsed.message() == [9] && parsed.source() == [2; 6];
    whole.then_some(length as u64 * 1_000 + parsed.message().len() as u64)
}

const KNOWN: Truth = Truth {
    first_size: 1,
    latency: Picos(5_000_000),
    send_overhead: Picos(1_000_000),
    send_overhead_per_byte: PerByte::ZERO,
    recv_overhead: Picos(500_000),
    recv_overhead_per_byte: PerByte::ZERO,
    gap: Picos(1_500_000),
    gap_per_byte: PerByte(3_000 << PerByte::FRACTION_BITS),
};

/// Result of a session with messages of 100 bytes on a simulated link with known parameters and
/// without noise.
fn exchange(quantity: Quantity, messages: u32) -> Option<u64> {
    let truth = [KNOWN];
    let link = RefCell::new(Simulated::new(&truth, Disturbance::default(), Picos(20_000)));
    let (mut outgoing, mut incoming) = ([0; FRAME_LEN], [0; FRAME_LEN]);
    let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
    let options = SessionOptions::default();
    let go_on = |_| ControlFlow::Continue(());
    let mut session =
        Initiator::connect(Shared(&link), Shared(&link), buffers, options, go_on).ok()?;
    let experiment = Experiment { quantity, messages, delay: Picos::ZERO, size: 100 };
    match session.measure(&experiment).ok()? {
        Outcome::Sample(sample) => Some(sample.elapsed.0),
        Outcome::Late(_) | Outcome::Lost(_) => None,
    }
}
