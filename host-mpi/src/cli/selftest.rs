//! `loggap-mpi selftest`: synchronisation of virtual clocks whose true times are known.

use clap::builder::RangedU64ValueParser;
use loggap::flags::parse;
use loggap::profile::SCHEMA_VERSION;
use loggap::terminal::{CliError, Console, Exit};
use loggap_core::random::Random;
use loggap_core::sync::simulated::{ClockTruth, Path, VirtualClock, VirtualPinger};
use loggap_core::sync::{
    DriftStudy, PatienceRow, ResidualSummary, Scenario, Scheme, SchemeMemory, TimedOffset,
    TreeEntry, TrialMemory, TrialRank, TrialReport, record_drift, scheme_trial, study_drift,
    study_patience, trial,
};
use loggap_core::units::{Picos, SignedPicos};
use serde::Serialize;

use super::DriftArgs;

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

/// A result as columns and as a JSON document.
struct Report<T> {
    text: String,
    document: T,
    exit: Exit,
}

#[derive(Serialize)]
struct Document<T> {
    schema_version: u32,
    rows: Vec<T>,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    match args.study {
        None => show(args, trials(args)?, console),
        Some(Study::Patience) => show(args, patience(args.seed)?, console),
        Some(Study::Drift) => show(args, drift(args.seed)?, console),
        Some(Study::Schemes) => show(args, schemes(args.seed)?, console),
    }
}

fn show<T: Serialize>(
    args: &Args,
    report: Report<Vec<T>>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    if args.json {
        let document = Document { schema_version: SCHEMA_VERSION, rows: report.document };
        console.json(&document)?;
    } else {
        console.data().write_all(report.text.as_bytes())?;
    }
    Ok(report.exit)
}

#[derive(Serialize)]
struct Summary {
    residual_p50_s: f64,
    residual_p99_s: f64,
    residual_max_s: f64,
    bound_s: f64,
    covered_share: f64,
}

impl From<ResidualSummary> for Summary {
    fn from(summary: ResidualSummary) -> Self {
        Self {
            residual_p50_s: summary.p50.seconds(),
            residual_p99_s: summary.p99.seconds(),
            residual_max_s: summary.max.seconds(),
            bound_s: summary.largest_claim.seconds(),
            covered_share: summary.covered_share(),
        }
    }
}

#[derive(Serialize)]
struct TrialRow {
    scenario: &'static str,
    ranks: u32,
    per_machine: u32,
    pass_s: f64,
    pings: u64,
    /// Ranks whose offsets contradict each other.
    contradicted: u32,
    synchronised: Summary,
    extrapolated: Summary,
    interpolated: Summary,
}

/// Runs every scenario: residuals at the end of the passes, ten seconds later,
/// and interpolated between two passes.
fn trials(args: &Args) -> Result<Report<Vec<TrialRow>>, CliError> {
    const LEAST_COVERED: f64 = 0.95;
    let count = args.ranks as usize;
    let domains: Vec<u32> = (0..args.ranks).map(|rank| rank / args.per_machine).collect();
    let mut clocks = vec![VirtualClock::exact(); count];
    let mut ranks = vec![TrialRank::default(); count];
    let mut residuals = vec![Picos::ZERO; count];
    let (mut order, mut entries) = (vec![0; count], vec![TreeEntry::default(); count]);
    let mut text = format!(
        "# {} ranks, {} a clock; residuals against the true time of rank 0, bounds as claimed\n\
         #scenario when p50[us] p99[us] max[us] bound[us] covered[%]\n",
        args.ranks, args.per_machine
    );
    let (mut rows, mut exit, mut warnings) = (Vec::new(), Exit::Done, String::new());
    for (name, scenario) in Scenario::all() {
        let scenario = Scenario { seed: args.seed, ..scenario };
        let memory = TrialMemory {
            clocks: &mut clocks,
            ranks: &mut ranks,
            residuals: &mut residuals,
            order: &mut order,
            entries: &mut entries,
        };
        let report =
            trial(&domains, &scenario, &scenario.options(args.drift.assumptions()), memory)
                .map_err(CliError::failed)?;
        let TrialReport { synchronised, extrapolated, interpolated, contradicted, .. } = report;
        if contradicted > 0 {
            warnings += &format!(
                "# {name}: offsets of {contradicted} ranks contradict each other: clocks drift \
                 apart faster than --max-drift {}, or were set\n",
                args.drift.max_drift
            );
        }
        for (when, summary) in
            [("at-once", synchronised), ("after-10s", extrapolated), ("interpolated", interpolated)]
        {
            text += &columns(name, when, &summary);
            if summary.covered_share() < LEAST_COVERED {
                exit = Exit::Differs;
            }
        }
        rows.push(TrialRow {
            scenario: name,
            ranks: args.ranks,
            per_machine: args.per_machine,
            pass_s: report.pass.seconds(),
            pings: report.pings,
            contradicted,
            synchronised: synchronised.into(),
            extrapolated: extrapolated.into(),
            interpolated: interpolated.into(),
        });
    }
    text += &warnings;
    let verdict = if exit == Exit::Done { "the bounds hold" } else { "the bounds do not hold" };
    text += &format!("# {verdict} in 95%\n");
    Ok(Report { text, document: rows, exit })
}

