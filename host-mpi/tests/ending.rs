//! How a job ends before its time: a rank that stands still or dies, Ctrl-C,
//! and ranks that do not run the same.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a wrong assumption should end the test; times are of seconds"
)]

mod common;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use common::{binary, has_ended, is_open_mpi, processes_below, ranks};
use loggap_tests::command::{Ended, finish, machine};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Waits until ranks that have started measure, or ping: until each has used a processor for
/// a second, which MPI's start does not, or for four seconds, as some only wait.
fn wait_until_begun(processes: &[i32]) {
    const LONGEST: Duration = Duration::from_secs(4);
    const LOOKS: Duration = Duration::from_millis(20);
    /// Of a processor, in hundredths of a second.
    const ENOUGH: u64 = 100;
    let began = Instant::now();
    while began.elapsed() < LONGEST && processes.iter().any(|id| used(*id) < ENOUGH) {
        thread::sleep(LOOKS);
    }
}

/// Time on processors, in hundredths of a second.
fn used(process: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = status.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2);
    fields.map(|field| field.parse::<u64>().unwrap()).sum()
}

fn send(process: i32, signal: Signal) {
    let _ended_already = kill(Pid::from_raw(process), signal);
}

/// Sends `signal` to rank `rank` of a job that has begun. What came of the job,
/// and how long it went on; no process of it is left.
fn with_signal(mut command: Command, count: usize, rank: usize, signal: Signal) -> (Ended, f64) {
    let _machine = machine();
    let job = command.spawn().unwrap();
    let mut processes = processes_below(&job, count);
    // Started one after the other, in order of ranks.
    processes.sort_unstable();
    wait_until_begun(&processes);
    let signalled = Instant::now();
    send(processes[rank], signal);
    let output = finish(job);
    let took = signalled.elapsed().as_secs_f64();
    // mpirun itself may leave a stopped process to us.
    send(processes[rank], Signal::SIGKILL);
    thread::sleep(Duration::from_millis(100));
    for process in processes {
        assert!(has_ended(process), "{process} goes on");
    }
    (output, took)
}

#[test]
fn a_rank_that_is_killed_ends_the_job_and_leaves_no_process() {
    let mut command = ranks(2);
    command.args(["measure", "--max-time", "40", "--rel-err", "0.0001%"]);
    let (output, took) = with_signal(command, 2, 1, Signal::SIGKILL);
    assert!(output.code != Some(0) && took < 20.0, "{took} s");
}

#[test]
fn a_rank_that_stands_still_is_given_up_in_time() {
    let measure = ["measure", "--max-time", "40", "--rel-err", "0.0001%"];
    let irecv = [&measure[..], &["--recv", "irecv"]].concat();
    let pairs = ["measure", "-s", "1", "--times", "500", "--max-time", "0.2"];
    let sync = ["sync", "--domains", "rank", "--passes", "1000", "--base", "20s"];
    // What an idle rank allows for a round: twice its 0.2 s, and 1 s. Three ranks on two processors
    // wait for each other as it is.
    let all = [
        (2, 1, "1s", &measure[..], &["waited 1 s"][..]),
        (3, 2, "2s", &pairs, &["waited 2 s", "waited 3.4 s"]),
        (2, 0, "1s", &sync, &["waited 1 s", "waited 1.02 s"]),
        (2, 0, "1s", &irecv, &["waited 1 s"]),
    ];
    // The watch is the program's own; each command once shows that it sees the other library's ranks, too.
    let rows = if is_open_mpi() { &all[..] } else { &all[..3] };
    for &(count, stopped, limit, arguments, waited) in rows {
        let mut command = ranks(count);
        command.args(["--give-up", limit]).args(arguments);
        let count = usize::try_from(count).unwrap();
        let (output, took) = with_signal(command, count, stopped, Signal::SIGSTOP);
        let talk = &output.stderr;
        assert!(output.code != Some(0), "{arguments:?}: {talk}");
        assert!(waited.iter().any(|waited| talk.contains(waited)), "{arguments:?}: {talk}");
        assert!(talk.contains("for another rank"), "{talk}");
        // Not before the limit; and mpirun takes its time with a stopped process.
        assert!((0.9..20.0).contains(&took), "{arguments:?}: {took} s: {talk}");
    }
}

/// What came of a job, and how many seconds it took: without waiting for the
/// machine.
fn timed(command: &mut Command) -> (Ended, f64) {
    let _machine = machine();
    let began = Instant::now();
    let output = finish(command.spawn().unwrap());
    (output, began.elapsed().as_secs_f64())
}

