//! `loggap measure`: from one command to parameters, profile, samples and
//! picture.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a wrong assumption should end the test, which has no clock of its own"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use loggap::profile::ProfileDocument;
use loggap_tests::command::{PATIENCE, finish, loggap, loggap_process, machine, send};
use loggap_tests::server::Server;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// A measurement that goes on until it is stopped.
const ENDLESS: [&str; 5] = ["measure", "--max-time=40", "--rel-err=0.0001%", "--transport", "shm"];

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("valid JSON")
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// Every `x` has `x_lo` ≤ `x` ≤ `x_hi` beside it.
fn check_intervals(range: &Value, names: &[&str]) {
    for name in names {
        let number = |suffix: &str| range[format!("{name}{suffix}")].as_f64();
        let (low, value, high) = (number("_lo"), number(""), number("_hi"));
        assert!(low.is_some() && low <= value && value <= high, "{name} in {range}");
    }
}

fn check_document(document: &Value, transport: &str) {
    assert_eq!(document["schema_version"], 1);
    assert_eq!((&document["transport"], &document["method"]), (&transport.into(), &"prtt".into()));
    assert!(document["messages_sent"].as_u64() > Some(100), "{document}");
    assert!(document["messages_lost"].is_u64() && document["converged"].is_boolean());
    let busy = document["link_busy_share"].as_f64().unwrap();
    assert!(document["wall_s"].as_f64() > Some(0.0) && busy > 0.0 && busy <= 1.0);
    assert!(document["host"]["kernel"].is_string() && document["host"]["clock"].is_string());
    let ranges = document["ranges"].as_array().unwrap();
    let mut next = Some(1);
    for range in ranges {
        assert_eq!(range["first_bytes"].as_u64(), next, "ranges leave no hole");
        next = range["last_bytes"].as_u64().map(|last| last + 1);
        check_intervals(range, &["gap_s", "gap_per_byte_s", "half_rtt_s"]);
    }
    let largest = if transport == "udp" { 65_507 } else { 65_536 };
    assert_eq!(next, Some(largest + 1));
    assert_eq!(document["changes"].as_array().map(Vec::len), Some(ranges.len() - 1));
    assert!(document["sizes"].as_array().unwrap().len() > 10);
}

#[test]
fn every_transport_gives_parameters_and_a_fit_repeats_them() {
    let _machine = machine();
    for transport in ["tcp", "udp", "unix", "shm"] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let output = loggap()
            .args(["measure", "--max-time", "2", "--seed", "7", "-J"])
            .args(["--transport", transport])
            .args([Path::new("-o"), &path("p.json"), Path::new("--samples"), &path("s.csv")])
            .args([Path::new("--plot"), &path("p.svg")])
            .assert()
            .success()
            .get_output()
            .clone();
        let document = json(&output.stdout);
        check_document(&document, transport);
        assert_eq!(json(text(&path("p.json")).as_bytes()), document);
        assert!(text(&path("p.svg")).contains("message size"));
        assert!(text(&path("s.csv")).starts_with("size_bytes,n,delay_s,prtt_s,receive_s\n"));
        let fit = loggap().arg("fit").arg(path("s.csv")).arg("-J").assert().success();
        let fit = json(&fit.get_output().stdout);
        for part in ["ranges", "changes", "sizes", "converged"] {
            assert_eq!(fit[part], document[part], "{part} over {transport}");
        }
    }
}

/// Every key in `value`, at any depth.
fn keys(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                into.insert(key.clone());
                keys(value, into);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| keys(value, into)),
        _ => {}
    }
}

#[test]
fn every_key_of_a_profile_is_documented() {
    const FORMATS: &str = include_str!("../../docs/formats.md");
    let _machine = machine();
    let output = loggap()
        .args(["measure", "--transport", "shm", "--max-time", "2", "-J"])
        .assert()
        .success()
        .get_output()
        .clone();
    let mut found = BTreeSet::new();
    keys(&json(&output.stdout), &mut found);
    let curves = ["half_rtt", "send_overhead", "recv_overhead", "gap"];
    for key in &found {
        let name = key.trim_end_matches("_lo").trim_end_matches("_hi");
        let general = curves.iter().filter_map(|curve| name.strip_prefix(curve));
        let mut names = general.map(|rest| format!("X{rest}")).chain([name.to_owned()]);
        assert!(names.any(|name| FORMATS.contains(&format!("`{name}`"))), "{key}");
    }
    assert!(found.len() > 60, "{found:?}");
}