fn columns(name: &str, when: &str, summary: &ResidualSummary) -> String {
    let micros = |time: Picos| time.0 as f64 * 1e-6;
    format!(
        "{name:<10} {when:<12} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>6.2}\n",
        micros(summary.p50),
        micros(summary.p99),
        micros(summary.max),
        micros(summary.largest_claim),
        summary.covered_share() * 100.0
    )
}

#[derive(Serialize)]
struct PatienceRecord {
    patience: u32,
    mean_pings: f64,
    error_mean_s: f64,
    error_p99_s: f64,
    error_max_s: f64,
}

/// Choice of N by simulation, as on the slides of Hoefler, Schneider and
/// Lumsdaine (2008): the number of pings without a smaller round trip that end
/// a series.
fn patience(seed: u64) -> Result<Report<Vec<PatienceRecord>>, CliError> {
    const SERIES: usize = 1_000;
    let one_way = Picos(1_000_000);
    let path = Path { jitter: one_way, ..Path::of(one_way) };
    let mut errors = vec![Picos::ZERO; SERIES];
    let rows = study_patience(path, seed, &mut errors)
        .ok_or_else(|| CliError::failed("nothing to draw from"))?;
    let mut text = "# the published scheme: a series ends after N pings without a smaller round \
                    trip; 1 us one way, exponential jitter of 1 us\n\
                    #N pings error_mean[ns] error_p99[ns] error_max[ns]\n"
        .to_owned();
    let nanos = |time: Picos| time.0 as f64 * 1e-3;
    let record = |row: &PatienceRow| PatienceRecord {
        patience: row.patience,
        mean_pings: row.mean_pings(),
        error_mean_s: row.mean.seconds(),
        error_p99_s: row.p99.seconds(),
        error_max_s: row.max.seconds(),
    };
    for row in &rows {
        text += &format!(
            "{:>5} {:>8.1} {:>8.1} {:>8.1} {:>8.1}\n",
            row.patience,
            row.mean_pings(),
            nanos(row.mean),
            nanos(row.p99),
            nanos(row.max)
        );
    }
    Ok(Report { text, document: rows.iter().map(record).collect(), exit: Exit::Done })
}

#[derive(Serialize)]
struct DriftRecord {
    wander_ppb: f64,
    span_s: f64,
    drift_ppm: f64,
    residual_rms_s: f64,
    residual_max_s: f64,
    linear: bool,
    linear_for_s: f64,
}

