//! Measuring, from options to files, for every program with an implementation of [`Ends`].

mod ends;
mod export;
mod observer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use loggap_core::measure::{Clock, Link, Phase, PlanOptions, SessionError, SessionOptions};
use loggap_core::units::Picos;
use loggap_core::wire::{Limited, Refusal};

use super::report::{ExactArgs, ReportArgs};
use crate::drive::{History, MeasureError, Measured, Memory, Method, Run, RunOptions, SizePlan};
use crate::flags::parse::{self, NumberError, Sizes};
use crate::link::Waiting;
use crate::machine::buffer::Alignment;
use crate::machine::canaries::Canaries;
use crate::machine::clock::HostClock;
use crate::machine::disturbance::Disturbance;
use crate::machine::environment::Fingerprint;
use crate::machine::interruptions;
use crate::machine::warning::{self, Warning};
use crate::output::number;
use crate::profile::ProfileDocument;
use crate::terminal::{CliError, Console, Exit, Interrupt};
pub use ends::{Ends, ProtocolLimit};
use export::{Files, Taken};
use observer::RunObserver;

/// Options of a measurement, shared by all programs that measure.
#[derive(Clone, Debug, clap::Args)]
pub struct MeasureArgs {
    /// Measurement method.
    ///
    /// prtt: parametrised round trips; signature: Culler et al.; plogp:
    /// Kielmann et al.
    #[arg(long, value_name = "METHOD", default_value = "prtt", value_parser = method_parser())]
    method: Method,
    /// Message sizes: 8, 1,64,4K, 1:64K or @FILE [default: 1:64K].
    ///
    /// 1:64K (sizes chosen automatically), 1:64K:x2 (powers of two),
    /// 1:64K:+1024 (steps of 1024 B). K, M, G are powers of 1024.
    #[arg(short, long = "size", value_name = "BYTES", value_parser = parse::message_sizes)]
    sizes: Option<Sizes>,
    /// Messages in a burst [default: 10; up to 64 from 2 KiB on].
    #[arg(short = 'n', long, value_name = "MESSAGES", value_parser = clap::value_parser!(u32).range(2..=4096))]
    messages: Option<u32>,
    #[command(flatten)]
    exact: ExactArgs,
    /// Time limit: seconds, or with a unit such as 500ms, 2min [default: 2.5s].
    ///
    /// At most 3000 s. Launches are spread over this time, because the speed of a machine changes
    /// from one moment to the next.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = max_time)]
    max_time: Option<Picos>,
    /// Message limit, counting both directions.
    ///
    /// Default of prtt: 34000, or 54400 per second of --max-time.
    #[arg(long, value_name = "MESSAGES", value_parser = clap::value_parser!(u64).range(1..))]
    max_messages: Option<u64>,
    /// Number of launches, to measure variation between runs [default: 5].
    ///
    /// Each launch is a fresh connection and, without HOST, a fresh process on
    /// other processors. The default grows with --max-time, and shrinks on slow
    /// links.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    launches: Option<u32>,
    /// Folder of earlier profiles of this link; this run's is added.
    ///
    /// Variation between those runs widens the intervals for the next run.
    #[arg(long, value_name = "DIR")]
    history: Option<PathBuf>,
    /// Seed of the order of rounds; decimal or 0x hexadecimal.
    #[arg(long, value_name = "SEED", default_value = "1", value_parser = parse::seed)]
    seed: u64,
    /// Write the profile, for simulate and best; `-` is standard output.
    #[arg(short, long, value_name = "PROFILE.json")]
    output: Option<PathBuf>,
    /// Write every timed round, as CSV for `loggap fit`.
    #[arg(long, value_name = "FILE.csv")]
    samples: Option<PathBuf>,
    #[command(flatten)]
    report: ReportArgs,
}

fn method_parser() -> impl TypedValueParser<Value = Method> {
    PossibleValuesParser::new(Method::ALL.map(Method::name))
        .try_map(|name| Method::from_name(&name).ok_or_else(|| format!("'{name}' is no method")))
}

