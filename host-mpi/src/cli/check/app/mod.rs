//! `loggap-mpi check --app`: a program's measured run time, beside that of its simulated trace.

mod report;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::{env, fs, io};

use loggap::check::Asserted;
use loggap::profile::{ProfileDocument, ProfileDraws};
use loggap::simulation::ParameterSets;
use loggap::terminal::{CliError, Console, Exit, Interrupt};
use loggap::trace::Trace;
use loggap_core::units::Bytes;

use self::report::{Document, median, print, relative};
use super::Args;
use crate::application::{Prediction, Run, uncertainty};
use crate::cli::coll::{attend, listen};
use crate::cli::progress;
use crate::cli::trace::{check, found};
use crate::job::launched_as;
use crate::progress::{Rules, names};

/// Largest difference of a traced run from the median of runs that are not traced.
const LIKE: f64 = 0.03;

/// A program whose run time is predicted.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Programs")]
pub(super) struct AppArgs {
    /// Compare a program with the simulation of its trace.
    ///
    /// Starts jobs that measure this system's profile and run the program in
    /// turn with and without tracing, simulates each trace, and says where the
    /// time went and differs.
    #[arg(long, requires = "command", conflicts_with_all = [
        "op", "sizes", "processes", "algorithms", "demonstrate", "noise", "align", "huge_pages",
        "max_time", "rel_err", "max_skew", "plot", "csv", "seed"])]
    app: bool,
    /// What starts a job.
    #[arg(long, value_name = "WORDS", default_value = "mpirun -n 2", requires = "app")]
    launcher: String,
    /// What starts the traced runs, if not the same: the program is traced
    /// there, and predicted and measured here.
    #[arg(long, value_name = "WORDS", requires = "app")]
    trace_launcher: Option<String>,
    /// Runs with and without tracing, each; six are the fewest with a 95%
    /// interval.
    #[arg(long, default_value = "6", value_name = "RUNS", requires = "app",
          value_parser = clap::value_parser!(u32).range(6..=1000))]
    runs: u32,
    /// Options of 'loggap-mpi measure' for the profile. Where a network limits
    /// the rate behind a budget, as shapers do, rounds have to be longer than
    /// that: '-n 64'.
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "--max-time 5s",
        requires = "app",
        conflicts_with = "profile",
        allow_hyphen_values = true
    )]
    measure: String,
    /// Profile to predict with, in place of one measured now.
    #[arg(long, value_name = "PROFILE.json", requires = "app", conflicts_with = "output")]
    profile: Option<PathBuf>,
    /// Keep the traces in this directory.
    #[arg(long, value_name = "DIR", requires = "app")]
    keep: Option<PathBuf>,
    /// Program and its arguments.
    #[arg(last = true, requires = "app", value_name = "PROGRAM")]
    command: Vec<OsString>,
}

impl AppArgs {
    /// True if a program is to be compared.
    pub(super) const fn is_given(&self) -> bool {
        self.app
    }
}

/// Starts jobs.
struct Jobs<'a> {
    args: &'a AppArgs,
    interrupt: &'a Interrupt,
}

