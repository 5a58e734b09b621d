//! The reference simulator's own results.

use loggap_tests::cases::Case;
use loggap_tests::engine;
use loggap_tests::program::Program;
use loggap_tests::shadow::{self, Outcome, Quirks, Settings};

#[test]
fn generators_write_the_schedules_that_the_reference_generators_wrote() {
    let mut compared = 0;
    for case in Case::all() {
        if let (Some(goal), Some((pattern, options))) = (&case.goal, case.pattern()) {
            let ours = Program::of_pattern(pattern, &options);
            let theirs = Program::of_text(goal);
            assert_eq!(ours.ranks.len(), theirs.ranks.len(), "case {}", case.id);
            for (rank, (ours, theirs)) in ours.ranks.iter().zip(&theirs.ranks).enumerate() {
                assert_eq!(ours.ops, theirs.ops, "case {} rank {rank}", case.id);
                assert_eq!(ours.edges, theirs.edges, "case {} rank {rank}", case.id);
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 20);
}

/// Cases in which the reference errs and we do not, with our finishing
/// times, in ns: of each rank, or the latest alone.
const DEVIATIONS: [(u32, &[u64]); 17] = [
    // An empty message costs what one byte costs.
    (396, &[28, 28]),
    (531, &[9_016]),
    (532, &[1_204]),
    (865, &[3_000, 7_000]),
    (867, &[1_000, 2_500]),
    (868, &[1_000, 3_300]),
    // An operation on another processor waits for the end of the one before.
    (838, &[2_500, 6_542]),
    (839, &[1_010, 1_127]),
    (850, &[1_500, 11_504]),
    (851, &[10, 1_129]),
    // A message is received on the processor and interface of its receive.
    (842, &[10, 100_000]),
    (843, &[500, 100_000]),
    (844, &[1_500, 101_545]),
    (845, &[10, 100_020]),
    (858, &[10, 10, 2_168]),
    // The size of the send alone decides about rendezvous.
    (874, &[3_005_547, 3_005_542, 3_001_500]),
    (875, &[3_000_132, 3_000_127, 3_000_010]),
];

/// Finishing times as far as the case has them, and the number of events,
/// against the reference's, its releases sorted stably.
fn agrees(case: &Case, outcome: &Outcome) -> bool {
    let nanos = |nanos: &u64| nanos * 1_000;
    let max = case.max_with_stable_sort.unwrap_or(case.max);
    let hosts = case.hosts_with_stable_sort.as_ref().or(case.hosts.as_ref());
    outcome.makespan() == nanos(&max)
        && outcome.events == case.events
        && hosts.is_none_or(|hosts| outcome.finish.iter().copied().eq(hosts.iter().map(nanos)))
}

#[test]
fn with_its_errors_repeated_the_shadow_equals_the_reference_in_every_case() {
    let quirks = Quirks {
        starts_early: true,
        receives_on_send_indices: true,
        empty_wraps: true,
        late_receive_decides: true,
    };
    for case in Case::all() {
        let settings = Settings { quirks, ..Settings::new(case.parameters()) };
        let outcome = shadow::run(&case.program(), &settings, None);
        assert!(agrees(&case, &outcome), "case {}: {outcome:?}", case.id);
    }
}

#[test]
fn the_shadow_equals_the_reference_but_in_the_documented_deviations() {
    for case in Case::all() {
        let outcome = shadow::run(&case.program(), &Settings::new(case.parameters()), None);
        match DEVIATIONS.iter().find(|(id, _)| *id == case.id) {
            Some((_, hosts)) if case.hosts.is_none() => {
                assert_eq!(outcome.makespan(), hosts[0] * 1_000, "case {}", case.id);
            }
            Some((_, hosts)) => {
                let ours: Vec<u64> = outcome.finish.iter().map(|time| time / 1_000).collect();
                assert_eq!(ours, *hosts, "case {}", case.id);
            }
            None => assert!(agrees(&case, &outcome), "case {}: {outcome:?}", case.id),
        }
    }
}

#[test]
fn the_engine_equals_the_reference_but_in_the_documented_deviations() {
    for case in Case::all() {
        let outcome = engine::run(&case.program(), &Settings::new(case.parameters()), None);
        match DEVIATIONS.iter().find(|(id, _)| *id == case.id) {
            Some((_, hosts)) if case.hosts.is_none() => {
                assert_eq!(outcome.makespan(), hosts[0] * 1_000, "case {}", case.id);
            }
            Some((_, hosts)) => {
                let ours: Vec<u64> = outcome.finish.iter().map(|time| time / 1_000).collect();
                assert_eq!(ours, *hosts, "case {}", case.id);
            }
            None => assert!(agrees(&case, &outcome), "case {}: {outcome:?}", case.id),
        }
    }
}
