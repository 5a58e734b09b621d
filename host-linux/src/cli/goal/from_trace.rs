//! `loggap goal from-trace`: the schedule of a traced MPI program.

use std::io::{self, Write};
use std::path::PathBuf;

use loggap_core::goal::stats::{Counter, Stats};
use loggap_core::goal::{Misuse, Sink};
use serde::Serialize;

use super::{Extent, Form, Source, StreamWriter, Target, Trouble, WriteError, Writer};
use crate::cli::extrapolation::{ExtrapolationReport, LeftOut};
use crate::cli::trace_args::{ConversionArgs, grid};
use crate::output::number;
use crate::schedule::{EachOp, TraceSchedule};
use crate::terminal::{CliError, Console, Exit};
use crate::trace::convert::{ConvertError, Ends, Line, Report};
use crate::trace::extrapolate::Grid;

/// Convert the trace of an MPI program to a schedule.
///
/// Calculations are the time between calls; a posted operation is waited for
/// where its completion was seen; receives take the messages that they took in
/// the program; collective operations are the messages of an algorithm.
/// docs/goal.md says what becomes of each call.
///
/// Reads the directory of 'loggap-mpi trace', or the texts of liballprof: one
/// file a rank, or that of rank 0, in whose name '-0' stands for the rank.
///
/// Prints what was converted, approximated and refused. Exits with 1 if
/// messages are not received, or not sent; --lenient leaves them out.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loggap goal from-trace loggap-trace -o app.lgs
  loggap goal from-trace loggap-trace --algorithms allreduce=ring,bcast=pipeline:64K -o app.lgs
  loggap goal from-trace /tmp/pmpi-trace-rank-0.txt --lenient -o app.goal
  loggap goal from-trace trace4 trace8 --to-ranks 64 -o app.lgs")]
pub(super) struct Args {
    /// Directory of a trace, or files of liballprof.
    ///
    /// Several directories are for --grid and --to-ranks.
    #[arg(value_name = "DIR|FILE", required = true)]
    inputs: Vec<PathBuf>,

    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    conversion: ConversionArgs,

    /// Run a larger grid, as AxB or TRACED:AxB: neighbours stay neighbours.
    ///
    /// The traced grid and its rings are those of MPI_Cart_create, or found.
    /// Along a dimension that grows it needs 3 ranks, or 2 where calls with
    /// MPI_PROC_NULL tell what one between them does.
    #[arg(long, value_name = "AxBxC", value_parser = grid, help_heading = "Conversion of traces")]
    grid: Option<Grid>,

    /// Print the report as JSON; without -o only that.
    #[arg(short = 'J', long)]
    json: bool,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    for input in &args.inputs {
        args.target.check_files(input, &[])?;
    }
    let warn = &mut |text: String| console.warn(text);
    let schedule = args.conversion.schedule(&args.inputs, args.grid.as_ref(), warn)?;
    let converted = Converted::new(&schedule).map_err(CliError::usage)?;
    let document = Document::new(&converted);
    let is_written = args.target.output.is_some();
    if is_written || !args.json {
        args.target.write(Some(Form::Text), &converted, console)?;
    }
    if is_written || args.json {
        console.report(args.json, &document, |out| print(out, &document))?;
    } else {
        for line in document.summary() {
            console.note(line);
        }
    }
    document.left_out.warn(console);
    if document.unmatched == 0 {
        return Ok(Exit::Done);
    }
    console.warn(format_args!(
        "{} messages are not received, or not sent: 'loggap trace check' lists them, --lenient leaves \
         them out",
        document.unmatched
    ));
    Ok(if args.conversion.lenient { Exit::Done } else { Exit::Failed })
}

/// A conversion whose size is known.
struct Converted<'c> {
    schedule: &'c TraceSchedule,
    report: Report,
    stats: Stats,
    messages: u64,
    unmatched: u64,
}

