//! `loggap goal check`: checks a schedule.

use std::io::{self, Write};
use std::path::PathBuf;

use loggap_core::goal::check::{
    Certainty, CheckError, Checked, Checker, Finding, Message, Severity,
};
use loggap_core::goal::{ANY, ANY_TAG, OpIndex};
use serde::Serialize;

use super::{FeedError, ScheduleFile, open};
use crate::output::number;
use crate::schedule::{Location, OwnedRank};
use crate::terminal::{CliError, Console, Exit};

/// Check a schedule before it runs.
///
/// Finds cycles among dependencies, peers that do not exist, sends without a receive, receives
/// without a send, sizes that differ, receives with any tag that can take a collective's message
/// (tags from 1000000 on), and labels that nothing refers to. A finding that depends on how
/// wildcards match is called possible and is a warning, as is a receive larger than its message.
/// Deadlocks across ranks are not found, such as two ranks that each receive before they send, or
/// that rely on buffers for their sends: 'loggap simulate' finds those.
///
/// Exits with 1 if there are errors.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Schedule to read.
    input: PathBuf,

    /// Most findings to list; 0 lists all.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,

    /// Count warnings as errors.
    #[arg(long)]
    strict: bool,

    /// Also list the labels that no dependency refers to.
    #[arg(long)]
    unused_labels: bool,

    /// Print JSON.
    #[arg(short = 'J', long)]
    json: bool,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let file = open(&args.input)?;
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let mut listed = Listed { limit, findings: Vec::new(), errors: 0, warnings: 0 };
    let checked = check(&file, &mut listed)?;
    let report = report(args, &file, &listed, checked)?;
    console.report(args.json, &report, |out| print(out, &report))?;
    let failed = report.errors > 0 || args.strict && report.warnings > 0;
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

/// Findings up to a limit, and counts of all findings.
struct Listed {
    limit: usize,
    findings: Vec<Finding>,
    errors: u64,
    warnings: u64,
}

