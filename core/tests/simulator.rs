//! The three simulations against each other, on random schedules and on
//! patterns: they share no way to order events.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "helpers of tests: a wrong assumption should end the test"
)]

mod engines;

#[allow(dead_code, unreachable_pub, clippy::expect_used, reason = "shared with the other crate")]
#[path = "../../tests/src/program.rs"]
mod program;

#[allow(unreachable_pub, reason = "shared with the other crate")]
#[path = "../../tests/src/random_pattern.rs"]
mod random_pattern;

#[allow(dead_code, unreachable_pub, reason = "shared with the other crate")]
#[path = "../../tests/src/random_program.rs"]
mod random_program;

use std::collections::{BTreeMap, BTreeSet};

use engines::{
    Detours, Outcome, Rules, Stopped, messages, observe_in_windows, run, run_computed,
    run_in_windows,
};
use loggap_core::model::LogGops;
use loggap_core::random::Random;
use loggap_core::sim::{
    Counters, MessageKind, NoNoise, Noise, Observed, Observer, Parameters, RankCounters, Receive,
    Rendezvous, Sent, Settings, Silent,
};
use loggap_core::units::{Bytes, PerByte, Picos};
use program::Program;
use random_pattern::{options, patterns};
use random_program::{Shape, crowded, parameters, program};

/// One of all combinations of the switches.
fn settings(random: &mut Random) -> Settings {
    let switches = random.below(4);
    Settings {
        receive: if switches & 1 == 0 { Receive::Hold } else { Receive::Overlap },
        rendezvous: if switches & 2 == 0 { Rendezvous::Instant } else { Rendezvous::Handshake },
    }
}

const NOISE: Detours = Detours(3_000);

/// The outcome of the engine.
fn outcome(program: &Program, rules: Rules<'_>, noise: impl Noise) -> Outcome {
    run(program, rules, noise, Silent).unwrap().0
}

/// Whose period is longer than any run: noise that takes nothing.
const NONE: Detours = Detours(u64::MAX / 1_000);

/// Schedules that windows are for, of up to 12 ranks.
const MANY: Shape = Shape { ranks: 12, messages: 60, calcs: 4, edges: 4, ..Shape::PLAIN };

/// What happens on each rank, event by event.
#[derive(Debug, Default)]
struct Log {
    ranks: BTreeMap<u32, Vec<Vec<String>>>,
}

impl Observer for Log {
    /// Adds to the present event of a rank; an event tells in no order, and the release of what
    /// waits for nothing is no part of one.
    fn observe(&mut self, event: Observed<'_>) {
        let mut told = format!("{event:?}");
        let rank = match event {
            Observed::Begun(begun) => {
                self.ranks.entry(begun.rank).or_default().push([told].into());
                return;
            }
            Observed::Sent(sent) => {
                // Tags of these mean nothing.
                if matches!(sent.message_kind, MessageKind::Cts | MessageKind::Data) {
                    told = format!("{:?}", Sent { tag: 0, ..*sent });
                }
                sent.rank
            }
            Observed::Satisfied(satisfied) => satisfied.rank,
            Observed::Released(released) => released.rank,
            Observed::Taken(taken) => taken.rank,
            Observed::Resumed(resumed) => resumed.rank,
            Observed::Calculated(calculated) => calculated.rank,
            Observed::Handled(handled) => handled.rank,
            Observed::Matched(matched) => matched.rank,
            Observed::Arrived(_) => return,
        };
        if let Some(event) = self.ranks.get_mut(&rank).and_then(|events| events.last_mut()) {
            event.push(told);
            event.sort_unstable();
        }
    }
}

