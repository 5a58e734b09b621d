//! `loggap-mpi selftest`: synchronisation of virtual clocks whose true times are known.

use clap::builder::RangedU64ValueParser;
use loggap::flags::parse;
use loggap::output::number;
use loggap::terminal::{CliError, Console, Exit};
use loggap_core::sync::ResidualSummary;
use loggap_core::units::Picos;
use serde::Serialize;

use super::DriftArgs;
use crate::clocks::study::{self, PatienceRow, Scenario, SchemeRow, SpanRow, TrialReport, trial};

/// Synchronise virtual clocks whose true times are known, and tell whether the
/// claimed bounds hold. Needs no mpirun.
///
/// The clocks have offsets, drift and temperature wander, the network has
/// jitter and paths of unequal length, and ranks lose their processor. Exits
/// with 3 if the bounds cover less than 95% of the ranks.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap-mpi selftest                      16384 ranks, each with a clock of its own
  loggap-mpi selftest --ranks 4096 --per-machine 64
  loggap-mpi selftest --max-drift 10       assumptions that do not hold: exit code 3
  loggap-mpi selftest --study patience     how many pings without a quicker one are enough
  loggap-mpi selftest --study drift        is the drift of clocks a line, over 14 hours
  loggap-mpi selftest --study schemes      linear and binomial, as published, over ranks")]
pub(super) struct Args {
    /// Number of virtual ranks.
    #[arg(long, value_name = "P", default_value = "16384",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=1 << 20))]
    ranks: u32,
    /// Number of ranks that share a clock.
    #[arg(long, value_name = "K", default_value = "1",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=1 << 20))]
    per_machine: u32,
    /// Run another study instead: patience, drift or schemes.
    #[arg(long, value_enum, value_name = "WHICH", hide_possible_values = true)]
    study: Option<Study>,
    #[command(flatten)]
    drift: DriftArgs,
    /// Seed of all random numbers; decimal or 0x hexadecimal.
    #[arg(long, default_value = "1", value_parser = parse::seed)]
    seed: u64,
    /// Print one JSON document.
    #[arg(short = 'J', long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Study {
    Patience,
    Drift,
    Schemes,
}

#[derive(Serialize)]
struct Document<'a, T> {
    rows: &'a [T],
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    match args.study {
        None => trials(args, console),
        Some(Study::Patience) => patience(args, console),
        Some(Study::Drift) => drift(args, console),
        Some(Study::Schemes) => schemes(args, console),
    }
}

