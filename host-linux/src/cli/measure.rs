//! `loggap measure`: the parameters of a link.

mod ends;
mod export;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use loggap_core::measure::{Clock, PlanOptions, Progress, SessionError};
use loggap_core::units::Picos;
use loggap_core::wire::ethernet::Address;

use super::link::LinkArgs;
use super::parse::{self, Sizes};
use super::progress::ProgressLine;
use super::report::{ExactArgs, ReportArgs};
use super::{CliError, Console, Exit, Interrupt};
use crate::clock::HostClock;
use crate::disturbance::RunWatch;
use crate::drive::Listener;
use crate::environment::Fingerprint;
use crate::link::parse_address;
use crate::measurement::{self, MeasureError, Measurement, Method, Settings, SizePlan};
use crate::warning;
use ends::Ends;
use export::{Circumstances, Files};

/// Measure a link: latency L, overheads o, gap g, gap per byte G, and where
/// the protocol changes.
///
/// Without HOST, a second process of this program is started and the link to
/// it on this machine is measured. With HOST, `loggap serve` has to run
/// there. All numbers carry intervals; what did not converge is marked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap measure                             TCP on this machine, 1 B to 64 KiB, at most 3 s
  loggap measure node7 -o node7.json         to node7, where `loggap serve` runs
  loggap measure --transport shm --plot shm.svg --samples shm.csv
  loggap measure --transport eth --interface eth1
  loggap measure -s 1:1M --max-time 20 --rel-err 2%
  loggap simulate FILE.goal $(loggap measure --flags)")]
pub(super) struct Args {
    /// Where `loggap serve` runs: host with or without port for tcp and udp,
    /// path of its socket for unix and shm, interface with or without /ADDRESS
    /// for eth.
    #[arg(value_name = "HOST[:PORT]")]
    host: Option<String>,
    /// Port of the responder. 5647 unless given.
    #[arg(short, long, requires = "host")]
    port: Option<u16>,
    #[command(flatten)]
    link: LinkArgs,
    /// Ethernet address of the responder, for eth; whichever answers first
    /// unless given.
    #[arg(long, value_name = "aa:bb:cc:dd:ee:ff", requires = "interface", value_parser = station)]
    peer: Option<Address>,
    /// How to measure: prtt (parametrised round trips), signature (Culler et
    /// al.) or plogp (Kielmann et al.).
    #[arg(long, default_value = "prtt", value_parser = method_parser())]
    method: Method,
    /// Message sizes in bytes: 8, 1,64,4K, 1:64K (as the tool sees fit, with
    /// more sizes around changes), 1:64K:x2, 1:64K:+1024, @file. K, M, G are
    /// powers of 1024. 1:64K unless given.
    #[arg(short, long = "size", value_name = "SIZES", value_parser = parse::message_sizes)]
    sizes: Option<Sizes>,
    /// Messages in a burst.
    #[arg(short = 'n', long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=4096))]
    messages: u32,
    #[command(flatten)]
    exact: ExactArgs,
    /// Longest time to measure: seconds, or with a unit such as 500ms, 2m.
    /// Ends earlier when everything has converged. 2.5 s unless given.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = parse::duration)]
    max_time: Option<Duration>,
    /// Most messages of both ends. Without --max-time, prtt sends up to
    /// 34000 unless told otherwise.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_messages: Option<u64>,
    /// Processors of both ends on this machine, as A,B, or A for one end.
    /// The best two unless given.
    #[arg(long, value_name = "A,B")]
    cpu: Option<String>,
    /// Decides the order of the rounds; decimal or 0x hexadecimal.
    #[arg(long, default_value = "1", value_parser = parse::seed)]
    seed: u64,
    /// Write the profile, as JSON.
    #[arg(short, long, value_name = "PROFILE.json")]
    output: Option<PathBuf>,
    /// Write every timed round, as CSV for `loggap fit`.
    #[arg(long, value_name = "FILE.csv")]
    samples: Option<PathBuf>,
    #[command(flatten)]
    report: ReportArgs,
}

fn station(text: &str) -> Result<Address, String> {
    parse_address(text)
        .ok_or_else(|| format!("'{text}' is no address of one station, such as 02:00:00:00:00:07"))
}

