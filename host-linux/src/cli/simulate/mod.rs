//! `loggap simulate`: how long a schedule takes, and why.

mod computed;
mod explanation;
mod job;
mod monte_carlo;
mod network_args;
mod network_report;
mod noise_args;
mod picture;
mod progress;
mod report;
mod sensitivity;
mod sweep;
mod windows;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use loggap_core::measure::Clock;

use self::job::{Job, NetworkJob, Wanted};
use self::monte_carlo::MonteCarlo;
use self::network_args::{NetworkArgs, NetworkPicture};
use self::noise_args::NoiseArgs;
use self::picture::{Picture, PictureArgs};
use self::report::Report;
use self::sensitivity::Sensitivities;
use self::sweep::{SweepArgs, SweepJob};
use super::parameter_args::{OverheadArgs, ParameterArgs, SettingsArgs};
use super::pattern_args::PatternArgs;
use super::{CliError, Console, Exit, Interrupt, parse};
use crate::machine::clock::HostClock;
use crate::simulation::{NoiseSource, Plan, least_taper};

/// Simulate a schedule under LogGOPS.
///
/// The schedule is a file that 'loggap goal' reads, in any of its forms, or
/// a pattern. Finishing times are those of LogGOPSim, to the picosecond,
/// where docs/simulating.md does not call LogGOPSim wrong.
///
/// Exits with 1 if the schedule cannot come to its end, and names every
/// message without a receive, every receive without a message, and what
/// waits for them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loggap simulate bcast.goal
  loggap simulate --pattern dissemination --ranks 1M -s 8 --preset ompi-ib-sdr
  loggap simulate ring.bin -L 1200.5 -o 800 -g 1500 -G 0.08 -S 64K --receive overlap --explain
  loggap simulate --pattern binomialtreebcast --ranks 64 -s 8 --sensitivity
  loggap simulate app.goal --profile cluster.json --monte-carlo 1000 --seed 7
  loggap simulate app.goal --sweep L=1us:100us:20 --sensitivity --sweep-plot latency.svg
  loggap simulate --pattern gather --ranks 8 --timeline gather.svg
  loggap simulate --pattern all-to-all --ranks 64 -s 64K --topology tree:8:4 --network-plot busy.svg
'loggap goal generate --help' lists the patterns.")]
pub(super) struct Args {
    /// Schedule to read; '-' is standard input.
    #[arg(value_name = "FILE", conflicts_with = "pattern", required_unless_present = "pattern")]
    input: Option<PathBuf>,

    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    overheads: OverheadArgs,

    #[command(flatten)]
    settings: SettingsArgs,

    /// The most memory to take, in bytes; a run that needs more is refused
    /// before it starts.
    #[arg(long, value_name = "BYTES", value_parser = parse::size)]
    max_memory: Option<u64>,

    /// Threads to simulate on, where the schedule allows several; all
    /// processors by default. The result is the same for every number.
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Print when each rank is done.
    #[arg(long)]
    finish: bool,

    /// Count what each rank does: messages, time in each activity, waiting,
    /// lengths of queues.
    #[arg(long)]
    counters: bool,

    /// Explain the makespan: the chain of events that ends with the last
    /// one, as a sum of the parameters.
    #[arg(long)]
    explain: bool,

    /// By how much the makespan grows with L, o, g, G and O, in which
    /// interval of each that holds, and how much L may grow until the makespan
    /// has grown by 1, 5 and 10%.
    #[arg(long, conflicts_with = "noise_source")]
    sensitivity: bool,

    /// Simulate N times more (up to 1000000), with parameters drawn from the intervals of the
    /// profile and phases of noise drawn anew (--seed): the makespan as a
    /// distribution.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000),
          conflicts_with_all = ONE_RUN, conflicts_with = "sensitivity")]
    monte_carlo: Option<u32>,

    /// Print one JSON document.
    #[arg(short = 'J', long)]
    json: bool,

    #[command(flatten)]
    sweep: SweepArgs,

    #[command(flatten)]
    noise: NoiseArgs,

    #[command(flatten)]
    network: NetworkArgs,

    #[command(flatten)]
    picture: PictureArgs,

    #[command(flatten)]
    pattern: PatternArgs,
}

