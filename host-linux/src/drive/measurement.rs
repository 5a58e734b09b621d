//! A measurement from its options to the assessed run: opens the links, runs the launches, and
//! watches the machine meanwhile.

use std::path::PathBuf;

use loggap_core::measure::{
    AssessOptions, Clock, LinkProperties, PlanOptions, PlogpOptions, SignatureOptions,
};
use loggap_core::stats::Confidence;
use loggap_core::units::Picos;

use super::document::Assessed;
use super::{
    Ends, History, MeasureError, Measured, Memory, Method, Observer, Run, RunOptions, SizePlan,
};
use crate::link::Waiting;
use crate::machine::canaries::Canaries;
use crate::machine::clock::HostClock;
use crate::machine::distance::Distances;
use crate::machine::disturbance::Disturbance;
use crate::machine::environment::Fingerprint;
use crate::machine::interruptions;
use crate::machine::warning::{self, Warning};
use crate::profile::ProfileDocument;
use crate::terminal::{CliError, Console, Interrupt};

/// Options of a measurement. `None` stands for a value that suits the others and the link.
#[derive(Clone, Debug)]
pub struct Options {
    /// Measuring method.
    pub method: Method,
    /// Options of the signature; trains, accuracy and unanswered bytes follow from the others.
    pub signature: SignatureOptions,
    /// Options of pLogP; sizes follow from the others.
    pub plogp: PlogpOptions,
    /// Confidence of pLogP's intervals.
    pub plogp_confidence: Confidence,
    /// Message sizes.
    pub sizes: SizePlan,
    /// Messages in a burst.
    pub messages: Option<u32>,
    /// Accuracy.
    pub assess: AssessOptions,
    /// Target relative error on a busy machine, parts per million.
    pub busy_error_ppm: u32,
    /// Time limit, from [`Measurement::prepare`] on.
    pub max_time: Option<Picos>,
    /// Message limit, both directions together.
    pub max_messages: Option<u64>,
    /// Number of launches.
    pub launches: Option<u32>,
    /// Folder of earlier profiles of this link.
    pub history: Option<PathBuf>,
    /// Seed of the order of rounds.
    pub seed: u64,
}

/// Message budget per second of `max_time`: four times that of a default run, which leaves a fast
/// link idle for half of the time.
const MESSAGES_PER_SECOND: u64 = 54_400;
/// Messages in a burst of messages from 2 KiB on.
const LARGE_MESSAGES: u32 = 64;
/// Most bytes of such a burst of datagrams: the usual size of a receive buffer.
const DATAGRAM_BURST: u32 = 96 << 10;
/// Most unanswered bytes of the signature, so that the buffers of both ends hold them.
const UNANSWERED: u32 = 256 << 10;
/// Message limit of pLogP.
const PLOGP_MESSAGES: u64 = 40_000;
/// Largest size of pLogP's default, and largest that it grows to, bytes.
const PLOGP_LAST: u32 = 256 << 10;
const PLOGP_LONGEST: u32 = 1 << 20;
/// Growth of pLogP's largest size, a factor.
const PLOGP_GROWTH: u32 = 8;
/// Longest default run on a slow link.
const SLOW_LINK: Picos = Picos(5_000_000_000_000);
/// Number of launches of a default run.
const LAUNCHES: u32 = 5;
/// Launches of a longer run: one per this many seconds, up to a maximum.
const SECONDS_PER_LAUNCH: u64 = 4;
const MOST_LAUNCHES: u32 = 12;
/// Default duration of the measurement of one of many links.
pub(crate) const ONE_OF_MANY: Picos = Picos(400_000_000_000);

impl Default for Options {
    fn default() -> Self {
        Self {
            method: Method::Prtt,
            signature: SignatureOptions::default(),
            plogp: PlogpOptions::default(),
            plogp_confidence: Confidence::P90,
            sizes: SizePlan::default(),
            messages: None,
            assess: AssessOptions::default(),
            busy_error_ppm: PlanOptions::default().busy_error_ppm,
            max_time: None,
            max_messages: None,
            launches: None,
            history: None,
            seed: 1,
        }
    }
}

