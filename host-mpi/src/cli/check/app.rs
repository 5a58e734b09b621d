//! `loggap-mpi check --app`: a program's measured run time, beside that of its simulated trace.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::{env, fs, process};

use loggap::check::{Asserted, Verdict};
use loggap::output::number;
use loggap::profile::{ProfileDocument, USUAL_EAGER_LIMIT};
use loggap::simulation::ParameterSets;
use loggap::terminal::{CliError, Console, Exit, Interrupt, command_line};
use loggap::trace::Trace;
use loggap_core::model::Estimate;
use loggap_core::sim::{Receive, Rendezvous, Settings};
use loggap_core::stats::{Confidence, Sorted};
use loggap_core::units::Picos;
use serde::Serialize;

use super::Args;
use crate::application::{Prediction, RankTime, Run};
use crate::cli::coll::{attend, listen};
use crate::cli::progress;
use crate::job::launched_as;
use crate::progress::Progress;

/// Largest error of a prediction that agrees, unless the measured interval is wider.
const BOUND: f64 = 0.05;
/// Half-width of the measured interval above which nothing can be told.
const UNKNOWN: f64 = 0.25;
/// Largest difference of a traced run from the median of runs that are not traced.
const LIKE: f64 = 0.03;
/// Times by which the error of the free network has to exceed that of the prediction for the
/// prediction to say anything about the network.
const EVIDENCE: f64 = 3.0;

/// A program whose run time is predicted.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Programs")]
pub(super) struct AppArgs {
    /// Compare a program with the simulation of its trace: measures this
    /// system's profile, runs the program in turn with and without tracing,
    /// simulates each trace, and says where the time went and differs. Starts
    /// the jobs itself.
    #[arg(long, requires = "command", conflicts_with_all = [
        "op", "sizes", "processes", "algorithms", "demonstrate", "noise", "align", "huge_pages",
        "max_time", "rel_err", "max_skew", "plot", "csv"])]
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
    #[arg(long, value_name = "PROFILE.json", requires = "app")]
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

/// Where traces are kept; removed at the end unless the user named it.
struct Folder {
    path: PathBuf,
    is_removed: bool,
}

impl Folder {
    fn create(args: &AppArgs) -> Result<Self, CliError> {
        let path = match &args.keep {
            Some(path) => path.clone(),
            None => env::temp_dir().join(format!("loggap-check-{}", process::id())),
        };
        let path = std::path::absolute(path).map_err(CliError::usage)?;
        fs::create_dir_all(&path).map_err(|error| {
            CliError::usage(format_args!("cannot create '{}': {error}", path.display()))
        })?;
        Ok(Self { path, is_removed: args.keep.is_none() })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_removed {
            let _others_clean_up = fs::remove_dir_all(&self.path);
        }
    }
}

/// Starts jobs.
struct Jobs<'a> {
    args: &'a AppArgs,
    interrupt: &'a Interrupt,
}

