//! `loggap-mpi sync`: synchronisation of the ranks' clocks.

mod record;
mod report;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::builder::RangedU64ValueParser;
use loggap::flags::parse;
use loggap::output::{PendingFile, Versioned};
use loggap::terminal::{CliError, Console, Exit};
use loggap_core::sync::{Offset, ResidualSummary, Scheme};
use loggap_core::units::{Picos, SignedPicos};

use report::{CheckRecord, Document, RankRecord, text};

use super::{DriftArgs, Session, create};
use crate::clocks::check::{self, Found, Sample};
use crate::clocks::{Domains, GlobalClock, Pass, published};
use crate::job::{CONTROLLER, Job};
use crate::library;

/// Synchronise the clocks of all ranks with that of rank 0, with a bound of the
/// error of each, and check with fresh pings whether they agree.
///
/// Ranks of one machine share its clock; machines are synchronised over a tree
/// from rank 0. Bounds hold as long as no two clocks drift apart by more than
/// --max-drift. --record writes offsets over time, and tells drift, linearity
/// and how many pings are enough; --from tells that of a file.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mpirun -n 64 loggap-mpi sync --check 10     how far are clocks off after 10 s
  mpirun -n 2 loggap-mpi sync --domains rank  as if both ranks had clocks of their own
  mpirun -n 64 loggap-mpi sync --record clocks.csv --for 14h
  loggap-mpi sync --from clocks.csv --plot drift.svg")]
pub(super) struct Args {
    /// Scheme: tree (bounds, top down), or, as published, linear (rank 0 with
    /// one rank after the other) or binomial (bottom up): offsets only, and a
    /// clock of its own for every rank.
    #[arg(long, value_enum, default_value = "tree", hide_possible_values = true)]
    scheme: SchemeName,
    /// Pings without a smaller round trip that end a series of a published
    /// scheme.
    #[arg(long, value_name = "N", default_value = "100",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=100_000))]
    patience: u32,
    /// Passes over the tree; several over half a second or more also give the
    /// drift, if it is significant.
    #[arg(long, value_name = "N", default_value = "5",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=1_000))]
    passes: u32,
    /// Time from the first pass to the last.
    #[arg(long, value_name = "SECONDS", default_value = "1s", value_parser = parse::duration)]
    base: Duration,
    /// Compare corrected clocks at once and after this time: ranks with rank
    /// 0, and triangles of ranks that did not meet.
    #[arg(long, value_name = "SECONDS", value_parser = parse::duration)]
    check: Option<Duration>,
    /// Ranks that share a clock: machine (those on one machine, as its kernel
    /// says), or rank (each rank has its own, to try out what synchronising
    /// achieves).
    #[arg(long, value_enum, default_value = "machine", hide_possible_values = true)]
    domains: Domains,
    /// Shift each rank's clock ahead of the previous rank's by this much, with
    /// --domains rank: the offsets that synchronising then has to find.
    #[arg(long, value_name = "SECONDS", value_parser = parse::duration)]
    shift: Option<Duration>,
    /// Record the offsets of all ranks from rank 0 into this file instead, a
    /// line a rank and interval, until --for or Ctrl-C.
    #[arg(long, value_name = "FILE.csv", group = "recorded",
          conflicts_with_all = ["scheme", "check"])]
    record: Option<PathBuf>,
    /// Time to record.
    #[arg(long = "for", value_name = "SECONDS", value_parser = parse::duration,
          requires = "record")]
    record_for: Option<Duration>,
    /// Time between two offsets of a rank, at least 1ms.
    #[arg(long, value_name = "SECONDS", default_value = "1s", value_parser = parse::duration,
          requires = "record")]
    interval: Duration,
    /// Evaluate a recorded file; needs no mpirun.
    #[arg(long, value_name = "FILE.csv", group = "recorded",
          conflicts_with_all = ["scheme", "check", "record"])]
    from: Option<PathBuf>,
    /// Draw how far recorded offsets lie from their lines, as SVG.
    #[arg(long, value_name = "FILE.svg", requires = "recorded")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    drift: DriftArgs,
    /// Maximum number of ranks that are compared with rank 0.
    #[arg(long, value_name = "N", default_value = "64",
          value_parser = RangedU64ValueParser::<u32>::new().range(2..=1_000_000))]
    sample: u32,
    /// Seed of the choice of ranks that are compared; decimal or 0x hexadecimal.
    #[arg(long, default_value = "1", value_parser = parse::seed)]
    seed: u64,
    /// Write the result as JSON.
    #[arg(short, long, value_name = "FILE.json")]
    output: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(short = 'J', long)]
    json: bool,
}