impl Options {
    /// Profile of one of many links: one launch and a short time unless given, no history.
    ///
    /// # Errors
    ///
    /// As [`Measurement::run`]; a failed run returns no profile.
    pub fn profile<E: Ends>(
        self,
        ends: E,
        interrupt: &Interrupt,
        console: &mut Console,
    ) -> Result<ProfileDocument, CliError> {
        let options = Self {
            max_time: self.max_time.or(Some(ONE_OF_MANY)),
            launches: self.launches.or(Some(1)),
            history: None,
            ..self
        };
        Measurement::prepare(options)?.run(ends, interrupt, console)?.profile()
    }

    /// Options of the run over a link with these properties.
    fn over(&self, properties: &LinkProperties) -> RunOptions {
        let defaults = PlanOptions::default();
        let max_time = self.max_time.unwrap_or(defaults.max_time);
        let seconds = max_time.0.div_ceil(1_000_000_000_000);
        let max_messages = match (self.max_messages, self.max_time, self.method) {
            // The other half is for the probes between the rounds.
            (Some(messages), _, Method::All) => messages / 2,
            (Some(messages), ..) => messages,
            (None, None, Method::Prtt | Method::All) => defaults.max_messages,
            (None, Some(_), Method::Prtt | Method::All) => {
                seconds.saturating_mul(MESSAGES_PER_SECOND)
            }
            // It needs more messages for the same accuracy.
            (None, _, Method::Signature) => u64::MAX,
            (None, _, Method::Plogp) => PLOGP_MESSAGES,
        };
        let more = u32::try_from(seconds.div_ceil(SECONDS_PER_LAUNCH)).unwrap_or(u32::MAX);
        let plan = PlanOptions {
            assess: AssessOptions { one_sided: properties.one_sided, ..self.assess },
            busy_error_ppm: self.busy_error_ppm,
            messages: self.messages.unwrap_or(defaults.messages),
            large_messages: self.messages.unwrap_or(LARGE_MESSAGES),
            burst_bytes: if properties.reliable { u64::MAX } else { DATAGRAM_BURST.into() },
            max_time,
            longest_time: if self.max_time.is_some() { max_time } else { SLOW_LINK },
            max_messages,
            adapt_sizes: self.sizes.may_add(),
            seed: self.seed,
            ..defaults
        };
        let usual = match self.method {
            Method::Plogp => 1,
            Method::Prtt | Method::Signature | Method::All => more.clamp(LAUNCHES, MOST_LAUNCHES),
        };
        let held = if properties.reliable { UNANSWERED } else { DATAGRAM_BURST };
        let signature = SignatureOptions {
            train: plan.messages,
            unanswered_bytes: held,
            relative_error: f64::from(plan.assess.relative_error_ppm) / 1e6,
            ..self.signature
        };
        let longest = u32::try_from(properties.max_message.0).unwrap_or(u32::MAX);
        let plogp = PlogpOptions {
            adapt: self.sizes.may_add(),
            longest: self.longest_message().min(longest),
            ..self.plogp
        };
        RunOptions {
            method: self.method,
            signature,
            plogp,
            plogp_confidence: self.plogp_confidence,
            plan,
            max_messages_beside: self.max_messages.map_or(u64::MAX, |messages| messages / 2),
            launches: self.launches.unwrap_or(usual),
            ..RunOptions::default()
        }
    }

    /// Longest message that may be sent, bytes.
    #[must_use]
    pub fn longest_message(&self) -> u32 {
        let largest = self.sizes.largest();
        match (self.method, &self.sizes) {
            (Method::Plogp, SizePlan::Span { shrink: true, .. }) => PLOGP_LONGEST,
            (Method::Plogp, SizePlan::Span { .. }) => {
                largest.max(largest.saturating_mul(PLOGP_GROWTH).min(PLOGP_LONGEST))
            }
            _ => largest,
        }
    }