impl Jobs<'_> {
    /// Runs a job of this program with `words`; its standard output is dropped.
    fn run(&self, launcher: &str, words: &[&OsStr]) -> Result<(), CliError> {
        /// Lines of a failed job that are repeated.
        const LINES: usize = 20;
        let own = env::current_exe().map_err(CliError::failed)?;
        let mut launcher = launcher.split_whitespace();
        let Some(first) = launcher.next() else {
            return Err(CliError::usage(
                "--launcher is empty: expected words such as 'mpirun -n 2'",
            ));
        };
        let mut command = Command::new(first);
        command.args(launcher).arg(own).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            CliError::usage(format_args!("--launcher: cannot start '{first}': {error}"))
        })?;
        let told = child.stderr.take().map(listen);
        let mut lines: Vec<String> = Vec::new();
        let status = attend(&mut child, self.interrupt, |wait| {
            let Some(told) = &told else {
                return Err(std::sync::mpsc::RecvTimeoutError::Disconnected);
            };
            let line = told.recv_timeout(wait)?;
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
        if status.success() { Ok(()) } else { Err(failed(words, status, &lines)) }
    }

    /// Rules of sending and receiving, by how messages move here while a rank computes.
    fn settings(&self, folder: &Folder, eager_limit: u64) -> Result<Settings, CliError> {
        let path = folder.path.join("progress.json");
        let words = [OsStr::new("progress"), "-o".as_ref(), path.as_os_str()];
        self.run(&self.args.launcher, &words)?;
        let text = fs::read(&path).map_err(CliError::failed)?;
        let found: progress::Document = serde_json::from_slice(&text).map_err(CliError::failed)?;
        Ok(Progress::settings(&found.rows, eager_limit))
    }

    /// Runs the program with the preloaded library, and reads what that wrote.
    fn traced(
        &self,
        launcher: &str,
        directory: &Path,
        options: &[&OsStr],
    ) -> Result<Run, CliError> {
        let mut words = vec![OsStr::new("trace"), "-o".as_ref(), directory.as_os_str()];
        words.extend(options);
        words.push("--".as_ref());
        words.extend(self.args.command.iter().map(OsString::as_os_str));
        self.run(launcher, &words)?;
        let trace = Trace::open(directory).map_err(CliError::failed)?;
        if let Some(host) = trace.crowded_host() {
            return Err(CliError::refused(format_args!(
                "host '{host}' has more ranks than processors: what these compute includes waiting \
                 for processors, and predicts nothing"
            )));
        }
        let run = Run::measured(&trace).map_err(CliError::failed)?;
        run.ok_or_else(|| CliError::failed("the program ended without MPI_Finalize"))
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
    warnings: Vec<String>,
    settings: Settings,
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
    interrupt.listen();
    let folder = Folder::create(app)?;
    let jobs = Jobs { args: app, interrupt };
    let measured = args.output.clone().unwrap_or_else(|| folder.path.join("profile.json"));
    let profile = app.profile.clone().unwrap_or_else(|| measured.clone());
    if app.profile.is_none() {
        step(console, format_args!("profile"));
        let mut words = vec![OsStr::new("measure"), "-o".as_ref(), measured.as_os_str()];
        words.extend(app.measure.split_whitespace().map(OsStr::new));
        jobs.run(&app.launcher, &words)?;
    }
    let document = ProfileDocument::read(&profile).map_err(CliError::usage)?;
    let ranges = document.ranges.iter().map(|record| &record.range);
    let eager_limit = document.eager_limit().unwrap_or(USUAL_EAGER_LIMIT);
    let sets = ParameterSets::of_ranges(ranges, eager_limit).map_err(CliError::failed)?;
    step(console, format_args!("progress beside computing"));
    let settings = jobs.settings(&folder, eager_limit.0)?;
    let runs = take(&jobs, &folder, &(sets, settings), console)?;
    let document = Document::new(app, &runs);
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

fn step(console: &mut Console, what: std::fmt::Arguments<'_>) {
    if console.is_watched() {
        console.note(what);
    }
}

/// Runs the program, with and without tracing in turn.
fn take(
    jobs: &Jobs<'_>,
    folder: &Folder,
    (sets, settings): &(ParameterSets, Settings),
    console: &mut Console,
) -> Result<Runs, CliError> {
    let wanted = jobs.args.runs as usize;
    let here = jobs.args.launcher.as_str();
    let there = jobs.args.trace_launcher.as_deref().unwrap_or(here);
    let (mut plain, mut traced) = (Vec::new(), Vec::new());
    for number in 0..2 * wanted {
        step(console, format_args!("run {} of {}", number + 1, 2 * wanted));
        if number % 2 == 0 {
            let ends = folder.path.join("ends");
            plain.push(jobs.traced(here, &ends, &["--ends-only".as_ref()])?);
        } else {
            let directory = folder.path.join(format!("trace-{}", number / 2 + 1));
            traced.push((jobs.traced(there, &directory, &[])?, directory));
        }
    }
    let usual = median(plain.iter().map(|run| run.time));
    let is_like = |run: &Run| here != there || share(run.time, usual).abs() <= LIKE;
    // A run that something disturbed is repeated.
    let mut more = 0;
    while traced.iter().filter(|(run, _)| is_like(run)).count() < wanted && more < wanted {
        more += 1;
        step(console, format_args!("run {more} in place of one that was disturbed"));
        let directory = folder.path.join(format!("trace-{}", wanted + more));
        traced.push((jobs.traced(there, &directory, &[])?, directory));
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
    let predicted = traced
        .iter()
        .map(|(_, directory)| Prediction::of(directory, sets, *settings).map_err(CliError::failed));
    let predicted = predicted.collect::<Result<_, _>>()?;
    let traced = traced.into_iter().map(|(run, _)| run).collect();
    Ok(Runs { plain, traced, predicted, warnings, settings: *settings })
}

/// Difference relative to `usual`.
fn share(time: Picos, usual: Picos) -> f64 {
    time.seconds() / usual.seconds() - 1.0
}

fn median(times: impl Iterator<Item = Picos>) -> Picos {
    let mut times: Vec<_> = times.collect();
    Sorted::new(&mut times).median().unwrap_or_default()
}

/// Median of at least six times with its 95% interval.
fn estimate(times: impl Iterator<Item = Picos>) -> Estimate<Picos> {
    let mut times: Vec<_> = times.collect();
    let interval = Sorted::new(&mut times).median_interval(Confidence::P95);
    interval.map_or_else(Estimate::default, |interval| Estimate {
        value: interval.median,
        low: interval.low,
        high: interval.high,
        ..Estimate::default()
    })
}

/// Where the time of a rank went, medians over the traced runs, in seconds.
#[derive(Debug, Serialize)]
struct RankRecord {
    rank: usize,
    compute_s: f64,
    predicted_compute_s: f64,
    mpi_s: f64,
    /// Part of `mpi_s` inside of collective operations.
    collective_s: f64,
    predicted_mpi_s: f64,
    /// Part of `predicted_mpi_s` in which the rank sends and receives; it waits in the rest.
    predicted_busy_s: f64,
}

/// Result.
#[derive(Debug, Serialize)]
struct Document {
    loggap_version: &'static str,
    command: Vec<String>,
    launcher: String,
    trace_launcher: Option<String>,
    program: Vec<String>,
    ranks: usize,
    runs: usize,
    measured_s: f64,
    measured_s_lo: f64,
    measured_s_hi: f64,
    /// Median of the runs that were traced.
    traced_s: f64,
    /// Each run, without tracing and with it.
    runs_s: Vec<f64>,
    traced_runs_s: Vec<f64>,
    predicted_s: f64,
    predicted_s_lo: f64,
    predicted_s_hi: f64,
    /// Prediction less measurement, relative to the measurement.
    difference: f64,
    /// Prediction with a network that costs nothing, and its difference.
    free_network_s: f64,
    free_network_difference: f64,
    /// Rules of the simulation, as 'loggap simulate' names them.
    receive: &'static str,
    rendezvous: &'static str,
    /// Largest difference that agrees.
    bound: f64,
    verdict: Verdict,
    /// True if the free network predicts nearly as well: the run says little about the network.
    compute_only: bool,
    /// Where the difference comes from: time of the rank that ends last, as shares of the run.
    /// `None` if the runs were traced elsewhere.
    causes: Option<Causes>,
    approximated_share: f64,
    refused_share: f64,
    by_rank: Vec<RankRecord>,
    warnings: Vec<String>,
    #[serde(skip)]
    estimates: (Estimate<Picos>, Estimate<Picos>),
}

/// Parts of the difference, relative to the measured time. They add up to it, but for the beginning
/// and the end of ranks; noise is how far runs differ.
#[derive(Clone, Copy, Debug, Serialize)]
struct Causes {
    /// Traced runs less those that were not.
    tracing: f64,
    /// Predicted less traced computation.
    compute: f64,
    /// Predicted less traced time in MPI, and the share of that in collective operations.
    mpi: f64,
    collective_share: f64,
    /// Half of the spread of computation between runs.
    noise: f64,
}

impl Document {
    fn new(app: &AppArgs, runs: &Runs) -> Self {
        let measured = estimate(runs.plain.iter().map(|run| run.time));
        let predicted = estimate(runs.predicted.iter().map(|one| one.run.time));
        let free = median(runs.predicted.iter().map(|one| one.free));
        let traced = median(runs.traced.iter().map(|run| run.time));
        let difference = share(predicted.value, measured.value);
        let free_network_difference = share(free, measured.value);
        let half = measured.high.since(measured.low).seconds() / 2.0 / measured.value.seconds();
        let bound = half.max(BOUND);
        let by_rank = by_rank(runs);
        let is_here = app.trace_launcher.is_none();
        let most = |of: fn(&Prediction) -> f64| runs.predicted.iter().map(of).fold(0.0, f64::max);
        Self {
            loggap_version: env!("CARGO_PKG_VERSION"),
            command: command_line(),
            launcher: app.launcher.clone(),
            trace_launcher: app.trace_launcher.clone(),
            program: app.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            ranks: by_rank.len(),
            runs: runs.plain.len(),
            measured_s: measured.value.seconds(),
            measured_s_lo: measured.low.seconds(),
            measured_s_hi: measured.high.seconds(),
            traced_s: traced.seconds(),
            runs_s: runs.plain.iter().map(|run| run.time.seconds()).collect(),
            traced_runs_s: runs.traced.iter().map(|run| run.time.seconds()).collect(),
            predicted_s: predicted.value.seconds(),
            predicted_s_lo: predicted.low.seconds(),
            predicted_s_hi: predicted.high.seconds(),
            difference,
            free_network_s: free.seconds(),
            free_network_difference,
            receive: match runs.settings.receive {
                Receive::Hold => "hold",
                Receive::Overlap => "overlap",
            },
            rendezvous: match runs.settings.rendezvous {
                Rendezvous::Instant => "instant",
                Rendezvous::Handshake => "handshake",
            },
            bound,
            verdict: match difference.abs() <= bound {
                _ if half > UNKNOWN => Verdict::CannotTell,
                true => Verdict::Agree,
                false => Verdict::Differ,
            },
            compute_only: free_network_difference.abs() <= bound
                || difference.abs() <= bound
                    && free_network_difference.abs() < EVIDENCE * difference.abs(),
            causes: is_here.then(|| Causes::new(runs, &by_rank, traced, measured.value)),
            approximated_share: most(|one| one.approximated),
            refused_share: most(|one| one.refused),
            by_rank,
            warnings: runs.warnings.clone(),
            estimates: (measured, predicted),
        }
    }
}

fn by_rank(runs: &Runs) -> Vec<RankRecord> {
    let ranks = runs.traced.iter().map(|run| run.ranks.len()).min().unwrap_or(0);
    let of = |rank: usize| {
        let measured = |of: fn(&RankTime) -> Picos| {
            median(runs.traced.iter().filter_map(|run| run.ranks.get(rank)).map(of)).seconds()
        };
        let simulated = |of: fn(&RankTime) -> Picos| {
            let all = runs.predicted.iter().filter_map(|one| one.run.ranks.get(rank));
            median(all.map(of)).seconds()
        };
        RankRecord {
            rank,
            compute_s: measured(|time| time.compute),
            predicted_compute_s: simulated(|time| time.compute),
            mpi_s: measured(|time| time.mpi),
            collective_s: measured(|time| time.part),
            predicted_mpi_s: simulated(|time| time.mpi),
            predicted_busy_s: simulated(|time| time.part),
        }
    };
    (0..ranks).map(of).collect()
}

impl Causes {
    fn new(runs: &Runs, by_rank: &[RankRecord], traced: Picos, measured: Picos) -> Self {
        let last = by_rank.iter().max_by(|one, other| {
            let end = |rank: &RankRecord| rank.predicted_compute_s + rank.predicted_mpi_s;
            end(one).total_cmp(&end(other))
        });
        let all = measured.seconds();
        let of = |part: fn(&RankRecord) -> f64| last.map_or(0.0, part) / all;
        let computing = runs.traced.iter().filter_map(|run| {
            run.ranks.get(last.map_or(0, |last| last.rank)).map(|rank| rank.compute.seconds())
        });
        let least = computing.clone().fold(f64::INFINITY, f64::min);
        let most = computing.fold(0.0, f64::max);
        Self {
            tracing: share(traced, measured),
            compute: of(|rank| rank.predicted_compute_s - rank.compute_s),
            mpi: of(|rank| rank.predicted_mpi_s - rank.mpi_s),
            collective_share: last
                .filter(|rank| rank.mpi_s > 0.0)
                .map_or(0.0, |rank| rank.collective_s / rank.mpi_s),
            noise: (most - least).max(0.0) / 2.0 / all,
        }
    }
}

impl Causes {
    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let percent = number::signed_percent;
        let Self { tracing, compute, mpi, collective_share, noise } = *self;
        writeln!(
            out,
            "# difference: computing {}, in MPI {} ({:.0}% of its time in collectives), tracing {}; \
             runs compute differently by {}",
            percent(compute),
            percent(mpi),
            100.0 * collective_share,
            percent(tracing),
            number::plus_minus(noise)
        )
    }
}

fn print(out: &mut dyn Write, all: &Document) -> io::Result<()> {
    let percent = number::signed_percent;
    writeln!(out, "# {} {}", all.launcher, all.program.join(" "))?;
    if let Some(elsewhere) = &all.trace_launcher {
        writeln!(out, "# traced with {elsewhere}: times of ranks below are from there")?;
    }
    writeln!(out, "# {} runs with and without tracing, in turn; medians, 95% intervals", all.runs)?;
    let line = |out: &mut dyn Write, name: &str, [value, low, high]: [f64; 3], rest: &str| {
        let [value, low, high] = [value, low, high].map(number::significant);
        writeln!(out, "{name:<13} {value} s  [{low}, {high}]{rest}")
    };
    let measured = [all.measured_s, all.measured_s_lo, all.measured_s_hi];
    line(out, "measured", measured, "")?;
    let verdict = format!(
        "  {}: {}, bound {}",
        percent(all.difference),
        all.verdict.name(),
        number::plus_minus(all.bound)
    );
    line(out, "predicted", [all.predicted_s, all.predicted_s_lo, all.predicted_s_hi], &verdict)?;
    let evidence = if all.compute_only {
        "compute only, the run says little about the network"
    } else {
        "the network matters"
    };
    writeln!(
        out,
        "# as messages move here: --receive {} --rendezvous {}",
        all.receive, all.rendezvous
    )?;
    let (free, difference) = (all.free_network_s, percent(all.free_network_difference));
    writeln!(
        out,
        "{:<13} {} s  {difference}: {evidence}",
        "free network",
        number::significant(free)
    )?;
    if let Some(causes) = &all.causes {
        causes.print(out)?;
    }
    if all.approximated_share + all.refused_share > 0.0 {
        writeln!(
            out,
            "# of the time, {:.1}% is in calls that the schedule approximates, {:.1}% in calls that it \
             lacks: loggap goal from-trace lists them",
            100.0 * all.approximated_share,
            100.0 * all.refused_share
        )?;
    }
    writeln!(
        out,
        "#rank compute[s] predicted[s]    in MPI[s] collective[s] predicted[s]      busy[s]"
    )?;
    for rank in &all.by_rank {
        let column = |value| number::decimal(Some(value), 6);
        writeln!(
            out,
            "{:>5} {:>10} {:>12} {:>12} {:>13} {:>12} {:>12}",
            rank.rank,
            column(rank.compute_s),
            column(rank.predicted_compute_s),
            column(rank.mpi_s),
            column(rank.collective_s),
            column(rank.predicted_mpi_s),
            column(rank.predicted_busy_s)
        )?;
    }
    Ok(())
}