/// A script that runs the program, and writes what each rank exits with.
fn noting_exits(folder: &Path) -> String {
    let script = folder.join("rank");
    let text = format!(
        "#!/bin/sh\ntrap : INT TERM\n{} \"$@\"\n\
         echo $? >{}/exit.${{OMPI_COMM_WORLD_RANK-$PMI_RANK}}\n",
        binary(),
        folder.display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script.to_str().unwrap().to_owned()
}

/// `mpirun` itself exits with 1 (Open MPI) or 0 (MPICH) then, cuts what ranks
/// print (Open MPI) or prints lines of its own (MPICH): files have all. Open
/// MPI's may kill rank 0 in `MPI_Finalize`, which waits for it.
#[test]
fn after_ctrl_c_rank_0_writes_what_it_has_and_exits_with_130() {
    let sync = ["sync", "--domains", "rank", "--check", "60s"];
    let measure = ["measure", "--max-time", "60", "--rel-err", "0.0001%"];
    let pairs = ["measure", "-s", "1,64", "--times", "500", "--max-time", "0.2"];
    let all = [(3_u32, &sync[..]), (2, &measure), (3, &pairs)];
    for &(count, arguments) in if is_open_mpi() { &all[..] } else { &all[..2] } {
        let _machine = machine();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("found.json");
        let script = noting_exits(folder.path());
        let mut command = common::program(count, &[], &script);
        // A second after its polite request Open MPI kills what is left.
        command.env("OMPI_MCA_odls_base_sigkill_timeout", "3");
        command.args(arguments).args(["-J", "-o"]).arg(&file);
        let job = command.spawn().unwrap();
        let processes = processes_below(&job, usize::try_from(count).unwrap());
        wait_until_begun(&processes);
        let signalled = Instant::now();
        send(i32::try_from(job.id()).unwrap(), Signal::SIGINT);
        let talk = finish(job).stderr;
        let took = signalled.elapsed().as_secs_f64();
        thread::sleep(Duration::from_millis(100));
        assert!(processes.into_iter().all(has_ended), "{arguments:?}: {talk}");
        assert!(took < 20.0, "{arguments:?}: {took} s");
        let exit = std::fs::read_to_string(folder.path().join("exit.0")).unwrap_or_default();
        let is_killed = is_open_mpi() && exit.is_empty();
        assert!(is_killed || exit.trim() == "130", "{arguments:?}: {exit} {talk}");
        let text =
            std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("{arguments:?}: {talk}"));
        let document: Value = serde_json::from_str(&text).unwrap();
        if arguments == measure {
            assert_eq!(document["converged"], false, "{talk}");
        } else {
            let incomplete = document["incomplete"].as_str();
            assert!(incomplete.is_some_and(|why| why.starts_with("interrupted")), "{document}");
        }
        let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
        let left = names.iter().map(|name| name.file_name().into_string().unwrap());
        let mut left: Vec<String> = left.filter(|name| !name.starts_with("exit.")).collect();
        left.sort();
        assert_eq!(left, ["found.json", "rank"]);
    }
}

/// The table of a comparison, or of collectives, says that it was broken off, and
/// no setting is blamed for what is missing.
#[test]
fn tables_after_ctrl_c_are_marked() {
    let check = ["check", "--op", "bcast,barrier", "-s", "8", "--max-time", "60"];
    let coll =
        ["coll", "--op", "bcast,barrier", "-s", "8", "--max-time", "60", "--rel-err", "0.0001%"];
    for arguments in [&check[..], &coll] {
        let _machine = machine();
        let mut command = ranks(2);
        command.env("OMPI_MCA_odls_base_sigkill_timeout", "3").args(arguments);
        let job = command.spawn().unwrap();
        wait_until_begun(&processes_below(&job, 2));
        send(i32::try_from(job.id()).unwrap(), Signal::SIGINT);
        let output = finish(job);
        let (table, talk) = (output.stdout, output.stderr);
        assert!(table.contains("\n# INCOMPLETE: interrupted\n"), "{arguments:?}: {table} {talk}");
        let whole = format!("{table} {talk}");
        assert!(
            !whole.contains("--max-time narrows") && !whole.contains("with --max-time"),
            "{whole}"
        );
    }
}

/// Two ranks that are started with arguments of their own.
fn apart(first: &[&str], second: &[&str]) -> Command {
    let mut command = ranks(1);
    command.args(first).args([":", "-n", "1", binary()]).args(second);
    command
}

#[test]
fn ranks_that_do_not_run_the_same_are_named_at_once() {
    let (output, took) = timed(&mut apart(&["sync"], &["measure", "-s", "8"]));
    assert!(took < 20.0, "{took} s");
    let told = &output.stderr;
    assert_eq!(output.code, Some(2), "{told}");
    let line = told.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert!(line.contains("rank 0 runs loggap-mpi") && line.contains("'sync'"), "{line}");
    assert!(line.contains("rank 1 runs loggap-mpi") && line.contains("'measure -s 8'"), "{line}");
    assert_eq!(told.matches("error: ").count(), 1, "{told}");
    // Arguments that the other program does not know: it ends before MPI begins,
    // which MPICH's mpirun lets the first one wait for.
    let patient = ["--give-up", "3s", "sync"];
    let (output, took) = timed(&mut apart(&patient, &["sync", "--pigeon"]));
    assert!(took < 20.0, "{took} s");
    let told = &output.stderr;
    assert!(output.code != Some(0), "{told}");
    assert!(!is_open_mpi() || told.contains("'--pigeon'"), "{told}");
}

#[test]
fn a_file_that_cannot_be_written_is_said_at_once() {
    for verb in [&["measure", "--pairs", "ring", "-s", "1"][..], &["sync"]] {
        let (output, took) = timed(ranks(3).args(verb).args(["-o", "/nonexistent/x.json"]));
        assert!(took < 20.0, "{took} s");
        let told = &output.stderr;
        assert!(output.code != Some(0), "{told}");
        assert_eq!(told.matches("/nonexistent/x.json").count(), 1, "{told}");
    }
}

/// Where all ranks may use one processor only.
#[test]
fn ranks_that_share_the_processor_that_is_left_to_them_are_warned_of() {
    let arguments = ["sync", "--passes", "1", "-J"];
    let document = common::document(common::ranks_on("0", 2).args(arguments));
    let warning = document["warnings"][0].as_str().unwrap_or_else(|| panic!("{document}"));
    assert!(warning.contains("2 ranks may use 1 of its processors"), "{warning}");
}