impl<'c> Converted<'c> {
    fn new(schedule: &'c TraceSchedule) -> Result<Self, ConvertError<Misuse>> {
        let (mut counter, mut ends) = (Counter::new(&mut []), Ends::default());
        let report = schedule.feed(&mut EachOp::new(&mut counter, |rank, op| {
            ends.add(rank, op);
            Ok(op)
        }))?;
        let finished = counter.finish();
        let (stats, _) = finished.map_err(|error| ConvertError::Sink { rank: 0, error })?;
        Ok(Self { schedule, report, stats, messages: ends.sends(), unmatched: ends.unmatched() })
    }

    fn play<S: Sink<Error: Into<WriteError>>>(&self, sink: &mut S) -> Result<(), Trouble> {
        let fed = self.schedule.feed(sink).map(drop);
        fed.map_err(|error| match error {
            ConvertError::Sink { error, .. } => Trouble::Write(error.into()),
            ConvertError::Trace(error) => Trouble::Options(error.to_string()),
            ConvertError::Incomplete(error) => Trouble::Options(error.to_string()),
        })
    }
}

impl Source for Converted<'_> {
    fn extent(&self) -> Result<Extent, Trouble> {
        Ok(self.stats.extent)
    }

    fn to_file(&self, writer: &mut Writer<'_, '_>) -> Result<(), Trouble> {
        self.play(writer)
    }

    fn to_stream(&self, writer: &mut StreamWriter<'_>) -> Result<(), Trouble> {
        self.play(writer)
    }
}

/// Contents of the report.
#[derive(Serialize)]
struct Document {
    ranks: u32,
    ops: usize,
    messages: u64,
    unmatched: u64,
    /// Time of all ranks from the return of `MPI_Init` on.
    time_s: f64,
    /// Calculations of the schedule, all ranks together.
    compute_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    extrapolation: Option<ExtrapolationReport>,
    converted: Vec<Line>,
    approximated: Vec<Line>,
    refused: Vec<Line>,
    #[serde(flatten)]
    left_out: LeftOut,
}

impl Document {
    fn new(converted: &Converted<'_>) -> Self {
        let Converted { schedule, report, stats, messages, unmatched } = converted;
        Self {
            ranks: stats.extent.ranks,
            ops: stats.extent.ops,
            messages: *messages,
            unmatched: *unmatched,
            time_s: report.time(),
            compute_s: report.compute(),
            extrapolation: schedule.extrapolation().map(ExtrapolationReport::new),
            converted: report.converted(),
            approximated: report.approximated(),
            refused: report.refused(),
            left_out: LeftOut::new(report),
        }
    }

    /// Lists with their names.
    fn lists(&self) -> [(&'static str, &[Line]); 3] {
        [
            ("converted", &self.converted),
            ("approximated", &self.approximated),
            ("refused", &self.refused),
        ]
    }

    fn summary(&self) -> impl Iterator<Item = String> {
        self.lists().into_iter().map(|(name, lines)| {
            let calls: u64 = lines.iter().map(|line| line.calls).sum();
            let share = lines.iter().fold(0.0, |sum, line| sum + line.share);
            format!("{name}: {calls} calls, {:.2}% of the time", share * 100.0)
        })
    }
}

fn print(out: &mut dyn Write, all: &Document) -> io::Result<()> {
    writeln!(
        out,
        "{} ranks, {} operations, {} messages, {} unmatched; of {} s the ranks computed {} s",
        all.ranks,
        all.ops,
        all.messages,
        all.unmatched,
        number::significant(all.time_s),
        number::significant(all.compute_s)
    )?;
    if let Some(extrapolation) = &all.extrapolation {
        extrapolation.write(out)?;
    }
    writeln!(out, "#              call                          calls   time[s]  share[%] reason")?;
    for (name, lines) in all.lists() {
        for Line { call, reason, calls, time_s, share } in lines {
            let (share, reason) = (share * 100.0, reason.unwrap_or(""));
            let line = format!("{name:14} {call:22} {calls:12} {time_s:9.4} {share:9.3} {reason}");
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    Ok(())
}