fn method_parser() -> impl TypedValueParser<Value = Method> {
    PossibleValuesParser::new(Method::ALL.map(Method::name))
        .try_map(|name| Method::from_name(&name).ok_or_else(|| format!("'{name}' is no method")))
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let stopwatch = HostClock::monotonic_raw();
    let started = stopwatch.now();
    let settings = settings(args)?;
    let files = Files::open(args)?;
    let interrupt = Interrupt::catch()
        .map_err(|error| CliError::failed(format_args!("cannot take over Ctrl-C: {error}")))?;
    interrupt.remove_at_end(files.temporary());
    let clock = HostClock::calibrated();
    let Ends { link, responder, placement, mut warnings } = Ends::open(args, &settings, &clock)?;
    let cpu = placement.map(|placement| placement.initiator);
    let host = Fingerprint::take(&clock, &link, cpu);
    warnings.extend(warning::about_link(&host.link));
    let cpus: Vec<_> = placement.iter().flat_map(|both| [both.initiator, both.responder]).collect();
    let watch = RunWatch::start(clock, &cpus, responder.as_ref().map(|process| process.id()));
    let outcome = drive(link, &settings, &interrupt, (&clock, console));
    warnings.extend(watch.warnings());
    let measurement = match outcome {
        Ok(measurement) => measurement,
        Err(_) if interrupt.is_requested() => {
            console.note("interrupted before anything was measured");
            return Ok(Exit::Interrupted);
        }
        Err(error) => {
            // They may say why.
            warnings.iter().for_each(|warning| console.warn(warning));
            return Err(error.into());
        }
    };
    if let Some(process) = responder
        && let Err(error) = process.finish()
    {
        console.warn(error);
    }
    let wall = stopwatch.duration(stopwatch.now().saturating_sub(started));
    let circumstances = Circumstances { host, warnings, wall, settings: &settings };
    let outcome = export::export(args, &measurement, circumstances, (files, console));
    match outcome {
        Ok(_) if interrupt.is_requested() => Ok(Exit::Interrupted),
        other => other,
    }
}

fn settings(args: &Args) -> Result<Settings, CliError> {
    const LAST: u32 = 64 << 10;
    let whole = |size: u64| u32::try_from(size).unwrap_or(u32::MAX); // at most 1 GiB by the parser
    let sizes = match &args.sizes {
        None => SizePlan::Span { first: 1, last: LAST, shrink: true },
        Some(Sizes::Span { first, last }) => {
            SizePlan::Span { first: whole(*first), last: whole(*last), shrink: false }
        }
        Some(Sizes::Listed(sizes)) => SizePlan::Listed(sizes.iter().copied().map(whole).collect()),
    };
    let defaults = PlanOptions::default();
    let max_messages = match (args.max_messages, args.max_time, args.method) {
        (Some(messages), ..) => messages,
        (None, None, Method::Prtt) => defaults.max_messages,
        // The other methods need more messages for the same exactness.
        (None, Some(_), _) | (None, None, Method::Signature | Method::Plogp) => u64::MAX,
    };
    let plan = PlanOptions {
        assess: args.exact.options()?,
        messages: args.messages,
        max_time: args.max_time.map_or(Ok(defaults.max_time), max_time)?,
        max_messages,
        seed: args.seed,
        ..defaults
    };
    Ok(Settings { method: args.method, sizes, plan })
}

fn max_time(time: Duration) -> Result<Picos, CliError> {
    /// Responders end a session after an hour.
    const LONGEST: Duration = Duration::from_secs(3_000);
    match u64::try_from(time.as_nanos()).ok().and_then(Picos::from_nanos) {
        Some(picos) if time <= LONGEST => Ok(picos),
        _ => Err(CliError::usage(format_args!(
            "--max-time takes up to {} s; measure in several runs",
            LONGEST.as_secs()
        ))),
    }
}

/// Measures, shows how it goes, and stops when asked.
fn drive(
    link: crate::link::AnyLink,
    settings: &Settings,
    interrupt: &Interrupt,
    (clock, console): (&HostClock, &mut Console),
) -> Result<Measurement, MeasureError> {
    let line = ProgressLine::new(console, *clock, settings.plan.assess.relative_error_ppm);
    let mut watcher = Watcher { line, interrupt, console };
    measurement::run(clock, link, settings, &mut watcher)
}

/// Shows how it goes, and breaks off when asked to.
struct Watcher<'a> {
    line: ProgressLine,
    interrupt: &'a Interrupt,
    console: &'a mut Console,
}

impl Watcher<'_> {
    fn go_on(&self) -> ControlFlow<()> {
        if self.interrupt.is_requested() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

impl Listener for Watcher<'_> {
    fn on_queue(&mut self, position: u32) -> ControlFlow<()> {
        let waiting = format_args!("waiting: position {position} in the responder's queue");
        self.console.note(waiting);
        self.go_on()
    }

    fn on_progress(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.interrupt.listen();
        self.line.show(progress);
        self.go_on()
    }
}

impl From<MeasureError> for CliError {
    fn from(error: MeasureError) -> Self {
        match error {
            MeasureError::Session(SessionError::Link(error)) => error.into(),
            MeasureError::Session(SessionError::OutOfBounds { .. } | SessionError::Invalid(_))
            | MeasureError::Plan(_)
            | MeasureError::NoSizes
            | MeasureError::TooLong { .. }
            | MeasureError::TooManySizes(_) => Self::usage(error),
            MeasureError::Session(_) | MeasureError::Analysis(_) => Self::failed(error),
        }
    }
}