#[test]
fn windows_equal_the_engine_and_tell_observers_the_same_rank_by_rank() {
    let mut compared = 0;
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let program = program(&mut random, &MANY);
        let rules = (Parameters::one(parameters(&mut random)), settings(&mut random));
        let noise = if random.below(3) == 0 { NOISE } else { NONE };
        let mail = if random.below(3) == 0 { random.below(4) as u32 } else { u32::MAX };
        let cut = (random.below(4) as u32, mail);
        let mut memory = vec![RankCounters::default(); program.ranks.len()];
        let mut chunks = memory.chunks_mut(1 << cut.0);
        let observe =
            |first| (Log::default(), Counters::from_rank(first, chunks.next().unwrap_or_default()));
        let seen = observe_in_windows(&program, rules, noise, cut, observe);
        let (windows, observers) = match seen {
            Err(Stopped::Unsuitable(_)) => continue,
            seen => seen.unwrap(),
        };
        let (mut told, mut counted) = (BTreeMap::new(), Vec::new());
        for (log, counters) in observers {
            told.extend(log.ranks);
            counted.extend_from_slice(counters.finish());
        }
        let mut ranks = vec![RankCounters::default(); program.ranks.len()];
        let observers = (Log::default(), Counters::new(&mut ranks));
        let (outcome, (log, counters)) = run(&program, rules, noise, observers).unwrap();
        assert_eq!(windows, outcome, "seed {seed}");
        assert_eq!(counted, counters.finish(), "seed {seed}");
        for (rank, events) in &log.ranks {
            for (told, event) in told[rank].iter().zip(events) {
                assert_eq!(told, event, "seed {seed} rank {rank}");
            }
            assert_eq!(told[rank].len(), events.len(), "seed {seed} rank {rank}");
        }
        assert_eq!(told.len(), log.ranks.len(), "seed {seed}");
        compared += 1;
    }
    assert!(compared > 150, "{compared}");
}

/// Sets of parameters, one of them a link that takes no time but its latency.
fn sets() -> [LogGops; 5] {
    let set = |latency: u64, overhead: u64, gap: u64, gap_per_byte: u64, overhead_per_byte: u64| {
        LogGops {
            latency: Picos(latency * 1_000),
            overhead: Picos(overhead * 1_000),
            gap: Picos(gap * 1_000),
            gap_per_byte: PerByte((gap_per_byte * 1_000) << 16),
            overhead_per_byte: PerByte((overhead_per_byte * 1_000) << 16),
            eager_limit: Bytes(1 << 30),
        }
    };
    [
        set(2_500, 1_500, 1_000, 6, 0),
        set(2_500, 100, 9_000, 1, 3),
        set(0, 1_500, 1_000, 6, 0),
        set(700, 300, 2_000, 3, 7),
        set(1, 0, 0, 0, 0),
    ]
}

#[test]
fn computed_patterns_and_windows_equal_stored_patterns() {
    let (mut compared, mut open, mut cut) = (0, 0, 0);
    let mut random = Random::new(21);
    for (pattern, algorithm) in patterns() {
        for round in 0..10 {
            let options = options(&mut random, algorithm);
            let set = sets()[round % 5];
            let parameters = Parameters::one(set);
            let noise = Detours(3_000_000);
            let computed = if round < 5 {
                run_computed((pattern, &options), parameters, NoNoise)
            } else {
                run_computed((pattern, &options), parameters, noise)
            };
            let Some(computed) = computed else { continue };
            let label = format!("{pattern} {options:?} {set:?}");
            let (computed, ties) = computed.expect(&label);
            let program = Program::of_pattern(pattern, &options);
            let rules = (parameters, Settings::default());
            let stored = if round < 5 {
                run(&program, rules, NoNoise, Silent)
            } else {
                run(&program, rules, noise, Silent)
            };
            let stored = stored.unwrap().0;
            assert_eq!(computed.events, stored.events, "{label}");
            if ties == 0 {
                assert_eq!(computed, stored, "{label}");
                compared += 1;
            } else {
                open += 1;
            }
            if round < 5
                && let Ok(windows) = run_in_windows(&program, rules, NoNoise, (2, u32::MAX))
            {
                assert_eq!(windows, stored, "{label}");
                cut += 1;
            }
        }
    }
    assert!(compared > 300 && open * 20 < compared && cut > 100, "{compared} {open} {cut}");
}

/// Counts events.
#[derive(Default)]
struct Tally {
    calculated: u64,
    sent: u64,
    bytes: u64,
    handled: u64,
    /// Sends whose messages have met a receive; those of a handshake twice.
    matched: BTreeSet<u32>,
    unexpected: u64,
}

impl Observer for Tally {
    fn observe(&mut self, event: Observed<'_>) {
        match event {
            Observed::Calculated(_) => self.calculated += 1,
            Observed::Sent(event) => {
                self.sent += 1;
                self.bytes += event.size;
            }
            Observed::Handled(_) => self.handled += 1,
            Observed::Matched(event) => {
                self.matched.insert(event.send);
                self.unexpected += u64::from(event.unexpected);
            }
            _ => {}
        }
    }
}

