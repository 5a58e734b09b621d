//! Runs in windows against the shadow and the engine, bit for bit.

use loggap_core::goal::OpKind;
use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::model::LogGops;
use loggap_core::random::Random;
use loggap_core::sim::SimError;
use loggap_core::units::{Bytes, Picos};
use loggap_tests::cases::Case;
use loggap_tests::command::Run as _;
use loggap_tests::engine::{self, Cut, Stopped};
use loggap_tests::program::Program;
use loggap_tests::random_program::{
    Shape, crowded, of_picos, parameters, program, receive_overhead,
};
use loggap_tests::seeds;
use loggap_tests::shadow::{self, Receive, Rendezvous, Settings};

/// No limit to the memory of messages.
const MOST: u64 = u64::MAX;

/// Settings of `seed` under which programs can run in windows, mostly.
fn settings(random: &mut Random) -> Settings {
    let mut set = parameters(random);
    if random.below(10) > 0 {
        set.eager_limit = Bytes(u64::MAX);
    }
    let mut settings = Settings::new(set);
    if random.below(3) == 0 {
        settings.rendezvous = Rendezvous::Handshake;
        settings.parameters[0].1.eager_limit = Bytes(random.below(7));
    }
    if random.below(3) == 0 {
        settings.receive = Receive::Overlap;
    }
    if random.below(3) == 0 {
        let mut second = parameters(random);
        if settings.rendezvous == Rendezvous::Instant {
            second.eager_limit = Bytes(u64::MAX);
        }
        let first = (random.below(6), settings.parameters[0].1);
        settings.parameters = vec![first, (u64::MAX, second)];
    }
    if random.below(3) == 0 {
        let ends = |_| receive_overhead(random);
        settings.receive_overheads = settings.parameters.iter().map(ends).collect();
    }
    if random.below(3) == 0 {
        let limit = match settings.rendezvous {
            Rendezvous::Instant => Bytes(u64::MAX),
            Rendezvous::Handshake => Bytes(random.below(7)),
        };
        let set = |random: &mut Random| LogGops { eager_limit: limit, ..parameters(random) };
        settings.add_levels(random, set);
    }
    settings
}

/// Whether `program` could be compared, for every partition, also on several threads.
fn agrees(program: &Program, settings: &Settings, random: &mut Random, name: &str) -> bool {
    let noise = shadow::random_noise(random);
    let theirs = shadow::run(program, settings, noise).common();
    let room = if random.below(3) == 0 { random.below(40_000) } else { MOST };
    let threads = 2 + random.below(3) as usize;
    let several = (random.below(3) as u32, threads, room);
    let cuts = [(10, 1, MOST), (0, 1, MOST), (1, 1, MOST), (2, 1, 0), (1, 1, 4_096), several];
    for (shift, threads, mail_bytes) in cuts {
        let cut = Cut { shift, threads, mail_bytes };
        match engine::run_in_windows(program, settings, noise, cut) {
            Ok(ours) => assert_eq!(ours.common(), theirs, "{name} {settings:?} {program:?}"),
            Err(Stopped::Unsuitable(_)) => return false,
            Err(error) => panic!("{name}: {error:?}"),
        }
    }
    true
}

#[test]
fn on_any_number_of_partitions_and_threads_windows_equal_the_shadow_on_random_programs() {
    let many = Shape { ranks: 12, messages: 60, calcs: 4, edges: 4, ..Shape::PLAIN };
    let wild = Shape { cpus: 1, nics: 1, ..Shape::WILD };
    let [mut compared, mut compared_crowded] = [0, 0];
    for seed in seeds(0..6_000) {
        let mut random = Random::new(seed);
        let shape = [Shape::PLAIN, wild, many][random.below(3) as usize];
        let program = match seed % 100 {
            0 => crowded(&mut random),
            _ => program(&mut random, &shape),
        };
        let settings = settings(&mut random);
        let agrees = agrees(&program, &settings, &mut random, &format!("seed {seed}"));
        compared += u32::from(agrees);
        compared_crowded += u32::from(agrees && seed % 100 == 0);
    }
    assert!(compared > 1_000 && compared_crowded > 3, "{compared}, {compared_crowded} crowded");
}

#[test]
fn windows_equal_the_shadow_in_the_reference_cases() {
    let mut random = Random::new(1);
    let mut compared = 0;
    for case in Case::all() {
        let settings = Settings::new(case.parameters());
        let name = format!("case {}", case.id);
        compared += u32::from(agrees(&case.program(), &settings, &mut random, &name));
    }
    assert!(compared > 300, "{compared}");
}

