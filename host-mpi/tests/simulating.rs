//! `loggap-mpi simulate` against `loggap simulate`'s library: one document from all processes.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a wrong assumption should end the test"
)]

mod common;

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use common::{has_ended, processes_below, ranks};
use loggap_tests::command::{Ended, finish, machine};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

fn ended(mut command: Command) -> Ended {
    let _machine = machine();
    finish(command.spawn().unwrap())
}

/// Document of a simulation on so many processes.
fn simulated(processes: u32, arguments: &[&str]) -> Value {
    let mut command = ranks(processes);
    command.arg("simulate").args(arguments).args(["--finish", "-J"]);
    let output = ended(command);
    assert_eq!(output.code, Some(0), "{arguments:?}: {}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

/// What does not depend on the number of processes.
fn results(document: &Value) -> Value {
    let names = ["ranks", "ops", "events", "makespan_ps", "last_rank", "finish_ps", "counters"];
    names.iter().map(|name| document[name].clone()).collect()
}

#[test]
fn a_document_is_the_same_for_every_number_of_processes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shift.goal");
    let rank = |rank: u32| {
        let (next, before) = ((rank + 1) % 6, (rank + 5) % 6);
        format!(
            "rank {rank} {{\na: send 8b to {next} tag 1\nb: recv 8b from {before} tag 1\n\
             c: calc 100\nd: send 9b to {next} tag 2\ne: recv 9b from {before} tag 2\n\
             c requires b\nd requires c\n}}\n"
        )
    };
    let text: String = (0..6).map(rank).collect();
    fs::write(&file, format!("num_ranks 6\n{text}")).unwrap();
    let file = file.to_str().unwrap();
    let pattern = ["--pattern", "dissemination", "--ranks", "300", "-s", "8"];
    let noise = [&pattern[..], &["--noise-periodic", "100us:5us", "--threads", "2"]].concat();
    let counted = ["--counters", file];
    let handshake = ["--rendezvous", "handshake", "-S", "8", file, "--counters"];
    let parts = folder.path().join("parts");
    fs::write(&parts, "1\n0\n".repeat(150)).unwrap();
    let parts = [&noise[..], &["--partition", parts.to_str().unwrap()]].concat();
    for arguments in [&pattern[..], &noise, &counted, &handshake] {
        let alone = simulated(1, arguments);
        assert_eq!(alone["processes"], 1, "{alone}");
        for processes in [2, 4] {
            let together = simulated(processes, arguments);
            assert_eq!(results(&together), results(&alone), "{arguments:?}");
            assert_eq!(together["processes"], processes);
            assert!(together["crossing_share"].as_f64().unwrap() > 0.1, "{together}");
        }
    }
    // Half of the ranks, but another half of the messages: all of distance 1.
    let (blocks, parted) = (simulated(2, &noise), simulated(2, &parts));
    assert_eq!(results(&parted), results(&blocks));
    assert_eq!(parted["crossing_share"], 1.0 / 9.0, "{parted}");
}

#[test]
fn what_several_processes_cannot_do_is_told_once() {
    let refused = |arguments: &[&str], code: i32, why: &str| {
        let mut command = ranks(2);
        command.arg("simulate").args(arguments);
        let output = ended(command);
        assert_eq!(output.code, Some(code), "{arguments:?}: {}", output.stderr);
        assert_eq!(output.stderr.matches("error:").count(), 1, "{}", output.stderr);
        assert!(output.stderr.contains(why), "{arguments:?}: {}", output.stderr);
        assert_eq!(output.stdout, "");
    };
    let pattern = ["--pattern", "gather", "--ranks", "64", "-s"];
    let with = |more: &[&'static str]| [&pattern[..], more].concat();
    refused(
        &with(&["8", "--topology", "tree:8:2"]),
        2,
        "--topology needs all ranks in one process",
    );
    refused(&with(&["8", "--explain"]), 2, "--explain needs all ranks in one process");
    refused(&with(&["1M"]), 2, "unless --rendezvous is handshake; run it on one process");
    refused(&["/nowhere.goal"], 2, "/nowhere.goal: No such file");
}

#[test]
fn a_killed_process_ends_the_simulation() {
    let mut command = ranks(2);
    command.args(["simulate", "--pattern", "linear_alltoall", "--ranks", "8192", "-s", "8"]);
    let _machine = machine();
    let job = command.spawn().unwrap();
    let mut processes = processes_below(&job, 2);
    processes.sort_unstable();
    thread::sleep(Duration::from_secs(2));
    kill(Pid::from_raw(processes[1]), Signal::SIGKILL).unwrap();
    let output = finish(job);
    assert!(output.code != Some(0), "{}", output.stdout);
    // What mpirun says names it.
    let told = format!("{} {}", output.stdout, output.stderr);
    let named = told.contains("process rank 1 with PID") || told.contains("BAD TERMINATION");
    assert!(named && (told.contains("signal 9") || told.contains("SIGNAL: 9")), "{told}");
    // MPICH's mpirun writes there that a process was killed.
    assert!(!output.stdout.contains("makespan"), "{}", output.stdout);
    thread::sleep(Duration::from_millis(100));
    assert!(processes.into_iter().all(has_ended), "{}", output.stderr);
}

/// What was reached is said by the first process; `mpirun` passes on its own signal.
#[test]
fn an_interrupted_simulation_says_how_far_it_came() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let mut command = ranks(2);
        command.env("OMPI_MCA_odls_base_sigkill_timeout", "3");
        command.args(["simulate", "--pattern", "linear_alltoall", "--ranks", "16384", "-s", "8"]);
        let _machine = machine();
        let job = command.spawn().unwrap();
        let processes = processes_below(&job, 2);
        thread::sleep(Duration::from_secs(3));
        kill(Pid::from_raw(i32::try_from(job.id()).unwrap()), signal).unwrap();
        let output = finish(job);
        assert!(!output.stdout.contains("makespan"), "{signal} {}", output.stdout);
        let told = output.stderr;
        assert_eq!(told.matches("interrupted").count(), 1, "{signal} {told}");
        assert!(told.contains(" events of process 0 of the simulation, at "), "{signal} {told}");
        thread::sleep(Duration::from_millis(100));
        assert!(processes.into_iter().all(has_ended), "{signal} {told}");
    }
}