impl Jobs<'_> {
    /// Runs a job of this program with `words`. What it printed last is the error if it fails.
    fn run(&self, launcher: &str, words: &[&OsStr]) -> Result<Vec<String>, CliError> {
        /// Lines of a failed job that are repeated.
        const LINES: usize = 30;
        let own = env::current_exe().map_err(CliError::failed)?;
        let mut launcher = launcher.split_whitespace();
        let Some(first) = launcher.next() else {
            return Err(CliError::usage(
                "--launcher is empty: expected words such as 'mpirun -n 2'",
            ));
        };
        let mut command = Command::new(first);
        command.args(launcher).arg(own).args(words);
        let (output, stdout) = io::pipe().map_err(CliError::failed)?;
        let stderr = stdout.try_clone().map_err(CliError::failed)?;
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        let mut child = command.spawn().map_err(|error| {
            CliError::usage(format_args!("--launcher: cannot start '{first}': {error}"))
        })?;
        // The pipe ends when the job has closed it, and this process.
        drop(command);
        let output = listen(output);
        let mut lines: Vec<String> = Vec::new();
        let status = attend(&mut child, self.interrupt, |wait| {
            let line = output.recv_timeout(wait)?;
            if lines.len() == LINES {
                lines.remove(0);
            }
            lines.push(String::from_utf8_lossy(&line).into_owned());
            Ok(())
        });
        let status = status.map_err(CliError::failed)?;
        if self.interrupt.is_requested() {
            let text = "interrupted".to_owned();
            return Err(CliError::Message { exit: Exit::Interrupted, text });
        }
        if status.success() { Ok(lines) } else { Err(failed(words, status, &lines)) }
    }

    /// How messages move here while a rank computes, and the eager limit.
    fn progress(&self, folder: &Path) -> Result<progress::Document, CliError> {
        let path = folder.join("progress.json");
        let words = [OsStr::new("progress"), "-o".as_ref(), path.as_os_str()];
        self.run(&self.args.launcher, &words)?;
        let text = fs::read(&path).map_err(CliError::failed)?;
        serde_json::from_slice(&text).map_err(CliError::failed)
    }

    /// Refuses a launcher that starts more ranks on a host than that has processors, by the trace of
    /// the least that they can do.
    fn refuse_crowded(&self, launcher: &str, folder: &Path) -> Result<(), CliError> {
        let own = env::current_exe().map_err(CliError::failed)?;
        let least = ["simulate", "--pattern", "dissemination", "--ranks", "2", "-s", "1"];
        let least = least.map(OsStr::new);
        let command: Vec<_> = [own.as_os_str()].into_iter().chain(least).collect();
        let trace =
            self.traced(launcher, &folder.join("ends"), &["--ends-only".as_ref()], &command)?;
        trace.crowded_host().map_or(Ok(()), |host| {
            Err(CliError::refused(format_args!(
                "host '{host}' has more ranks than processors: what these compute includes waiting \
                 for processors, and predicts nothing"
            )))
        })
    }

    /// A run of the program with the preloaded library.
    fn program(
        &self,
        launcher: &str,
        directory: &Path,
        options: &[&OsStr],
    ) -> Result<Run, CliError> {
        let command: Vec<_> = self.args.command.iter().map(OsString::as_os_str).collect();
        let trace = self.traced(launcher, directory, options, &command)?;
        let run = Run::measured(&trace).map_err(CliError::failed)?;
        run.ok_or_else(|| CliError::failed("the program ended without MPI_Finalize"))
    }

    /// Runs `command` with the preloaded library, and reads what that wrote.
    fn traced(
        &self,
        launcher: &str,
        directory: &Path,
        options: &[&OsStr],
        command: &[&OsStr],
    ) -> Result<Trace, CliError> {
        let words = [OsStr::new("trace"), "-o".as_ref(), directory.as_os_str()];
        let said = self.run(launcher, &[&words, options, &["--".as_ref()], command].concat())?;
        if !directory.join("trace.json").exists() {
            return Err(CliError::failed("the program ended without MPI_Init: nothing was traced"));
        }
        // Such as that the disk is full.
        let is_of_tracer = |line: &&String| line.contains("loggap trace:");
        let wrong = ["cannot ", "the trace is incomplete"];
        let mut of_tracer = said.iter().filter(is_of_tracer);
        if let Some(incomplete) = of_tracer.find(|line| wrong.iter().any(|one| line.contains(one)))
        {
            return Err(CliError::failed(incomplete));
        }
        Trace::open(directory).map_err(CliError::failed)
    }
}

fn failed(words: &[&OsStr], status: ExitStatus, lines: &[String]) -> CliError {
    let verb = words.first().map_or_else(String::new, |verb| verb.to_string_lossy().into_owned());
    let told: String = lines.iter().map(|line| format!("\n  {line}")).collect();
    CliError::failed(format_args!("the job of '{verb}' ended with {status}:{told}"))
}

/// Runs, and what is predicted from those that were traced.
struct Runs {
    plain: Vec<Run>,
    traced: Vec<Run>,
    predicted: Vec<Prediction>,
    /// Half of the relative interval of the prediction that follows from the profile's.
    uncertainty: f64,
    /// Trace of the last of them.
    last: PathBuf,
    warnings: Vec<String>,
    rules: Rules,
}

