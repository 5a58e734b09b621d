//! `loggap-mpi` under `mpirun`, as a user starts it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    dead_code,
    reason = "helpers of tests: a wrong assumption should end the test; each test uses some"
)]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use loggap_tests::command::{Ended, Run, finish, machine, skipped};
use serde_json::Value;

/// The MPI under test: what its `mpirun` is called.
pub(crate) fn mpirun() -> String {
    std::env::var("LOGGAP_MPIRUN").unwrap_or_else(|_| "mpirun".to_owned())
}

/// Whether it is Open MPI.
pub(crate) fn is_open_mpi() -> bool {
    let mut command = Command::new(mpirun());
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let output = command.arg("--version").ended();
    output.stdout.contains("OpenRTE")
}

/// Compiles a program of `traced` into `folder`; `None` without a Fortran compiler.
pub(crate) fn compiled(source: &str, options: &[&str], folder: &Path) -> Option<PathBuf> {
    let compiler = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
    let is_c = Path::new(source).extension() == Some(OsStr::new("c"));
    let compiler = if is_c { compiler } else { compiler.replace("mpicc", "mpif90") };
    let path = folder.join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traced").join(source);
    let mut command = Command::new(&compiler);
    command.arg(source).arg("-o").arg(&path).args(options).current_dir(folder);
    match command.output() {
        Ok(output) if output.status.success() => Some(path),
        Ok(output) if is_c => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        other => {
            skipped("trace of a Fortran program", &format!("{compiler}: {other:?}"));
            None
        }
    }
}

/// `mpirun -n RANKS loggap-mpi`, ready for arguments; more ranks than
/// processors are allowed.
pub(crate) fn ranks(ranks: u32) -> Command {
    with_options(ranks, &[])
}

/// The same with `options` of `mpirun`.
pub(crate) fn with_options(ranks: u32, options: &[&str]) -> Command {
    program(ranks, options, binary())
}

/// The same of another program.
pub(crate) fn program(ranks: u32, options: &[&str], program: &str) -> Command {
    finished(Command::new(mpirun()), ranks, options, program)
}

/// The same on these processors, which ranks share. Tests go first on theirs (`SCHED_RR`), in turns of 100 ms, which
/// is long where many poll: these go first by niceness.
pub(crate) fn ranks_on(processors: &str, ranks: u32) -> Command {
    let mut command = Command::new("chrt");
    command.args(["--other", "0", concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/first")]);
    command.args(["taskset", "-c", processors, &mpirun()]);
    finished(command, ranks, &["--bind-to", "none"][..2 * usize::from(is_open_mpi())], binary())
}

/// `mpirun` with what it needs to start so many ranks.
fn finished(mut mpirun: Command, ranks: u32, options: &[&str], program: &str) -> Command {
    if is_open_mpi() {
        mpirun.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        mpirun.arg("--oversubscribe");
    }
    mpirun.args(options).args(["-n", &ranks.to_string()]).arg(program);
    piped(&mut mpirun);
    mpirun
}

/// What the command prints is kept.
pub(crate) fn piped(command: &mut Command) {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
}

/// Path of the program under test.
pub(crate) const fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_loggap-mpi")
}

/// Runs `command` to its end, alone on this machine.
pub(crate) fn run(command: &mut Command) -> Ended {
    let _machine = machine();
    finish(command.spawn().expect("mpirun starts"))
}

/// The JSON document of a command that succeeds.
pub(crate) fn document(command: &mut Command) -> Value {
    let output = run(command);
    let talk = &output.stderr;
    assert!(output.code == Some(0), "{talk}");
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {talk}"))
}

/// Processes of the program below `parent`, as soon as there are `count`.
pub(crate) fn processes_below(parent: &Child, count: usize) -> Vec<i32> {
    for _ in 0..1_000 {
        let found = below(parent.id());
        if found.len() >= count {
            return found;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{count} ranks did not start");
}

fn below(parent: u32) -> Vec<i32> {
    let mut found = Vec::new();
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    for task in tasks {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|id| id.parse::<u32>().ok()) {
            let image = fs::read_link(format!("/proc/{child}/exe")).unwrap_or_default();
            if image.as_os_str() == binary() {
                found.push(child.try_into().unwrap());
            }
            found.extend(below(child));
        }
    }
    found
}

/// Whether a process has ended, or only waits to be counted.
pub(crate) fn has_ended(process: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.is_empty() || status.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z"))
}
