//! Starts the job once per launch, and merges the results of the launches.
//!
//! Each launch is a process: the words after `--`, then this program with the
//! user's arguments and `--launch N`. It reports results line by line, so that
//! a launch that dies leaves those it had finished.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use loggap::machine::clock::HostClock;
use loggap::terminal::{CliError, Console, Exit, Interrupt};
use loggap_core::measure::Clock as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::export::{self, Files};
use super::lines::{LaunchMessage, Lines};
use super::{Args, in_order};
use crate::collective::launches::merge;
use crate::collective::report::Document;
use crate::job::launched_as;

const FORM: &str = "loggap-mpi coll --launches 10 --op bcast -s 8,64K -- mpirun -n 4";

/// Starts the job once per launch.
pub(in crate::cli) fn drive(
    args: &Args,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Exit, CliError> {
    if launched_as().is_some() {
        return Err(CliError::usage(format_args!(
            "--launches starts the job itself, and a rank cannot: without mpirun before it, {FORM}"
        )));
    }
    check(args)?;
    let (files, mut lines) = (Files::open(args)?, Lines::open(args)?);
    let clock = HostClock::monotonic_raw();
    let begin = clock.now();
    interrupt.listen();
    let mut documents = Vec::new();
    let mut failure = None;
    for launch in 0..args.launches {
        if console.is_watched() {
            console.note(format_args!("launch {} of {}", launch + 1, args.launches));
        }
        let (found, failed) = one(args, launch, interrupt, &mut lines, console);
        documents.extend(found);
        // A launch that was asked to end may not have results yet.
        failure = failed.filter(|_| !interrupt.is_requested());
        if failure.is_some() || interrupt.is_requested() {
            break;
        }
    }
    let Some(merged) = merge(&documents) else {
        let text = "interrupted before anything was complete".to_owned();
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
        results: in_order(&args.op.list, merged.results),
        ..merged
    };
    export::export(args, &document, files, &[], console)?;
    lines.close()?;
    failure.map_or_else(|| export::exit(args, &document), Err)
}

fn check(args: &Args) -> Result<(), CliError> {
    if args.mpirun.is_empty() {
        return Err(CliError::usage(format_args!(
            "--launches needs what starts the job behind --: {FORM}"
        )));
    }
    if args.samples.is_some() {
        return Err(CliError::usage("--samples is for one launch: use it under mpirun"));
    }
    Ok(())
}

/// Runs one launch: its document, and the error that made it incomplete.
fn one(
    args: &Args,
    launch: u32,
    interrupt: &Interrupt,
    lines: &mut Lines,
    console: &mut Console,
) -> (Option<Document>, Option<CliError>) {
    let number = launch + 1;
    let mut child = match start(args, launch) {
        Ok(child) => child,
        Err(error) => return (None, Some(error)),
    };
    let told = child.stdout.take().map(listen);
    let mut heard = LaunchState::default();
    let status = attend(&mut child, interrupt, |wait| {
        let Some(told) = &told else { return Err(RecvTimeoutError::Disconnected) };
        let line = told.recv_timeout(wait)?;
        heard.take(&line, number, lines, console);
        Ok(())
    });
    // The launch has printed the reason itself.
    if status.as_ref().is_ok_and(|status| status.code() == Some(Exit::Usage.code().into())) {
        return (None, Some(CliError::usage(format_args!("launch {number} was refused"))));
    }
    let ended = match status {
        Ok(status) => format!("launch {number} ended with {status}"),
        Err(error) => format!("launch {number}: {error}"),
    };
    let LaunchState { document, is_complete } = heard;
    let kept = document.filter(|document| is_complete || !document.results.is_empty());
    // The exit code is decided over all launches.
    let failure = match &kept {
        None => Some(CliError::failed(format_args!(
            "{ended} and without results; does '{}' start a job of this program's MPI?",
            args.mpirun.join(" ")
        ))),
        Some(_) if !is_complete => {
            Some(CliError::failed(format_args!("{ended} before it was complete")))
        }
        Some(Document { incomplete, .. }) => {
            incomplete.as_ref().map(|why| CliError::failed(format_args!("launch {number}: {why}")))
        }
    };
    (kept, failure)
}

fn start(args: &Args, launch: u32) -> Result<Child, CliError> {
    let own = std::env::current_exe()
        .map_err(|error| CliError::failed(format_args!("cannot find this program: {error}")))?;
    let Some((program, first)) = args.mpirun.split_first() else {
        return Err(CliError::usage(FORM));
    };
    let mut command = Command::new(program);
    command.args(first).arg(own).args(words(std::env::args_os(), launch));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn().map_err(|error| {
        CliError::usage(format_args!(
            "cannot start '{program}': {error}; what stands behind -- has to start the job"
        ))
    })
}

/// Arguments of a launch: the user's `line` without the program's name, and the
/// index of the launch.
fn words(line: impl Iterator<Item = OsString>, launch: u32) -> impl Iterator<Item = OsString> {
    let own = line.skip(1).take_while(|word| word != "--");
    own.chain(["--launch".into(), launch.to_string().into()])
}

/// Reads lines on a thread while the launch runs, as a pipe holds little.
pub(in crate::cli) fn listen(output: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(output).split(b'\n');
        lines.map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    receiver
}

/// Messages of a launch so far.
#[derive(Debug, Default)]
struct LaunchState {
    document: Option<Document>,
    is_complete: bool,
}

impl LaunchState {
    fn take(&mut self, line: &[u8], launch: u32, lines: &mut Lines, console: &mut Console) {
        match serde_json::from_slice(line) {
            Ok(LaunchMessage::Begins(document)) => self.document = Some(*document),
            Ok(LaunchMessage::Finished(result)) => {
                if let Some(document) = &mut self.document {
                    lines.finished(document, Some(launch), &result, console);
                    document.results.push(*result);
                }
            }
            Ok(LaunchMessage::Ends(document)) => {
                (self.document, self.is_complete) = (Some(*document), true);
            }
            // The starter of the job writes there, too, for example about ranks
            // that died.
            Err(_) => console.note(String::from_utf8_lossy(line)),
        }
    }
}

/// Receives messages of the job until it has ended. Passes a request to end
/// this command on to the job.
pub(in crate::cli) fn attend(
    child: &mut Child,
    interrupt: &Interrupt,
    mut hear: impl FnMut(Duration) -> Result<(), RecvTimeoutError>,
) -> std::io::Result<ExitStatus> {
    const PAUSE: Duration = Duration::from_millis(20);
    /// Timeout for output still in the pipe after the job has ended: processes
    /// left behind may keep the pipe open.
    const REST: Duration = Duration::from_millis(500);
    let mut asked = false;
    loop {
        if let Some(status) = child.try_wait()? {
            while hear(REST).is_ok() {}
            return Ok(status);
        }
        if interrupt.is_requested() && !asked {
            asked = true;
            let process = i32::try_from(child.id()).map(Pid::from_raw);
            // It may have ended meanwhile.
            let _ended = process.map(|process| kill(process, Signal::SIGTERM));
        }
        if hear(PAUSE) == Err(RecvTimeoutError::Disconnected) {
            thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Cli, Command as Verb};
    use super::*;
    use crate::clocks::Domains;
    use clap::Parser as _;

    fn parsed(line: impl Iterator<Item = OsString>) -> (Duration, Box<Args>) {
        let cli = Cli::try_parse_from(line).map_err(|error| error.to_string()).unwrap();
        let Verb::Coll(args) = cli.command else { panic!("another verb") };
        (cli.give_up, args)
    }

    #[test]
    fn a_launch_is_what_the_user_said_and_its_number() {
        let line = "loggap-mpi --give-up 7s coll --launches 3 --op ibcast,reduce -s 8,64K --root 1 \
                    --scheme window --arrival one-late:1.5ms@1 --max-time 250ms --rel-err 0.5% \
                    --domains rank --strict --csv --overlap --seed 7 -- mpirun -n 2";
        let line = || line.split_whitespace().map(OsString::from);
        let (_, asked) = parsed(line());
        assert_eq!(asked.mpirun, ["mpirun", "-n", "2"]);
        let own = ["loggap-mpi".into()].into_iter();
        let (give_up, launch) = parsed(own.chain(words(line(), 2)));
        assert_eq!((give_up, launch.domains), (Duration::from_secs(7), Domains::Rank));
        assert_eq!((launch.launch, launch.seed()), (Some(2), 9));
        assert!(super::super::is_driver(&asked) && !super::super::is_driver(&launch));
        let same = Args { launch: None, mpirun: asked.mpirun.clone(), ..*launch };
        assert_eq!(format!("{same:?}"), format!("{asked:?}"));
    }

    #[test]
    fn what_a_dying_launch_has_told_is_kept() {
        let mut heard = LaunchState::default();
        let mut console = Console::new(Box::new(std::io::sink()), Box::new(std::io::sink()));
        let (_, args) = parsed(["loggap-mpi", "coll"].map(OsString::from).into_iter());
        let mut lines = Lines::open(&args).unwrap();
        let mut take = |line: &[u8]| heard.take(line, 1, &mut lines, &mut console);
        take(br#"{"begins":{"schema_version":1"#);
        let say = |told: LaunchMessage| serde_json::to_vec(&told).unwrap();
        take(&say(LaunchMessage::Begins(Box::default())));
        take(&say(LaunchMessage::Finished(Box::default())));
        take(b"a rank died \xff");
        take(&say(LaunchMessage::Finished(Box::default())));
        assert_eq!(heard.document.map(|document| document.results.len()), Some(2));
        assert!(!heard.is_complete);
    }
}