/// Prints `rows` as one JSON document, or as the columns `lines` below `head`.
fn show<T: Serialize>(
    args: &Args,
    console: &mut Console,
    rows: &[T],
    head: &str,
    lines: impl Fn(&T) -> String,
) -> Result<Exit, CliError> {
    console.report(args.json, &Document { rows }, |out| {
        let text: String = rows.iter().map(lines).collect();
        out.write_all((head.to_owned() + &text).as_bytes())
    })?;
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct TrialRow {
    scenario: &'static str,
    ranks: u32,
    per_machine: u32,
    #[serde(flatten)]
    report: TrialReport,
}

impl TrialRow {
    /// Residuals at the end of the passes, ten seconds later, and interpolated between two passes.
    const fn summaries(&self) -> [(&'static str, ResidualSummary); 3] {
        let TrialReport { synchronised, extrapolated, interpolated, .. } = self.report;
        [("at-once", synchronised), ("after-10s", extrapolated), ("interpolated", interpolated)]
    }

    fn columns(&self) -> String {
        let columns = |(when, summary): (&str, ResidualSummary)| {
            let times = [summary.p50, summary.p99, summary.max, summary.largest_claim];
            let [p50, p99, max, bound] = times.map(|time| time.0 as f64 * 1e-6);
            let (name, covered) = (self.scenario, summary.covered_share() * 100.0);
            format!(
                "{name:<10} {when:<12} {p50:>9.3} {p99:>9.3} {max:>9.3} {bound:>9.3} {covered:>6.2}\n"
            )
        };
        self.summaries().map(columns).concat()
    }
}

/// Runs every scenario.
fn trials(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    const LEAST_COVERED: f64 = 0.95;
    let Args { ranks, per_machine, .. } = *args;
    let domains: Vec<u32> = (0..ranks).map(|rank| rank / per_machine).collect();
    let row = |scenario: Scenario| {
        let options = scenario.options(args.drift.assumptions());
        let report = trial(&domains, &scenario, &options, args.seed).map_err(CliError::failed)?;
        Ok(TrialRow { scenario: scenario.name, ranks, per_machine, report })
    };
    let rows: Vec<TrialRow> =
        Scenario::all().into_iter().map(row).collect::<Result<_, CliError>>()?;
    let head = format!(
        "# {ranks} ranks, {per_machine} a clock; residuals against the true time of rank 0, bounds as claimed\n\
         #scenario when p50[us] p99[us] max[us] bound[us] covered[%]\n"
    );
    show(args, console, &rows, &head, TrialRow::columns)?;
    let hold = rows
        .iter()
        .flat_map(TrialRow::summaries)
        .all(|(_, summary)| summary.covered_share() >= LEAST_COVERED);
    if !args.json {
        let contradicted = rows.iter().filter(|row| row.report.contradicted > 0);
        let warnings: String = contradicted
            .map(|TrialRow { scenario, report, .. }| {
                format!(
                    "# {scenario}: offsets of {} ranks contradict each other: clocks drift apart \
                     faster than --max-drift {}, or were set\n",
                    report.contradicted, args.drift.max_drift
                )
            })
            .collect();
        let verdict = if hold { "the bounds hold" } else { "the bounds do not hold" };
        writeln!(console.data(), "{warnings}# {verdict} in 95%")?;
    }
    Ok(if hold { Exit::Done } else { Exit::Differs })
}

/// Choice of N by simulation: the number of pings without a smaller round trip that end a series.
fn patience(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let rows = study::patience(args.seed).map_err(CliError::failed)?;
    let head = "# the published scheme: a series ends after N pings without a smaller round \
                trip; 1 us one way, exponential jitter of 1 us\n"
        .to_owned();
    show(args, console, &rows, &(head + PATIENCE_COLUMNS), patience_line)
}

/// Columns of [`patience_line`].
pub(super) const PATIENCE_COLUMNS: &str = "#N pings error_mean[ns] error_p99[ns] error_max[ns]\n";

pub(super) fn patience_line(row: &PatienceRow) -> String {
    let PatienceRow { patience, mean_pings: pings, errors } = row;
    let [mean, p99, max] = [errors.mean, errors.p99, errors.max].map(|time| time.0 as f64 * 1e-3);
    format!("{patience:>5} {pings:>8.1} {mean:>8.1} {p99:>8.1} {max:>8.1}\n")
}

/// Drift study: 50,000 offsets, one a second, and whether they lie on a line.
fn drift(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let rows = study::drift(args.seed).map_err(CliError::failed)?;
    let head = "# 50,000 offsets, one a second, on virtual clocks: is the drift a line?\n\
                #wander[ppb/sqrt(s)]";
    let columns = format!("{head} {SPAN_COLUMNS}");
    show(args, console, &rows, &columns, |row| {
        let line = |span: &SpanRow| format!("{:>8} {}", row.wander_ppb, span_line(span));
        row.study.spans.iter().map(line).collect()
    })
}

/// Columns of [`span_line`].
pub(super) const SPAN_COLUMNS: &str = "span[s] windows linear residual_rms[us] residual_max[us] \
                                       ahead_mean[us] ahead_p99[us] ahead_max[us]\n";

pub(super) fn span_line(row: &SpanRow) -> String {
    let SpanRow { span, windows, residual_rms, residual_max, linear, extrapolated } = row;
    let micros = |time: Picos| time.0 as f64 * 1e-6;
    let ahead = extrapolated.map(|errors| [errors.mean, errors.p99, errors.max].map(micros));
    let [mean, p99, max] = ahead.map_or([None; 3], |ahead| ahead.map(Some));
    let ahead = [mean, p99, max].map(|time| format!("{:>10}", number::decimal(time, 3))).join(" ");
    format!(
        "{:>8.0} {windows:>6} {:>6} {:>10.3} {:>10.3} {ahead}\n",
        span.seconds(),
        if *linear { "yes" } else { "no" },
        micros(*residual_rms),
        micros(*residual_max),
    )
}

/// Durations and errors of the published schemes over the number of ranks.
fn schemes(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let rows = study::schemes(args.seed).map_err(CliError::failed)?;
    let head = "# as published, offsets only, N = 20; residuals at the end\n\
                #scheme ranks took[ms] error_mean[us] error_p99[us] error_max[us]\n";
    show(args, console, &rows, head, |row| {
        let SchemeRow { scheme, ranks, took, errors } = row;
        let [mean, p99, max] =
            [errors.mean, errors.p99, errors.max].map(|time| time.seconds() * 1e6);
        let took = took.seconds() * 1e3;
        format!("{scheme:<9} {ranks:>6} {took:>10.3} {mean:>9.3} {p99:>9.3} {max:>9.3}\n")
    })
}
