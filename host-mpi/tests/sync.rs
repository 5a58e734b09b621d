//! Clocks that agree: over MPI on one machine, whose ranks read one clock, so
//! that the truth is known; and on virtual clocks.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::float_cmp,
    reason = "a wrong assumption should end the test"
)]

mod common;

use std::process::Command;

use common::{binary, document, ranks, ranks_on, run};
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

#[test]
fn claimed_bounds_hold_on_virtual_clocks() {
    let run_alone = |arguments: &[&str]| {
        run(Command::new(binary())
            .args(arguments)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped()))
    };
    let output = run_alone(&["selftest", "--ranks", "3000", "--per-machine", "7", "-J"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let document = output.json();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    for row in rows {
        for when in ["synchronised", "extrapolated", "interpolated"] {
            assert!(seconds(&row[when], "covered_share") >= 0.95, "{row}");
            assert!(seconds(&row[when], "residual_max_s") > 0.0, "{row}");
        }
    }
    for (study, rows) in [("patience", 8), ("drift", 3), ("schemes", 14)] {
        let output = run_alone(&["selftest", "--study", study, "-J"]);
        let document = output.json();
        assert_eq!(document["rows"].as_array().unwrap().len(), rows, "{study}");
    }
    let output = run_alone(&["selftest", "--ranks", "0"]);
    assert_eq!(output.code, Some(2));
    // Assumptions that do not hold.
    let output = run_alone(&["selftest", "--ranks", "100", "--max-drift", "1"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    let text = &output.stdout;
    assert!(text.contains("drift apart faster than --max-drift 1"), "{text}");
    assert!(text.contains("the bounds do not hold"), "{text}");
}
