//! Probes over a simulated link, for the tests of both methods.

use core::cell::RefCell;
use core::ops::ControlFlow;
use std::vec;
use std::vec::Vec;

use crate::measure::methods::probe::{Probe, ProbeRow, ProbeTime, Spread};
use crate::measure::{Buffers, Disturbance, Initiator, SessionOptions, Shared, Simulated, Truth};
use crate::model::{Estimate, Mark};
use crate::stats::{Confidence, Sorted};
use crate::units::{Picos, SignedPicos};

/// Result of `method` in a session over `simulated`.
fn within<T>(
    simulated: Simulated<'_>,
    method: impl FnOnce(&mut Initiator<'_, Shared<'_, '_>, Shared<'_, '_>>) -> T,
) -> T {
    let simulated = RefCell::new(simulated);
    let (mut outgoing, mut incoming) = (vec![0; 65_536], vec![0; 65_536]);
    let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
    let options = SessionOptions::default();
    let on_queue = |_| ControlFlow::Continue(());
    let ends = (Shared(&simulated), Shared(&simulated));
    let mut session = Initiator::connect(ends.0, ends.1, buffers, options, on_queue).unwrap();
    method(&mut session)
}

/// Times every probe that `missing` adds to those before, `timings` times, until it adds none.
pub(super) fn measured(
    simulated: Simulated<'_>,
    timings: u16,
    missing: impl Fn(&[ProbeRow], &mut dyn FnMut(Probe)),
) -> Vec<ProbeRow> {
    within(simulated, |session| {
        let mut rows = Vec::new();
        loop {
            let mut added = Vec::new();
            missing(&rows, &mut |probe| {
                if !added.contains(&probe) {
                    added.push(probe);
                }
            });
            if added.is_empty() {
                return rows;
            }
            for probe in added {
                assert!(rows.iter().all(|row: &ProbeRow| row.probe != probe), "{probe:?} twice");
                let mut times = Vec::new();
                // The first run warms up.
                let ended = session.probe(&probe, timings + 1, |time| times.push(time));
                assert_eq!(ended, Ok(true), "{probe:?}");
                let median = |of: fn(&ProbeTime) -> SignedPicos| {
                    let mut values: Vec<_> = times.iter().map(of).collect();
                    let found = Sorted::new(&mut values).median_interval(Confidence::P95).unwrap();
                    let (value, low, high) = (found.median, found.low, found.high);
                    Estimate { value, low, high, mark: Mark::Converged }
                };
                let mut unanswered: Vec<_> = times.iter().map(|time| time.unanswered).collect();
                unanswered.sort_unstable();
                rows.push(ProbeRow {
                    probe,
                    time: median(|time| time.time),
                    whole: median(|time| time.whole),
                    unanswered: unanswered[unanswered.len() / 2],
                    samples: 100,
                });
            }
        }
    })
}

#[test]
fn messages_both_ways_take_a_round_trip_each_alone_and_a_gap_each_in_a_window() {
    let [latency, send_overhead, recv_overhead, gap] =
        [5_000_000, 700_000, 900_000, 2_500_000].map(Picos);
    let truth =
        Truth { first_size: 1, latency, send_overhead, recv_overhead, gap, ..Truth::default() };
    let truths = [truth];
    let simulated = Simulated::new(&truths, Disturbance::default(), Picos(20_000));
    let [alone, together] = within(simulated, |session| {
        [1, 32].map(|window| session.both_ways(1, 100, window).unwrap().unwrap().0)
    });
    let trip = 2 * (latency.0 + send_overhead.0 + recv_overhead.0);
    let near = |found: u64, truth: u64| found.abs_diff(truth) * 50 <= truth;
    assert!(near(alone, 100 * trip), "{alone} instead of 100 times {trip}");
    // The first message's round trip precedes the steady state.
    let steady = 99 * gap.0 + trip;
    assert!(near(together, steady), "{together} instead of {steady}");
}

#[test]
fn wide_intervals_excuse_a_fifth_and_no_more() {
    let value = |value, half| Spread { value, half };
    assert!(value(100.0, 0.0).agrees(value(96.0, 0.0), 0.05));
    assert!(!value(100.0, 0.0).agrees(value(94.0, 0.0), 0.05));
    assert!(value(100.0, 5.0).agrees(value(94.0, 5.0), 0.05));
    assert!(value(100.0, 50.0).agrees(value(81.0, 50.0), 0.05));
    assert!(!value(100.0, 50.0).agrees(value(79.0, 50.0), 0.05));
}
