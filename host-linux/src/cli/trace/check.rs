//! `loggap trace check`: messages with one end, operations that never completed.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;

use super::open;
use crate::terminal::{CliError, Console, Exit};
use crate::trace::{Summary, Unfinished, Unmatched};

/// Find messages of which one end is missing, and operations that were never completed.
///
/// Exits with 3 if there are any, and with 1 if a file is lost or cut or a rank ended without MPI_Finalize:
/// the records that are lost there may have the other ends.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  loggap trace check loggap-trace")]
pub(super) struct Args {
    /// Directory that 'loggap-mpi trace -o' wrote.
    #[arg(value_name = "DIR")]
    input: PathBuf,

    /// Most findings to list; 0 lists all.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,

    /// Print JSON.
    #[arg(short = 'J', long)]
    json: bool,
}

/// Contents of the report.
#[derive(Serialize)]
struct Report {
    ranks: u32,
    calls: u64,
    messages: u64,
    unmatched: u64,
    unfinished: usize,
    /// Ranks whose trace is not whole.
    incomplete: Vec<u32>,
    /// Ranks whose files are lost.
    lost: Vec<u32>,
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct Finding {
    kind: &'static str,
    rank: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<i32>,
    message: String,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let trace = open(&args.input, console)?;
    let summary = Summary::of(&trace).map_err(CliError::usage)?;
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let findings = summary.unmatched_list.iter().map(unmatched);
    let findings = findings.chain(summary.unfinished_list.iter().map(unfinished));
    let ranks = || summary.by_rank.iter();
    let incomplete = ranks().filter(|rank| !rank.is_finished || rank.cut_bytes > 0);
    let report = Report {
        ranks: summary.ranks,
        calls: summary.calls,
        messages: summary.messages,
        unmatched: summary.unmatched,
        unfinished: summary.unfinished,
        incomplete: incomplete.map(|rank| rank.rank).collect(),
        lost: ranks().filter(|rank| rank.is_lost).map(|rank| rank.rank).collect(),
        findings: findings.take(limit).collect(),
    };
    console.report(args.json, &report, |out| print(out, &report))?;
    Ok(match &report {
        Report { incomplete, .. } if !incomplete.is_empty() => Exit::Failed,
        Report { unmatched: 0, unfinished: 0, .. } => Exit::Done,
        _ => Exit::Differs,
    })
}

fn unmatched(one: &Unmatched) -> Finding {
    let Unmatched { key, sends, receives } = one;
    Finding {
        kind: "unmatched",
        rank: key.from,
        peer: i32::try_from(key.to).ok(),
        tag: Some(key.tag),
        message: format!(
            "rank {} sent {sends} messages with tag {} to rank {}, which received {receives}",
            key.from, key.tag, key.to
        ),
    }
}

fn unfinished(one: &Unfinished) -> Finding {
    let envelope = one.message.map(|message| message.envelope);
    Finding {
        kind: "unfinished",
        rank: one.rank,
        peer: envelope.map(|envelope| envelope.peer),
        tag: envelope.map(|envelope| envelope.tag),
        message: one.to_string(),
    }
}

fn print(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    for finding in &report.findings {
        writeln!(out, "{}: {}", finding.kind, finding.message)?;
    }
    for rank in &report.incomplete {
        let why = match report.lost.contains(rank) {
            true => "its file is lost, with all its records",
            false => "its trace does not end with MPI_Finalize",
        };
        writeln!(out, "incomplete: rank {rank}: {why}")?;
    }
    writeln!(
        out,
        "{} ranks, {} calls, {} messages: {} unmatched, {} unfinished",
        report.ranks, report.calls, report.messages, report.unmatched, report.unfinished
    )
}