    /// Sizes to begin with on a link that takes messages of up to `longest` bytes. Of a span,
    /// pLogP takes the powers of two and the signature those of 16, as each of its sizes has many
    /// points; both add the ends.
    fn first_sizes(&self, longest: u32) -> Result<Vec<u32>, MeasureError> {
        let octaves = match self.method {
            Method::Prtt | Method::All => return self.sizes.within(longest),
            Method::Signature => 4,
            Method::Plogp => 1,
        };
        let SizePlan::Span { first, last, shrink } = self.sizes else {
            return self.sizes.within(longest);
        };
        let usual = if self.method == Method::Plogp { PLOGP_LAST } else { last };
        let last = if shrink { usual.min(longest) } else { last };
        let powers = (0..32).step_by(octaves).map(|exponent| 1 << exponent);
        let between = powers.filter(|size| (first + 1..last).contains(size));
        let mut sizes: Vec<u32> = [first].into_iter().chain(between).chain([last]).collect();
        sizes.dedup();
        SizePlan::Listed(sizes).within(longest)
    }
}

/// A measurement whose time has begun.
#[derive(Debug)]
pub struct Measurement {
    options: Options,
    history: History,
    stopwatch: HostClock,
    started: u64,
}

impl Measurement {
    /// Starts the time of the measurement and reads its history.
    ///
    /// # Errors
    ///
    /// [`CliError`] if the history's folder cannot be used.
    pub fn prepare(options: Options) -> Result<Self, CliError> {
        let stopwatch = HostClock::monotonic_raw();
        let started = stopwatch.now();
        let history = options.history.as_deref().map(History::read).transpose();
        let history = history.map_err(CliError::usage)?.unwrap_or_default();
        Ok(Self { options, history, stopwatch, started })
    }

    fn elapsed(&self) -> Picos {
        self.stopwatch.duration(self.stopwatch.now().saturating_sub(self.started))
    }

