//! Starts the job once a launch and merges what the launches say.
//!
//! Each launch is a process of its own: what stands behind `--`, then this
//! program with the same options and `-J`. Its standard output is a document,
//! its standard error this one's.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use loggap::cli::{CliError, Console, Exit, Interrupt};
use loggap::machine::clock::HostClock;
use loggap_core::measure::Clock as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::export::{self, Files};
use super::{Args, Sizes};
use crate::collective::launches::merge;
use crate::collective::report::Document;

const FORM: &str = "loggap-mpi coll --launches 10 --op bcast -s 8,64K -- mpirun -n 4";

pub(super) fn run(
    args: &Args,
    (is_rank, interrupt): (bool, &Interrupt),
    console: &mut Console,
) -> Result<Exit, CliError> {
    if is_rank {
        return Err(CliError::usage(format_args!(
            "--launches starts the job itself, and a rank cannot: without mpirun before it, {FORM}"
        )));
    }
    if args.mpirun.is_empty() {
        return Err(CliError::usage(format_args!(
            "--launches needs what starts the job behind --: {FORM}"
        )));
    }
    if args.samples.is_some() {
        return Err(CliError::usage("--samples is for one launch: use it under mpirun"));
    }
    let files = Files::open(args)?;
    let clock = HostClock::monotonic_raw();
    let begin = clock.now();
    interrupt.listen();
    let mut documents = Vec::new();
    let mut failure = None;
    for launch in 0..args.launches {
        if console.is_watched() {
            console.note(format_args!("launch {} of {}", launch + 1, args.launches));
        }
        match one(args, launch, interrupt) {
            Ok(document) => documents.push(document),
            // What was not complete then is left out.
            Err(_) if interrupt.is_requested() => break,
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
        if interrupt.is_requested() {
            break;
        }
    }
    let Some(merged) = merge(&documents) else {
        let text = "interrupted before the first launch was complete".to_owned();
        let interrupted = CliError::Message { exit: Exit::Interrupted, text };
        return Err(failure.unwrap_or(interrupted));
    };
    let skeleton = export::skeleton(args);
    let told = failure.as_ref().map(ToString::to_string);
    let asked = interrupt.is_requested().then(|| "interrupted".to_owned());
    let document = Document {
        command: skeleton.command,
        seed: skeleton.seed,
        wall_s: clock.duration(clock.now().saturating_sub(begin)).seconds(),
        incomplete: told.or(asked).or(merged.incomplete),
        ..merged
    };
    export::export(args, &document, (files, &[]), console)?;
    failure.map_or_else(|| export::exit(args, &document), Err)
}

/// Carries one launch out.
fn one(args: &Args, launch: u32, interrupt: &Interrupt) -> Result<Document, CliError> {
    let own = std::env::current_exe()
        .map_err(|error| CliError::failed(format_args!("cannot find this program: {error}")))?;
    let Some((program, first)) = args.mpirun.split_first() else {
        return Err(CliError::usage(FORM));
    };
    let mut command = Command::new(program);
    command.args(first).arg(own).args(inner(args, launch));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        CliError::usage(format_args!(
            "cannot start '{program}': {error}; what stands behind -- has to start the job"
        ))
    })?;
    let output = child.stdout.take();
    // Read while it runs: a pipe holds little.
    let reader = thread::spawn(move || {
        let mut text = String::new();
        let read = output.map(|mut output| output.read_to_string(&mut text));
        read.transpose().map(|_| text)
    });
    let status = wait(&mut child, interrupt);
    let text = reader.join().ok().and_then(Result::ok).unwrap_or_default();
    let number = launch + 1;
    let status =
        status.map_err(|error| CliError::failed(format_args!("launch {number}: {error}")))?;
    match serde_json::from_str::<Document>(&text) {
        // Exit codes are judged over all launches.
        Ok(document) if document.incomplete.is_none() || interrupt.is_requested() => Ok(document),
        Ok(document) => {
            let why = document.incomplete.unwrap_or_default();
            Err(CliError::failed(format_args!("launch {number}: {why}")))
        }
        Err(_) => Err(CliError::failed(format_args!(
            "launch {number} ended with {status} and without results; does '{}' start a job of \
             this program's MPI?",
            args.mpirun.join(" ")
        ))),
    }
}

/// Waits for the job; asks it to end where somebody asks this command to.
fn wait(child: &mut Child, interrupt: &Interrupt) -> std::io::Result<std::process::ExitStatus> {
    const PAUSE: Duration = Duration::from_millis(20);
    let mut asked = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt.is_requested() && !asked {
            asked = true;
            let process = i32::try_from(child.id()).map(Pid::from_raw);
            // It may have ended by itself meanwhile.
            let _ended = process.map(|process| kill(process, Signal::SIGTERM));
        }
        thread::sleep(PAUSE);
    }
}

/// The command line of a launch: the same, one launch, JSON, and an order of
/// its own.
fn inner(args: &Args, launch: u32) -> Vec<String> {
    let operations: Vec<String> = args.op.list.iter().map(ToString::to_string).collect();
    let operations = if args.op.all { "all".to_owned() } else { operations.join(",") };
    let sizes: Vec<String> = match &args.sizes {
        Sizes::Span { first, last } => vec![format!("{first}:{last}")],
        Sizes::Listed(list) => vec![list.iter().map(u64::to_string).collect::<Vec<_>>().join(",")],
    };
    let percent = |ppm: u32| format!("{}%", f64::from(ppm) / 1e4);
    let mut line = vec!["coll".to_owned(), "-J".to_owned()];
    let mut add = |name: &str, value: String| line.extend([format!("--{name}"), value]);
    add("op", operations);
    add("sizes", sizes.concat());
    add("root", args.root.to_string());
    add("scheme", args.scheme.name().to_owned());
    add("arrival", export::arrival_name(&args.arrival));
    add("max-time", format!("{}ns", args.max_time.as_nanos()));
    add("rel-err", percent(args.rel_err));
    add("max-skew", percent(args.max_skew));
    add("seed", args.seed.wrapping_add(launch.into()).to_string());
    if args.overlap {
        line.push("--overlap".to_owned());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(line: &[String]) -> Args {
        Line::try_parse_from(line).map_err(|error| error.to_string()).unwrap().args
    }

    #[test]
    fn a_launch_measures_what_was_asked_for() {
        let asked = "coll --launches 3 --op ibcast,reduce -s 8,64K --root 1 --scheme window \
                     --arrival one-late:1.5ms@1 --max-time 250ms --rel-err 0.5% --overlap --seed 7 \
                     -- mpirun -n 2";
        let asked = parsed(&asked.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(asked.mpirun, ["mpirun", "-n", "2"]);
        let launch = parsed(&inner(&asked, 2));
        assert!(launch.json && launch.overlap);
        assert_eq!((launch.launches, launch.seed, launch.root), (1, 9, 1));
        assert_eq!((&launch.op, &launch.sizes), (&asked.op, &asked.sizes));
        assert_eq!((launch.scheme, &launch.arrival), (asked.scheme, &asked.arrival));
        assert_eq!((launch.max_time, launch.rel_err), (asked.max_time, asked.rel_err));
    }
}