#[test]
fn every_method_measures_all_parameters() {
    let _machine = machine();
    for method in ["prtt", "signature", "plogp"] {
        let output = loggap()
            .args(["measure", "--transport", "unix", "--max-time", "2", "-J"])
            .args(["--method", method])
            .assert()
            .success()
            .get_output()
            .clone();
        let document = json(&output.stdout);
        assert_eq!(document["method"], method);
        let all = ["gap_s", "half_rtt_s", "send_overhead_s", "recv_overhead_s"];
        check_intervals(&document["ranges"][0], &all);
    }
}

#[test]
fn the_table_has_a_row_per_range_and_units_in_its_heads() {
    let _machine = machine();
    let output = loggap()
        .args(["measure", "--transport", "shm", "--max-time", "1"])
        .assert()
        .success()
        .get_output()
        .clone();
    let table = String::from_utf8(output.stdout).unwrap();
    let (comments, rows): (Vec<&str>, Vec<&str>) =
        table.lines().partition(|line| line.starts_with('#'));
    let heads = comments.iter().find(|line| line.starts_with("#first[B]")).expect(&table);
    for head in ["last[B]", "RTT/2[us]", "L[us]", "o_s[us]", "o_r[us]", "g[us]", "G[ns/B]"] {
        assert!(heads.contains(head), "{head} in {heads}");
    }
    let first: Vec<&str> = rows[0].split_whitespace().collect();
    assert_eq!(first[0], "1");
    assert!(first[3].starts_with('±'), "{first:?}");
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(!talk.contains(['\r', '\u{1b}']), "no progress where nobody watches: {talk}");
}

#[test]
fn one_size_gives_the_numbers_of_that_size_and_no_slope() {
    let _machine = machine();
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("p.json");
    let output = loggap()
        .args(["measure", "-s", "64", "--max-time", "5", "-J", "-o"])
        .arg(&profile)
        .assert()
        .success()
        .get_output()
        .clone();
    let document = json(&output.stdout);
    let range = &document["ranges"][0];
    check_intervals(range, &["gap_s", "half_rtt_s", "send_overhead_s", "recv_overhead_s"]);
    assert!(range["gap_s_hi"].as_f64() < Some(1.0), "{range}");
    assert!(range["gap_per_byte_s"].is_null() && range["gap_per_byte_s_hi"].is_null(), "{range}");
    let read = ProfileDocument::read(&profile).unwrap();
    assert_eq!(json(&serde_json::to_vec(&read).unwrap()), document);
    let flags = ["measure", "-s", "64", "--max-time", "5", "--flags"];
    let refused = loggap().args(flags).assert().code(1).get_output().clone();
    assert!(String::from_utf8(refused.stderr).unwrap().contains("measure more sizes"));
}

#[test]
fn flags_alone_go_to_standard_output() {
    let _machine = machine();
    // Exact sizes leave one range with every parameter measured.
    let output = loggap()
        .args(["measure", "--transport", "tcp", "--max-time", "2", "--flags"])
        .args(["-s", "1,64,256,1K"])
        .assert()
        .success()
        .get_output()
        .clone();
    let line = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let names: Vec<&str> = words.iter().copied().step_by(2).collect();
    assert_eq!(names, ["-L", "-o", "-g", "-G", "-O", "-S"], "{line}");
    assert!(words.iter().skip(1).step_by(2).all(|word| word.parse::<f64>().unwrap() >= 0.0));
    assert!(String::from_utf8(output.stderr).unwrap().contains("#first[B]"));
}

#[test]
fn what_did_not_converge_fails_under_strict_only() {
    let _machine = machine();
    let unreachable = ["measure", "--max-time", "1", "--rel-err", "0.0001%"];
    let lenient = loggap().args(unreachable).assert().success().get_output().clone();
    let table = String::from_utf8(lenient.stdout).unwrap();
    assert!(table.contains("# not converged: ") && table.contains('?'), "{table}");
    let strict = loggap().args(unreachable).args(["--strict", "-J"]).assert().code(4);
    assert_eq!(json(&strict.get_output().stdout)["converged"], false);
}

#[test]
fn wrong_input_is_named_and_exits_with_two() {
    for (arguments, named) in [
        (&["-s", "0"][..], "0 bytes"),
        (&["-s", "64,1"], "size 1 follows 64"),
        (&["-s", "1:4G"], "4294967296 bytes"),
        (&["-s", "many"], "'many'"),
        (&["-s", "@/nonexistent"], "/nonexistent"),
        (&["--transport", "udp", "-s", "1:64K"], "65507"),
        (&["--transport", "pigeon"], "pigeon"),
        (&["-n", "1"], "1 is not in"),
        (&["--rel-err", "0.05"], "0.05%"),
        (&["--confidence", "10"], "50%"),
        (&["--max-time", "2h"], "3000 s"),
        (&["--cpu", "1;2"], "1;2"),
        (&["--cpu", "8191"], "processor 8191"),
        (&["host:0"], "host:0"),
        (&["-o", "/nonexistent/p.json"], "create its folder"),
    ] {
        let output = loggap().arg("measure").args(arguments).assert().code(2).get_output().clone();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(talk.contains(named) && output.stdout.is_empty(), "{arguments:?}: {talk}");
    }
}