/// Drift study of the same slides: 50,000 offsets, one a second, and whether
/// they lie on a line.
fn drift(seed: u64) -> Result<Report<Vec<DriftRecord>>, CliError> {
    const OFFSETS: usize = 50_000;
    const SECOND: Picos = Picos(1_000_000_000_000);
    let mut text = "# 50,000 offsets, one a second, on virtual clocks: is the drift a line?\n\
                    #wander[ppb/sqrt(s)] drift[ppm] residual_rms[us] residual_max[us] linear_for[s]\n"
        .to_owned();
    let mut rows = Vec::new();
    for wander_ppb in [0.0, 1.0, 20.0] {
        let truth = ClockTruth { wander_ppb, widest_wander_ppb: 50.0, ..ClockTruth::default() };
        let mut clocks = [0, 1].map(|stream| VirtualClock::new(truth, seed, stream));
        let path = Path::of(Picos(1_000_000));
        let random = Random::new(seed);
        let mut pinger = VirtualPinger::new(&mut clocks, (0, 1), path, Picos::ZERO, random);
        let mut samples = vec![TimedOffset::default(); OFFSETS];
        record_drift(&mut pinger, SECOND, 5, &mut samples).map_err(CliError::failed)?;
        let study: DriftStudy = study_drift(&samples).map_err(CliError::failed)?;
        let record = DriftRecord {
            wander_ppb,
            span_s: study.span.seconds(),
            drift_ppm: study.drift as f64 * 1e-6,
            residual_rms_s: study.residual_rms.seconds(),
            residual_max_s: study.residual_max.seconds(),
            linear: study.is_linear(),
            linear_for_s: study.linear_for.seconds(),
        };
        text += &format!(
            "{wander_ppb:>8} {:>9.4} {:>10.3} {:>10.3} {:>8.0}\n",
            record.drift_ppm,
            record.residual_rms_s * 1e6,
            record.residual_max_s * 1e6,
            record.linear_for_s
        );
        rows.push(record);
    }
    Ok(Report { text, document: rows, exit: Exit::Done })
}

#[derive(Serialize)]
struct SchemeRecord {
    scheme: &'static str,
    ranks: u32,
    took_s: f64,
    error_mean_s: f64,
    error_p99_s: f64,
    error_max_s: f64,
}

/// Durations and errors of the published schemes over the number of ranks.
fn schemes(seed: u64) -> Result<Report<Vec<SchemeRecord>>, CliError> {
    const PATIENCE: u32 = 20;
    let one_way = Picos(1_000_000);
    let network = Path { jitter: one_way, ..Path::of(one_way) };
    let scenario = Scenario { network, seed, ..Scenario::default() };
    let mut text = "# as published, offsets only, N = 20; residuals at the end\n\
                    #scheme ranks took[ms] error_mean[us] error_p99[us] error_max[us]\n"
        .to_owned();
    let mut rows = Vec::new();
    for (name, scheme) in [("linear", Scheme::Linear), ("binomial", Scheme::Binomial)] {
        for ranks in [4_u32, 16, 64, 256, 1_024, 4_096, 16_384] {
            let count = ranks as usize;
            let memory = SchemeMemory {
                clocks: &mut vec![VirtualClock::exact(); count],
                offsets: &mut vec![SignedPicos(0); count],
                free: &mut vec![Picos::ZERO; count],
                residuals: &mut vec![Picos::ZERO; count],
            };
            let report = scheme_trial(scheme, ranks, PATIENCE, &scenario, memory)
                .map_err(CliError::failed)?;
            let record = SchemeRecord {
                scheme: name,
                ranks,
                took_s: report.took.seconds(),
                error_mean_s: report.mean.seconds(),
                error_p99_s: report.residuals.p99.seconds(),
                error_max_s: report.residuals.max.seconds(),
            };
            text += &format!(
                "{name:<9} {ranks:>6} {:>10.3} {:>9.3} {:>9.3} {:>9.3}\n",
                record.took_s * 1e3,
                record.error_mean_s * 1e6,
                record.error_p99_s * 1e6,
                record.error_max_s * 1e6
            );
            rows.push(record);
        }
    }
    Ok(Report { text, document: rows, exit: Exit::Done })
}
