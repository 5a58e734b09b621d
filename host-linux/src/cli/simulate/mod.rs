//! `loggap simulate`: simulates a schedule and explains its duration.

mod explanation;
mod further;
mod how;
mod level_args;
mod monte_carlo;
mod network_args;
mod network_report;
pub(super) mod noise_args;
mod picture;
mod progress;
mod report;
mod sensitivity;
mod sweep;

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use loggap_core::measure::Clock;
use loggap_core::sim::{Parameters, Rendezvous};
use loggap_core::units::Picos;

use self::further::Further;
use self::level_args::LevelArgs;
use self::monte_carlo::MonteCarlo;
use self::network_args::{NetworkArgs, NetworkPicture};
use self::noise_args::NoiseArgs;
use self::picture::{Picture, PictureArgs};
use self::progress::{Pace, ProgressLine};
use self::report::Report;
use self::sweep::{SweepArgs, SweepJob};
use super::digits::FormatArgs;
use super::parameter_args::{OverheadArgs, ParameterArgs, SettingsArgs};
use super::pattern_args::PatternArgs;
use super::profile_warnings;
use super::trace_args::TraceArgs;
use crate::flags::parse;
use crate::machine::clock::HostClock;
use crate::output::plot::links::LinksTitle;
use crate::profile::ProfileDocument;
use crate::schedule::Form;
use crate::simulation::{
    Alone, Buffering, Hints, Job, LoadError, NetworkPlan, NoiseSource, Outcome, ParameterSets,
    Parts, PhasedNoise, Plan, Processes, ProgramForm, RunError, Source, Wanted, agreed,
};
use crate::terminal::{CliError, Console, Exit, Failures, Interrupt, NamedFiles, end_on_request};

/// Simulate a schedule under LogGOPS.
///
/// The schedule is a GOAL file, text or binary, or a pattern. Finishing times
/// equal LogGOPSim's to the picosecond, except where docs/simulating.md lists
/// LogGOPSim as wrong.
///
/// Exits with 1 if the schedule cannot finish, and names every message without
/// a receive, every receive without a message, and what waits for them.
// -V is not the version here: LogGOPSim uses it for its picture.
#[derive(Debug, clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Examples:
  loggap simulate bcast.goal
  loggap simulate --pattern dissemination --ranks 1M -s 8 --preset ompi-ib-sdr
  loggap simulate ring.bin -L 1200.5 -o 800 -g 1500 -G 0.08 -S 64K --receive overlap --explain
  loggap simulate --pattern binomialtreebcast --ranks 64 -s 8 --sensitivity
  loggap simulate app.goal --profile cluster.json --monte-carlo 1000 --seed 7
  loggap simulate app.goal --sweep L=1us:100us:20 --sensitivity --sweep-plot latency.svg
  loggap simulate --pattern gather --ranks 8 --timeline gather.svg
  loggap simulate --prtt 3 --delay 20us --preset mpich2-tcp --timeline fig2.svg
  loggap simulate --pattern all-to-all --ranks 64 -s 64K --topology tree:8:4 --network-plot busy.svg
  loggap simulate --trace app.trace --grid 140x200 --preset ompi-ib-sdr
  loggap simulate app.goal --level 8:node.json --level 64:rack.json --profile fabric.json
'loggap goal generate --help' lists the patterns."
)]
pub struct Args {
    /// Schedule to read; '-' is standard input.
    #[arg(value_name = "FILE", conflicts_with_all = ["pattern", "trace"])]
    input: Option<PathBuf>,

    /// LogGOPSim's option for the schedule.
    #[arg(short = 'f', hide = true, value_name = "FILE", conflicts_with_all = ["input", "pattern", "trace"])]
    filename: Option<PathBuf>,

    #[command(flatten)]
    trace: TraceArgs,

    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    overheads: OverheadArgs,

    #[command(flatten)]
    settings: SettingsArgs,

    #[command(flatten)]
    noise: NoiseArgs,

    #[command(flatten)]
    network: NetworkArgs,

    #[command(flatten)]
    levels: LevelArgs,

