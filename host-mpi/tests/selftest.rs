//! What needs no help of MPI, and so runs under one library: clocks that agree, on virtual clocks; commands in documents.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a wrong assumption should end the test"
)]

use std::process::Command;

use loggap_tests::command::Run;

#[test]
fn every_command_of_the_documents_has_options_that_exist() {
    let calls = loggap_tests::docs::calls("loggap-mpi");
    assert!(calls.len() > 15, "{}", calls.len());
    for (document, options) in calls {
        let mut program = Command::new(env!("CARGO_BIN_EXE_loggap-mpi"));
        let ended = program.args(&options).arg("--help").ended();
        assert_eq!(ended.code, Some(0), "{document}: loggap-mpi {options:?}: {}", ended.stderr);
    }
}

#[test]
fn claimed_bounds_hold_on_virtual_clocks() {
    let run_alone =
        |arguments: &[&str]| Command::new(env!("CARGO_BIN_EXE_loggap-mpi")).args(arguments).ended();
    let document =
        run_alone(&["selftest", "--ranks", "3000", "--per-machine", "7", "-J"]).exited(0).json();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    for row in rows {
        for when in ["synchronised", "extrapolated", "interpolated"] {
            assert!(row[when]["covered_share"].as_f64().unwrap() >= 0.95, "{row}");
            assert!(row[when]["residual_max_s"].as_f64().unwrap() > 0.0, "{row}");
        }
    }
    for (study, rows) in [("patience", 8), ("drift", 3), ("schemes", 14)] {
        let document = run_alone(&["selftest", "--study", study, "-J"]).json();
        assert_eq!(document["rows"].as_array().unwrap().len(), rows, "{study}");
    }
    let _refused = run_alone(&["selftest", "--ranks", "0"]).exited(2);
    // Assumptions that do not hold.
    let text = run_alone(&["selftest", "--ranks", "100", "--max-drift", "1"]).exited(3).stdout;
    assert!(text.contains("drift apart faster than --max-drift 1"), "{text}");
    assert!(text.contains("the bounds do not hold"), "{text}");
}
