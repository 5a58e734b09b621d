//! Probes over a simulated link, for the tests of both methods.

use core::cell::RefCell;
use core::ops::ControlFlow;
use std::vec;
use std::vec::Vec;

use crate::measure::methods::probe::{Probe, ProbeRow, ProbeTime};
use crate::measure::{Buffers, Disturbance, Initiator, SessionOptions, Shared, Simulated, Truth};
use crate::model::Estimate;
use crate::units::Picos;

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

/// Times every probe that `missing` adds to those before, once as the link has no noise, until it
/// adds none.
pub(super) fn measured(
    simulated: Simulated<'_>,
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
                let mut found = ProbeTime::default();
                assert!(session.probe(&probe, 2, |time| found = time).unwrap());
                let [time, whole] = [found.time, found.whole].map(Estimate::exact);
                rows.push(ProbeRow {
                    probe,
                    time,
                    whole,
                    unanswered: found.unanswered,
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
