//! Measuring through a network of known parameters.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "test code; the lints only know functions marked #[test]"
)]

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use loggap::clock::HostClock;
use loggap::link::{AnyLink, LinkSettings, UdpLink, Waiting};
use loggap::responder::respond;
use loggap_core::measure::{Buffers, Experiment, Initiator, Outcome, Quantity, SessionOptions};
use loggap_core::units::{Bytes, PerByte, Picos};
use loggap_core::wire::Bounds;
use loggap_tests::relay::{Range, Relay, Wire};

const SETTINGS: LinkSettings =
    LinkSettings { waiting: Waiting::Block, limit: Duration::from_secs(5) };

/// Messages in a train.
const TRAIN: u32 = 10;

fn micros(micros: u64) -> Picos {
    Picos::from_micros(micros).unwrap()
}

/// 4 ms of latency, beside which the wake-ups of two sleeping ends are small; from 4 KiB on another protocol.
fn wire() -> Wire {
    let range = |first, gap, picos| Range {
        first,
        gap: micros(gap),
        gap_per_byte: PerByte::from_picos(picos).unwrap(),
    };
    Wire { latency: micros(4_000), ranges: vec![range(1, 500, 20_000), range(4_096, 900, 40_000)] }
}

fn median(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    values[values.len() / 2] as f64
}

#[test]
fn the_relay_delays_by_what_it_was_told() {
    let wire = wire();
    let (relay, responder) = Relay::start(wire.clone());
    let far = thread::spawn(move || {
        let link = UdpLink::from_socket(responder, None, SETTINGS).unwrap();
        respond(&HostClock::calibrated(), &mut AnyLink::Udp(link), Bounds::default())
    });
    let link = UdpLink::connect(relay.address(), SETTINGS).unwrap();
    let (mut outgoing, mut incoming) = (vec![0; 65_536], vec![0; 65_536]);
    let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
    let options = SessionOptions { shortest_reply: micros(200_000), ..SessionOptions::default() };
    let mut session = Initiator::connect(HostClock::calibrated(), link, buffers, options, |_| {
        ControlFlow::Break(())
    })
    .unwrap();
    // Alternating, so that a disturbance meets both; the first few warm up.
    let mut measure = |size| {
        let of = |quantity, messages| Experiment { quantity, messages, delay: Picos::ZERO, size };
        let pair = [of(Quantity::RoundTrip, 1), of(Quantity::Gap, TRAIN)];
        let (mut singles, mut trains) = (Vec::new(), Vec::new());
        session
            .run(&pair.repeat(15), |outcome| {
                if let Outcome::Sample(sample) = outcome {
                    let values =
                        if sample.experiment == pair[0] { &mut singles } else { &mut trains };
                    values.push(sample.elapsed.0);
                }
            })
            .unwrap();
        (median(singles.split_off(3)), median(trains.split_off(3)))
    };
    for (size, range) in [(1, 0), (2_000, 0), (4_095, 0), (4_096, 1), (16_000, 1)] {
        let (single, train) = measure(size);
        let per_byte =
            wire.ranges[range].gap_per_byte.times(Bytes(u64::from(size)).after_first()).unwrap();
        let round_trip = 2.0 * (wire.latency.0 + per_byte.0) as f64;
        let gap = (wire.ranges[range].gap.0 + per_byte.0) as f64;
        let measured_gap = (train - single) / f64::from(TRAIN - 1);
        assert!(
            (single / round_trip - 1.0).abs() < 0.05,
            "{size}: PRTT(1) {single} ps, true {round_trip}"
        );
        assert!(
            (measured_gap / gap - 1.0).abs() < 0.05,
            "{size}: gap {measured_gap} ps, true {gap}"
        );
    }
    session.close().unwrap();
    far.join().unwrap().unwrap();
}
