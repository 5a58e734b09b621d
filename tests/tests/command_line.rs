//! What holds for every verb of the command line.

use std::io::Read;
use std::time::Duration;

use loggap::machine::clock::HostClock;
use loggap_core::measure::Clock;
use loggap_tests::command::{
    Run, assert_refused, finish, loggap, loggap_process, machine, refused, send, simulated, start,
};
use loggap_tests::folder::Folder;
use nix::sys::signal::Signal;

#[test]
fn help_and_version_go_to_standard_output_and_succeed() {
    for arguments in [&["--help"][..], &["measure", "--help"], &["fit", "-h"], &["--version"]] {
        let output = loggap().args(arguments).succeeds();
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn wrong_usage_exits_with_two_and_leaves_standard_output_alone() {
    for arguments in [&[][..], &["no-such-verb"], &["measure", "--no-such-option"]] {
        let output = loggap().args(arguments).ends(2);
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut child = start(loggap_process().args(["serve", "--help"]));
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
}

#[test]
fn the_short_help_of_every_verb_fits_a_screen_and_says_where_the_rest_is() {
    for verb in
        ["measure", "lat", "bw", "serve", "fit", "simulate", "predict", "best", "study overlap"]
    {
        let help = |form: &str| {
            let words = verb.split(' ').chain([form]);
            loggap().args(words).succeeds().stdout
        };
        let (short, long) = (help("-h"), help("--help"));
        assert!(short.lines().count() <= 45, "{verb}: {short}");
        assert!(short.contains(&format!("loggap {verb} --help")), "{verb}: {short}");
        assert!(long.lines().count() > short.lines().count(), "{verb}");
    }
}

/// Those that have nothing to hand on before their end.
#[test]
fn ctrl_c_is_told_and_ends_the_process_at_once() {
    let _machine = machine();
    /// A second on a quiet machine; runs go on for minutes.
    const BUSY_S: f64 = 8.0;
    for (arguments, words) in [
        (&["predict", "gather", "--ranks", "64M", "-s", "1,2,4,8"][..], ["interrupted", ""]),
        (&["study", "pipelining", "--ranks", "4096", "-n", "100000"], ["interrupted", ""]),
        (
            &["simulate", "--pattern", "all-to-all", "--ranks", "8K"],
            ["interrupted after ", " events of the simulation"],
        ),
    ] {
        let child = start(loggap_process().args(arguments));
        std::thread::sleep(Duration::from_secs(1));
        let clock = HostClock::monotonic_raw();
        let asked = clock.now();
        send(Signal::SIGINT, child.id());
        let told = finish(child).exited(130).stderr;
        let last = told.lines().last().unwrap_or_default();
        let [begin, end] = words;
        // The simulated time is known behind the first window.
        let (last, _) = last.split_once(", at ").unwrap_or((last, ""));
        let count = last.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
        let is_count = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
        assert!(count.is_some_and(is_count), "{arguments:?}: {told}");
        let took = clock.duration(clock.now().saturating_sub(asked));
        assert!(took.seconds() < BUSY_S, "{arguments:?} {took:?}");
    }
}

#[test]
fn a_typing_error_in_a_name_is_answered_with_the_name_before_the_list() {
    let pattern = ["simulate", "--pattern", "alreduce", "--ranks", "4"];
    let best = ["best", "alreduce", "--ranks", "4"];
    let preset = ["simulate", "--pattern", "bcast", "--ranks", "4", "--preset", "ompi-ib-sd"];
    for (arguments, meant, list) in [
        (&pattern[..], "did you mean 'allreduce'?", "binomialtreebcast"),
        (&best, "did you mean 'allreduce'?", "alltoall"),
        (&preset, "did you mean 'ompi-ib-sdr'?", "mpich2-tcp"),
    ] {
        let told = loggap().args(arguments).ends(2).stderr;
        let (before, after) = told.split_once(meant).unwrap();
        assert!(!before.contains(list) && after.contains(list), "{told}");
    }
}

/// One line says what is wrong, with which option, and what is expected.
#[test]
fn wrong_values_are_told_with_what_is_expected() {
    let folder = Folder::new();
    let pattern = ["--pattern", "dissemination", "--ranks", "8"];
    let goal = folder.generated("app.goal", &pattern);
    let goal = &*goal;
    for (more, parts) in [
        (&["--topology", "star", "--placement", "roundrobin"][..], ["--placement", "round-robin"]),
        (&["--threads", "0"], ["--threads", "a whole number from 1 on"]),
        (&["--threads", "-1"], ["--threads", "a whole number from 1 on"]),
        (&["-L", "-5"], ["--latency", "below zero"]),
        (&["-g", "-5us"], ["--gap", "below zero"]),
        (&["-L", "-o", "5"], ["--latency", "a time such as 1.5us"]),
        (&["--root", "-1"], ["--root", "-1 is not in 0..=4294967295"]),
        (&["-G", "-0.5"], ["--gap-per-byte", "below zero"]),
        (&["-o", "5parsec"], ["--overhead", "a time such as 1.5us"]),
        (&["-s", "-4"], ["--size", "4K, 1.5M or 1GiB"]),
        (&["-S", "64KB"], ["--eager-limit", "4K, 1.5M or 1GiB"]),
        (&["--seed", "-1"], ["--seed", "below 2^64"]),
        (&["--max-memory", "1.3K"], ["--max-memory", "'1.3K' is no size"]),
        (&["--topology", "tree:4:2", "--link-capacity", "-1"], ["--link-capacity", "above 0"]),
        (&["--topology", "tree:4:2", "--link-capacity", "x"], ["--link-capacity", "above 0"]),
        (&["--noise-periodic", "5:10"], ["--noise-periodic", "shorter than PERIOD"]),
        (&["--profile", goal], ["app.goal", "it is no JSON from line 1"]),
        (&["--monte-carlo", "3"], ["--monte-carlo", "--profile"]),
    ] {
        let (code, told) = refused(&[&pattern[..], more].concat());
        assert_eq!(code, 2, "{more:?}: {told}");
        let line = told.lines().next().unwrap();
        assert!(parts.iter().all(|part| line.contains(part)), "{more:?}: {told}");
    }
    for (arguments, part) in [
        (&["--pattern", "bcast"][..], "--pattern bcast needs --ranks P"),
        (&[], "give a schedule's FILE, --trace DIR, or --pattern NAME"),
    ] {
        assert_refused(arguments, 2, part);
    }
    let (_, told) = refused(&[goal, "--max-memory", "1K"]);
    assert!(told.contains("FILE.lgs") && told.contains("goal compile"), "{told}");
    // What needs all operations would not be helped.
    let (_, told) = refused(&[goal, "--max-memory", "1K", "--explain"]);
    assert!(!told.contains("FILE.lgs"), "{told}");
    // A table of tags above 2³¹ counts.
    let mut text = "num_ranks 2\n".to_owned();
    for (rank, what) in ["send 1b to 1", "recv 1b from 0"].into_iter().enumerate() {
        let ops = (0..10_000).map(|at| format!("{what} tag {}\n", 50_000_000_000u64 + at));
        text += &format!("rank {rank} {{\n{}}}\n", ops.collect::<String>());
    }
    let tagged = folder.path("tagged.goal");
    std::fs::write(&tagged, text).unwrap();
    let tagged = &*tagged;
    let taken = simulated(&[tagged])["memory_bytes"].as_u64().unwrap();
    let (_, told) = refused(&[tagged, "--max-memory", &(taken - 200_000).to_string()]);
    assert!(told.contains("--max-memory"), "{told}");
    for size in ["1.5G", "1GiB", "512M", "0.5g"] {
        simulated(&[goal, "--max-memory", size]);
    }
}
