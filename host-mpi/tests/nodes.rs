//! Two machines, as far as one can have them: network namespaces with names of
//! their own, and TCP over a cable between them. Root and Open MPI only: below
//! MPICH, UCX finds no way between namespaces.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a wrong assumption should end the test"
)]

mod common;

use std::process::{Command, Stdio};

use common::{binary, document, is_open_mpi};
use loggap_tests::command::skipped;
use nix::unistd::geteuid;

/// Starts a job on two nodes.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/mpi/two-nodes");

/// `loggap-mpi` with `each` ranks on each of two nodes; `None` where that cannot be.
fn two_nodes(what: &str, each: &str) -> Option<Command> {
    let why = if !geteuid().is_root() {
        "needs root for network namespaces"
    } else if !is_open_mpi() {
        "UCX finds no way between namespaces"
    } else {
        let mut command = Command::new("bash");
        command.args([SCRIPT, "openmpi", each, binary()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        return Some(command);
    };
    skipped(what, why);
    None
}

#[test]
fn a_link_between_two_nodes_is_tcp_and_says_where_its_ends_are() {
    let Some(mut command) = two_nodes("a link between two nodes", "2") else { return };
    let document =
        document(command.args(["measure", "--one-link", "-s", "1,64,1K", "--max-time", "2", "-J"]));
    let link = &document["host"]["link"];
    assert_eq!(
        (&document["host"]["hostname"], &link["peer"]),
        (&"nodea".into(), &"rank 1 on nodeb".into())
    );
    let settings = &link["mpi"]["settings"];
    assert!(settings["btl_tcp_eager_limit"].is_string(), "{settings}");
    assert!(settings["btl_vader_eager_limit"].is_null(), "{settings}");
    // Two system calls and a cable lie in between.
    assert!(document["ranges"][0]["half_rtt_s"].as_f64() > Some(1e-6), "{document}");
}

#[test]
fn clocks_of_nodes_are_synchronised_over_the_cable() {
    let Some(mut command) = two_nodes("clocks of two nodes", "1") else { return };
    let arguments = ["sync", "--domains", "rank", "--check", "500ms", "-J"];
    let document = document(command.args(arguments));
    assert_eq!(document["ranks"][1]["host"], "nodeb");
    assert_eq!(document["covered_share"], 1.0, "{document}");
    assert!(document["residual_max_s"].as_f64() < Some(5e-3), "{document}");
}

#[test]
fn collectives_between_nodes_are_measured_and_predicted() {
    let Some(mut command) = two_nodes("collectives between two nodes", "1") else { return };
    let arguments = ["check", "--op", "bcast,barrier", "-s", "8", "--max-time", "1s", "-J"];
    let document = document(command.args(arguments));
    let results = document["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    for result in results {
        let ratio = result["ratio"].as_f64().unwrap_or_else(|| panic!("{document}"));
        assert!((0.4..2.5).contains(&ratio), "{result}");
    }
}

/// Traced over shared memory, where messages cost next to nothing; predicted for and measured on a
/// cable of 100 Mb/s, on which they take nearly all of the time.
#[test]
fn a_program_traced_on_one_machine_is_predicted_for_two() {
    let Some(_) = two_nodes("an application on two nodes", "1") else { return };
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = common::compiled("jacobi.f90", &["-O2"], folder.path()) else { return };
    let mut check = Command::new(binary());
    check.env("LOGGAP_CABLE_RATE", "100mbit").env("LOGGAP_CABLE_BURST", "1600b");
    check.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    check.args(["check", "--app", "-J", "--launcher", &format!("bash {SCRIPT} openmpi 1")]);
    check.args(["--trace-launcher", &format!("{} --oversubscribe -n 2", common::mpirun())]);
    check.args(["--measure", "-s 1,1K,4K,16K --max-time 4s", "--"]);
    check.arg(program).args(["2048", "200"]);
    check.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let found = document(&mut check);
    let share = |name: &str| found[name].as_f64().unwrap_or_else(|| panic!("{name}: {found}"));
    assert!(share("difference").abs() < 0.25, "{found}");
    assert!(share("free_network_difference") < -0.9, "{found}");
}
