//! Schedules that are read while they run end as stored ones do.

use loggap::schedule::Form;
use loggap::simulation::RunError;
use loggap_core::goal::{Op, OpKind};
use loggap_core::model::LogGops;
use loggap_core::random::Random;
use loggap_core::sim::streamed::GivenUp;
use loggap_core::sim::{NoNoise, SimError};
use loggap_core::units::{Bytes, PerByte, Picos};
use loggap_tests::cases::Case;
use loggap_tests::command::{assert_refused, finish, loggap_process, refused, simulated};
use loggap_tests::engine::{self, Function};
use loggap_tests::folder::Folder;
use loggap_tests::program::{Edge, Program, RankProgram};
use loggap_tests::random_program::{Shape, crowded, of_picos, program};
use loggap_tests::seeds;
use loggap_tests::shadow::{self, Settings};
use loggap_tests::streamed::{self, Changed, Log, Runs, bytes, is_scattered};
use serde_json::Value;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

const FORMS: [Form; 2] = [Form::Native, Form::Reference];

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
    let (mut compared, mut wanted) = (0, 0);
    for (shape, all) in [(Shape::WILD, 0..6_000), (Shape::PLAIN, 20_000..24_000)] {
        for seed in seeds(all) {
            let mut random = Random::new(seed);
            let program = program(&mut random, &shape);
            let settings = Settings::random(&mut random);
            let noise = shadow::random_noise(&mut random);
            wanted += 2;
            compared += agree(&program, &settings, noise, &format!("seed {seed} {settings:?}"));
        }
    }
    assert_eq!(compared, wanted);
}

#[test]
fn random_programs_in_parts_of_the_ranks_are_the_same_or_given_up() {
    let (mut compared, mut ties, mut other) = (0, 0, 0);
    for seed in seeds(0..12_000) {
        let mut random = Random::new(seed);
        let messages = 10 << random.below(5);
        let shape = Shape { ranks: 9, faults: 3, messages, ..Shape::PLAIN };
        let program = program(&mut random, &shape);
        let mut settings = Settings::random(&mut random);
        if random.below(8) > 0 {
            settings.receive = shadow::Receive::Hold;
            let levels = settings.levels.iter_mut().flat_map(|level| &mut level.parameters);
            for (_, set) in settings.parameters.iter_mut().chain(levels) {
                set.eager_limit = Bytes(u64::MAX);
            }
        }
        let noise = shadow::random_noise(&mut random).unwrap_or(&|_, _, _| 0);
        let shift = u32::try_from(random.below(4)).unwrap();
        let about = format!("seed {seed}, parts of 2^{shift}, {settings:?}");
        match streamed::run_in_parts(&program, &settings, Function(noise), shift).unwrap() {
            Ok(outcome) => {
                let stored = engine::run(&program, &settings, Some(noise));
                assert_eq!(outcome.common(), stored.common(), "{about}");
                compared += 1;
            }
            Err(GivenUp::Tie) => ties += 1,
            Err(GivenUp::Rendezvous | GivenUp::Unsuitable) => other += 1,
            Err(GivenUp::Room) => panic!("{about}: no room"),
        }
    }
    println!("{compared} compared, {ties} with ties, {other} for another driver");
    assert!(compared > 2 * (ties + other), "{compared} {ties} {other}");
    assert!(ties < compared / 100, "{ties} of {compared}");
}

#[test]
fn programs_on_which_hundreds_wait_are_the_same_from_a_file() {
    for seed in seeds(0..60) {
        let mut random = Random::new(seed);
        let program = crowded(&mut random);
        let settings = Settings::random(&mut random);
        agree(&program, &settings, None, &format!("seed {seed}"));
    }
}

#[test]
fn messages_that_share_links_are_the_same_from_a_file() {
    let mut apart = 0;
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let program = program(&mut random, &Shape::WILD);
        let mut settings = Settings::random(&mut random);
        settings.levels.clear();
        settings.receive_overheads.truncate(settings.parameters.len());
        apart += usize::from(!settings.receive_overheads.is_empty());
        let topology = ["star", "tree:4:2"][random.below(2) as usize];
        let (stored, log) =
            engine::on_network_observed(&program, &settings, topology, Log::default());
        for form in FORMS {
            let plan = engine::network(topology);
            let hooks = (Some(&plan), Log::default());
            let run = streamed::run_observed((&program, form), &settings, NoNoise, hooks);
            let (outcome, told, _) = run.unwrap().unwrap();
            assert_eq!(outcome.common(), stored.common(), "seed {seed} {form} {topology}");
            assert_eq!(told, log, "seed {seed} {form} {topology}");
        }
    }
    assert!(apart > 100, "{apart} runs have overheads of receivers");
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
    let set = of_picos([1_000, 1_000, 1_000, 0, 0]);
    Settings::new(LogGops { gap_per_byte: PerByte(1), ..set })
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
        let settings = Settings::random(&mut random);
        agree(&program, &settings, None, &format!("seed {seed} {settings:?}"));
    }
}