/// Sets that make many events simultaneous.
fn sets() -> [LogGops; 4] {
    let sets = [[2_500, 1_500, 1_000, 6, 0], [1, 1, 1, 1, 0], [1, 0, 0, 0, 0], [0, 5, 20, 1, 0]];
    sets.map(of_picos)
}

#[test]
fn windows_equal_the_engine_on_symmetric_patterns() {
    let mut compared = 0;
    for described in Pattern::all() {
        for (ranks, set) in [33, 64, 150, 200].into_iter().zip(sets()) {
            let options = Options { compute: Some(Picos(3)), ..Options::new(ranks, 40) };
            let program = Program::of_pattern(described.pattern, &options);
            let settings = Settings::new(set);
            let theirs = engine::run(&program, &settings, None);
            for (shift, threads) in [(10, 1), (1, 3), (4, 2)] {
                let cut = Cut { shift, threads, mail_bytes: MOST };
                let ours = engine::run_in_windows(&program, &settings, None, cut);
                let ours = ours.unwrap_or_else(|error| panic!("{}: {error:?}", described.pattern));
                assert_eq!(ours, theirs, "{} {settings:?}", described.pattern);
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn windows_stop_with_the_error_that_the_engine_stops_with() {
    let (mut errors, mut several) = (0, 0);
    for seed in 30_000..31_500 {
        let mut random = Random::new(seed);
        let shape = Shape { ranks: 12, messages: 40, calcs: 4, edges: 4, ..Shape::PLAIN };
        let mut program = program(&mut random, &shape);
        for op in program.ranks.iter_mut().flat_map(|rank| &mut rank.ops) {
            if let OpKind::Calc { duration } = &mut op.kind
                && random.below(4) == 0
            {
                duration.0 = u64::MAX - random.below(30) * 1_000;
            }
        }
        let settings = settings(&mut random);
        let theirs = engine::error(&program, &settings);
        for (shift, threads) in [(10, 1), (1, 1), (0, 3)] {
            let cut = Cut { shift, threads, mail_bytes: MOST };
            let ours = match engine::run_in_windows(&program, &settings, None, cut) {
                Ok(_) => None,
                Err(Stopped::Error(error)) => Some(error),
                Err(_) => continue,
            };
            assert_eq!(ours, theirs, "seed {seed} {settings:?} {program:?}");
            errors += u32::from(ours.is_some());
            several += u32::from(ours.is_some_and(|error| error != SimError::Overflow { rank: 0 }));
        }
    }
    assert!(errors > 1_000 && several > 500, "{errors} {several}");
}

/// What a thread that waits for another one would not do.
#[test]
fn a_panic_in_a_noise_model_ends_the_run_on_all_threads() {
    let crowded = Shape { ranks: 64, messages: 400, calcs: 8, edges: 4, ..Shape::PLAIN };
    let mut random = Random::new(3);
    let program = program(&mut random, &crowded);
    let settings = Settings::new(sets()[0]);
    let fine = Cut { shift: 1, threads: 1, mail_bytes: MOST };
    assert!(engine::run_in_windows(&program, &settings, None, fine).is_ok());
    let bad = |rank: usize, _start: u64, _length: u64| {
        assert!(rank < 3, "a noise model that is wrong on some ranks");
        0
    };
    for threads in [1, 2, 4] {
        let cut = Cut { shift: 1, threads, mail_bytes: MOST };
        let run = || engine::run_in_windows(&program, &settings, Some(&bad), cut);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    }
}

/// Set for the process in which no thread can be started.
const ALONE: &str = "LOGGAP_TEST_WITHOUT_THREADS";

#[test]
fn where_no_thread_can_be_started_the_run_goes_on_without() {
    let name = "where_no_thread_can_be_started_the_run_goes_on_without";
    if std::env::var_os(ALONE).is_none() {
        // A stack that no machine has room for; with one test thread the test
        // itself runs on the main one.
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--test-threads=1"])
            .envs([("RUST_MIN_STACK", (1_u64 << 50).to_string()), (ALONE, "yes".into())])
            .succeeds();
        assert!(output.stdout.contains("1 passed"), "{output:?}");
        return;
    }
    let refused = std::thread::Builder::new().spawn(|| ());
    assert!(refused.is_err(), "a thread was started: this test shows nothing");
    let crowded = Shape { ranks: 64, messages: 400, calcs: 8, edges: 4, ..Shape::PLAIN };
    let program = program(&mut Random::new(3), &crowded);
    let settings = Settings::new(sets()[0]);
    let cut = |threads| Cut { shift: 1, threads, mail_bytes: MOST };
    let alone = engine::run_in_windows(&program, &settings, None, cut(1)).unwrap();
    let others = engine::run_in_windows(&program, &settings, None, cut(4)).unwrap();
    assert_eq!(others, alone);
}
