//! Exports of a timeline.

use loggap::simulation::{Job, Limit, Method, Source, Wanted};
use loggap::timeline::{Recorder, Selection, Timeline, chrome, svg, viz};
use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::model::Preset;
use loggap_core::random::Random;
use loggap_core::sim::{
    self, Counters, Engine, Finished, NoNoise, Parameters, RankCounters, Receive, Rendezvous,
};
use loggap_core::units::{Bytes, Picos};
use loggap_tests::command::{self, Run as _};
use loggap_tests::folder::Folder;
use loggap_tests::program::Program;
use loggap_tests::random_pattern::{options, patterns};
use loggap_tests::random_program::parameters;
use loggap_tests::seeds;
use loggap_tests::shadow::{self, Settings};
use serde_json::Value;

/// The double ring of the paper's Fig. 6, with the reference simulator's
/// default parameters.
fn double_ring() -> Result<Timeline, Box<dyn std::error::Error>> {
    let preset: Preset = "loggopsim".parse()?;
    let program = Program::of_pattern(Pattern::DoubleRing, &Options::new(4, 8));
    let set = preset.at(Bytes(8)).ok_or("no set")?;
    Ok(shadow::run(&program, &Settings::new(*set), None).timeline)
}

/// Fig. 2 of the paper.
#[test]
fn a_measuring_round_takes_the_time_of_equation_3_and_is_drawn() {
    let folder = Folder::new();
    let link = ["-L", "10000", "-o", "1500", "-g", "5000", "-G", "6"];
    let makespan = |round: &[&str]| {
        let run = command::loggap().arg("simulate").args(round).args(link).arg("-J").succeeds();
        run.json()["makespan_ps"].as_u64().unwrap() / 1_000
    };
    // 2(L + 2o) + (n − 1)·max{o + d, g}.
    assert_eq!(makespan(&["--prtt", "1"]), 26_000);
    assert_eq!(makespan(&["--prtt", "3"]), 26_000 + 2 * 5_000);
    assert_eq!(makespan(&["--prtt", "3", "--delay", "1us"]), 26_000 + 2 * 5_000);
    assert_eq!(makespan(&["--prtt", "3", "--delay", "20us"]), 26_000 + 2 * 21_500);
    let (picture, goal) = (folder.path("fig2.svg"), folder.path("prtt.goal"));
    let round = ["--prtt", "3", "--delay", "20us", "-s", "8"];
    command::loggap().arg("simulate").args(round).args(["--timeline", &picture]).succeeds();
    assert!(folder.read("fig2.svg").contains("rank 1"));
    command::loggap().args(["goal", "generate"]).args(round).args(["-o", &goal]).succeeds();
    let written = folder.read("prtt.goal");
    assert_eq!([written.matches("send 8b").count(), written.matches("calc 20000").count()], [4, 2]);
    assert_eq!(makespan(&[&goal]), makespan(&round));
    for wrong in
        [&["--delay", "1us"][..], &["--prtt", "3", "--ranks", "4"], &[&goal, "--prtt", "3"]]
    {
        command::loggap().arg("simulate").args(wrong).ends(2);
    }
}

