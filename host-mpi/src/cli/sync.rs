//! `loggap-mpi sync`: clocks that agree.

use std::thread;
use std::time::{Duration, Instant};

use clap::builder::RangedU64ValueParser;
use loggap::cli::{CliError, Console, Exit, parse};
use loggap::output::number;
use loggap::profile::SCHEMA_VERSION;
use loggap_core::sync::{Offset, ResidualSummary};
use loggap_core::units::Picos;
use serde::Serialize;

use super::Session;
use super::pairs::crowded;
use crate::clocks::check::{self, Found, Sample};
use crate::clocks::{Domains, GlobalClock, Pass, REFERENCE};
use crate::library;
use crate::waiting::Waiting;

/// Put the clocks of all ranks onto that of rank 0, with a bound of the error
/// of each, and check with fresh pings whether they agree.
///
/// Ranks of one machine share its clock; machines are synchronised over a tree
/// from rank 0. Bounds hold as long as no two clocks drift apart by more than
/// 100 ppm.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mpirun -n 64 loggap-mpi sync --check 10     how far are clocks off after 10 s
  mpirun -n 2 loggap-mpi sync --domains rank  as if both ranks had clocks of their own")]
pub(super) struct Args {
    /// Passes over the tree; several over half a second or more also give the
    /// drift, where that is significant.
    #[arg(long, value_name = "N", default_value = "5",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=1_000))]
    passes: u32,
    /// From the first pass to the last.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse::duration)]
    base: Duration,
    /// Compare corrected clocks at once and after this time: ranks with rank
    /// 0, and triangles of ranks that did not meet.
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    check: Option<Duration>,
    /// What is taken for one clock: machine (as its kernel says), or rank (each
    /// has its own, to try out what synchronising achieves).
    #[arg(long, value_enum, default_value = "machine", hide_possible_values = true)]
    domains: Domains,
    /// Most ranks that are compared with rank 0.
    #[arg(long, value_name = "N", default_value = "64",
          value_parser = RangedU64ValueParser::<u32>::new().range(2..=1_000_000))]
    sample: u32,
    /// Decides which ranks are compared.
    #[arg(long, default_value = "1", value_parser = parse::seed)]
    seed: u64,
    /// Print one JSON document.
    #[arg(short = 'J', long)]
    json: bool,
}

/// The clock of one rank.
#[derive(Clone, Debug, Serialize)]
struct RankRecord {
    rank: usize,
    host: String,
    domain: u32,
    parent: Option<i32>,
    /// Whether it takes its parent's clock for its own.
    shares_clock: bool,
    offset_s: f64,
    drift_ppm: f64,
    bound_s: f64,
    pings: u32,
    median_offset_s: Option<f64>,
    median_outside: bool,
}

/// One check.
#[derive(Clone, Debug, Serialize)]
struct CheckRecord {
    after_s: f64,
    residuals: u32,
    residual_p50_s: f64,
    residual_p99_s: f64,
    residual_max_s: f64,
    bound_s: f64,
    covered_share: f64,
    triangles: usize,
    triangles_closed: usize,
}

#[derive(Clone, Debug, Serialize)]
struct Document {
    schema_version: u32,
    loggap_version: &'static str,
    library: String,
    clock: &'static str,
    /// What the last pass took.
    pass_s: f64,
    ranks: Vec<RankRecord>,
    checks: Vec<CheckRecord>,
    /// Of the last check.
    residual_p99_s: Option<f64>,
    residual_max_s: Option<f64>,
    /// The largest of all ranks.
    bound_s: f64,
    covered_share: Option<f64>,
    warnings: Vec<String>,
}

pub(super) fn run(
    args: &Args,
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    let job = session.job;
    let crowd = !job.crowded_hosts().is_empty();
    let waiting =
        if crowd { Waiting::yielding(session.watch) } else { Waiting::polling(session.watch) };
    let mut clock = GlobalClock::new(job, args.domains);
    let mut pass = Pass::default();
    let pause = args.base / args.passes.saturating_sub(1).max(1);
    for number in 0..args.passes {
        if number > 0 {
            thread::sleep(pause);
        }
        pass = clock.synchronise(job, waiting);
    }
    let ranks = records(&clock, &pass, session, waiting);
    let mut checks = Vec::new();
    if let Some(after) = args.check {
        let sample = Sample::of(&clock, args.sample as usize, args.seed);
        #[allow(clippy::disallowed_methods, reason = "a pause for people, not a measurement")]
        let started = Instant::now();
        for wait in [Duration::ZERO, after] {
            thread::sleep(wait.saturating_sub(started.elapsed()));
            waiting.meet(job.control());
            let passed = started.elapsed();
            checks.push(record(passed, &check::check(&clock, job, &sample, waiting)));
        }
    }
    if job.rank() != REFERENCE {
        return Ok(Exit::Done);
    }
    let last = checks.last();
    let document = Document {
        schema_version: SCHEMA_VERSION,
        loggap_version: env!("CARGO_PKG_VERSION"),
        library: library::version(),
        clock: clock.source(),
        pass_s: pass.took.seconds(),
        residual_p99_s: last.map(|check| check.residual_p99_s),
        residual_max_s: last.map(|check| check.residual_max_s),
        covered_share: last.map(|check| check.covered_share),
        bound_s: ranks.iter().map(|rank| rank.bound_s).fold(0.0, f64::max),
        ranks,
        checks,
        warnings: crowded(session),
    };
    document.warnings.iter().for_each(|warning| console.warn(warning));
    if args.json {
        console.json(&document)?;
    } else {
        console.data().write_all(text(&document).as_bytes())?;
    }
    Ok(Exit::Done)
}