pub(in crate::cli) fn run(
    args: &Args,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Exit, CliError> {
    let app = &args.app;
    if launched_as().is_some() {
        return Err(CliError::usage(
            "--app starts the jobs itself: without mpirun before it, and --launcher 'mpirun -n 2'",
        ));
    }
    if let Some(program) = app.command.first() {
        check(&found(program)?)?;
    }
    interrupt.listen();
    let temporary;
    let folder = if let Some(kept) = &app.keep {
        kept.as_path()
    } else {
        temporary = tempfile::tempdir().map_err(CliError::failed)?;
        temporary.path()
    };
    fs::create_dir_all(folder).map_err(|error| {
        CliError::usage(format_args!("cannot create '{}': {error}", folder.display()))
    })?;
    let folder = &fs::canonicalize(folder).map_err(CliError::failed)?;
    let jobs = Jobs { args: app, interrupt };
    let document = profile(&jobs, args.output.as_deref(), folder, console)?;
    step(console, format_args!("progress beside computing, and the eager limit"));
    let found = jobs.progress(folder)?;
    // What a profile takes for a change of protocol may be noise.
    let rules = Rules::of(&found.rows, found.eager_limit_bytes);
    let (settings, eager_limit) = (rules.settings(), Bytes(rules.limit().into()));
    let ranges = document.ranges.iter().map(|record| &record.range);
    let sets = ParameterSets::of_ranges(ranges, eager_limit, settings.rendezvous)
        .map_err(CliError::failed)?;
    let mut runs = take(&jobs, folder, &Basis { sets, rules }, console)?;
    let [receive, rendezvous] = names(settings);
    runs.warnings.extend(rules.unknown().iter().map(|why| {
        let limit = rules.limit();
        format!("{why}; simulated with --receive {receive} --rendezvous {rendezvous} -S {limit}")
    }));
    step(console, format_args!("what the intervals of the profile do"));
    let half = ProfileDraws::new(&document).map_err(|error| error.to_string()).and_then(|draws| {
        let stop = interrupt.flag();
        let half = uncertainty(&runs.last, &draws, eager_limit, settings, stop);
        half.map_err(|error| error.to_string())
    });
    match half {
        Ok(half) => runs.uncertainty = half,
        Err(error) => runs.warnings.push(format!(
            "the interval of the prediction is that of the runs, without the profile's: {error}"
        )),
    }
    let rotated = document.host.link.mpi.as_ref().and_then(|mpi| mpi.rotated_bytes);
    let document = Document::new(app, &runs, rotated);
    document.warnings.iter().for_each(|warning| console.warn(warning));
    console.report(args.json, &document, |out| print(out, &document))?;
    let Some(ppm) = args.assert else { return Ok(Exit::Done) };
    let (measured, predicted) = document.estimates;
    Ok(match Asserted::of(&measured, &predicted, f64::from(ppm) / 1e6) {
        Asserted::Broken => Exit::Differs,
        Asserted::Unknown => Exit::NotConverged,
        Asserted::Holds => Exit::Done,
    })
}

/// The profile: the one that is given, or one measured now, kept as `output`. Refuses what cannot be
/// predicted before that takes its time.
fn profile(
    jobs: &Jobs<'_>,
    output: Option<&Path>,
    folder: &Path,
    console: &mut Console,
) -> Result<ProfileDocument, CliError> {
    let AppArgs { launcher, trace_launcher, measure, profile, .. } = jobs.args;
    let read = |path: &Path| ProfileDocument::read(path).map_err(CliError::usage);
    let given = profile.as_deref().map(read).transpose()?;
    step(console, format_args!("ranks and processors"));
    for launcher in [launcher].into_iter().chain(trace_launcher) {
        jobs.refuse_crowded(launcher, folder)?;
    }
    if let Some(given) = given {
        return Ok(given);
    }
    step(console, format_args!("profile"));
    let path = output.map_or_else(|| folder.join("profile.json"), Path::to_owned);
    let mut words =
        vec![OsStr::new("measure"), "--one-link".as_ref(), "-o".as_ref(), path.as_os_str()];
    words.extend(measure.split_whitespace().map(OsStr::new));
    jobs.run(launcher, &words)?;
    read(&path)
}

fn step(console: &mut Console, what: std::fmt::Arguments<'_>) {
    if console.is_watched() {
        console.note(what);
    }
}

/// Costs and rules of the simulation.
struct Basis {
    sets: ParameterSets,
    rules: Rules,
}

/// Runs the program, with and without tracing in turn.
fn take(
    jobs: &Jobs<'_>,
    folder: &Path,
    basis: &Basis,
    console: &mut Console,
) -> Result<Runs, CliError> {
    let wanted = jobs.args.runs as usize;
    let here = jobs.args.launcher.as_str();
    let there = jobs.args.trace_launcher.as_deref().unwrap_or(here);
    let (mut plain, mut traced) = (Vec::new(), Vec::new());
    for number in 0..2 * wanted {
        step(console, format_args!("run {} of {}", number + 1, 2 * wanted));
        if number % 2 == 0 {
            let ends = folder.join("ends");
            plain.push(jobs.program(here, &ends, &["--ends-only".as_ref()])?);
        } else {
            let directory = folder.join(format!("trace-{}", number / 2 + 1));
            traced.push((jobs.program(there, &directory, &[])?, directory));
        }
    }
    let usual = median(plain.iter().map(|run| run.time));
    let is_like = |run: &Run| here != there || relative(run.time, usual).abs() <= LIKE;
    // A run that something disturbed is repeated.
    let mut more = 0;
    while traced.iter().filter(|(run, _)| is_like(run)).count() < wanted && more < wanted {
        more += 1;
        step(console, format_args!("run {more} in place of one that was disturbed"));
        let directory = folder.join(format!("trace-{}", wanted + more));
        traced.push((jobs.program(there, &directory, &[])?, directory));
    }
    let mut warnings = Vec::new();
    let alike = traced.iter().filter(|(run, _)| is_like(run)).count();
    if alike >= wanted {
        traced.retain(|(run, _)| is_like(run));
    } else {
        warnings.push(format!(
            "{alike} of {} traced runs took as long as those that were not traced, within 3%: \
             predictions are from all",
            traced.len()
        ));
    }
    let predicted = traced.iter().map(|(_, directory)| {
        Prediction::of(directory, &basis.sets, basis.rules.settings()).map_err(CliError::failed)
    });
    let predicted = predicted.collect::<Result<_, _>>()?;
    let last = traced.last().map(|(_, directory)| directory.clone()).unwrap_or_default();
    let traced = traced.into_iter().map(|(run, _)| run).collect();
    let (uncertainty, rules) = (0.0, basis.rules);
    Ok(Runs { plain, traced, predicted, uncertainty, last, warnings, rules })
}