#[test]
fn the_reference_format_has_a_line_for_everything() {
    let mut out = Vec::new();
    viz::write(&double_ring().unwrap(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().count(), 1 + 8 + 8 + 8);
    assert!(text.starts_with("numranks 4;\nosend 0 0 0 1500 0 0 1;\n"), "{text}");
    assert!(text.contains("\ntransmission 0 1 1500 4000 8 6 0 0 1;\n"), "{text}");
    assert!(text.contains("\norecv 1 0 4000 5542 0 0 1;\n"), "{text}");
}

#[test]
fn the_trace_document_has_slices_names_and_both_ends_of_arrows() {
    let mut out = Vec::new();
    chrome::write(&double_ring().unwrap(), &mut out).unwrap();
    let document: Value = serde_json::from_slice(&out).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let count = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    // Four ranks with three lanes; eight messages with two lanes at each end.
    assert_eq!((count("M"), count("X"), count("s"), count("f")), (16, 32, 8, 8));
    // 1,542 ns on the processor, not one picosecond less.
    let received = events.iter().find(|event| event["name"] == "receive 8 B from 0");
    assert_eq!(received.unwrap()["dur"].as_f64(), Some(1.542));
}

#[test]
fn the_picture_shows_every_lane_and_message() {
    let mut out = Vec::new();
    let options = svg::Options { title: "double ring".into(), from: Picos::ZERO, to: None };
    svg::write(&double_ring().unwrap(), &options, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    for rank in 0..4 {
        assert!(text.contains(&format!(">\nrank {rank}\n</text>")));
    }
    assert_eq!(text.matches("<title>8 B from").count(), 8);
    assert_eq!(text.matches("<title>receive 8 B").count(), 16);
    assert!(text.contains(">\ntime [µs]\n</text>"));
    assert_eq!(text.matches("<title>").count(), text.matches("</title>").count());
}

#[test]
fn many_ranks_are_drawn_in_groups_and_few_of_them_one_by_one() {
    let folder = Folder::new();
    let picture = |ranks: &str, size: &str, more: &[&str]| {
        let path = folder.path(&format!("{ranks}{}.svg", more.len()));
        let run = ["simulate", "--pattern", "all-to-all", "--ranks", ranks, "-s", size];
        command::loggap().args(run).args(more).arg("--timeline").arg(&path).assert().success();
        std::fs::read_to_string(path).unwrap()
    };
    let crowd = picture("64", "64K", &[]);
    assert!(crowd.len() < 1_000_000, "{}", crowd.len());
    assert!(crowd.contains("0 to 1") && crowd.contains("62 to 63") && crowd.contains("share of"));
    let zoomed = picture("64", "64K", &["--timeline-ranks", "0:1"]);
    assert!(zoomed.contains("waits for its receiver"), "messages are drawn");
    let large = picture("512", "8", &[]);
    assert!(large.len() < 1_000_000 && large.contains("496 to 511"), "{}", large.len());
}

#[test]
fn a_selection_keeps_its_ranks_and_window() {
    let all = double_ring().unwrap();
    let window = Picos(0)..Picos(6_000_000);
    let part = all.selected(&Selection { ranks: 0..2, window });
    assert_eq!(part.ranks, 4);
    // From 0 to 1 and from 0 to 3: the second has an end outside.
    assert_eq!(part.messages.len(), 3);
    assert!(part.messages.iter().all(|m| m.sent < Picos(6_000_000)));
    assert_eq!(all.selected(&Selection::default()), all);
}

fn event_by_event(source: &Source, job: &Job<'_>) -> (Finished, Vec<RankCounters>, Timeline) {
    let selection = job.wanted.selection.clone().unwrap();
    let ran = source.load(job.settings, &Limit::none(), |schedule, needs| {
        let mut ranks = vec![RankCounters::default(); needs.ranks as usize];
        let recorder = Recorder::new(schedule.first_ops().into(), selection);
        let observers = (Counters::new(&mut ranks), recorder);
        let mut engine = Engine::with(schedule, job.parameters, job.settings, NoNoise, observers);
        let finished = engine.run().unwrap();
        let (counters, recorder) = engine.into_observer();
        (finished, counters.finish().to_vec(), recorder.finish())
    });
    ran.unwrap()
}

#[test]
fn in_windows_on_threads_timelines_and_counters_are_those_of_the_run_event_by_event() {
    let mut random = Random::new(31);
    let mut compared = 0;
    for (pattern, algorithm) in patterns() {
        for _ in seeds(0..6) {
            // With two threads a partition has 16 ranks.
            let power = random.below(3) == 0;
            let ranks = if power { 64 << random.below(2) } else { 40 + random.below(161) };
            let ranks = u32::try_from(ranks).unwrap();
            let options = Options { ranks, ..options(&mut random, algorithm) };
            let source = Source::Pattern(pattern, options);
            let set = parameters(&mut random);
            let draw = random.below(4);
            let settings = sim::Settings {
                receive: if draw & 1 == 0 { Receive::Hold } else { Receive::Overlap },
                rendezvous: if draw & 2 == 0 { Rendezvous::Instant } else { Rendezvous::Handshake },
            };
            let window = Picos(0)..Picos(random.below(1 << 26));
            let part = Selection { ranks: 9..37, window };
            let selection = if random.below(2) == 0 { Selection::default() } else { part };
            let selection = Some(selection);
            let wanted = Wanted { counters: true, selection, ..Wanted::default() };
            let job = Job { threads: 2, wanted, ..Job::new(Parameters::one(set), settings) };
            let label = format!("{source:?} {set:?} {settings:?} {:?}", job.wanted);
            let windows = match job.simulate(&source, &|_| {}) {
                Ok(outcome) if matches!(outcome.method, Method::Windows { .. }) => outcome,
                _ => continue,
            };
            let Method::Windows { threads, partitions } = windows.method else { continue };
            assert!(threads == 2 && partitions > 2, "{threads}, {partitions}: {label}");
            let (finished, counters, timeline) = event_by_event(&source, &job);
            assert_eq!(windows.finished, finished, "{label}");
            assert_eq!(windows.counters, Some(counters), "{label}");
            assert!(windows.timeline == Some(timeline), "{label}");
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared}");
}
