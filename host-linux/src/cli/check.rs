//! `loggap check`: predicted and measured rounds of a link.

use std::io::{self, Write};
use std::time::Duration;

use loggap_core::model::Estimate;
use loggap_core::units::Picos;
use serde::Serialize;

use super::measure::EndArgs;
use crate::check::{self, Asserted, Check, CheckOptions, Checked, Verdict};
use crate::drive::{Options, SizePlan};
use crate::flags::parse::{self, Sizes};
use crate::link::Transport;
use crate::machine::placement;
use crate::output::number;
use crate::terminal::{CliError, Console, Exit, end_on_request};

/// Most processes that a message goes to.
const MOST_PROCESSES: u64 = 1_024;

/// Check what a profile of a link predicts against what is measured.
///
/// Measures the link, then plain round trips, then the link again. Each round trip is simulated
/// with the costs that the profiles give a message of its size. With --processes it goes to several
/// processes on this machine, which all answer: a scatter and a gather.
///
/// Verdicts: the intervals agree or differ; 'cannot tell' where one is wider than 25%, or where
/// there are fewer processors than processes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap check
  loggap check node7 -s 1,1K,64K --assert 10%
  loggap check --transport unix --processes 1,2,4")]
pub(super) struct Args {
    #[command(flatten)]
    ends: EndArgs,
    /// Message sizes.
    #[arg(short, long = "size", value_name = "BYTES", default_value = "1,64,1K,16K,64K",
          value_parser = parse::message_sizes)]
    sizes: Sizes,
    /// Numbers of processes that answer; more than 1 on this machine only.
    #[arg(long, value_name = "LIST", default_value = "1", value_parser = parse::rank_counts)]
    processes: Sizes,
    /// Time of each of the two measurements: seconds, or with a unit [default: 2.5].
    #[arg(long, value_name = "SECONDS", value_parser = parse::session_time)]
    max_time: Option<Duration>,
    /// Exit with 3 if a measured time differs more from its prediction.
    #[arg(long = "assert", value_name = "PERCENT", value_parser = parse::percent)]
    assert: Option<u32>,
    /// Seed of the order of rounds; decimal or 0x hexadecimal.
    #[arg(long, value_name = "SEED", default_value = "1", value_parser = parse::seed)]
    seed: u64,
    /// Print one JSON document, in SI units.
    #[arg(short = 'J', long)]
    json: bool,
}

/// Names of the rounds, by the number of processes.
const fn name(processes: u32) -> &'static str {
    if processes == 1 { "round trip" } else { "scatter, gather" }
}

#[derive(Serialize)]
struct Document<'a> {
    transport: &'a str,
    peer: &'a str,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    results: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    operation: &'static str,
    processes: u32,
    size_bytes: u32,
    predicted_s: Option<f64>,
    predicted_s_lo: Option<f64>,
    predicted_s_hi: Option<f64>,
    measured_s: Option<f64>,
    measured_s_lo: Option<f64>,
    measured_s_hi: Option<f64>,
    ratio: Option<f64>,
    rounds: usize,
    /// True if there are fewer processors than processes.
    is_crowded: bool,
    verdict: Verdict,
}

impl From<&Checked> for Row {
    fn from(round: &Checked) -> Self {
        let of = |estimate: Option<Estimate<Picos>>, of: fn(&Estimate<Picos>) -> Picos| {
            estimate.as_ref().map(|estimate| of(estimate).seconds())
        };
        Self {
            operation: name(round.processes),
            processes: round.processes,
            size_bytes: round.size,
            predicted_s: of(round.predicted, |it| it.value),
            predicted_s_lo: of(round.predicted, |it| it.low),
            predicted_s_hi: of(round.predicted, |it| it.high),
            measured_s: of(round.measured, |it| it.value),
            measured_s_lo: of(round.measured, |it| it.low),
            measured_s_hi: of(round.measured, |it| it.high),
            ratio: round.ratio(),
            rounds: round.rounds,
            is_crowded: round.is_crowded,
            verdict: round.verdict(),
        }
    }
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let interrupt = end_on_request()?;
    let options = args.options()?;
    let check = check::run(&options, &interrupt, console)?;
    let usable = check.profile.is_usable();
    let document = Document {
        transport: options.ends.transport.name(),
        peer: &check.profile.host.link.peer,
        verdict: if usable { "usable" } else { "unusable" },
        reason: check.profile.reason.as_deref().filter(|_| !usable),
        results: check.rounds.iter().map(Row::from).collect(),
    };
    console.report(args.json, &document, |out| print(out, &document))?;
    if !usable && !args.json {
        let reason = document.reason.unwrap_or("there is no range");
        console.warn(format_args!("unusable: {reason}"));
    }
    Ok(match (interrupt.is_requested(), usable, args.asserted(&check)) {
        (true, ..) => Exit::Interrupted,
        (_, false, _) => Exit::NotConverged,
        (_, _, Some(Asserted::Broken)) => Exit::Differs,
        (_, _, Some(Asserted::Unknown)) => Exit::NotConverged,
        _ => Exit::Done,
    })
}