impl Args {
    /// True if a file is evaluated, and no job is needed.
    pub(super) const fn reads(&self) -> bool {
        self.from.is_some()
    }

    /// This rank's clock, not synchronised.
    fn clock(&self, domains: Domains, job: &Job) -> GlobalClock {
        let shift = self.shift.map_or(Picos::ZERO, Picos::from_duration);
        GlobalClock::shifted(job, domains, self.drift.assumptions(), shift)
    }
}

/// Evaluates the file of --from.
pub(super) fn read(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    record::read(args, console)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum SchemeName {
    Tree,
    Linear,
    Binomial,
}

impl SchemeName {
    /// Published scheme; `None` for the tree.
    const fn published(self) -> Option<Scheme> {
        match self {
            Self::Tree => None,
            Self::Linear => Some(Scheme::Linear),
            Self::Binomial => Some(Scheme::Binomial),
        }
    }

    /// True if it bounds the errors of clocks.
    fn bounds(self) -> bool {
        self == Self::Tree
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Linear => "linear (as published)",
            Self::Binomial => "binomial (as published)",
        }
    }
}

pub(super) fn run(
    args: &Args,
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    let job = session.job;
    // Rank 0 decides when to stop; the others continue until then.
    session.interrupt.listen();
    if let Some(path) = &args.record {
        return record::run(args, path, session, console);
    }
    let file = session.agreed(create(args.output.as_ref().filter(|_| job.leads())))?;
    let (clock, pass, mut goes_on) = synchronised(args, session);
    let ranks = records(args, &clock, &pass, job);
    let mut checks = Vec::new();
    if let Some(after) = args.check.filter(|_| goes_on) {
        let sample = Sample::of(&clock, args.sample as usize, args.seed);
        #[allow(clippy::disallowed_methods, reason = "a pause for people, not a measurement")]
        let started = Instant::now();
        for wait in [Duration::ZERO, after] {
            goes_on = goes_on_after(wait.saturating_sub(started.elapsed()), session);
            if !goes_on {
                break;
            }
            let passed = started.elapsed();
            let found = check::check(&clock, job, &sample, job.waiting());
            checks.push(record(args, passed, &found));
        }
    }
    if !job.leads() {
        return Ok(Exit::Done);
    }
    let bounds = ranks.iter().map(|rank| rank.bound_s);
    let last = checks.last();
    let document = Document {
        loggap_version: env!("CARGO_PKG_VERSION"),
        library: library::version(),
        clock: clock.source(),
        pass_s: pass.took.seconds(),
        residual_p99_s: last.map(|check| check.residual_p99_s),
        residual_max_s: last.map(|check| check.residual_max_s),
        truth: last.and_then(|check| check.truth),
        covered_share: last.and_then(|check| check.covered_share),
        consistent_share: last.and_then(|check| check.consistent_share),
        bound_s: bounds.reduce(|one, other| Some(one?.max(other?))).flatten(),
        scheme: args.scheme.name(),
        incomplete: (!goes_on).then_some("interrupted"),
        warnings: warnings(args, &ranks, session),
        ranks,
        checks,
    };
    report(args, &document, file, console)?;
    Ok(if goes_on { Exit::Done } else { Exit::Interrupted })
}

/// Prints warnings, writes the file, and prints the document.
fn report(
    args: &Args,
    document: &Document,
    file: Option<PendingFile>,
    console: &mut Console,
) -> Result<(), CliError> {
    document.warnings.iter().for_each(|warning| console.warn(warning));
    if let Some(file) = file {
        file.commit_json(&Versioned::new(document))?;
    }
    Ok(console.report(args.json, document, |out| out.write_all(text(document).as_bytes()))?)
}

fn warnings(args: &Args, ranks: &[RankRecord], session: &Session<'_>) -> Vec<String> {
    let mut warnings = session.job.sharing().warnings();
    let contradicted = ranks.iter().filter(|rank| rank.contradictions > 0);
    warnings.extend(contradicted.map(|rank| {
        format!(
            "rank {}: offsets contradict each other: its clock and rank 0's drift apart faster \
             than --max-drift {}, or one was set",
            rank.rank, args.drift.max_drift
        )
    }));
    let is_unknown = |rank: &&RankRecord| args.scheme.bounds() && rank.bound_s.is_none();
    warnings.extend(ranks.iter().filter(is_unknown).map(|rank| {
        format!("rank {} could not be synchronised: nothing is known of its clock", rank.rank)
    }));
    warnings
}