/// Measures between the ends that `ends` makes, given the longest message in bytes, and writes the
/// results requested by `args`.
///
/// # Errors
///
/// [`CliError`] for invalid options, a link that cannot be opened, or a failure during the run; the
/// files then hold the samples until it.
pub fn run<E: Ends>(
    args: &MeasureArgs,
    ends: impl FnOnce(u32) -> Result<E, CliError>,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<Exit, CliError> {
    if args.report.json {
        interrupt.write_at_end(export::failure(INTERRUPTED));
    }
    match measure(args, ends, interrupt, console) {
        Ok((taken, files)) => {
            interrupt.write_at_end("");
            let outcome = export::export(args, taken, (files, console));
            match outcome {
                Ok(_) if interrupt.is_requested() => Ok(Exit::Interrupted),
                other => other,
            }
        }
        Err(error) => {
            interrupt.write_at_end("");
            let is_interrupted = interrupt.is_requested();
            let text = if is_interrupted { INTERRUPTED.to_owned() } else { error.to_string() };
            if args.report.json {
                console.data().write_all(export::failure(&text).as_bytes())?;
            }
            if !is_interrupted {
                return Err(error);
            }
            Ok(Exit::Interrupted)
        }
    }
}

/// Measures between the ends that `ends` makes and returns the profile, without files and output:
/// for one of many links.
///
/// # Errors
///
/// As [`run`]; a failed run returns no profile.
pub fn profile<E: Ends>(
    args: &MeasureArgs,
    ends: impl FnOnce(u32) -> Result<E, CliError>,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<ProfileDocument, CliError> {
    let args = args.for_one_of_many();
    let (mut taken, _no_files) = measure(&args, ends, interrupt, console)?;
    match taken.failure.take() {
        Some(error) => Err(error),
        None => Ok(export::document(&args, &taken, None)),
    }
}

impl MeasureArgs {
    /// Largest size that is measured, bytes.
    #[must_use]
    pub fn longest_message(&self) -> u32 {
        size_plan(self).largest()
    }

    /// Options for one of many links: one launch, a short time unless one was given, no files.
    fn for_one_of_many(&self) -> Self {
        let max_time = self.max_time.unwrap_or(ONE_OF_MANY);
        Self {
            max_time: Some(max_time),
            launches: self.launches.or(Some(1)),
            output: None,
            samples: None,
            history: None,
            report: ReportArgs::default(),
            ..self.clone()
        }
    }

    /// Duration of the measurement of one of many links.
    #[must_use]
    pub fn time_of_one_of_many(&self) -> Duration {
        Duration::from_nanos(self.max_time.unwrap_or(ONE_OF_MANY).0 / 1_000)
    }

    /// File of the profile.
    #[must_use]
    pub fn output(&self) -> Option<&Path> {
        self.output.as_deref()
    }

    /// True if the method needs a reply to each message.
    #[must_use]
    pub fn needs_answers(&self) -> bool {
        self.method != Method::Prtt
    }

    /// True if the result is printed as JSON.
    #[must_use]
    pub const fn json(&self) -> bool {
        self.report.json
    }

    /// Seed of the order of rounds.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }
}

/// Default duration of the measurement of one of many links.
const ONE_OF_MANY: Picos = Picos(400_000_000_000);

const INTERRUPTED: &str = "interrupted before anything was measured";

/// Measures. A failure before the first launch begins is an error; a later one is part of the
/// result.
fn measure<E: Ends>(
    args: &MeasureArgs,
    ends: impl FnOnce(u32) -> Result<E, CliError>,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Result<(Taken, Files), CliError> {
    let stopwatch = HostClock::monotonic_raw();
    let started = stopwatch.now();
    let (mut options, sizes) = (options(args)?, size_plan(args));
    let history = args.history.as_deref().map(History::read).transpose();
    let history = history.map_err(CliError::usage)?.unwrap_or_default();
    let files = Files::open(args)?;
    let clock = HostClock::calibrated();
    let mut ends = ends(sizes.largest())?;
    let asked = stopwatch.now();
    let link = ends.open(&clock)?;
    let opening = stopwatch.duration(stopwatch.now().saturating_sub(asked));
    let properties = link.properties();
    let longest = u32::try_from(properties.max_message.0).unwrap_or(u32::MAX);
    let adapt_sizes = sizes.may_add();
    let sizes = sizes.within(longest)?;
    let placement = ends.placement();
    let cpu = placement.map(|both| both.initiator);
    let mut host = Fingerprint::take(&clock, ends.fingerprint(&link), cpu);
    ends.waiting().name().clone_into(&mut host.link.waiting);
    let cpus: Vec<_> = placement.iter().flat_map(|both| [both.initiator, both.responder]).collect();
    let mut disturbance = Disturbance::watch(clock, &cpus);
    let mut canaries = Canaries::before(clock, ends.waiting());
    let burst_bytes = if properties.reliable { u64::MAX } else { DATAGRAM_BURST };
    options.plan = PlanOptions { adapt_sizes, burst_bytes, ..options.plan };
    options.alignment = ends.alignment();
    let mut memory = Memory::new(sizes.len(), &options.plan);
    let spent = stopwatch.duration(stopwatch.now().saturating_sub(started));
    options.plan.spend(spent);
    let run = Run::new(clock, options, &sizes, &mut memory)?;
    let run = run.with_opening(opening);
    let plan = &options.plan;
    let mut observer = RunObserver::new(interrupt, console, plan.assess.relative_error_ppm);
    let mut environment =
        Environment { ends, disturbance: &mut disturbance, canaries: &mut canaries, clock };
    let (measured, failure) = environment.launches(run, link, &mut observer)?;
    let limits = environment.ends.limits();
    let waiting = environment.ends.waiting();
    let mut warnings = environment.ends.take_warnings();
    warnings.extend(observer.into_warnings());
    canaries.time();
    warnings.extend(warning::about_link(&host.link));
    warnings.extend(warning::about_path(&host.link));
    warnings.extend(disturbance.warnings());
    warnings.extend(about_rounds(&measured, waiting));
    warnings.extend(canaries.warning());
    if options.launches > 1 && failure.is_none() && !interrupt.is_requested() {
        warnings.extend(about_launches(measured.launches, &host));
    }
    let unreadable = history.unreadable.iter().map(ToString::to_string);
    warnings.extend(unreadable.map(|reason| Warning::HistoryUnreadable { reason }));
    let wall = stopwatch.duration(stopwatch.now().saturating_sub(started));
    let canaries = canaries.records();
    let taken =
        Taken { measured, failure, history, host, warnings, canaries, wall, options, limits };
    Ok((taken, files))
}

/// Warning about launches too few to predict another run.
fn about_launches(launches: u32, host: &Fingerprint) -> Option<Warning> {
    match launches {
        _ if host.link.mpi.is_some() => Some(Warning::OneJob),
        1 => Some(Warning::OneLaunch),
        _ => None,
    }
}

/// Warnings about rounds that were lost, discarded or left out.
fn about_rounds(measured: &Measured, waiting: Waiting) -> impl Iterator<Item = Warning> {
    let traffic = &measured.traffic;
    let losses = match measured.reached {
        Some(reached) => Some(Warning::NothingBeyond { reached }),
        None => warning::about_losses(traffic),
    };
    let limited = measured.longest.map(|longest| Warning::SizesLimited { longest });
    let left_out = warning::about_processors(measured.left_out, traffic.rounds, waiting);
    left_out.into_iter().chain(limited).chain(losses)
}

/// State that changes with each launch.
struct Environment<'a, E> {
    ends: E,
    disturbance: &'a mut Disturbance,
    canaries: &'a mut Canaries,
    clock: HostClock,
}

impl<E: Ends> Environment<'_, E> {
    /// Runs all launches, the first over `link`. An error in opening the first session is returned;
    /// a later one ends the run and is part of the result.
    fn launches(
        &mut self,
        mut run: Run<'_, HostClock>,
        link: E::Link,
        observer: &mut RunObserver<'_>,
    ) -> Result<(Measured, Option<CliError>), CliError> {
        let mut first = Some(link);
        let mut failure = None;
        while let Some(launch) = run.next_launch(observer) {
            let link = first.take().map_or_else(
                || {
                    self.canaries.time();
                    self.ends.open(&self.clock)
                },
                Ok,
            );
            let outcome = link.and_then(|link| {
                let responder = self.ends.responder();
                interruptions::watch(responder);
                let outcome = self.ends.launch(&mut run, link, observer);
                if let Some(process) = responder {
                    self.disturbance.add_responder(process);
                }
                outcome.map_err(|error| MeasureError::Session(error).into())
            });
            let ended = self.ends.close();
            let Err(error) = outcome else {
                if let Some(error) = ended {
                    observer.warn(&error);
                }
                continue;
            };
            if run.begun() == 0 {
                self.ends.take_warnings().iter().for_each(|warning| observer.warn(warning));
                return Err(error);
            }
            let is_under_way = run.begun() > launch;
            if is_under_way || !self.ends.may_refuse() && !observer.is_broken_off() {
                failure = Some(error);
            } else if !observer.is_broken_off() {
                observer.refused(launch, &error);
            }
            break;
        }
        Ok((run.finish(), failure))
    }
}

fn size_plan(args: &MeasureArgs) -> SizePlan {
    const LAST: u32 = 64 << 10;
    let whole = |size: u64| u32::try_from(size).unwrap_or(u32::MAX); // at most 1 GiB by the parser
    match &args.sizes {
        None => SizePlan::Span { first: 1, last: LAST, shrink: true },
        Some(Sizes::Span { first, last }) => {
            SizePlan::Span { first: whole(*first), last: whole(*last), shrink: false }
        }
        Some(Sizes::Listed(sizes)) => SizePlan::Listed(sizes.iter().copied().map(whole).collect()),
    }
}

fn options(args: &MeasureArgs) -> Result<RunOptions, CliError> {
    let defaults = PlanOptions::default();
    let max_time = args.max_time.unwrap_or(defaults.max_time);
    let seconds = max_time.0.div_ceil(1_000_000_000_000);
    let max_messages = match (args.max_messages, args.max_time, args.method) {
        (Some(messages), ..) => messages,
        (None, None, Method::Prtt) => defaults.max_messages,
        (None, Some(_), Method::Prtt) => seconds.saturating_mul(MESSAGES_PER_SECOND),
        // The other methods need more messages for the same accuracy.
        (None, _, Method::Signature | Method::Plogp) => u64::MAX,
    };
    let more = u32::try_from(seconds.div_ceil(SECONDS_PER_LAUNCH)).unwrap_or(u32::MAX);
    let plan = PlanOptions {
        assess: args.exact.options()?,
        busy_error_ppm: args.exact.rel_err.unwrap_or(defaults.busy_error_ppm),
        messages: args.messages.unwrap_or(defaults.messages),
        large_messages: args.messages.unwrap_or(LARGE_MESSAGES),
        max_time,
        longest_time: if args.max_time.is_some() { max_time } else { SLOW_LINK },
        max_messages,
        seed: args.seed,
        ..defaults
    };
    let launches = args.launches.unwrap_or(more.clamp(LAUNCHES, MOST_LAUNCHES));
    let (session, alignment) = (SessionOptions::default(), Alignment::default());
    Ok(RunOptions { method: args.method, plan, launches, session, alignment })
}

/// Message budget per second of --max-time: four times that of a default run, which leaves a fast
/// link idle for half of the time.
const MESSAGES_PER_SECOND: u64 = 54_400;
/// Messages in a burst of messages from 2 KiB on.
const LARGE_MESSAGES: u32 = 64;
/// Most bytes of such a burst of datagrams: the usual size of a receive buffer.
const DATAGRAM_BURST: u64 = 96 << 10;
/// Longest default run on a slow link.
const SLOW_LINK: Picos = Picos(5_000_000_000_000);
/// Number of launches of a default run.
const LAUNCHES: u32 = 5;
/// Launches of a longer run: one per this many seconds, up to a maximum.
const SECONDS_PER_LAUNCH: u64 = 4;
const MOST_LAUNCHES: u32 = 12;

fn max_time(text: &str) -> Result<Picos, NumberError> {
    parse::session_time(text).map(Picos::from_duration)
}

/// Remedy for exceeding a limit of the responder.
fn within(what: Limited, asked: u64, allowed: u64) -> String {
    match what {
        Limited::Message => {
            let [asked, allowed] = [asked, allowed].map(number::bytes);
            format!(
                "-s 1:{allowed}, or, unless datagrams end there, loggap serve --max-message {asked}"
            )
        }
        Limited::Messages => format!("-n {allowed}"),
        // Pauses grow with the message size, and each launch is a session.
        Limited::Pause | Limited::Silence => "smaller sizes with -s".to_owned(),
        Limited::Rounds | Limited::Session => "more --launches, or several runs".to_owned(),
    }
}

impl From<MeasureError> for CliError {
    fn from(error: MeasureError) -> Self {
        match error {
            MeasureError::Session(SessionError::Link(error)) => error.into(),
            MeasureError::Session(SessionError::OutOfBounds { what, asked, allowed }) => {
                Self::usage(format_args!("{error}; {}", within(what, asked, allowed)))
            }
            MeasureError::Session(SessionError::Refused(Refusal::Bounds {
                what,
                asked,
                allowed,
            })) => Self::failed(format_args!("{error}; {}", within(what, asked, allowed))),
            MeasureError::Session(SessionError::Invalid(_))
            | MeasureError::Plan(_)
            | MeasureError::NoSizes
            | MeasureError::TooLong { .. } => Self::usage(error),
            MeasureError::Session(SessionError::Silent { phase: Phase::Round, limit }) => {
                Self::failed(format_args!(
                    "the peer was silent for {limit} in a round, though it had answered before: it was stopped, the network was cut, or long messages do not arrive (path MTU?), and -s 1:1K does"
                ))
            }
            MeasureError::Session(_) | MeasureError::Analysis(_) | MeasureError::Memory { .. } => {
                Self::failed(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_of_the_responder_comes_with_a_remedy() {
        let (what, asked, allowed) = (Limited::Message, 8 << 20, 4 << 20);
        let error = MeasureError::Session(SessionError::OutOfBounds { what, asked, allowed });
        let text = CliError::from(error).to_string();
        assert!(
            text.contains("; -s 1:4M, or") && text.ends_with("loggap serve --max-message 8M"),
            "{text}"
        );
        let (what, asked, allowed) =
            (Limited::Session, 3_601_000_000_000_000, 3_600_000_000_000_000);
        let refusal = Refusal::Bounds { what, asked, allowed };
        let text =
            CliError::from(MeasureError::Session(SessionError::Refused(refusal))).to_string();
        assert!(text.contains("3601.000 s") && text.ends_with("several runs"), "{text}");
    }
}
