//! Thousands of random schedules, each a seed.

use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::goal::{ANY, ANY_TAG, Op, OpKind};
use loggap_core::model::LogGops;
use loggap_core::random::Random;
use loggap_core::units::{Bytes, PerByte, Picos};
use loggap_tests::engine;
use loggap_tests::program::{Program, RankProgram};
use loggap_tests::random_program::{Shape, crowded, of_picos, parameters, program};
use loggap_tests::seeds;
use loggap_tests::shadow::{self, Outcome, Rendezvous, Settings};

fn count(program: &Program, wanted: fn(&OpKind) -> bool) -> usize {
    program.ranks.iter().flat_map(|rank| &rank.ops).filter(|op| wanted(&op.kind)).count()
}

/// No operation begins before what it requires has ended, nor before what it
/// requires to have started has started.
fn dependencies_hold(program: &Program, outcome: &Outcome) -> bool {
    program.ranks.iter().zip(&outcome.spans).all(|(rank, spans)| {
        rank.edges.iter().all(|edge| {
            let Some((start, _)) = spans[edge.op as usize] else { return true };
            let (began, ended) = spans[edge.on as usize].unwrap();
            start >= if edge.start { began } else { ended }
        })
    })
}

#[test]
fn nothing_begins_too_early_and_no_message_is_lost_or_doubled() {
    let mut complete = 0;
    for seed in 0..4_000 {
        let mut random = Random::new(seed);
        let program = program(&mut random, &Shape::WILD);
        let settings = Settings::random(&mut random);
        let outcome = shadow::run(&program, &settings, None);
        assert!(dependencies_hold(&program, &outcome), "seed {seed}");
        let released = outcome.spans.iter().flatten().flatten().count();
        assert_eq!(released + outcome.never_ready.len(), program.ops(), "seed {seed}");
        if outcome.never_ready.is_empty() {
            let sends = count(&program, |kind| matches!(kind, OpKind::Send { .. }));
            let receives = count(&program, |kind| matches!(kind, OpKind::Receive { .. }));
            let matched = sends - outcome.unexpected.len();
            assert_eq!(matched, receives - outcome.posted.len(), "seed {seed}");
            complete += 1;
            if settings.rendezvous == Rendezvous::Instant {
                assert_eq!(outcome.events, (program.ops() + sends) as u64, "seed {seed}");
            }
        }
    }
    assert!(complete > 500, "{complete} programs came to their end");
}

/// Patterns in which nothing competes, so that slower parts only delay.
const WITHOUT_CONTENTION: [Pattern; 5] = [
    Pattern::BinomialBroadcast,
    Pattern::BinaryBroadcast,
    Pattern::PipelinedRing,
    Pattern::Scatter,
    Pattern::Dissemination,
];

#[test]
fn without_contention_finishing_times_grow_with_every_parameter() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let eager = |set: LogGops| LogGops { eager_limit: Bytes(u64::MAX), ..set };
        let set = eager(parameters(&mut random));
        let pattern = WITHOUT_CONTENTION[random.below(5) as usize];
        let options = Options::new(2 + random.below(14) as u32, 7);
        let program = Program::of_pattern(pattern, &options);
        let finish = |set| engine::run(&program, &Settings::new(set), None).finish;
        let base = finish(set);
        let more = Picos(500 * (1 + random.below(6)));
        let more_per_byte = PerByte((500 << 16) * (1 + random.below(6)));
        let slower = [
            LogGops { latency: Picos(set.latency.0 + more.0), ..set },
            LogGops { overhead: Picos(set.overhead.0 + more.0), ..set },
            LogGops { gap: Picos(set.gap.0 + more.0), ..set },
            LogGops { gap_per_byte: PerByte(set.gap_per_byte.0 + more_per_byte.0), ..set },
            LogGops {
                overhead_per_byte: PerByte(set.overhead_per_byte.0 + more_per_byte.0),
                ..set
            },
        ];
        for set in slower {
            let later = finish(set);
            assert!(base.iter().zip(&later).all(|(a, b)| a <= b), "seed {seed} {pattern} {set:?}");
        }
    }
}