impl Listed {
    fn add(&mut self, finding: Finding) {
        match finding.severity() {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
        if self.findings.len() < self.limit {
            self.findings.push(finding);
        }
    }
}

fn check(file: &ScheduleFile, listed: &mut Listed) -> Result<Checked, CliError> {
    let extent = file.extent();
    let mut rank = OwnedRank::new(&extent);
    let mut messages = vec![Message::default(); extent.ops];
    let mut checker = Checker::new(rank.lend(), Some(&mut messages), |finding| listed.add(finding));
    file.feed(&mut checker).map_err(input_error)?;
    checker.finish().map_err(CliError::failed)
}

/// Converts an error of the checker. Its memory is sized by the extent of the file, so only the
/// input can be wrong.
pub(super) fn input_error(error: FeedError<CheckError>) -> CliError {
    match error {
        FeedError::Input(refused) => CliError::usage(refused),
        sink @ FeedError::Sink { .. } => CliError::failed(sink),
    }
}

/// Contents of the report, as JSON and as text.
#[derive(Serialize)]
struct Report {
    file: String,
    form: String,
    ranks: u32,
    ops: usize,
    errors: u64,
    warnings: u64,
    findings: Vec<Entry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<Labels>,
}

#[derive(Serialize)]
struct Entry {
    severity: &'static str,
    kind: &'static str,
    certain: bool,
    rank: u32,
    op: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// Sending rank, receiving rank and tag; absent for a wildcard, or if the finding is not about
    /// messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<u64>,
    message: String,
}

/// Counts of a text's labels.
#[derive(Serialize)]
struct Labels {
    defined: usize,
    unused: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unused_listed: Vec<UnusedLabel>,
}

#[derive(Serialize)]
struct UnusedLabel {
    rank: u32,
    op: u32,
    line: usize,
    offset_bytes: usize,
    label: String,
}

fn report(
    args: &Args,
    file: &ScheduleFile,
    listed: &Listed,
    checked: Checked,
) -> Result<Report, CliError> {
    let places: Vec<OpIndex> = listed.findings.iter().map(Finding::place).collect();
    let locations = if places.is_empty() {
        Vec::new()
    } else {
        file.locate(&places).map_err(CliError::usage)?
    };
    let findings = listed.findings.iter().map(|finding| Entry::new(finding, &locations)).collect();
    let labels = match file.labels() {
        Some(defined) => Some(labels(args, file, defined, checked)?),
        None => None,
    };
    let extent = file.extent();
    Ok(Report {
        file: file.name().to_owned(),
        form: file.form().to_string(),
        ranks: extent.ranks,
        ops: extent.ops,
        errors: listed.errors,
        warnings: listed.warnings,
        findings,
        labels,
    })
}

/// Counts labels. A label is used if a dependency connects its operation, and dependencies can only
/// be written by labels; so the number of unused ones follows from the counts, without reading the
/// text again.
fn labels(
    args: &Args,
    file: &ScheduleFile,
    defined: usize,
    checked: Checked,
) -> Result<Labels, CliError> {
    let linked = usize::try_from(checked.linked).unwrap_or(usize::MAX);
    let unused = defined.saturating_sub(linked);
    let mut unused_listed = Vec::new();
    if args.unused_labels {
        let limit = if args.limit == 0 { usize::MAX } else { args.limit };
        let (found, _) = file.unused_labels(limit).map_err(CliError::usage)?;
        unused_listed.extend(found.into_iter().map(|place| UnusedLabel {
            rank: place.rank,
            op: place.op,
            line: place.line,
            offset_bytes: place.offset,
            label: place.label.unwrap_or_default(),
        }));
    }
    Ok(Labels { defined, unused, unused_listed })
}

impl Entry {
    fn new(finding: &Finding, locations: &[Location]) -> Self {
        let place = finding.place();
        let location = locations.iter().find(|at| (at.rank, at.op) == (place.rank, place.op));
        let (kind, messages, certainty) = match finding {
            Finding::PeerOutOfRange { .. } => ("peer_out_of_range", None, Certainty::Certain),
            Finding::Cycle { .. } => ("cycle", None, Certainty::Certain),
            Finding::Unmatched { messages, certainty, .. } => {
                ("unmatched", Some(messages), *certainty)
            }
            Finding::SizeMismatch { messages, certainty, .. } => {
                ("size_mismatch", Some(messages), *certainty)
            }
            Finding::TakesCollective { messages, .. } => {
                ("takes_collective", Some(messages), Certainty::Possible)
            }
        };
        let specific = |number: u32| Some(number).filter(|&number| number != ANY);
        Self {
            severity: match finding.severity() {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            kind,
            certain: certainty == Certainty::Certain,
            rank: place.rank,
            op: place.op,
            line: location.map(|at| at.line),
            offset_bytes: location.map(|at| at.offset),
            label: location.and_then(|at| at.label.clone()),
            from: messages.and_then(|messages| specific(messages.from)),
            to: messages.map(|messages| messages.to),
            tag: messages.and_then(|messages| Some(messages.tag).filter(|&tag| tag != ANY_TAG)),
            message: finding.to_string(),
        }
    }
}

fn print(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    for entry in &report.findings {
        write!(out, "{}: ", entry.severity)?;
        match entry.line {
            Some(line) => write!(out, "{}:{line}: ", report.file)?,
            None => write!(out, "{}: ", report.file)?,
        }
        write!(out, "rank {}, operation {}", entry.rank, entry.op)?;
        if let Some(label) = &entry.label {
            write!(out, " ({label})")?;
        }
        writeln!(out, ": {}", entry.message)?;
    }
    let listed = report.findings.len() as u64;
    if listed < report.errors + report.warnings {
        let more = report.errors + report.warnings - listed;
        writeln!(out, "and {more} more: --limit 0 lists all")?;
    }
    for unused in report.labels.iter().flat_map(|labels| &labels.unused_listed) {
        let UnusedLabel { rank, op, line, label, .. } = unused;
        writeln!(
            out,
            "{}:{line}: rank {rank}, operation {op}: label {label} is not used",
            report.file
        )?;
    }
    write!(
        out,
        "{}: {} ranks, {} operations: {}, {}",
        report.file,
        report.ranks,
        report.ops,
        number::counted(report.errors, "error"),
        number::counted(report.warnings, "warning")
    )?;
    match &report.labels {
        Some(labels) if labels.defined > 0 => {
            writeln!(out, "; {} of {} labels unused", labels.unused, labels.defined)
        }
        _ => writeln!(out),
    }
}