impl Args {
    fn options(&self) -> Result<CheckOptions, CliError> {
        // Measuring pins this thread, so the processors are looked up before.
        let allowed = placement::allowed();
        let ends = self.ends.options()?;
        let processes = self.processes.list();
        if processes.iter().any(|&processes| processes == 0 || processes > MOST_PROCESSES) {
            return Err(CliError::usage("--processes takes numbers from 1 to 1024"));
        }
        let is_several = processes.iter().any(|&processes| processes > 1);
        if is_several && ends.remote.is_some() {
            return Err(CliError::usage("--processes above 1 run on this machine; leave HOST out"));
        }
        let loses_none =
            matches!(ends.transport, Transport::Tcp | Transport::Unix | Transport::Shm);
        if is_several && !loses_none {
            return Err(CliError::usage(format_args!(
                "--processes above 1 need a link without losses: --transport tcp, unix or shm; {} \
                 is none",
                ends.transport.name()
            )));
        }
        // At most 1 GiB, and 1,024, by the parsers.
        let narrow = |list: Vec<u64>| list.into_iter().filter_map(|each| u32::try_from(each).ok());
        let sizes: Vec<u32> = narrow(self.sizes.list()).collect();
        let largest = sizes.iter().copied().max().unwrap_or(1);
        let span = SizePlan::Span { first: 1, last: largest.max(2), shrink: false };
        Ok(CheckOptions {
            ends,
            allowed,
            measure: Options {
                sizes: span,
                max_time: self.max_time.map(Picos::from_duration),
                seed: self.seed,
                ..Options::default()
            },
            sizes,
            processes: narrow(processes).collect(),
        })
    }

    /// The worst outcome of the assertion over all rounds, if there is one.
    fn asserted(&self, check: &Check) -> Option<Asserted> {
        let allowed = f64::from(self.assert?) / 1e6;
        let outcome = |round: &Checked| match (&round.measured, &round.predicted) {
            _ if round.is_crowded => Asserted::Unknown,
            (Some(measured), Some(predicted)) => Asserted::of(measured, predicted, allowed),
            _ => Asserted::Unknown,
        };
        check.rounds.iter().map(outcome).max()
    }
}

fn print(out: &mut dyn Write, document: &Document<'_>) -> io::Result<()> {
    let Document { transport, peer, results, .. } = document;
    writeln!(out, "# {transport} to {peer}; medians with 95% intervals, us")?;
    writeln!(
        out,
        "#{:<15} {:>9} {:>8}  {:<30} {:<30} {:>5}  verdict",
        "operation", "processes", "size[B]", "predicted[us]", "measured[us]", "ratio"
    )?;
    let ratio = |ratio: f64| match ratio < 99.5 {
        true => format!("{ratio:.2}"),
        false => format!("{ratio:.0}"),
    };
    for row in results {
        let cell = |value: Option<f64>, low: Option<f64>, high: Option<f64>| {
            let Some(value) = value else { return "-".to_owned() };
            let [value, low, high] = [Some(value), low, high].map(number::micros);
            format!("{value} ({low} to {high})")
        };
        writeln!(
            out,
            "{:<16} {:>9} {:>8}  {:<30} {:<30} {:>5}  {}",
            row.operation,
            row.processes,
            row.size_bytes,
            cell(row.predicted_s, row.predicted_s_lo, row.predicted_s_hi),
            cell(row.measured_s, row.measured_s_lo, row.measured_s_hi),
            row.ratio.map_or_else(|| "-".to_owned(), ratio),
            if row.is_crowded { "cannot tell (crowded)" } else { row.verdict.name() }
        )?;
    }
    if document.results.iter().any(|row| row.is_crowded) {
        writeln!(
            out,
            "# crowded: fewer processors than processes, rounds include turns of others; --block helps"
        )?;
    }
    Ok(())
}