    /// Print the finishing time of each rank.
    #[arg(help_heading = "Output", long)]
    finish: bool,

    /// Print counters of each rank: messages, times, queue lengths.
    #[arg(help_heading = "Output", long)]
    counters: bool,

    /// Explain the makespan: its critical path as a sum of parameters.
    ///
    /// With --topology also the time lost to sharing, link by link.
    #[arg(help_heading = "Output", long)]
    explain: bool,

    /// Slopes of the makespan in L, o, g, G, O, and latency tolerance.
    ///
    /// Each slope comes with the interval of the parameter in which it is valid;
    /// the tolerance is the growth of L that lengthens the makespan by 1, 5 and
    /// 10%.
    #[arg(help_heading = "Output", long, conflicts_with = "noise_source")]
    sensitivity: bool,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    picture: PictureArgs,

    #[command(flatten)]
    sweep: SweepArgs,

    /// Distribution of the makespan over draws from the profile's intervals.
    ///
    /// Up to 1000000 further runs, with parameters and phases of noise drawn by
    /// --seed; with --sweep at each of its points, too.
    #[arg(help_heading = "Further runs", long, value_name = "DRAWS", value_parser = clap::value_parser!(u32).range(1..=1_000_000),
          conflicts_with_all = ONE_RUN, conflicts_with = "sensitivity")]
    monte_carlo: Option<u32>,

    /// Threads; the result is the same for every number [default: all].
    #[arg(help_heading = "Run", long, value_name = "THREADS", value_parser = parse::threads, allow_hyphen_values = true)]
    threads: Option<NonZeroUsize>,

    /// Memory limit, as 1.5G; larger runs are refused [default: none].
    #[arg(help_heading = "Run", long, value_name = "BYTES", value_parser = parse::size, allow_hyphen_values = true)]
    max_memory: Option<u64>,

    /// Keep operations in memory, or stream them from disk.
    ///
    /// Streamed needs a binary file, or a trace on more ranks [default: stored;
    /// streamed if that would exceed --max-memory, or a trace on more ranks has over
    /// 8 million operations].
    #[arg(help_heading = "Run", long, value_enum, value_name = "FORM", conflicts_with = "pattern")]
    program: Option<ProgramForm>,

    /// Process of each rank in 'loggap-mpi simulate': a number a line, as METIS
    /// writes them [default: blocks of ranks].
    #[arg(help_heading = "Run", long, value_name = "FILE", conflicts_with_all = ["timeline", "explain", "sensitivity", "sweep", "monte_carlo"])]
    partition: Option<PathBuf>,

    #[command(flatten)]
    pattern: PatternArgs,
}

/// Options that describe a single run and conflict with many runs.
const ONE_RUN: [&str; 5] = ["timeline", "explain", "counters", "finish", "network_plot"];

impl Args {
    /// File of the schedule.
    fn input(&self) -> Option<&Path> {
        self.input.as_deref().or(self.filename.as_deref())
    }

    /// Title of the schedule.
    fn schedule(&self) -> String {
        self.pattern.schedule(self.input(), &self.trace)
    }

    /// Plan of the network between ranks.
    fn network(&self) -> Result<Option<NetworkPlan>, CliError> {
        let Some(mut network) = self.network.plan(self.pattern.seed, &self.levels)? else {
            return Ok(None);
        };
        network.watched |= self.format.json;
        Ok(Some(network))
    }

    /// Requested location of operations; in memory if there are further runs.
    fn program(&self) -> Option<ProgramForm> {
        self.program.or_else(|| self.stored_for().map(|_| ProgramForm::Stored))
    }

