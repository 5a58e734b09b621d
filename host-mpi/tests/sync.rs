//! Clocks that agree, over MPI on one machine, whose ranks read one clock, so
//! that the truth is known.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::float_cmp,
    reason = "a wrong assumption should end the test"
)]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use common::{binary, document, ranks, ranks_on};
use loggap_tests::command::{Run as _, finish, machine, send};
use nix::sys::signal::Signal;
use serde_json::Value;

fn seconds(document: &Value, key: &str) -> f64 {
    document[key].as_f64().unwrap_or_else(|| panic!("{key} in {document}"))
}

#[test]
fn ranks_of_a_machine_share_its_clock() {
    let document = document(ranks(2).args(["sync", "--check", "100ms", "-J"]));
    let rank = &document["ranks"][1];
    assert_eq!((&rank["shares_clock"], &rank["domain"]), (&true.into(), &0.into()), "{document}");
    assert!(seconds(rank, "offset_s") == 0.0 && seconds(rank, "bound_s") < 1e-6, "{rank}");
    assert_eq!(document["covered_share"], 1.0);
}

#[test]
fn clocks_of_two_ranks_are_put_together_within_what_is_claimed() {
    let arguments = ["sync", "--domains", "rank", "--check", "1s", "-J"];
    let document = document(ranks(2).args(arguments));
    let rank = &document["ranks"][1];
    assert_eq!((&rank["shares_clock"], &rank["parent"]), (&false.into(), &0.into()));
    assert_eq!(document["truth"], "zero", "{document}");
    // Both count from another reading.
    assert!(seconds(rank, "offset_s").abs() > 1e-9, "{rank}");
    let checks = document["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 2);
    for check in checks {
        assert_eq!(seconds(check, "covered_share"), 1.0, "{check}");
        assert!(check["consistent_share"].is_null());
        assert!(seconds(check, "residual_max_s") <= seconds(check, "bound_s"), "{check}");
    }
}

/// A machine that somebody else uses meanwhile, which bounds tell, gets more
/// chances.
#[test]
fn clocks_of_two_ranks_are_off_by_less_than_microseconds() {
    let arguments = ["sync", "--domains", "rank", "--passes", "1", "--check", "1ms", "-J"];
    let errors = (0..5).map(|_| {
        let document = document(ranks(2).args(arguments));
        seconds(&document["checks"][0], "residual_p99_s")
    });
    assert!({ errors }.any(|error| error < 5e-6));
}

/// Against the truth, as both ranks read one clock: a bound that is too narrow,
/// or a wrong offset, shows.
#[test]
fn bounds_hold_against_the_truth_and_are_no_narrower_than_pings_allow() {
    let arguments = ["sync", "--domains", "rank", "--passes", "1", "--shift", "1s"];
    let mut covered = 0;
    for _ in 0..20 {
        let mut command = ranks(2);
        let document = document(command.args(arguments).args(["--check", "1ms", "-J"]));
        let (rank, check) = (&document["ranks"][1], &document["checks"][0]);
        assert_eq!(check["truth"], "zero");
        let offset = seconds(rank, "offset_s");
        assert!((0.5..1.5).contains(&offset), "{rank}");
        let (error, bound) = (seconds(check, "residual_max_s"), seconds(check, "bound_s"));
        covered += u32::from(error <= bound);
        let round_trip = seconds(rank, "round_trip_s");
        assert!(bound >= round_trip / 4.0, "{bound} {round_trip}");
    }
    assert!(covered >= 19, "{covered} of 20");
}

#[test]
fn a_tree_of_ranks_that_is_no_power_of_two_closes_its_triangles() {
    let arguments = ["sync", "--domains", "rank", "--check", "50ms", "--base", "100ms", "-J"];
    for count in [5, 6] {
        let document = document(ranks_on("0,1", count).args(arguments));
        assert_eq!(document["ranks"].as_array().unwrap().len(), count as usize);
        let check = &document["checks"][1];
        assert!(check["triangles"].as_u64() > Some(0), "{document}");
        assert_eq!(check["triangles"], check["triangles_closed"], "{document}");
        assert_eq!(seconds(check, "covered_share"), 1.0, "{document}");
    }
}

#[test]
fn published_schemes_find_the_offsets_and_claim_nothing() {
    /// Times that a rank may have lost its processor, which they do not notice.
    const TRIES: usize = 4;
    for scheme in ["linear", "binomial"] {
        let arguments = ["sync", "--scheme", scheme, "--check", "1ms", "--shift", "1s", "-J"];
        for count in [2, 3, 5, 6] {
            let mut errors = Vec::new();
            while errors.len() < TRIES && errors.iter().all(|error| *error >= 100e-6) {
                let document = document(ranks_on("0,1", count).args(arguments));
                assert!(document["scheme"].as_str().unwrap().contains("as published"));
                assert!(document["bound_s"].is_null() && document["covered_share"].is_null());
                assert_eq!((&document["truth"], count - 1), (&"zero".into(), residuals(&document)));
                errors.push(seconds(&document, "residual_max_s"));
            }
            assert!(errors.iter().any(|error| *error < 100e-6), "{scheme} {count}: {errors:?}");
        }
    }
}

/// How many ranks were compared.
fn residuals(document: &Value) -> u32 {
    document["checks"][0]["residuals"].as_u64().unwrap().try_into().unwrap()
}

/// Evaluation of a recorded file, without `mpirun`.
fn evaluated(file: &Path, options: &[&str]) -> Value {
    let mut command = Command::new(binary());
    command.args(["sync", "-J", "--from"]).arg(file).args(options).ended().exited(0).json()
}

/// Rank and offset of each line, and the least of its round trips.
fn lines(file: &Path) -> Vec<(u64, f64, f64)> {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    let rows = text.lines().skip_while(|line| !line.starts_with("rank,")).skip(1);
    rows.map(|row| {
        let fields: Vec<&str> = row.split(',').collect();
        let round_trips = fields[3].split(' ').map(|time| time.parse::<f64>().unwrap());
        let least = round_trips.fold(f64::INFINITY, f64::min);
        (fields[0].parse().unwrap(), fields[2].parse().unwrap(), least)
    })
    .collect()
}

#[test]
fn recorded_clocks_of_a_machine_are_equal_and_do_not_drift() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clocks.csv");
    let picture = folder.path().join("drift.svg");
    let record = |options: &[&str]| {
        let arguments = ["sync", "--for", "3s", "--interval", "50ms", "-J", "--record"];
        document(ranks(3).args(arguments).arg(&file).args(options))
    };
    let told = record(&[]);
    let offsets = lines(&file);
    assert_eq!(offsets.len(), 2 * 61);
    // One clock: each offset is 0 within half of its round trip.
    for (rank, offset, round_trip) in offsets {
        assert!([1, 2].contains(&rank) && offset.abs() <= round_trip / 2.0 + 2e-9, "{offset}");
    }
    let told_later = evaluated(&file, &["--plot", picture.to_str().unwrap()]);
    assert_eq!(told["ranks"], told_later["ranks"]);
    assert!(fs::read_to_string(picture).unwrap().contains("rank 2"));
    let shifted = record(&["--domains", "rank", "--shift", "1s"]);
    for document in [&told, &shifted] {
        for rank in document["ranks"].as_array().unwrap() {
            let bounds = ["drift_ppm_lo", "drift_ppm_hi"].map(|key| seconds(rank, key));
            assert!(bounds[0] < 0.0 && 0.0 < bounds[1], "{rank}");
            let span = rank["spans"].as_array().unwrap().last().unwrap();
            assert!(seconds(span, "residual_rms_s") <= seconds(span, "residual_max_s"), "{span}");
        }
        assert!(document["patience"].is_u64(), "{document}");
        assert_eq!(document["patience_rows"].as_array().unwrap().len(), 8);
    }
    let [one, two] = [0, 1].map(|index| seconds(&shifted["ranks"][index], "offset_s"));
    assert!((0.5..1.5).contains(&one) && (1.5..2.5).contains(&two), "{one} {two}");
}

#[test]
fn a_recording_that_is_interrupted_is_complete() {
    let _machine = machine();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clocks.csv");
    let mut command = ranks(2);
    let mut job =
        command.args(["sync", "--interval", "10ms", "--record"]).arg(&file).spawn().unwrap();
    let count = || fs::read_to_string(&file).unwrap_or_default().lines().count();
    while count() < 12 && job.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(10));
    }
    send(Signal::SIGINT, job.id());
    let ended = finish(job);
    assert!(lines(&file).len() >= 10, "{}", ended.stderr);
    assert!(evaluated(&file, &[])["ranks"][0]["offsets"].as_u64() >= Some(10));
}

#[test]
fn wrong_recordings_are_named_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clocks.csv");
    fs::write(&file, "rank,at_s,offset_s,round_trips_s\n1,1,0,1e-6\n1,2,x,1e-6\n").unwrap();
    let ended = Command::new(binary()).args(["sync", "--from"]).arg(&file).ended().exited(2);
    assert!(ended.stderr.contains("clocks.csv': line 3: offset_s: "), "{}", ended.stderr);
    let alone = ranks(1).args(["sync", "--record"]).arg(&file).ended();
    assert!(alone.stderr.contains("mpirun -n 2"), "{}", alone.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 3);
}
