//! `loggap trace export`: records for people and other programs.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use loggap_core::trace::{ANY_PEER, ANY_TAG, Completed, Direction, Envelope, Message, Outcome};
use serde_json::{Value, json};

use super::open;
use crate::output::PendingFile;
use crate::terminal::{CliError, Console, Exit, NamedFiles};
use crate::trace::{Pair, Record, Trace, TraceError, What, pairs};

/// Write the records as text, CSV, JSON, or for Perfetto.
///
/// Times are those of rank 0's clock, counted from its entry into MPI_Init.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loggap trace export loggap-trace --format pairs -o pairs.csv
  loggap trace export loggap-trace -o trace.json   open in ui.perfetto.dev")]
pub(super) struct Args {
    /// Directory that 'loggap-mpi trace -o' wrote.
    #[arg(value_name = "DIR")]
    input: PathBuf,

    /// Form to write [default: by the ending of -o: .txt, .csv, .jsonl for json, .json for
    /// perfetto; text without an ending].
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// File to write; standard output unless given.
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// A line a record.
    Text,
    /// A row for each part of a record: message, completion, collective.
    Csv,
    /// CSV with a row a message: both ends, matched.
    Pairs,
    /// A JSON document a line.
    Json,
    /// Trace events for ui.perfetto.dev and chrome://tracing.
    Perfetto,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let mut files = NamedFiles::default();
    let ending = args.output.as_deref().and_then(Path::extension).and_then(OsStr::to_str);
    let format = match (args.format, ending) {
        (Some(format), _) => format,
        (None, None | Some("txt")) => Format::Text,
        (None, Some("csv")) => Format::Csv,
        (None, Some("jsonl")) => Format::Json,
        (None, Some("json")) => Format::Perfetto,
        (None, Some(other)) => {
            return Err(CliError::usage(format_args!(
                "the ending .{other} tells no form, as .txt, .csv, .jsonl and .json do: give --format"
            )));
        }
    };
    let endings: &[&str] = match format {
        Format::Csv | Format::Pairs => &["csv"],
        Format::Json => &["jsonl", "json"],
        Format::Perfetto => &["json"],
        Format::Text => &["txt"],
    };
    files.written("--output", args.output.as_deref(), endings);
    files.check()?;
    let trace = open(&args.input, console)?;
    let mut wrong = None;
    let mut write = |out: &mut dyn Write| write(&trace, format, out, &mut wrong);
    let written = match &args.output {
        Some(path) => {
            let file = PendingFile::create(path).map_err(CliError::failed)?;
            file.commit(write).map_err(CliError::failed)
        }
        None => write(console.data()).map_err(CliError::from),
    };
    match wrong {
        Some(error) => Err(CliError::usage(error)),
        None => written.map(|()| Exit::Done),
    }
}

/// Writes the trace; an error of it goes to `wrong`.
fn write(
    trace: &Trace,
    format: Format,
    out: &mut dyn Write,
    wrong: &mut Option<TraceError>,
) -> io::Result<()> {
    let mut failed = |error| {
        *wrong = Some(error);
        io::Error::from(io::ErrorKind::InvalidData)
    };
    match format {
        Format::Pairs => {
            writeln!(out, "from,to,tag,communicator,bytes,sent_s,posted_s,received_s")?;
            return write_pairs(&pairs(trace).map_err(failed)?, out);
        }
        Format::Csv => writeln!(
            out,
            "rank,thread,call,enter_s,leave_s,kind,peer,tag,bytes,communicator,request,count"
        )?,
        Format::Perfetto => write!(out, "{{\"traceEvents\":[")?,
        Format::Text | Format::Json => {}
    }
    let mut is_first = true;
    for record in trace.merged() {
        let (rank, record) = record.map_err(&mut failed)?;
        let at = Place { trace, rank, record: &record };
        match format {
            Format::Csv => at.csv(out)?,
            Format::Json => writeln!(out, "{}", at.json())?,
            Format::Perfetto => {
                let comma = if is_first { "" } else { "," };
                write!(out, "{comma}\n{}", at.event())?;
            }
            Format::Text | Format::Pairs => at.text(out)?,
        }
        is_first = false;
    }
    if matches!(format, Format::Perfetto) {
        writeln!(out, "\n]}}")?;
    }
    Ok(())
}

fn write_pairs(pairs: &[Pair], out: &mut dyn Write) -> io::Result<()> {
    for pair in pairs {
        let key = pair.key;
        let [sent, posted, received] = [pair.sent, pair.posted, pair.received].map(seconds);
        writeln!(
            out,
            "{},{},{},{:016x},{},{sent},{posted},{received}",
            key.from, key.to, key.tag, key.communicator, pair.bytes
        )?;
    }
    Ok(())
}