    /// Given option that needs all operations in memory.
    fn stored_for(&self) -> Option<&'static str> {
        let asked = [
            ("--explain", self.explain),
            ("--sensitivity", self.sensitivity),
            ("--monte-carlo", self.monte_carlo.is_some()),
            ("--sweep", !self.sweep.sweep.is_empty()),
        ];
        asked.into_iter().find_map(|(option, asked)| asked.then_some(option))
    }

    fn pace(&self) -> Pace {
        let instant = self.settings.settings().rendezvous == Rendezvous::Instant;
        if instant && !self.network.is_shared() { Pace::Even } else { Pace::Uneven }
    }

    fn check(&self) -> Result<(), CliError> {
        self.check_program()?;
        self.check_files()
    }

    /// Refuses options that conflict with a streamed schedule.
    fn check_program(&self) -> Result<(), CliError> {
        if self.program != Some(ProgramForm::Streamed) {
            return Ok(());
        }
        if let Some(option) = self.stored_for() {
            return Err(CliError::usage(format_args!(
                "--program streamed keeps only the operations under way, and {option} needs all of \
                 them"
            )));
        }
        if self.partition.is_some() {
            return Err(CliError::usage("--partition stores the program: leave out --program"));
        }
        Ok(())
    }

    /// Refuses options of results that only one process can find.
    fn check_across(&self, processes: &dyn Processes) -> Result<(), CliError> {
        let of_one =
            [("--topology", self.network.is_shared()), ("--timeline", self.picture.is_asked())];
        if self.partition.is_some() && processes.is_alone() {
            return Err(CliError::usage(
                "--partition is for several processes: 'loggap-mpi simulate'",
            ));
        }
        let given = of_one.into_iter().find_map(|(option, given)| given.then_some(option));
        match given.or_else(|| self.stored_for()) {
            Some(option) if processes.count() > 1 => Err(CliError::usage(format_args!(
                "{option} needs all ranks in one process: run it with 'loggap simulate'"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses output files that would overwrite inputs or each other.
    fn check_files(&self) -> Result<(), CliError> {
        let mut files = NamedFiles::default();
        files.read("FILE", self.input());
        self.trace.name_files(&mut files);
        self.parameters.name_files(&mut files);
        self.levels.name_files(&mut files);
        self.network.name_files(&mut files);
        self.noise.name_files(&mut files);
        self.picture.name_files(&mut files);
        self.sweep.name_files(&mut files);
        files.read("--partition", self.partition.as_deref());
        files.check()
    }

    /// Job for one run without a timeline.
    fn job<'a>(
        &self,
        parameters: Parameters<'a>,
        noise: Option<&'a NoiseSource>,
        network: Option<&'a NetworkPlan>,
    ) -> Job<'a> {
        let wanted = Wanted {
            finish: self.finish,
            counters: self.counters,
            causes: self.explain || self.sensitivity && network.is_none(),
            sensitivity: self.sensitivity && network.is_none(),
            ..Wanted::default()
        };
        Job {
            noise: noise.map(|source| PhasedNoise {
                source,
                phases: self.noise.phases(self.pattern.seed),
                names: &[],
            }),
            network,
            most_bytes: self.max_memory.unwrap_or(u64::MAX),
            threads: self.threads(),
            program: self.program(),
            wanted,
            ..Job::new(parameters, self.settings.settings())
        }
    }

    /// Plan for further runs, without noise and network.
    fn plan(&self) -> Plan<'_> {
        Plan {
            most_bytes: self.max_memory.unwrap_or(u64::MAX),
            threads: self.threads(),
            ..Plan::new(self.settings.settings())
        }
    }

    /// Error of a run; for a text or a trace that exceeds the memory limit, with a hint.
    fn refused(&self, error: RunError, source: &Source) -> CliError {
        let writer = match source {
            Source::File(file) if file.form() == Form::Text => Some("compile"),
            Source::Trace(_) => Some("from-trace"),
            _ => None,
        };
        let too_much = matches!(error, RunError::Load(LoadError::Memory { .. }));
        let writer = writer.filter(|_| too_much && self.program().is_none());
        match (CliError::from(error), writer) {
            (CliError::Message { exit, text }, Some(writer)) => {
                let text = format!(
                    "{text}; or write it as FILE.lgs with 'loggap goal {writer}', which is read as it \
                     runs where memory does not suffice"
                );
                CliError::Message { exit, text }
            }
            (error, _) => error,
        }
    }

    fn threads(&self) -> usize {
        self.threads.map_or_else(|| Alone.threads(), NonZeroUsize::get)
    }
}

/// Files of pictures, opened before the work.
struct Pictures {
    timeline: Option<Picture>,
    network: Option<NetworkPicture>,
}

impl Pictures {
    fn open(args: &Args) -> Result<Self, CliError> {
        Ok(Self { timeline: args.picture.open()?, network: args.network.open()? })
    }

    fn draw(self, args: &Args, outcome: &Outcome, failures: &mut Failures) {
        if let (Some(picture), Some(timeline)) = (self.timeline, &outcome.timeline) {
            failures.add(picture.draw(timeline, outcome.finished.makespan));
        }
        if let (Some(picture), Some(usage)) = (self.network, &outcome.network) {
            let title = LinksTitle {
                schedule: args.schedule(),
                topology: args.network.named().0,
                makespan: outcome.finished.makespan,
            };
            failures.add(picture.draw(usage, &title));
        }
    }
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let interrupt = end_on_request()?;
    args.check_across(&Alone)?;
    Prepared::new(args, console)?.run(args, &Alone, &interrupt, console)
}

/// Runs the command as one of several processes, each with a part of the ranks; the first one
/// prints.
///
/// # Errors
///
/// [`CliError`], if it is this process that has to print it.
pub fn run_across(
    args: &Args,
    processes: &dyn Processes,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Exit, CliError> {
    let mut silent = Console::new(Box::new(io::sink()), Box::new(io::sink()));
    let console = if processes.index() == 0 { console } else { &mut silent };
    let prepared = args.check_across(processes).and_then(|()| Prepared::new(args, console));
    agreed(processes, prepared)?.run(args, processes, interrupt, console)
}

/// Threads of each process, and its ranks if a file says them.
struct Divided {
    threads: usize,
    parts: Option<Parts>,
}

impl Divided {
    /// All processes divide the ranks alike, whatever their hosts have.
    fn of(args: &Args, source: &Source, processes: &dyn Processes) -> Result<Self, CliError> {
        let threads = args.threads.map_or_else(|| processes.threads(), NonZeroUsize::get);
        let least = processes.all(&[threads as u64]).into_iter().min();
        let threads = least.and_then(|least| usize::try_from(least).ok()).unwrap_or(threads);
        let read = |path| Parts::read(path, source.ranks(), threads, processes);
        let parts = args.partition.as_deref().map(read).transpose().map_err(CliError::usage);
        Ok(Self { threads, parts: agreed(processes, parts)? })
    }
}

/// Outcome of the first run. If a signal ends it, the first process says how far it came.
fn simulated(
    job: &Job<'_>,
    source: &Source,
    pace: Pace,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Outcome, RunError> {
    let (first, count) = (job.processes.index() == 0, job.processes.count());
    if !first {
        interrupt.say_at_end("");
    }
    let line = ProgressLine::new(console, pace);
    let ran = job.simulate(source, &|so_far| {
        line.show(so_far);
        if first {
            interrupt.say_at_end(progress::interrupted(so_far, count));
        }
    });
    if first {
        interrupt.say_at_end("interrupted");
    }
    ran
}

/// Inputs of a run, all of which can be refused before it.
struct Prepared {
    sets: ParameterSets,
    profile: Option<ProfileDocument>,
    monte_carlo: Option<MonteCarlo>,
    sweep: Option<SweepJob>,
    noise: Option<NoiseSource>,
    network: Option<NetworkPlan>,
    pictures: Pictures,
    source: Source,
    /// Time to open the source.
    opening: Picos,
}

impl Prepared {
    fn new(args: &Args, console: &mut Console) -> Result<Self, CliError> {
        args.check()?;
        let (sets, profile) = args.parameters.sets_and_profile(&args.overheads, args.settings)?;
        args.parameters.warn_of(profile.as_ref(), console);
        let monte_carlo = MonteCarlo::new(args, profile.as_ref(), &sets)?;
        let sets = args.levels.add_to(sets, &args.parameters, args.settings, console)?;
        let sweep = args.sweep.open(&sets, monte_carlo.as_ref())?;
        if sweep.as_ref().is_some_and(SweepJob::has_hidden_latency) {
            console
                .warn("overheads hide L: its factors are those of o_s + o_r, half the round trip");
        }
        let noise = args.noise.source(args.pattern.seed)?;
        if noise.is_some() {
            args.trace.warn_of_noise(console);
        }
        let network = args.network()?;
        let pictures = Pictures::open(args)?;
        let clock = HostClock::monotonic_raw();
        let started = clock.now();
        let warn = &mut |text: String| console.warn(text);
        let source = args.pattern.source(args.input(), &args.trace, args.threads(), warn)?;
        let opening = clock.duration(clock.now().saturating_sub(started));
        args.levels.check(&sets, &source, console)?;
        if let Some(network) = &network {
            network_args::warn(network, source.ranks(), console);
        }
        Ok(Self { sets, profile, monte_carlo, sweep, noise, network, pictures, source, opening })
    }

    /// There is no result before the end of the first run, so `interrupt` ends the process at first.
    fn run(
        self,
        args: &Args,
        processes: &dyn Processes,
        interrupt: &Interrupt,
        console: &mut Console,
    ) -> Result<Exit, CliError> {
        let Self { sets, profile, monte_carlo, sweep, noise, network, pictures, source, opening } =
            self;
        let hints = Hints::new(&sets, source.ranks());
        let Divided { threads, parts } = Divided::of(args, &source, processes)?;
        let numbered = parts.as_ref().map(|parts| sets.numbered(parts.ranks()));
        let own_sets = numbered.as_ref().unwrap_or(&sets);
        let mut job = args.job(own_sets.parameters()?, noise.as_ref(), network.as_ref());
        job.threads = threads;
        job.parts = parts.as_ref();
        if let (Some(noise), Some(parts)) = (&mut job.noise, &parts) {
            noise.names = parts.ranks();
        }
        job.hints = Some(&hints);
        job.wanted.selection = pictures.timeline.as_ref().map(Picture::selection);
        job.processes = processes;
        let pace = args.pace();
        let ran = agreed(processes, simulated(&job, &source, pace, interrupt, console));
        let mut outcome = ran.map_err(|error| args.refused(error, &source))?;
        if processes.index() > 0 {
            return Ok(Exit::Done);
        }
        outcome.load = outcome.load.plus(opening).unwrap_or(outcome.load);
        let mut report = Report::new(args, &source, &sets, noise.as_ref(), &outcome, &hints)?;
        report.add_hosts_used(network.as_ref(), source.ranks());
        if !processes.is_alone() {
            report.add_processes(processes.count(), &outcome, console);
        }
        if !report.is_whole() {
            if processes.count() == 1 {
                let found = Buffering::of(&source, &sets, &job, &outcome.stuck);
                report.add_buffering(found, console);
            }
            return report.print(args, console);
        }
        // Later failures do not discard the result of the first run.
        let mut failures = Failures::default();
        let unwatched = network.as_ref().map(NetworkPlan::unwatched);
        let plan = Plan {
            noise: noise.as_ref(),
            network: unwatched.as_ref(),
            stop: Some(interrupt.flag()),
            ..args.plan()
        };
        let further =
            Further { args, sets: &sets, source: &source, plan, outcome: &outcome, interrupt };
        if let (Some(path), Some(profile)) = (args.parameters.profile(), &profile)
            && let Some(largest) = hints.largest()
        {
            profile_warnings::extrapolated(path, profile, largest, console);
            let (settings, sent) = (args.settings.settings(), hints.sent());
            profile_warnings::unlike_half_rtt(path, profile, &sets, settings, &sent, console);
        }
        report.add_taper(hints.taper(outcome.finished.makespan));
        if args.sensitivity {
            report.add_sensitivities(failures.add(further.sensitivities(sweep.as_ref(), console)));
        }
        pictures.draw(args, &outcome, &mut failures);
        further.run(monte_carlo, sweep, &mut report, &mut failures, console);
        let printed = report.print(args, console).map(drop);
        failures.add(printed);
        Ok(failures.end(report.exit(), console))
    }
}