#[test]
fn a_peer_that_is_not_there_fails_in_time() {
    for (arguments, named) in [
        (&["127.0.0.1:1"][..], "start `loggap serve` there"),
        (&["does-not-exist.invalid"], "does-not-exist.invalid"),
        (&["--transport", "unix", "/nonexistent.sock"], "/nonexistent.sock"),
        (&["--transport", "shm", "/nonexistent.sock"], "/nonexistent.sock"),
        (&["--transport", "udp", "127.0.0.1:1"], "127.0.0.1:1"),
    ] {
        let output = loggap().arg("measure").args(arguments).assert().code(1).get_output().clone();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(talk.contains(named) && output.stdout.is_empty(), "{arguments:?}: {talk}");
    }
}

#[test]
fn a_full_disk_costs_the_file_but_not_the_numbers() {
    let _machine = machine();
    for option in ["-o", "--samples", "--plot"] {
        let output = loggap()
            .args(["measure", "-s", "1,64", "--max-time", "5", option, "/dev/full"])
            .assert()
            .code(1)
            .get_output()
            .clone();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(talk.contains("'/dev/full'") && talk.contains("make room"), "{talk}");
        assert!(String::from_utf8(output.stdout).unwrap().contains("#first[B]"));
    }
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = loggap_process()
        .args(["measure", "-s", "1,64", "--max-time", "5"])
        .stdout(full)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn ctrl_c_leaves_what_was_measured() {
    let _machine = machine();
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("p.json");
    let child = loggap_process()
        .args(ENDLESS)
        .args(["-J", "-o"])
        .arg(&profile)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    sleep(Duration::from_millis(1_500));
    send(Signal::SIGINT, child.id());
    let output = finish(child);
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    let document = json(&output.stdout);
    assert_eq!(document["stopped"], "interrupted");
    assert!(!document["ranges"].as_array().unwrap().is_empty());
    assert_eq!(json(text(&profile).as_bytes()), document);
}

#[test]
fn ctrl_c_before_anything_was_measured_ends_at_once_and_leaves_no_file() {
    let server = Server::tcp(&[]);
    let first = server.connect_and_greet();
    let folder = tempfile::tempdir().unwrap();
    let mut child = loggap_process()
        .args(["measure", &server.endpoint, "-o"])
        .arg(folder.path().join("p.json"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It waits for its turn by the time that it says so.
    let mut line = String::new();
    let mut talk = BufReader::new(child.stderr.take().unwrap());
    while !line.contains("position 1") {
        line.clear();
        assert!(talk.read_line(&mut line).unwrap() > 0, "it ended");
    }
    send(Signal::SIGINT, child.id());
    let started = Instant::now();
    let output = finish(child);
    assert_eq!(output.status.code(), Some(130));
    assert!(started.elapsed() < Duration::from_secs(3) && output.stdout.is_empty());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    drop(first);
}

/// The only child of a process.
fn child_of(id: u32) -> Pid {
    let path = format!("/proc/{id}/task/{id}/children");
    let started = Instant::now();
    loop {
        let children = fs::read_to_string(&path).unwrap();
        if let Some(child) = children.split_whitespace().next() {
            return Pid::from_raw(child.parse().unwrap());
        }
        assert!(started.elapsed() < PATIENCE, "no responder was started");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_responder_that_dies_ends_the_run_without_a_profile() {
    let _machine = machine();
    for transport in ["tcp", "udp", "unix", "shm"] {
        let folder = tempfile::tempdir().unwrap();
        let profile = folder.path().join("p.json");
        let child = loggap_process()
            .args(["measure", "--max-time=40", "--rel-err=0.0001%", "--transport", transport])
            .arg("-o")
            .arg(&profile)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let responder = child_of(child.id());
        sleep(Duration::from_millis(500));
        kill(responder, Signal::SIGKILL).unwrap();
        let output = finish(child);
        let talk = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{transport}: {talk}");
        assert!(talk.contains("error: ") && output.stdout.is_empty(), "{transport}: {talk}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{transport}: {talk}");
    }
}