/// Seconds with all nine digits.
fn seconds(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    format!("{sign}{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// A record of a rank.
struct Place<'a> {
    trace: &'a Trace,
    rank: u32,
    record: &'a Record<'a>,
}

/// A part of a record, as a row.
#[derive(Default)]
struct Row {
    kind: &'static str,
    call: Option<String>,
    envelope: Option<Envelope>,
    communicator: Option<u32>,
    request: Option<u64>,
    count: Option<u64>,
}

impl Place<'_> {
    fn times(&self) -> [i64; 2] {
        [self.record.enter, self.record.leave].map(|nanos| self.trace.time(self.rank, nanos))
    }

    fn identity(&self, number: u32) -> String {
        let comm =
            self.trace.ranks().get(self.rank as usize).and_then(|rank| rank.communicator(number));
        comm.map_or_else(String::new, |comm| format!("{:016x}", comm.identity))
    }

    fn rows(&self) -> Vec<Row> {
        let with = |kind, envelope: Envelope| Row {
            kind,
            communicator: Some(envelope.communicator),
            envelope: Some(envelope),
            ..Row::default()
        };
        match &self.record.what {
            What::Call => vec![Row { kind: "call", ..Row::default() }],
            What::Messages(all) => {
                let row = |one: &Message| {
                    let kind = if one.direction == Direction::Send { "send" } else { "receive" };
                    Row { request: one.request, ..with(kind, one.envelope) }
                };
                all.iter().map(row).collect()
            }
            What::Completions(all) => {
                let row = |one: &Completed| {
                    let row = match one.outcome {
                        Outcome::Received(envelope) => with("received", envelope),
                        Outcome::Done => Row { kind: "done", ..Row::default() },
                        Outcome::Cancelled => Row { kind: "cancelled", ..Row::default() },
                        Outcome::Freed => Row { kind: "freed", ..Row::default() },
                    };
                    Row { request: Some(one.request), ..row }
                };
                all.iter().map(row).collect()
            }
            What::Collective { operation, sent, received } => {
                let row = |kind, bytes, count| {
                    let peer = operation.root.unwrap_or(ANY_PEER);
                    let communicator = operation.communicator;
                    let envelope = Envelope { peer, tag: ANY_TAG, bytes, communicator };
                    Row { request: operation.request, count, ..with(kind, envelope) }
                };
                let each = |kind| move |&(peers, bytes): &(u64, u64)| row(kind, bytes, Some(peers));
                let mut rows =
                    vec![row("collective", operation.sent.max(operation.received), None)];
                rows.extend(sent.runs().iter().map(each("to_each")));
                rows.extend(received.runs().iter().map(each("from_each")));
                rows
            }
            What::Probe(envelope) => vec![with("probed", *envelope)],
            What::Tests(tests) => {
                let row = |(name, count): &(&str, u64)| {
                    let (call, count) = (Some((*name).to_owned()), Some(*count));
                    Row { kind: "tests", call, count, ..Row::default() }
                };
                tests.counts.iter().map(row).collect()
            }
            What::Communicator { number, freed } => {
                let kind = if *freed { "freed_communicator" } else { "communicator" };
                vec![Row { kind, communicator: Some(*number), ..Row::default() }]
            }
        }
    }

    fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let [enter, leave] = self.times().map(seconds);
        let Record { call, thread, .. } = self.record;
        for row in self.rows() {
            let cell = |value: Option<String>| value.unwrap_or_default();
            let name = row.call.as_deref().unwrap_or(call);
            writeln!(
                out,
                "{},{thread},{name},{enter},{leave},{},{},{},{},{},{},{}",
                self.rank,
                row.kind,
                cell(row.envelope.map(|one| one.peer.to_string())),
                cell(row.envelope.map(|one| one.tag.to_string())),
                cell(row.envelope.map(|one| one.bytes.to_string())),
                cell(row.communicator.map(|number| self.identity(number))),
                cell(row.request.map(|request| request.to_string())),
                cell(row.count.map(|count| count.to_string())),
            )?;
        }
        Ok(())
    }

    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let [enter, leave] = self.times();
        let Record { call, thread, .. } = self.record;
        let span = seconds(leave.saturating_sub(enter));
        write!(out, "{} {span} rank {} thread {thread} {call}", seconds(enter), self.rank)?;
        for row in self.rows() {
            let mut text = String::new();
            if let Some(name) = &row.call {
                let _infallible = write!(text, " {name}");
            }
            if let Some(Envelope { peer, tag, bytes, .. }) = row.envelope {
                let _infallible = write!(text, " {peer} tag {tag} {bytes} B");
            }
            if let Some(request) = row.request {
                let _infallible = write!(text, " request {request}");
            }
            if let Some(count) = row.count {
                let _infallible = write!(text, " x{count}");
            }
            if row.kind != "call" {
                write!(out, " [{}{text}]", row.kind)?;
            }
        }
        writeln!(out)
    }

    fn json(&self) -> Value {
        let [enter, leave] = self.times();
        let Record { call, thread, .. } = self.record;
        json!({
            "rank": self.rank, "thread": thread, "call": call, "enter_ns": enter, "leave_ns": leave,
            "parts": self.parts(),
        })
    }

    fn parts(&self) -> Vec<Value> {
        let part = |row: Row| {
            json!({
                "kind": row.kind, "call": row.call, "peer": row.envelope.map(|one| one.peer),
                "tag": row.envelope.map(|one| one.tag), "bytes": row.envelope.map(|one| one.bytes),
                "communicator": row.communicator.map(|number| self.identity(number)),
                "request": row.request, "count": row.count,
            })
        };
        self.rows().into_iter().map(part).collect()
    }

    /// A complete event of the trace event format; times are microseconds.
    fn event(&self) -> Value {
        let [enter, leave] = self.times();
        let span = leave.saturating_sub(enter);
        #[allow(clippy::cast_precision_loss, reason = "below 104 days the nanosecond is kept")]
        let micros = |nanos: i64| nanos as f64 / 1e3;
        json!({
            "name": self.record.call, "ph": "X", "ts": micros(enter), "dur": micros(span),
            "pid": self.rank, "tid": self.record.thread, "args": { "parts": self.parts() },
        })
    }
}