/// What every rank knows of its clock, at the root.
fn records(
    clock: &GlobalClock,
    pass: &Pass,
    session: &Session<'_>,
    waiting: Waiting<'_>,
) -> Vec<RankRecord> {
    const FIELDS: usize = 9;
    let job = session.job;
    let edge = pass.edge.as_ref();
    let offset: Option<Offset> = edge.and_then(|edge| edge.offset);
    let median = edge.and_then(|edge| edge.median);
    let own: [u64; FIELDS] = [
        edge.map_or(u64::MAX, |edge| edge.parent.unsigned_abs().into()),
        edge.is_some_and(|edge| edge.shared).into(),
        clock.model().offset_at(clock.local(clock.read())).0.cast_unsigned(),
        clock.model().drift.cast_unsigned(),
        clock.error().0,
        offset.map_or(0, |offset| offset.pings.into()),
        median.is_some().into(),
        median.map_or(0, |median| median.0.cast_unsigned()),
        edge.is_some_and(|edge| edge.median_outside).into(),
    ];
    let is_root = job.rank() == REFERENCE;
    let mut all = vec![0; if is_root { FIELDS * job.places().len() } else { 0 }];
    waiting.collect((job.control(), REFERENCE), &own, is_root.then_some(&mut all[..]));
    let seconds = |picos: u64| picos.cast_signed() as f64 * 1e-12;
    let record = |(rank, fields): (usize, &[u64])| {
        let &[parent, shared, offset, drift, bound, pings, has_median, median, outside] = fields
        else {
            return None;
        };
        Some(RankRecord {
            rank,
            host: job.places().get(rank)?.host.clone(),
            domain: *clock.domains().get(rank)?,
            parent: i32::try_from(parent).ok(),
            shares_clock: shared == 1,
            offset_s: seconds(offset),
            drift_ppm: drift.cast_signed() as f64 * 1e-6,
            bound_s: Picos(bound).seconds(),
            pings: u32::try_from(pings).unwrap_or(u32::MAX),
            median_offset_s: (has_median == 1).then(|| seconds(median)),
            median_outside: outside == 1,
        })
    };
    all.chunks(FIELDS).enumerate().filter_map(record).collect()
}

fn record(after: Duration, found: &Found) -> CheckRecord {
    let summary: ResidualSummary = found.summary();
    CheckRecord {
        after_s: after.as_secs_f64(),
        residuals: summary.count,
        residual_p50_s: summary.p50.seconds(),
        residual_p99_s: summary.p99.seconds(),
        residual_max_s: summary.max.seconds(),
        bound_s: summary.largest_claim.seconds(),
        covered_share: summary.covered_share(),
        triangles: found.triangles.len(),
        triangles_closed: found.triangles.iter().filter(|(one, _)| one.is_closed()).count(),
    }
}

/// The document as columns, with a line for each check.
fn text(document: &Document) -> String {
    let time = |seconds: f64| number::in_units(seconds, number::TIME);
    let mut text = format!(
        "# {}, {} ranks, {}; a pass takes {}\n",
        document.library,
        document.ranks.len(),
        document.clock,
        time(document.pass_s)
    );
    text += "#rank parent offset[us] drift[ppm] bound[us] pings host\n";
    for rank in &document.ranks {
        let parent = rank.parent.map_or_else(|| "-".to_owned(), |parent| parent.to_string());
        let how = if rank.shares_clock { ", shares its parent's clock" } else { "" };
        text += &format!(
            "{:>5} {parent:>6} {:>10.3} {:>10.3} {:>9.3} {:>5} {}{how}\n",
            rank.rank,
            rank.offset_s * 1e6,
            rank.drift_ppm,
            rank.bound_s * 1e6,
            rank.pings,
            rank.host,
        );
        if rank.median_outside {
            text += "# the median of single pings lies outside of the bounds: the ways differ\n";
        }
    }
    for check in &document.checks {
        text += &format!(
            "# after {}: {} residuals, p50 {}, p99 {}, max {}, bound {}, covered {:.1}%; {} of {} \
             triangles closed\n",
            time(check.after_s.max(1e-9)),
            check.residuals,
            time(check.residual_p50_s),
            time(check.residual_p99_s),
            time(check.residual_max_s),
            time(check.bound_s),
            check.covered_share * 100.0,
            check.triangles_closed,
            check.triangles,
        );
    }
    text
}
