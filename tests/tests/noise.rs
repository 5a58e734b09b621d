//! `loggap noise`: detours of this machine, and the trace of them.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::Duration;

use loggap::machine::placement;
use loggap_tests::command::{
    Run, assert_refused, finish, loggap, loggap_process, machine, send, start,
};
use loggap_tests::folder::Folder;
use nix::sys::signal::Signal;
use serde_json::Value;

fn document(arguments: &[&str]) -> Value {
    let output = loggap().arg("noise").args(arguments).arg("-J").succeeds();
    output.json()
}

fn number(document: &Value, key: &str) -> f64 {
    document[key].as_f64().unwrap_or_else(|| panic!("{key}: {document:#}"))
}

#[test]
fn durations_are_seconds_in_every_option_and_parameters_the_fields_units() {
    for (command, option) in [
        ("noise", "--threshold"),
        ("noise", "--duration"),
        ("measure", "--max-time"),
        ("lat", "--duration"),
        ("bw", "--duration"),
    ] {
        let help = loggap().args([command, "--help"]).ended().stdout;
        assert!(help.contains(&format!("{option} <SECONDS>")), "{command}: {help}");
    }
    let pattern = ["--pattern", "barrier", "--ranks", "4"];
    for wrong in [["-G", "1us"], ["-O", "1ns"], ["-L", "1ns/B"], ["-g", "80ps/B"]] {
        assert_refused(&[&pattern[..], &wrong].concat(), 2, wrong[1]);
    }
}

/// A process that keeps processor `cpu` busy for a minute: the program itself,
/// as soon as it measures.
fn hog(cpu: &str, folder: &Path) -> Child {
    let child = start(
        loggap_process()
            .args(["noise", "--duration", "60s", "-J", "--cpu", cpu, "-o"])
            .arg(folder.join("hog.txt")),
    );
    while fs::read_dir(folder).unwrap().count() == 0 {
        thread::sleep(Duration::from_millis(5));
    }
    // From opening the file to measuring it is a moment.
    thread::sleep(Duration::from_millis(500));
    child
}

fn makespan(noise: &[&str]) -> f64 {
    let arguments = ["simulate", "--pattern", "allreduce", "--ranks", "16", "-s", "8", "-J"];
    let output = loggap().args(arguments).args(noise).succeeds();
    number(&output.json(), "makespan_s")
}

#[test]
fn a_busy_process_on_the_same_processor_is_seen_and_its_trace_simulated() {
    let _machine = machine();
    let cpu = placement::allowed().last().unwrap().to_string();
    let folder = Folder::new();
    let hog = hog(&cpu, folder.root());
    let trace = folder.path("noise.txt");
    let path = &trace;
    let found = document(&["--duration", "1.5s", "--cpu", &cpu, "-o", path]);
    send(Signal::SIGINT, hog.id());
    let hog = finish(hog);

    // The two share the processor by turns of milliseconds at least.
    assert!(number(&found, "longest_s") > 1e-3, "{found:#}");
    let share = number(&found, "lost_share");
    assert!(share > 0.2 && share < 1.0, "{found:#}");
    assert_eq!(found["host"]["cpu"].to_string(), cpu);
    let detours = found["detours"].as_u64().unwrap();
    assert_eq!((found["dropped"].as_u64(), found["schema_version"].as_u64()), (Some(0), Some(1)));
    assert!(found["incomplete"].is_null() && number(&found, "observed_s") >= 1.5);
    for (smaller, greater) in [("smallest_gap_s", "threshold_s"), ("threshold_s", "median_s")] {
        assert!(number(&found, smaller) < number(&found, greater), "{found:#}");
    }
    for (smaller, greater) in [("median_s", "p99_s"), ("p99_s", "longest_s")] {
        assert!(number(&found, smaller) <= number(&found, greater), "{found:#}");
    }

    // The file holds what the figures say.
    let text = fs::read_to_string(&trace).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines.len() as u64, detours, "{text}");
    let duration = |line: &&str| line.split('\t').nth(1).unwrap().parse::<f64>().unwrap();
    let sum: f64 = lines.iter().map(duration).sum();
    assert!((sum * 1e-9 / number(&found, "lost_s") - 1.0).abs() < 1e-6, "{sum}");
    assert!(makespan(&["--noise", path]) > makespan(&[]));

    // Who was interrupted has left what there was.
    assert_eq!(hog.code, Some(130));
    let interrupted = hog.json();
    assert_eq!(interrupted["incomplete"], "interrupted");
    assert!(number(&interrupted, "observed_s") < 60.0);
    let path = folder.path("hog.txt");
    assert!(makespan(&["--noise", &path]) > 0.0);
}

#[test]
fn a_table_names_its_units_and_no_detour_makes_no_trace() {
    let _machine = machine();
    // Nobody takes a processor for so long.
    let arguments = ["noise", "--duration", "1.9s", "--threshold", "1.8s"];
    let text = loggap().args(arguments).succeeds().stdout;
    assert!(text.contains("lost[%]") && text.contains("longer than 1.80 s"), "{text}");
    let row = text.lines().find(|line| !line.starts_with('#')).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells, ["0", "0.0", "0.0000", "-", "-", "-"]);

    let folder = Folder::new();
    let path = folder.path("noise.txt");
    let output = loggap().args(arguments).args(["-J", "-o"]).arg(&path).ends(1);
    let talk = &output.stderr;
    assert!(talk.contains("no detour longer than 1.80 s"), "{talk}");
    let document = output.json();
    assert!(document["longest_s"].is_null() && document["detours"] == 0);
    assert_eq!(folder.count(), 0);
}

#[test]
fn wrong_options_are_named_once_before_any_work() {
    for (arguments, told) in [
        (&["--duration", "0"][..], "expected a time above 0"),
        (&["--duration", "soon"], "expected a time above 0"),
        (&["--duration", "1s", "--threshold", "1s"], "not below the --duration"),
        (&["--threshold=-1us"], "expected a time above 0"),
        (&["--cpu", "8000"], "processor 8000 is not available"),
        (&["--cpu", "0,1"], "--cpu"),
        (&["-o", "/nonexistent/noise.txt"], "create its folder"),
        (&["noise.txt"], "unexpected argument"),
    ] {
        let output = loggap().arg("noise").args(arguments).ends(2);
        let talk = &output.stderr;
        assert!(talk.contains(told), "{arguments:?}: {talk}");
        assert_eq!(talk.matches("error:").count(), 1, "{arguments:?}: {talk}");
        assert!(output.stdout.is_empty());
    }
}
