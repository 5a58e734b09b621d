//! Schedules that are read while they run end as stored ones do.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "a wrong assumption should end the test"
)]

use loggap::schedule::Form;
use loggap_core::goal::{Op, OpKind};
use loggap_core::model::LogGops;
use loggap_core::random::Random;
use loggap_core::sim::NoNoise;
use loggap_core::units::{Bytes, PerByte, Picos};
use loggap_tests::cases::Case;
use loggap_tests::engine::{self, Function};
use loggap_tests::program::{Edge, Program, RankProgram};
use loggap_tests::random_program::{Shape, crowded, parameters, program, receive_overheads};
use loggap_tests::shadow::{self, Receive, Rendezvous, Settings};
use loggap_tests::streamed::{self, Log, bytes, is_scattered};

const FORMS: [Form; 2] = [Form::Native, Form::Reference];

/// The settings of `seed`: all combinations of the switches.
fn settings(random: &mut Random) -> Settings {
    let switches = random.below(4);
    let set = parameters(random);
    let mut settings = Settings {
        receive: if switches & 1 == 0 { Receive::Hold } else { Receive::Overlap },
        rendezvous: if switches & 2 == 0 { Rendezvous::Instant } else { Rendezvous::Handshake },
        receive_overheads: receive_overheads(random),
        ..Settings::new(set)
    };
    if random.below(3) == 0 {
        settings.add_levels(random, parameters);
    }
    settings
}

/// Every third nanosecond of a rank is lost, from a phase of its own.
fn detours(rank: usize, start: u64, length: u64) -> u64 {
    let phase = rank as u64 * 700;
    (start + length + phase) / 3_000 * 500 - (start + phase) / 3_000 * 500
}

/// Whether a run of the program from a file of each form that can say it is that of the
/// stored program: times, what is left, and all that observers are told. How many such
/// runs there were.
fn agree(
    program: &Program,
    settings: &Settings,
    noise: Option<shadow::Noise<'_>>,
    about: &str,
) -> u64 {
    let noise = noise.unwrap_or(&|_, _, _| 0);
    let (stored, log) =
        engine::run_observed(program, settings, Function(noise), |_| Log::default());
    let mut compared = 0;
    for form in FORMS {
        let hooks = (None, Log::default());
        let run = streamed::run_observed((program, form), settings, Function(noise), hooks);
        let Some(run) = run else { continue };
        let (outcome, told, most) = run.unwrap();
        assert_eq!(outcome.common(), stored.common(), "{about} {form}");
        assert_eq!(told, log, "{about} {form}");
        assert!(most as usize <= program.ops(), "{about} {form}");
        compared += 1;
    }
    compared
}

#[test]
fn every_reference_case_is_the_same_from_a_file() {
    let mut compared = 0;
    for case in Case::all() {
        let settings = Settings::new(case.parameters());
        compared += agree(&case.program(), &settings, None, &format!("case {}", case.id));
    }
    assert_eq!(compared, 2 * Case::all().len() as u64);
}

#[test]
fn random_programs_are_the_same_from_a_file() {
    let mut compared = 0;
    for (shape, seeds) in [(Shape::WILD, 0..6_000), (Shape::PLAIN, 20_000..24_000)] {
        for seed in seeds {
            let mut random = Random::new(seed);
            let program = program(&mut random, &shape);
            let settings = settings(&mut random);
            let noise: Option<shadow::Noise<'_>> =
                if random.below(3) == 0 { Some(&detours) } else { None };
            compared += agree(&program, &settings, noise, &format!("seed {seed} {settings:?}"));
        }
    }
    assert_eq!(compared, 20_000);
}

#[test]
fn programs_on_which_hundreds_wait_are_the_same_from_a_file() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let program = crowded(&mut random);
        let settings = settings(&mut random);
        agree(&program, &settings, None, &format!("seed {seed}"));
    }
}

#[test]
fn messages_that_share_links_are_the_same_from_a_file() {
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let program = program(&mut random, &Shape::WILD);
        let mut settings = settings(&mut random);
        settings.levels.clear();
        settings.receive_overheads.clear();
        let topology = ["star", "tree:4:2"][random.below(2) as usize];
        let stored = engine::on_network(&program, &settings, topology);
        for form in FORMS {
            let plan = engine::network(topology);
            let hooks = (Some(&plan), Log::default());
            let run = streamed::run_observed((&program, form), &settings, NoNoise, hooks);
            let (outcome, _, _) = run.unwrap().unwrap();
            assert_eq!(outcome.common(), stored.common(), "seed {seed} {form} {topology}");
        }
    }
}