#[test]
fn exactly_the_operations_under_way_need_memory() {
    let mut tried = 0;
    for seed in 0..1_000 {
        let mut random = Random::new(seed);
        let program = program(&mut random, &Shape::WILD);
        let settings = Settings::random(&mut random);
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
        let settings = Settings::random(&mut random);
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

/// The edges of the file are others when it runs than they were when it was checked: they
/// name operations that have run already, too.
#[test]
fn no_operation_runs_twice_whatever_is_written_over_a_file_that_runs() {
    let folder = Folder::new();
    let path = folder.path("program");
    let (mut stopped, mut ended) = (0, 0);
    for seed in 0..4_000 {
        let mut random = Random::new(seed);
        let program = program(&mut random, &Shape::WILD);
        let settings = Settings::random(&mut random);
        let form = FORMS[random.below(2) as usize];
        let mut other = program.clone();
        for rank in &mut other.ranks {
            let ops = rank.ops.len() as u64;
            for edge in &mut rank.edges {
                let op = random.below(ops) as u32;
                if random.below(3) == 0 && op != edge.on {
                    edge.op = op;
                }
            }
        }
        let (sound, other) = (bytes(&program, form), bytes(&other, form));
        // What would be longer or shorter could not be read at all.
        let Some(other) = other.filter(|other| Some(other.len()) == sound.map(|all| all.len()))
        else {
            continue;
        };
        let file = (path.as_ref(), Some(&*other));
        let run = (Runs::default(), 1_000_000);
        let changed = streamed::run_changed((&program, form), &settings, file, run).unwrap();
        assert!(changed.observer.are_unique(), "seed {seed} {form}: {:?}", changed.observer);
        match changed.finished {
            Ok(finished) => {
                ended += u64::from(finished.expect("a bounded number of turns").events > 0)
            }
            Err(error) => stopped += u64::from(matches!(error, SimError::Unreadable { .. })),
        }
        assert!(is_written_over(&changed.result), "seed {seed} {form}: {:?}", changed.result);
    }
    assert!(stopped > 500 && ended > 500, "{stopped} {ended}");
}

fn is_written_over(result: &Result<(), RunError>) -> bool {
    result.as_ref().is_err_and(|error| error.to_string().contains("another program wrote"))
}

#[test]
fn a_run_that_ends_is_refused_where_its_file_was_written_to_meanwhile() {
    let folder = Folder::new();
    let path = folder.path("program");
    let calc =
        |time: u64| Program::of_text(&format!("num_ranks 1\nrank 0 {{\na: calc {time}\n}}\n"));
    for form in FORMS {
        let run = |written: Option<&[u8]>| {
            let file = (path.as_ref(), written);
            let run = (Runs::default(), 100);
            streamed::run_changed((&calc(1_000), form), &plain(), file, run).unwrap()
        };
        let makespan = |changed: &Changed<Runs>| changed.finished.unwrap().unwrap().makespan;
        let sound = run(None);
        assert_eq!(makespan(&sound), Picos(1_000_000));
        assert!(sound.result.is_ok(), "{form}: {:?}", sound.result);
        let changed = run(bytes(&calc(1_001), form).as_deref());
        assert_eq!(makespan(&changed), Picos(1_001_000));
        assert!(is_written_over(&changed.result), "{form}: {:?}", changed.result);
    }
}

/// What a report says of the course of a simulation.
fn course(mut report: Value) -> Value {
    let how = [
        "engine",
        "engine_reason",
        "program",
        "program_reason",
        "under_way_most",
        "threads",
        "partitions",
        "load_s",
        "run_s",
        "events_per_s",
        "memory_bytes",
    ];
    for key in how {
        report.as_object_mut().unwrap().remove(key);
    }
    report
}

#[test]
fn a_binary_file_is_read_as_it_runs_where_it_is_asked_for_or_there_is_no_memory() {
    let folder = Folder::new();
    let pattern = ["--pattern", "dissemination", "--ranks", "16", "-s", "8", "--repeat", "200"];
    let watched: [&[&str]; 5] = [
        &["--finish", "--counters"],
        &["--rendezvous", "handshake", "-S", "1", "--finish"],
        &["--receive", "overlap", "--noise-periodic", "100000:1000", "--finish", "--counters"],
        &["--topology", "tree:4:4", "--finish"],
        &["--level", "4:L=100,o=10,g=10,G=1", "--finish"],
    ];
    for name in ["long.lgs", "long.bin"] {
        let path = folder.generated(name, &pattern);
        for options in watched {
            let stored = simulated(&[&[&*path], options].concat());
            assert_eq!(stored["program"], "stored");
            let asked = [&[&*path, "--program", "streamed"], options].concat();
            let streamed = simulated(&asked);
            assert_eq!(streamed["program"], "streamed");
            assert_eq!(streamed["program_reason"], "asked for");
            let most = streamed["under_way_most"].as_u64().unwrap();
            assert!(most < 400, "{most} of {}", streamed["ops"]);
            assert_eq!(course(stored), course(streamed), "{options:?}");
        }
        // A tenth of the operations.
        let little = ["--max-memory", "200K"];
        let stored = simulated(&[&path]);
        assert!(stored["memory_bytes"].as_u64().unwrap() > 400_000, "{stored}");
        let streamed = simulated(&[&[&*path], &little[..]].concat());
        assert_eq!(streamed["program"], "streamed");
        let reason = streamed["program_reason"].as_str().unwrap();
        assert!(reason.contains("of 204800 allowed"), "{reason}");
        assert!(streamed["memory_bytes"].as_u64().unwrap() < 204_800, "{streamed}");
        assert_eq!(course(stored), course(streamed));
        assert_refused(
            &[&[&*path, "--program", "stored"], &little[..]].concat(),
            1,
            "raise --max-memory",
        );
        // The timelines are the same, too.
        let drawn = |form: &str| {
            let drawing = folder.path(&format!("{form}.json"));
            simulated(&[&path, "--program", form, "--timeline", &drawing]);
            std::fs::read(drawing).unwrap()
        };
        assert!(drawn("stored") == drawn("streamed"));
    }
}

#[test]
fn windows_of_a_file_give_the_same_and_give_way_where_memory_or_ties_want_it() {
    let folder = Folder::new();
    for pattern in ["dissemination", "gather", "alltoall"] {
        let options = ["--pattern", pattern, "--ranks", "512", "-s", "8"];
        let path = folder.generated(&format!("{pattern}.bin"), &options);
        let run = |more: &[&str]| {
            simulated(&[&[&*path, "--program", "streamed", "--finish"], more].concat())
        };
        let in_order = run(&["--threads", "1"]);
        assert_eq!(in_order["engine"], "sequential");
        let windows = run(&["--threads", "2"]);
        let reason = windows["engine_reason"].as_str();
        assert_eq!(reason.is_none(), windows["engine"] == "windows", "{pattern}");
        let [least, most] =
            [&in_order, &windows].map(|report| report["memory_bytes"].as_u64().unwrap());
        let tight = (least * 11 / 10).to_string();
        let tight = run(&["--threads", "2", "--max-memory", &tight]);
        assert_eq!(tight["engine"], "sequential", "{pattern}: {least} of {most} bytes");
        for report in [&windows, &tight] {
            for key in ["events", "makespan_ps", "finish_ps"] {
                assert_eq!(report[key], in_order[key], "{pattern} {key}");
            }
        }
        match pattern {
            // All ranks have hundreds of operations under way from the beginning.
            "alltoall" => assert!(reason.unwrap().contains("simultaneous"), "{reason:?}"),
            _ => assert!(reason.is_none() && most > least, "{pattern}: {reason:?}"),
        }
    }
}

#[test]
fn what_is_not_read_as_it_runs_is_said() {
    let folder = Folder::new();
    let pattern = ["--pattern", "linear_alltoall", "--ranks", "32", "-s", "8"];
    let path = folder.generated("all.lgs", &pattern);
    let text = folder.generated("all.goal", &pattern);
    let streamed = ["--program", "streamed"];
    let cases: [(&[&str], i32, &str); 6] = [
        (&[&text], 2, "a text cannot be read as it runs"),
        (&[&path, "--explain"], 2, "--explain needs all of them"),
        (&[&path, "--sensitivity"], 2, "--sensitivity needs all of them"),
        (&[&path, "--sweep", "L=1:9:3"], 2, "--sweep needs all of them"),
        (&pattern[..], 2, "--program"),
        (&[&path, "--max-memory", "2K"], 1, "raise --max-memory"),
    ];
    for (arguments, expected, about) in cases {
        let (code, text) = refused(&[arguments, &streamed].concat());
        assert!(code == expected && text.contains(about), "{arguments:?}: {code} {text}");
    }
    // Messages of all ranks to all others are under way at a time.
    assert_refused(&[&path, "--max-memory", "9K"], 1, "under way at a time");
    // A file that ends early is refused before the run.
    let whole = std::fs::read(&path).unwrap();
    let cut = folder.path("cut.lgs");
    std::fs::write(&cut, &whole[..whole.len() - 9]).unwrap();
    assert_refused(&[&[&*cut], &streamed[..]].concat(), 2, "the file is cut off");
}

#[test]
fn what_never_ends_is_named_by_rank_and_operation() {
    let folder = Folder::new();
    let program = Program::of_text(
        "num_ranks 2\nrank 0 {\na: send 5b to 1 tag 7\nb: recv 5b from 1 tag 8\nc: calc 5\n\
         c requires b\n}\nrank 1 {\nd: calc 1\n}\n",
    );
    let path = folder.path("stuck.lgs");
    std::fs::write(&path, bytes(&program, Form::Native).unwrap()).unwrap();
    let path = &*path;
    let (stored, streamed) = (refused(&[path]), refused(&[path, "--program", "streamed"]));
    assert_eq!(stored, streamed);
    assert!(stored.1.contains("rank 1 never receives the message with tag 7"), "{stored:?}");
}

/// The most bytes of its own, besides what it maps, that a simulation had when it was
/// looked at, every millisecond; and the bytes that it reports.
fn peak(arguments: &[&str]) -> (u64, u64) {
    let mut child = loggap_process()
        .arg("simulate")
        .args(arguments)
        .arg("-J")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let own = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kilobytes = own.map(|own| own.trim().trim_end_matches(" kB").parse::<u64>().unwrap());
        peak = peak.max(1024 * kilobytes.unwrap_or_default());
        sleep(Duration::from_millis(1));
    }
    let output = finish(child).exited(0);
    let report = output.json();
    (peak, report["memory_bytes"].as_u64().unwrap())
}

/// What the program takes without a schedule, and some more, in bytes.
const PROGRAM: u64 = 8 << 20;

#[test]
fn a_computed_run_on_two_threads_takes_the_memory_that_it_reports() {
    let pattern = ["--pattern", "dissemination", "--ranks", "128K", "-s", "8", "--threads", "2"];
    let (peak, reported) = peak(&pattern);
    // What each thread sends in two windows begins in memory of its own, and ends within a
    // huge page.
    let ends = 4 * (2 << 20);
    let within = reported * 9 / 10..reported * 11 / 10 + PROGRAM + ends;
    assert!(within.contains(&peak), "{peak} where {reported} are reported");
}

#[test]
fn two_threads_take_little_more_memory_than_one() {
    let memory = |threads: &str| {
        let pattern = ["--pattern", "dissemination", "--ranks", "128K", "-s", "8"];
        let report = simulated(&[&pattern[..], &["--threads", threads]].concat());
        assert_eq!(report["threads"].to_string(), threads);
        report["memory_bytes"].as_f64().unwrap()
    };
    let one = memory("1");
    let ratios: Vec<_> = (0..16).map(|_| memory("2") / one).collect();
    assert!(ratios.iter().all(|ratio| (1.0..1.6).contains(ratio)), "{ratios:?}");
    // A thread that gets no processor for a while lets the other's mail grow: in most runs of a
    // busy machine, in few of a quiet one.
    assert!(ratios.iter().any(|ratio| *ratio < 1.3), "{ratios:?}");
}

/// Two ranks of 240,000 operations each. Reading LogGOPSim's format takes more than the
/// run.
#[test]
fn a_run_from_a_file_takes_the_memory_that_it_reports() {
    let folder = Folder::new();
    let long = ["--pattern", "dissemination", "--ranks", "2", "-s", "8", "--repeat", "120000"];
    for name in ["long.lgs", "long.bin"] {
        let path = folder.generated(name, &long);
        let (peak, reported) = peak(&[&path, "--program", "streamed"]);
        let most = reported * 13 / 10 + PROGRAM;
        assert!((reported..most).contains(&peak), "{name}: {peak} where {reported} are reported");
    }
}