/// What describes one run, and what many runs do not know.
const ONE_RUN: [&str; 6] =
    ["timeline", "explain", "counters", "finish", "topology", "network_plot"];

impl Args {
    /// What is between ranks.
    fn network(&self) -> Result<Option<NetworkJob>, CliError> {
        let Some(mut network) = self.network.job(self.pattern.seed)? else { return Ok(None) };
        network.plan.watched |= self.json;
        if self.explain || self.sensitivity {
            return Err(CliError::usage(
                "--explain and --sensitivity know no links between ranks; use them without --topology, \
                 or see the busiest links with --network-plot FILE.svg",
            ));
        }
        Ok(Some(network))
    }

    /// What runs with other parameters have in common.
    fn plan<'a>(&self, noise: Option<&'a NoiseSource>) -> Plan<'a> {
        Plan {
            settings: self.settings.settings(),
            noise,
            most_bytes: self.max_memory.unwrap_or(u64::MAX),
            threads: self.threads(),
            finish: 0,
        }
    }

    fn threads(&self) -> usize {
        let all = || std::thread::available_parallelism().ok();
        self.threads.or_else(all).map_or(1, NonZeroUsize::get)
    }
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let (sets, profile) = args.parameters.sets_and_profile(&args.overheads)?;
    let monte_carlo = MonteCarlo::new(args, (profile.as_ref(), &sets))?;
    let sweep = args.sweep.open(&sets)?;
    let noise = args.noise.source(args.pattern.seed)?;
    let network = args.network()?;
    let picture = args.picture.open()?;
    let network_picture = args.network.open()?;
    // Nothing is known before the end, so Ctrl-C ends at once.
    let interrupt = Interrupt::catch()
        .map_err(|error| CliError::failed(format_args!("cannot take over Ctrl-C: {error}")))?;
    interrupt.remove_at_end(picture.as_ref().and_then(Picture::temporary));
    interrupt.remove_at_end(network_picture.as_ref().and_then(NetworkPicture::temporary));
    interrupt.remove_at_end(sweep.iter().flat_map(SweepJob::temporaries));
    let clock = HostClock::monotonic_raw();
    let started = clock.now();
    let source = args.pattern.source(args.input.as_deref())?;
    let job = Job {
        parameters: sets.parameters()?,
        settings: args.settings.settings(),
        noise: noise.as_ref().map(|noise| (noise, args.noise.phases(args.pattern.seed))),
        network,
        most_bytes: args.max_memory.unwrap_or(u64::MAX),
        threads: args.threads(),
        wanted: Wanted {
            finish: args.finish,
            counters: args.counters,
            selection: picture.as_ref().map(Picture::selection),
            causes: args.explain || args.sensitivity,
            sensitivity: args.sensitivity,
        },
    };
    let mut outcome = job.run(&source, (clock, started), console)?;
    if job.network.is_none() && outcome.stuck.total == 0 {
        let size = (outcome.ranks, outcome.ops);
        let taper = least_taper(&source, job.parameters, size, outcome.finished.makespan);
        outcome.taper = taper.map_err(CliError::usage)?;
    }
    let mut report = Report::new(args, &source, &outcome)?;
    if let (Some(causes), true, true) = (&outcome.causes, args.sensitivity, report.is_whole()) {
        let sets = sweep.as_ref().map_or_else(|| sets.clone(), SweepJob::given);
        report.add_sensitivities(Sensitivities::of(causes, &sets));
    }
    if let (Some(picture), Some(timeline), true) = (picture, &outcome.timeline, report.is_whole()) {
        picture.draw(timeline)?;
    }
    if let (Some(picture), Some(usage), true) =
        (network_picture, &outcome.network, report.is_whole())
    {
        picture.draw(usage)?;
    }
    if let (Some(monte_carlo), true) = (monte_carlo, report.is_whole()) {
        report.add_monte_carlo(monte_carlo.run(args, (&source, noise.as_ref()), console)?);
    }
    if let (Some(sweep), true) = (sweep, report.is_whole()) {
        let given = (outcome.finished.makespan, report.sensitivities());
        let sweep = sweep.run(args, (&source, noise.as_ref()), given, console)?;
        report.add_sweep(sweep);
    }
    report.print(args, console)
}
