//! `loggap predict`, and the study by both rules.

use loggap_tests::command::{Run, loggap};
use serde_json::Value;

fn rows(arguments: &[&str]) -> Vec<Value> {
    let json = loggap().arg("predict").args(arguments).arg("-J").succeeds().json();
    json["rows"].as_array().unwrap().clone()
}

/// Differences that a reason allows, as shares of the closed form: where it counts too long a path
/// the simulation is shorter, and longer where the form leaves a cost out.
const REASONS: [(&str, f64, f64); 5] = [
    ("P is no power of two", -0.38, -0.004),
    ("the receiving processor is held", 0.0005, 0.28),
    ("every message waits for the slower", 0.001, 0.03),
    ("above S an RTS and a CTS", -0.004, 0.06),
    ("the gap g + (s-1)G is longer", 0.16, 0.28),
];

#[test]
fn forms_and_simulation_differ_only_with_a_reason_and_by_what_it_allows() {
    let grid = ["--ranks", "1,2,3,8,33,64", "-s", "1,51,1000,70000"];
    let mut different = 0;
    for link in [&["--preset", "loggopsim"][..], &["--preset", "ompi-mx"], &["-o", "3000"]] {
        for rules in [&[][..], &["--receive", "overlap"], &["--rendezvous", "handshake"]] {
            let found = rows(&[&grid[..], link, rules].concat());
            assert_eq!(found.len(), 4 * 6 * 4);
            for row in found {
                let times = ["simulated_ps", "closed_form_ps", "difference_ps"];
                let [simulated, printed, difference] = times.map(|key| row[key].as_i64().unwrap());
                assert_eq!(simulated - printed, difference);
                assert_eq!(row.get("reason").is_some(), difference != 0, "{row}");
                let Some(reason) = row["reason"].as_str() else { continue };
                different += 1;
                let is_of = |(begin, ..): &&(&str, f64, f64)| reason.starts_with(begin);
                let &(_, least, most) = REASONS.iter().find(is_of).expect(reason);
                #[allow(clippy::cast_precision_loss, reason = "less than a second in picoseconds")]
                let share = difference as f64 / printed as f64;
                assert!((least..=most).contains(&share), "{share}: {row}");
            }
        }
    }
    assert!(different > 50, "{different}");
}

#[test]
fn the_known_difference_of_the_gather_is_explained_and_vanishes_with_overlap() {
    let gather = ["gather", "--ranks", "8", "-s", "51"];
    let row = &rows(&gather)[0];
    assert_eq!(row["closed_form_ps"].as_u64(), Some(14_500_000));
    assert_eq!(row["simulated_ps"].as_u64(), Some(16_600_000));
    assert!(row["reason"].as_str().unwrap().contains("--receive overlap"));
    let row = &rows(&[&gather[..], &["--receive", "overlap"]].concat())[0];
    assert_eq!(row["simulated_ps"].as_u64(), Some(14_500_000));
    let text = loggap().arg("predict").args(gather).succeeds().stdout;
    assert!(text.contains("gather                8        51             14500"), "{text}");
    assert!(text.contains("# gather: the receiving processor is held"), "{text}");
}

#[test]
fn what_cannot_be_predicted_is_refused() {
    for (arguments, code, message) in [
        (&["--ranks", "0"][..], 2, "from 1 to"),
        (&["--ranks", "1G"], 2, "from 1 to"),
        (&["barrier"], 2, "dissemination"),
        (&["--ranks", "1M", "--max-memory", "1M"], 1, "--max-memory"),
        (&["-G", "1000000", "-s", "100000000000000000"], 1, "2^64"),
    ] {
        let text = loggap().arg("predict").args(arguments).ends(code).stderr;
        assert!(text.contains(message), "{arguments:?}: {text}");
    }
}

/// Rows of the study by `rules`.
fn study(rules: &str) -> Vec<Value> {
    let options = ["--ranks", "2:32", "-n", "60", "--preset", "mpich2-tcp", "--rules", rules];
    let json = loggap().args(["study", "pipelining", "-J"]).args(options).succeeds().json();
    json["links"][0]["rows"].as_array().unwrap().clone()
}

#[test]
fn the_engine_finds_what_program_order_finds_but_for_pipelines_in_a_loop() {
    let (order, arrival) = (study("order"), study("arrival"));
    assert_eq!(order.len(), 10);
    let mut longer = 0;
    for (order, arrival) in order.iter().zip(&arrival) {
        assert_eq!(order["synchronised_s"], arrival["synchronised_s"], "{order}");
        assert_eq!(order["rotated_s"], arrival["rotated_s"], "{order}");
        let [one, other] = [order, arrival].map(|row| row["loop_s"].as_f64().unwrap());
        if order["algorithm"] == "pipeline" {
            assert!(one <= other, "{order}");
            longer += u32::from(one < other);
        } else {
            assert_eq!(order["loop_s"], arrival["loop_s"], "{order}");
        }
    }
    assert_eq!(longer, 4, "all but two ranks");
}
