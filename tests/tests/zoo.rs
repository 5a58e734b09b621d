//! The quick part of the zoo of links whose truth is known.

use std::fs;
use std::process::Command;

use nix::unistd::Uid;

use loggap_tests::cleanup::Process;
use loggap_tests::command::{machine, skipped};
use loggap_tests::timing::{Attempt, undisturbed};
use serde_json::Value;

/// A link with a known rate and one with a known change of protocol.
const SHAPED: &str = "veth tcp 100 Mb/s tbf, block";
const CHANGING: &str = "relay change at 4096 B";

/// Rows on virtual time that may miss: noise of 10 to 40% hides 5% of G.
const MISSED: [&str; 6] = [
    "virtual two protocols, lognormal 10%",
    "virtual one protocol, lognormal 40%",
    "virtual two protocols, lognormal 40%",
    "virtual two protocols, drift 10% in 0.5 s",
    "virtual two protocols, drift 10% in 5 s",
    "virtual two protocols, correlated 10% over 30 ms",
];

/// Runs the zoo and returns its rows.
fn zoo(only: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("zoo.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_zoo"));
    command.args(["--quick", "--only", only, "--json"]).arg(&json);
    let output = Process::start(&mut command).finish();
    let said = &output.stderr;
    assert!(matches!(output.code, Some(0 | 3)), "{said}");
    eprintln!("{said}");
    serde_json::from_slice(&fs::read(json).unwrap()).unwrap()
}

fn row<'a>(rows: &'a [Value], name: &str) -> &'a Value {
    rows.iter().find(|row| row["link"] == name).unwrap()
}

#[test]
fn the_quick_part_refuses_no_link_and_finds_a_rate_and_a_change() {
    let _alone = machine();
    let rows = zoo("");
    for row in &rows {
        let is_skipped = row["verdict"] == "skipped";
        assert!(!is_skipped || !Uid::effective().is_root(), "root may make every link: {row}");
        if is_skipped {
            skipped(row["link"].as_str().unwrap(), "no such link without root");
        }
        assert!(is_skipped || (row["exit"] == 0 && row["ranges"].as_u64() > Some(0)), "{row}");
    }
    // On virtual time nothing depends on the machine.
    for row in &rows {
        let link = row["link"].as_str().unwrap();
        let is_held = row["verdict"] == "held";
        assert!(!link.starts_with("virtual") || is_held || MISSED.contains(&link), "{row:#}");
    }
    // The zoo's own goals are for a machine that does nothing else; these hold beside other work.
    passes(&rows, SHAPED, |row| {
        let gap = &row["gap_per_byte_s"];
        let number = |key: &str| gap[key].as_f64().unwrap();
        (number("value") / number("truth") - 1.0).abs() < 0.15
    });
    passes(&rows, CHANGING, |row| {
        let changes = row["changes_bytes"].as_array().unwrap();
        changes.len() == 1 && (3_891.0..4_301.0).contains(&changes[0].as_f64().unwrap())
    });
}

/// Asserts that a link passes, at the first attempt that nothing disturbed.
fn passes(rows: &[Value], name: &str, is_right: fn(&Value) -> bool) {
    let mut first = Some(row(rows, name).clone());
    undisturbed(name, || {
        let row = first.take().unwrap_or_else(|| row(&zoo(name), name).clone());
        if row["verdict"] == "skipped" || is_right(&row) {
            Attempt::Right(())
        } else if row["disturbances"].as_array().is_some_and(Vec::is_empty) {
            Attempt::Wrong(format!("{row:#}"))
        } else {
            Attempt::Disturbed(format!("{row:#}"))
        }
    });
}