#[test]
fn observers_see_every_operation_once_and_counters_count_what_they_see() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let program = program(&mut random, &Shape::WILD);
        let rules = (Parameters::one(parameters(&mut random)), settings(&mut random));
        let mut ranks = vec![RankCounters::default(); program.ranks.len()];
        let counters = Counters::new(&mut ranks);
        let observers = (Some(counters), (Tally::default(), None::<Tally>));
        let (outcome, observers) = run(&program, rules, NOISE, observers).unwrap();
        let (Some(counters), (tally, None)) = observers else { panic!("an observer is lost") };
        let ranks = counters.finish();
        let sum = |of: fn(&RankCounters) -> u64| ranks.iter().map(of).sum::<u64>();
        assert_eq!(sum(|rank| rank.calcs), tally.calculated);
        assert_eq!(sum(|rank| rank.sent), tally.sent);
        assert_eq!(sum(|rank| rank.bytes_sent.0), tally.bytes);
        assert_eq!(sum(|rank| rank.received), tally.handled);
        assert_eq!(sum(|rank| rank.unexpected), tally.unexpected);
        let [sends, receives] = messages(&program);
        let left =
            |kind: &str| outcome.unfinished.iter().filter(|left| left.starts_with(kind)).count();
        if left("NeverReady") == 0 {
            assert_eq!(tally.calculated as usize, program.ops() - sends - receives);
            assert_eq!(tally.matched.len(), receives - left("Waiting"), "seed {seed}");
            assert_eq!(tally.matched.len(), sends - left("Unreceived"), "seed {seed}");
        }
        // A rank with one processor is never busy after it is done.
        for (rank, part) in program.ranks.iter().enumerate() {
            if part.ops.iter().all(|op| op.cpu == 0) {
                assert!(ranks[rank].busy().0 <= outcome.finish[rank], "seed {seed} rank {rank}");
            }
        }
    }
}

#[test]
fn messages_that_wait_are_counted_at_their_most() {
    // Two messages of 1 byte, at L + 2o and g later, to a rank that calculates until both wait.
    let text = "num_ranks 2\nrank 0 {\na: send 1b to 1 tag 1\nb: send 1b to 1 tag 2\n}\n\
                rank 1 {\nc: calc 90000 cpu 1\nr: recv 1b from 0 tag 1\ns: recv 1b from 0 tag 2\n\
                r requires c\ns requires c\n}\n";
    let program = Program::of_text(text);
    let rules = (Parameters::one(sets()[0]), Settings::default());
    let mut ranks = [RankCounters::default(); 2];
    let counters = Counters::new(&mut ranks);
    let (_, counters) = run(&program, rules, NoNoise, counters).unwrap();
    let [sender, receiver] = counters.finish() else { panic!("two ranks") };
    assert_eq!((sender.sent, sender.max_unexpected, sender.sending), (2, 0, Picos(3_000_000)));
    assert_eq!((receiver.unexpected, receiver.max_unexpected), (2, 2));
    assert_eq!((receiver.max_posted, receiver.receiving), (0, Picos(3_000_000)));
}

/// FNV-1a over the outcomes of many schedules.
fn digest(outcomes: impl Iterator<Item = Outcome>) -> u64 {
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for outcome in outcomes {
        for byte in format!("{outcome:?}").bytes() {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    digest
}

/// Wildcards, several processors and interfaces, and faults are for the engine
/// alone. The digests are its own, so they tell only that an answer has
/// changed; that it is right is for `tests/tests/random_programs.rs`, where a
/// second simulator runs the same schedules.
#[test]
fn the_engine_gives_the_answers_that_it_gave() {
    let wild = |seed: u64| {
        let mut random = Random::new(seed);
        let program = program(&mut random, &Shape::WILD);
        let settings = settings(&mut random);
        let rules = (Parameters::one(parameters(&mut random)), settings);
        let noise = if random.below(3) == 0 { NOISE } else { NONE };
        outcome(&program, rules, noise)
    };
    let many = |seed: u64| {
        let mut random = Random::new(seed);
        let program = crowded(&mut random);
        let settings = settings(&mut random);
        outcome(&program, (Parameters::one(parameters(&mut random)), settings), NoNoise)
    };
    let digests = [digest((0..800).map(wild)), digest((0..25).map(many))];
    assert_eq!(digests, [0x3ee4_3038_31dc_eb55, 0xce86_df81_9a97_8659], "{digests:#x?}");
}