/// Whether operations wait for the one before.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Order {
    Chain,
    Any,
}

/// A calculation on which all others wait.
fn hub(others: u32, order: Order) -> Program {
    let calc = Op { kind: OpKind::Calc { duration: Picos(1_000) }, cpu: 0, nic: 0 };
    let mut rank = RankProgram { ops: vec![calc; others as usize + 1], edges: vec![] };
    for op in 1..=others {
        rank.edges.push(Edge { op, on: 0, start: op % 2 == 0 });
        if order == Order::Chain && op > 1 {
            rank.edges.push(Edge { op, on: op - 1, start: false });
        }
    }
    Program { ranks: vec![rank] }
}

fn plain() -> Settings {
    let one = Picos(1_000);
    Settings::new(LogGops {
        latency: one,
        overhead: one,
        gap: one,
        gap_per_byte: PerByte(1),
        overhead_per_byte: PerByte(0),
        eager_limit: Bytes(u64::MAX),
    })
}

#[test]
fn where_all_wait_for_one_operation_all_have_a_record() {
    for order in [Order::Any, Order::Chain] {
        for others in [1, 40, 3_000] {
            assert_eq!(agree(&hub(others, order), &plain(), None, "hub"), 2);
        }
    }
    let run = |program: &Program| {
        let hooks = (None, Log::default());
        streamed::run_observed((program, Form::Native), &plain(), NoNoise, hooks).unwrap()
    };
    let (_, _, most) = run(&hub(3_000, Order::Chain)).unwrap();
    assert_eq!(most, 3_001);
    // Of a chain one has.
    let mut chain = hub(3_000, Order::Chain);
    chain.ranks[0].edges.retain(|edge| edge.on + 1 == edge.op);
    assert_eq!(run(&chain).unwrap().2, 2);
}

#[test]
fn dependencies_whose_lookups_would_take_long_are_refused_in_our_format_alone() {
    // Each dependency on the hub stands beside one on the operation before.
    let program = hub(60_000, Order::Chain);
    let run = |form| {
        let hooks = (None, Log::default());
        streamed::run_observed((&program, form), &plain(), NoNoise, hooks).unwrap()
    };
    assert!(run(Form::Native).is_err_and(|error| is_scattered(&error)));
    assert!(run(Form::Reference).is_ok());
}

#[test]
fn dependencies_on_what_follows_and_cycles_are_the_same_from_a_file() {
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let mut program = program(&mut random, &Shape::WILD);
        for rank in &mut program.ranks {
            let backwards = random.below(2) == 0;
            for edge in &mut rank.edges {
                if backwards || random.below(10) == 0 {
                    (edge.op, edge.on) = (edge.on, edge.op);
                }
            }
        }
        let settings = settings(&mut random);
        agree(&program, &settings, None, &format!("seed {seed} {settings:?}"));
    }
}

#[test]
fn exactly_the_operations_under_way_need_memory() {
    let mut tried = 0;
    for seed in 0..1_000 {
        let mut random = Random::new(seed);
        let program = program(&mut random, &Shape::WILD);
        let settings = settings(&mut random);
        let hooks = (None, Log::default());
        let run = streamed::run_observed((&program, Form::Native), &settings, NoNoise, hooks);
        let (outcome, _, most) = run.unwrap().unwrap();
        let with = |records| {
            streamed::run_with((&program, Form::Native), &settings, (records, None), 1_000_000)
        };
        assert_eq!(with(u64::from(most)), Ok(outcome.events), "seed {seed}");
        if most > 0 {
            let error = with(u64::from(most) - 1).unwrap_err();
            assert!(error.contains("under way at once"), "seed {seed}: {error}");
            tried += 1;
        }
    }
    assert!(tried > 900, "{tried}");
}

#[test]
fn a_file_that_changes_while_it_is_read_stops_the_run_or_ends_it() {
    let (mut stopped, mut ended) = (0, 0);
    for seed in 0..6_000 {
        let mut random = Random::new(seed);
        let program = program(&mut random, &Shape::WILD);
        let settings = settings(&mut random);
        let form = FORMS[random.below(2) as usize];
        let mut damaged = bytes(&program, form).unwrap();
        for _ in 0..1 + random.below(8) {
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] ^= 1 << random.below(8);
        }
        let records = (program.ops() as u64, Some(damaged));
        match streamed::run_with((&program, form), &settings, records, 1_000_000) {
            Ok(_) => ended += 1,
            Err(error) => stopped += u64::from(error.contains("is not what it was before")),
        }
    }
    assert!(stopped > 500 && ended > 500, "{stopped} {ended}");
}