/// Sleeps for `pause`; true if rank 0 has not received Ctrl-C. All ranks call
/// this together.
fn goes_on_after(pause: Duration, session: &Session<'_>) -> bool {
    const LOOKS: Duration = Duration::from_millis(20);
    #[allow(clippy::disallowed_methods, reason = "a pause, not a measurement")]
    let started = Instant::now();
    let left = || pause.saturating_sub(started.elapsed());
    while !session.interrupt.is_requested() && left() > Duration::ZERO {
        thread::sleep(left().min(LOOKS));
    }
    let mut goes_on = [u64::from(!session.interrupt.is_requested())];
    session.job.waiting().share_after(pause, session.job.control(), CONTROLLER, &mut goes_on);
    goes_on == [1]
}

/// Synchronises by the requested scheme: this rank's clock, the last pass, and
/// true if all passes were made. At least one is.
fn synchronised(args: &Args, session: &Session<'_>) -> (GlobalClock, Pass, bool) {
    let job = session.job;
    let waiting = job.waiting();
    let domains = if args.scheme == SchemeName::Tree { args.domains } else { Domains::Rank };
    let mut clock = args.clock(domains, job);
    let mut pass = Pass::default();
    if let Some(scheme) = args.scheme.published() {
        let began = clock.read();
        let model = published::synchronise(&clock, job, scheme, args.patience, waiting);
        clock.follow(model);
        pass.took = clock.between(began, clock.read());
        return (clock, pass, true);
    }
    let pause = args.base / args.passes.saturating_sub(1).max(1);
    for number in 0..args.passes {
        if number > 0 && !goes_on_after(pause, session) {
            return (clock, pass, false);
        }
        pass = clock.synchronise(job, waiting);
    }
    (clock, pass, true)
}

/// State of every rank's clock. All ranks call this together.
fn records(args: &Args, clock: &GlobalClock, pass: &Pass, job: &Job) -> Vec<RankRecord> {
    let edge = pass.edge.as_ref();
    let offset: Option<Offset> = edge.and_then(|edge| edge.offset);
    let rank = usize::try_from(job.rank()).unwrap_or(0);
    let seconds = |time: SignedPicos| time.0 as f64 * 1e-12;
    let own = RankRecord {
        rank,
        host: job.place(job.rank()).map_or_else(String::new, |place| place.host.clone()),
        domain: clock.domains().get(rank).copied().unwrap_or(0),
        parent: edge.map(|edge| edge.parent),
        shares_clock: edge.is_some_and(|edge| edge.shared),
        offset_s: seconds(clock.model().offset_at(clock.local(clock.read()))),
        drift_ppm: clock.model().drift as f64 * 1e-6,
        // A clock that is not synchronised has no bound.
        bound_s: Some(clock.error())
            .filter(|bound| args.scheme.bounds() && *bound != Picos::MAX)
            .map(Picos::seconds),
        pings: offset.map_or(0, |offset| offset.pings),
        round_trip_s: offset
            .map(|offset| offset.round_trip)
            .filter(|time| *time > Picos::ZERO)
            .map(Picos::seconds),
        contradictions: edge.map_or(0, |edge| edge.contradictions),
        median_offset_s: edge.and_then(|edge| edge.median).map(seconds),
        median_outside: edge.is_some_and(|edge| edge.median_outside),
    };
    job.gathered(&own).into_iter().flatten().collect()
}

fn record(args: &Args, after: Duration, found: &Found) -> CheckRecord {
    let bounds = args.scheme.bounds();
    let summary: ResidualSummary = found.summary();
    CheckRecord {
        after_s: after.as_secs_f64(),
        residuals: summary.count,
        residual_p50_s: summary.p50.seconds(),
        residual_p99_s: summary.p99.seconds(),
        residual_max_s: summary.max.seconds(),
        bound_s: bounds.then(|| summary.largest_claim.seconds()),
        truth: found.is_truth.then_some("zero"),
        covered_share: (bounds && found.is_truth).then(|| summary.covered_share()),
        consistent_share: (bounds && !found.is_truth).then(|| summary.covered_share()),
        triangles: found.triangles.len(),
        triangles_closed: found.triangles.iter().filter(|(one, _)| one.is_closed()).count(),
    }
}