    /// Measures between `ends`. A failure after the first launch has begun is part of the result.
    ///
    /// # Errors
    ///
    /// [`CliError`] for invalid options, or a link that cannot be opened.
    pub fn run<E: Ends>(
        self,
        mut ends: E,
        interrupt: &Interrupt,
        console: &mut Console,
    ) -> Result<Assessed, CliError> {
        let clock = HostClock::calibrated();
        let asked = self.elapsed();
        let link = ends.open(&clock)?;
        let opening = self.elapsed().since(asked);
        let properties = ends.properties(&link);
        let longest = u32::try_from(properties.max_message.0).unwrap_or(u32::MAX);
        let sizes = self.options.first_sizes(longest)?;
        let placement = ends.placement();
        let cpu = placement.map(|both| both.initiator);
        let mut host = Fingerprint::take(&clock, ends.fingerprint(&link), cpu);
        ends.waiting().name().clone_into(&mut host.link.waiting);
        let cpus = placement.iter().flat_map(|both| [both.initiator, both.responder]);
        let disturbance = Disturbance::watch(clock, &cpus.collect::<Vec<_>>());
        let canaries = Canaries::before(clock, ends.waiting());
        let mut options = self.options.over(&properties);
        (options.alignment, options.opening) = (ends.alignment(), opening);
        let mut memory = Memory::new(sizes.len(), &options.plan);
        options.plan.spend(self.elapsed());
        let run = Run::new(clock, options, &sizes, &mut memory)?;
        let wanted = options.plan.assess.relative_error_ppm;
        let mut observer = Observer::new(interrupt, console, wanted);
        let refused = None;
        let distances = Distances::new(clock);
        let mut launches = Launches { ends, disturbance, canaries, distances, clock, refused };
        let (mut measured, failure) = launches.run(run, link, &mut observer)?;
        let mut warnings = launches.warnings(&measured, &host);
        let begun = measured.launches;
        let alike = launches
            .distances
            .alike()
            .filter(|alike| alike.other_s.is_none() || measured.keep_launches(&alike.launches));
        if let Some([least_s, largest_s]) = launches.distances.range() {
            let left_out = begun - measured.launches;
            warnings.push(Warning::ProcessorsMoved { left_out, begun, least_s, largest_s });
        }
        if options.launches > 1 && failure.is_none() && !interrupt.is_requested() {
            warnings.extend(about_launches(measured.launches, &host));
        }
        let unreadable = self.history.unreadable.iter().map(ToString::to_string);
        warnings.extend(unreadable.map(|reason| Warning::HistoryUnreadable { reason }));
        let Launches { ends, canaries, .. } = &launches;
        Ok(Assessed {
            failure,
            host,
            warnings,
            canaries: canaries.records(),
            processor_distance_s: alike.map(|alike| alike.distance_s),
            wall: self.elapsed(),
            options,
            limits: ends.limits(),
            measured,
            history: self.history,
        })
    }
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

/// Launches of a run, and the state of the machine that changes with them.
struct Launches<E> {
    ends: E,
    disturbance: Disturbance,
    canaries: Canaries,
    distances: Distances,
    clock: HostClock,
    /// The peer's refusal of a further launch.
    refused: Option<Warning>,
}

impl<E: Ends> Launches<E> {
    /// Runs all launches, the first over `link`. An error in opening the first session is returned;
    /// a later one ends the run and is part of the result.
    fn run(
        &mut self,
        mut run: Run<'_, HostClock>,
        link: E::Link,
        observer: &mut Observer<'_>,
    ) -> Result<(Measured, Option<CliError>), CliError> {
        let mut first = Some(link);
        let mut failure = None;
        while let Some(launch) = run.next_launch(observer) {
            let outcome = self.launch(&mut run, first.take(), observer);
            let ended = self.ends.close();
            self.distances.after();
            let Err(error) = outcome else {
                if let Some(error) = ended {
                    observer.console.warn(&error);
                }
                continue;
            };
            if run.begun() == 0 {
                self.ends.take_warnings().iter().for_each(|about| observer.console.warn(about));
                return Err(error);
            }
            let is_under_way = run.begun() > launch;
            if is_under_way || !self.ends.may_refuse() && !observer.is_broken_off() {
                failure = Some(error);
            } else if !observer.is_broken_off() {
                let reason = error.to_string();
                self.refused = Some(Warning::LaunchRefused { launches: launch, reason });
            }
            break;
        }
        Ok((run.finish(), failure))
    }

    /// Runs a launch over `link`, or over a new one.
    fn launch(
        &mut self,
        run: &mut Run<'_, HostClock>,
        link: Option<E::Link>,
        observer: &mut Observer<'_>,
    ) -> Result<(), CliError> {
        let link = match link {
            Some(link) => link,
            None => {
                self.canaries.time();
                self.ends.open(&self.clock)?
            }
        };
        self.distances.before(self.ends.placement());
        let responder = self.ends.responder();
        interruptions::watch(responder);
        let outcome = self.ends.launch(run, link, observer);
        if let Some(process) = responder {
            self.disturbance.add_responder(process);
        }
        outcome.map_err(|error| MeasureError::Session(error).into())
    }

    /// Warnings after the last launch.
    fn warnings(&mut self, measured: &Measured, host: &Fingerprint) -> Vec<Warning> {
        let mut warnings = self.ends.take_warnings();
        warnings.extend(self.refused.take());
        self.canaries.time();
        warnings.extend(warning::about_link(&host.link));
        warnings.extend(warning::about_path(&host.link));
        warnings.extend(self.disturbance.warnings());
        warnings.extend(about_rounds(measured, self.ends.waiting()));
        warnings.extend(self.canaries.warning());
        warnings
    }
}