#[test]
fn the_engine_equals_the_shadow_on_every_program() {
    for (shape, all) in [(Shape::WILD, 0..20_000), (Shape::PLAIN, 20_000..30_000)] {
        for seed in seeds(all) {
            let mut random = Random::new(seed);
            let program = program(&mut random, &shape);
            let settings = Settings::random(&mut random);
            let noise = shadow::random_noise(&mut random);
            let theirs = shadow::run(&program, &settings, noise);
            let ours = engine::run(&program, &settings, noise);
            assert_eq!(ours.common(), theirs.common(), "seed {seed} {settings:?} {program:?}");
            if noise.is_none() {
                let ours = engine::longest_queues(&program, &settings);
                assert_eq!(ours, theirs.longest_queues, "seed {seed} {settings:?} {program:?}");
            }
        }
    }
}

/// Opens the receives of some ranks to every sender, or to every tag.
fn open_receives(random: &mut Random, program: &mut Program) {
    for rank in &mut program.ranks {
        let open = random.below(4);
        for op in &mut rank.ops {
            if let OpKind::Receive { peer, tag, .. } = &mut op.kind {
                *peer = if open & 1 != 0 { ANY } else { *peer };
                *tag = if open & 2 != 0 { ANY_TAG } else { *tag };
            }
        }
    }
}

/// Messages that overtake each other wait for receives on other processors.
#[test]
fn the_engine_equals_the_shadow_where_many_messages_wait_for_several_processors() {
    let busy = Shape {
        ranks: 4,
        messages: 60,
        calcs: 6,
        wildcards: 4,
        edges: 2,
        faults: 1,
        ..Shape::WILD
    };
    for seed in seeds(40_000..46_000) {
        let mut random = Random::new(seed);
        let mut program = program(&mut random, &busy);
        if seed % 2 == 1 {
            open_receives(&mut random, &mut program);
        }
        let mut settings = Settings::random(&mut random);
        let (_, far) = settings.parameters[0];
        let near = LogGops { latency: Picos(far.latency.0 / 8), ..far };
        settings.parameters = vec![(random.below(8), near), (u64::MAX, far)];
        settings.receive_overheads.clear();
        settings.levels.clear();
        let theirs = shadow::run(&program, &settings, None);
        let ours = engine::run(&program, &settings, None);
        assert_eq!(ours.common(), theirs.common(), "seed {seed} {settings:?} {program:?}");
    }
}

#[test]
fn the_engine_equals_the_shadow_where_hundreds_of_receives_and_messages_wait() {
    let mut longest = [0; 2];
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let program = crowded(&mut random);
        let settings = Settings::random(&mut random);
        let theirs = shadow::run(&program, &settings, None);
        let ours = engine::run(&program, &settings, None);
        assert!(ours.common() == theirs.common(), "seed {seed} {settings:?}");
        let waited = engine::longest_queues(&program, &settings);
        assert_eq!(waited, theirs.longest_queues, "seed {seed} {settings:?}");
        longest = [0, 1].map(|which| longest[which].max(waited[which]));
    }
    assert!(longest.iter().all(|&most| most > 200), "{longest:?}");
}

/// The next event of rank 0 goes back and forth between the same two with
/// each message that it sends to itself.
#[test]
fn a_rank_whose_next_event_comes_back_again_and_again_crowds_nobody_out() {
    let free = LogGops { eager_limit: Bytes(0), ..of_picos([0; 5]) };
    let send =
        |peer, side| Op { kind: OpKind::Send { peer, size: 0, tag: 0 }, cpu: side, nic: side };
    let calc = Op { kind: OpKind::Calc { duration: Picos(256_000) }, cpu: 0, nic: 0 };
    for sends in 0..60 {
        let mut program = Program::default();
        program.ranks.resize(2, RankProgram::default());
        let ops = &mut program.ranks[0].ops;
        ops.extend((0..sends).map(|_| send(0, 0)));
        ops.extend([calc, send(0, 1), send(1, 0)]);
        let settings = Settings::new(free);
        let ours = engine::run(&program, &settings, None);
        assert_eq!(ours.common(), shadow::run(&program, &settings, None).common(), "{sends}");
    }
}

#[test]
fn how_processors_and_interfaces_are_numbered_changes_nothing() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut program = program(&mut random, &Shape::WILD);
        let settings = Settings::random(&mut random);
        let near = engine::run(&program, &settings, None);
        for op in program.ranks.iter_mut().flat_map(|rank| &mut rank.ops) {
            (op.cpu, op.nic) = (300 * op.cpu, 513 * op.nic);
        }
        let far = engine::run(&program, &settings, None);
        assert_eq!(near.common(), far.common(), "seed {seed} {settings:?}");
    }
}
