//! Report of a simulation.

use std::collections::BTreeMap;
use std::io::{self, Write};

use loggap_core::goal::{ANY, ANY_TAG, OpIndex};
use loggap_core::sim::{RankCounters, Unfinished};
use loggap_core::units::{Bytes, Picos};
use serde::Serialize;

use super::Args;
use super::explanation::Explanation;
use super::how::How;
use super::monte_carlo::{Distribution, Drawn};
use super::network_args::hosts_used;
use super::network_report::NetworkReport;
use super::noise_args::NoiseDocument;
use super::sensitivity::Sensitivities;
use super::sweep::SweepReport;
use crate::cli::digits::Digits;
use crate::cli::extrapolation::{ConversionReport, ExtrapolationReport};
use crate::cli::parameters_used::ParametersUsed;
use crate::output::{number, wrap};
use crate::simulation::{
    BlockedSend, Buffering, Hints, NetworkPlan, NoiseSource, Outcome, ParameterSets, RunError,
    Source, Stuck, Taper,
};
use crate::terminal::{CliError, Console, Exit};

/// Widest line, columns.
const WIDTH: usize = 100;
/// Width of a label, columns.
const LABEL: usize = 23;

/// Contents of the report, as JSON and as text.
#[derive(Serialize)]
pub(super) struct Report {
    ranks: u32,
    ops: u64,
    events: u64,
    /// Absent if the schedule did not complete.
    makespan_s: Option<f64>,
    makespan_ps: Option<u64>,
    last_rank: Option<u32>,
    load_s: f64,
    run_s: f64,
    events_per_s: Option<f64>,
    memory_bytes: u64,
    parameters: ParametersUsed,
    #[serde(skip_serializing_if = "Option::is_none")]
    noise: Option<NoiseDocument>,
    #[serde(flatten)]
    how: How,
    unmatched_total: u64,
    unmatched: Vec<StuckDocument>,
    /// Smallest S with which a schedule that relies on buffering completes.
    #[serde(skip_serializing_if = "Option::is_none")]
    smallest_eager_limit_bytes: Option<u64>,
    /// Number of unfinished operations and messages of such a schedule, whatever S is.
    #[serde(skip)]
    left_with_any_limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_ps: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<Vec<CountersDocument>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation>,
    /// Extrapolation of a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    extrapolation: Option<ExtrapolationReport>,
    /// Conversion of a trace on its own ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    conversion: Option<ConversionReport>,
    network: NetworkReport,
    #[serde(flatten)]
    sensitivities: Option<Sensitivities>,
    #[serde(skip_serializing_if = "Option::is_none")]
    monte_carlo: Option<Distribution>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<SweepReport>,
    /// Why further runs, or their results, are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete: Option<String>,
}

/// An operation or message that never completed.
#[derive(Serialize)]
struct StuckDocument {
    kind: &'static str,
    rank: u32,
    op: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset_bytes: Option<usize>,
    /// Size and eager limit S of a blocked send.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eager_limit_bytes: Option<u64>,
    message: String,
}

impl StuckDocument {
    /// Creates the entry; `rank` and `op` identify the operation in the schedule.
    fn new(left: &Unfinished) -> Self {
        let known = |rank: u32| Some(rank).filter(|&rank| rank != ANY);
        let tagged = |tag: u64| Some(tag).filter(|&tag| tag != ANY_TAG);
        let (kind, rank, op, peer, tag) = match *left {
            Unfinished::Unreceived { rank, from, op, tag } => {
                ("unreceived", from, op, Some(rank), tagged(tag))
            }
            Unfinished::Waiting { rank, op, peer, tag } => {
                ("waiting", rank, op, known(peer), tagged(tag))
            }
            Unfinished::NeverReady { rank, op } => ("never_ready", rank, op, None, None),
        };
        let message = left.to_string();
        let (line, offset_bytes, bytes, eager_limit_bytes) = (None, None, None, None);
        Self { kind, rank, op, peer, tag, line, offset_bytes, bytes, eager_limit_bytes, message }
    }

    /// Turns an unreceived message into its blocked send.
    fn block(&mut self, send: &BlockedSend) {
        let BlockedSend { rank, op, size: Bytes(size), eager_limit: Bytes(limit) } = *send;
        self.kind = "blocked_send";
        (self.bytes, self.eager_limit_bytes) = (Some(size), Some(limit));
        let peer = self.peer.map_or_else(|| "any".to_owned(), |peer| peer.to_string());
        let tag = self.tag.map_or_else(|| "any".to_owned(), |tag| tag.to_string());
        self.message = format!(
            "rank {rank} blocks in operation {op}, the send of {size} B to rank {peer} with tag {tag}: \
             above the eager limit S of {limit} B it waits for its receive"
        );
    }
}

/// Counters of one rank.
#[derive(Serialize)]
struct CountersDocument {
    rank: u32,
    calcs: u64,
    messages_sent: u64,
    bytes_sent: u64,
    messages_received: u64,
    messages_unexpected: u64,
    calculating_ps: u64,
    sending_ps: u64,
    receiving_ps: u64,
    noise_ps: u64,
    /// Makespan minus all of the above; summed over several processors.
    idle_ps: Option<u64>,
    messages_waited_ps: u64,
    max_posted: u32,
    max_unexpected: u32,
}

impl CountersDocument {
    fn new(rank: u32, counters: &RankCounters, makespan: Picos) -> Self {
        Self {
            rank,
            calcs: counters.calcs,
            messages_sent: counters.sent,
            bytes_sent: counters.bytes_sent.0,
            messages_received: counters.received,
            messages_unexpected: counters.unexpected,
            calculating_ps: counters.calculating.0,
            sending_ps: counters.sending.0,
            receiving_ps: counters.receiving.0,
            noise_ps: counters.noise.0,
            idle_ps: makespan.0.checked_sub(counters.busy().0),
            messages_waited_ps: counters.messages_waited.0,
            max_posted: counters.max_posted,
            max_unexpected: counters.max_unexpected,
        }
    }
}

impl Report {
    pub(super) fn new(
        args: &Args,
        source: &Source,
        sets: &ParameterSets,
        noise: Option<&NoiseSource>,
        outcome: &Outcome,
        hints: &Hints<'_>,
    ) -> Result<Self, CliError> {
        let finished = outcome.finished;
        // The set of the largest message, if there are several.
        let shown = hints.largest().filter(|_| sets.protocols.len() > 1).map(|size| size.0);
        let whole = outcome.stuck.total == 0;
        let explanation = match &outcome.causes {
            Some(causes) if args.explain && whole => Some(Explanation::of(causes, sets, outcome)?),
            _ => None,
        };
        let counters = outcome.counters.as_ref().map(|counters| {
            let document =
                |(rank, counters)| CountersDocument::new(rank, counters, finished.makespan);
            (0..).zip(counters).map(document).collect()
        });
        Ok(Self {
            ranks: outcome.ranks,
            ops: outcome.ops,
            events: finished.events,
            makespan_s: whole.then(|| finished.makespan.seconds()),
            makespan_ps: whole.then_some(finished.makespan.0),
            last_rank: whole.then_some(finished.last_rank),
            load_s: outcome.load.seconds(),
            run_s: outcome.run.seconds(),
            events_per_s: rate(finished.events, outcome.run),
            memory_bytes: outcome.memory_bytes,
            parameters: ParametersUsed::new(&args.parameters, sets, shown),
            noise: noise.map(|noise| args.noise.document(noise)),
            how: How::of(outcome),
            unmatched_total: outcome.stuck.total,
            unmatched: stuck(source, outcome)?,
            smallest_eager_limit_bytes: None,
            left_with_any_limit: None,
            finish_ps: outcome
                .finish
                .as_ref()
                .map(|finish| finish.iter().map(|time| time.0).collect()),
            counters,
            explanation,
            extrapolation: source.extrapolation().map(ExtrapolationReport::new),
            conversion: source.conversion_report().as_ref().map(ConversionReport::new),
            network: NetworkReport::new(args, sets, outcome),
            sensitivities: None,
            monte_carlo: None,
            sweep: None,
            incomplete: None,
        })
    }

    /// Adds the number of processes, and tells if most messages are sent between them.
    pub(super) fn add_processes(
        &mut self,
        processes: u32,
        outcome: &Outcome,
        console: &mut Console,
    ) {
        /// Share of the messages above which processes mostly wait for each other.
        const MOST: f64 = 0.5;
        self.how.add_processes(processes, outcome);
        if let Some(share) = self.how.crossing_share.filter(|share| *share > MOST) {
            console.warn(format_args!(
                "{}% of the messages are sent to another process, which takes longer; fewer processes, \
                 with more threads each, may be faster",
                number::significant(share * 100.0)
            ));
        }
    }

    pub(super) fn add_hosts_used(&mut self, plan: Option<&NetworkPlan>, ranks: u32) {
        if let Some(plan) = plan {
            self.network.add_hosts_used(hosts_used(plan, ranks));
        }
    }

    pub(super) fn add_taper(&mut self, taper: Option<Taper>) {
        self.network.add_taper(taper);
    }

    /// Distinguishes blocked sends from messages that are not received with any eager limit.
    pub(super) fn add_buffering(
        &mut self,
        found: Result<Option<Buffering>, RunError>,
        console: &mut Console,
    ) {
        let buffering = match found {
            Ok(Some(buffering)) => buffering,
            Ok(None) => return,
            Err(error) => {
                return console.note(format_args!("no run with a higher eager limit: {error}"));
            }
        };
        match buffering.smallest {
            Ok(Bytes(limit)) => self.smallest_eager_limit_bytes = Some(limit),
            Err(left) => self.left_with_any_limit = Some(left),
        }
        for left in self.unmatched.iter_mut().filter(|left| left.kind == "unreceived") {
            let is_it = |send: &&BlockedSend| (send.rank, send.op) == (left.rank, left.op);
            if let Some(send) = buffering.blocked.iter().find(is_it) {
                left.block(send);
            }
        }
    }

    pub(super) const fn sensitivities(&self) -> Option<&Sensitivities> {
        self.sensitivities.as_ref()
    }

    /// Adds sensitivities: `Some(None)` if their runs were interrupted, `None` if they failed.
    pub(super) fn add_sensitivities(&mut self, found: Option<Option<Sensitivities>>) {
        self.incomplete = match &found {
            Some(Some(found)) => found.interrupted(),
            Some(None) => Some("interrupted before the sensitivities were found".to_owned()),
            None => None,
        };
        self.sensitivities = found.flatten();
    }

    pub(super) fn add_monte_carlo(&mut self, drawn: Drawn) {
        self.monte_carlo = drawn.distribution;
        self.incomplete = drawn.interrupted;
    }

    pub(super) fn add_sweep(&mut self, sweep: SweepReport) {
        let earlier = self.incomplete.take();
        self.incomplete = earlier.or_else(|| sweep.interrupted());
        self.sweep = Some(sweep);
    }

    /// Outcome if nothing failed.
    pub(super) const fn exit(&self) -> Exit {
        if self.incomplete.is_some() { Exit::Interrupted } else { Exit::Done }
    }

    /// True if the schedule completed.
    pub(super) const fn is_whole(&self) -> bool {
        self.unmatched_total == 0
    }

    pub(super) fn print(&self, args: &Args, console: &mut Console) -> Result<Exit, CliError> {
        let extrapolated = self.extrapolation.as_ref().map(|report| &report.left_out);
        let left_out = extrapolated.or(self.conversion.as_ref().map(|report| &report.left_out));
        left_out.into_iter().for_each(|left_out| left_out.warn(console));
        let digits = args.format.digits(console);
        let width = console.data_terminal.map_or(WIDTH, |terminal| terminal.width.min(WIDTH));
        console.report(args.format.json, self, |out| self.print_text(out, digits, width))?;
        if self.is_whole() {
            return Ok(Exit::Done);
        }
        console.flush()?;
        for left in &self.unmatched {
            match left.line {
                Some(line) => console.note(format_args!("line {line}: {}", left.message)),
                None => console.note(&left.message),
            }
        }
        let more = self.unmatched_total - self.unmatched.len() as u64;
        let more = if more > 0 { format!(" ({more} more are not listed)") } else { String::new() };
        let hint = self.cause();
        Err(CliError::failed(format_args!(
            "the schedule cannot come to its end: {} operations and messages are left{more}; {hint}",
            self.unmatched_total
        )))
    }

    /// Why the schedule does not complete, and remedies.
    fn cause(&self) -> String {
        let all = |kind| self.unmatched.iter().all(|left| left.kind == kind);
        let any = |kind| self.unmatched.iter().any(|left| left.kind == kind);
        if let Some(limit) = self.smallest_eager_limit_bytes {
            return format!(
                "sends block for want of a buffer: it ends with S = {limit} B (-S {limit}), \
                 or with receives that do not wait for these sends"
            );
        }
        if let Some(left) = self.left_with_any_limit {
            return format!(
                "sends block for want of a buffer, but no eager limit S suffices: {left} would be left"
            );
        }
        if !all("never_ready") && (self.conversion.is_some() || self.extrapolation.is_some()) {
            return "'loggap trace check' shows messages without a partner, and --lenient leaves them out; \
                    where there are none, ranks wait for each other".to_owned();
        }
        let hint = if all("never_ready") {
            "operations that wait for each other are shown by 'loggap goal check'"
        } else if any("never_ready") {
            "messages without a partner are shown by 'loggap goal check'; where there are none, ranks wait \
             for each other"
        } else {
            "'loggap goal check' shows messages without a partner"
        };
        hint.to_owned()
    }

    /// Prints the text; rounded times are for a terminal, at whose `width` lines are wrapped.
    fn print_text(&self, out: &mut dyn Write, digits: Digits, width: usize) -> io::Result<()> {
        if digits == Digits::Exact {
            return self.write(out, digits);
        }
        let mut text = Vec::new();
        self.write(&mut text, digits)?;
        for line in String::from_utf8_lossy(&text).lines() {
            // Wraps sentences but not rows of tables. Continued lines are indented to the column
            // after the label.
            let (indent, text) = match line.strip_prefix("# ") {
                Some(remark) => (2, remark),
                None => (LABEL, line),
            };
            let is_sentence = text.starts_with(char::is_alphabetic);
            let lines = if is_sentence { wrap(line, width, indent) } else { vec![line.to_owned()] };
            lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        Ok(())
    }

    fn write(&self, out: &mut dyn Write, digits: Digits) -> io::Result<()> {
        if let (Some(makespan), Some(rank)) = (self.makespan_ps, self.last_rank) {
            writeln!(out, "makespan               {}, on rank {rank}", digits.time(makespan))?;
        } else {
            writeln!(out, "makespan               none: the schedule does not come to its end")?;
        }
        writeln!(out, "parameters             {}", self.parameters.text(digits))?;
        if let Some(noise) = &self.noise {
            writeln!(out, "noise of each rank     {}", noise.text(digits))?;
        }
        let count = |count: u64| match digits {
            Digits::Exact => count.to_string(),
            Digits::Rounded => number::count(count),
        };
        // Rounded numbers contain commas themselves.
        let comma = if digits == Digits::Exact { "," } else { " and" };
        let (ranks, ops) = (count(self.ranks.into()), count(self.ops));
        writeln!(out, "ranks, operations      {ranks}{comma} {ops}")?;
        writeln!(out, "events                 {}", count(self.events))?;
        let speed = self.events_per_s.map(speed).unwrap_or_default();
        writeln!(out, "time to load, to run   {:.3} s, {:.3} s{speed}", self.load_s, self.run_s)?;
        if let Some(extrapolation) = &self.extrapolation {
            extrapolation.write(out)?;
        }
        if let Some(conversion) = &self.conversion {
            conversion.write(out)?;
        }
        self.how.write(out)?;
        self.network.write(out)?;
        if let Some(explanation) = &self.explanation {
            explanation.write(out, digits)?;
        }
        if let Some(sensitivities) = &self.sensitivities {
            sensitivities.write(out, digits)?;
        }
        if let Some(distribution) = &self.monte_carlo {
            distribution.write(out, digits)?;
        }
        if let Some(sweep) = &self.sweep {
            sweep.write(out, digits, self.sensitivities.as_ref())?;
        }
        if let Some(why) = &self.incomplete {
            writeln!(out, "# INCOMPLETE: {why}")?;
        }
        if let Some(counters) = &self.counters {
            write_counters(out, digits, counters)?;
        }
        if let Some(finish) = &self.finish_ps {
            writeln!(out, "#  rank {:>16}", digits.head("finish"))?;
            for (rank, finish) in finish.iter().enumerate() {
                writeln!(out, "{rank:>7} {:>16}", digits.cell(*finish))?;
            }
        }
        Ok(())
    }
}

#[allow(clippy::cast_precision_loss, reason = "a rate of few digits")]
fn rate(events: u64, run: Picos) -> Option<f64> {
    (run > Picos::ZERO).then(|| events as f64 / run.seconds())
}

/// Formats a rate in a suitable unit, in parentheses.
fn speed(events_per_s: f64) -> String {
    match events_per_s {
        1e6.. => format!(" ({:.1} million events/s)", events_per_s / 1e6),
        1e3.. => format!(" ({:.1} thousand events/s)", events_per_s / 1e3),
        _ => format!(" ({events_per_s:.0} events/s)"),
    }
}

/// Writes a row per rank; without units in the headings it fits a terminal.
fn write_counters(
    out: &mut dyn Write,
    digits: Digits,
    counters: &[CountersDocument],
) -> io::Result<()> {
    let times = ["calculating", "sending", "receiving", "noise", "idle", "msgs.waited"];
    let rounded = ["calc", "sending", "receiv.", "noise", "idle", "waited"];
    let (width, times, queue) = match digits {
        Digits::Exact => (15, times, "unexp.most"),
        Digits::Rounded => (8, rounded, "queued"),
    };
    let heads = times.map(|name| format!(" {:>width$}", digits.head(name))).concat();
    writeln!(out, "#  rank    sent received unexp.{heads} posted {queue}")?;
    for c in counters {
        let times = [c.calculating_ps, c.sending_ps, c.receiving_ps, c.noise_ps];
        let mut cells = times.map(|picos| digits.cell(picos)).to_vec();
        cells.push(c.idle_ps.map_or_else(|| "-".to_owned(), |picos| digits.cell(picos)));
        cells.push(digits.cell(c.messages_waited_ps));
        let cells: String = cells.iter().map(|cell| format!(" {cell:>width$}")).collect();
        writeln!(
            out,
            "{:>7} {:>7} {:>8} {:>6}{cells} {:>6} {:>last$}",
            c.rank,
            c.messages_sent,
            c.messages_received,
            c.messages_unexpected,
            c.max_posted,
            c.max_unexpected,
            last = queue.len(),
        )?;
    }
    Ok(())
}

/// Entries of all unfinished operations and messages, with their places if the schedule is a text.
fn stuck(source: &Source, outcome: &Outcome) -> Result<Vec<StuckDocument>, CliError> {
    let mut left: Vec<_> =
        outcome.stuck.listed().take(Stuck::LISTED).map(StuckDocument::new).collect();
    let Source::File(file) = source else { return Ok(left) };
    if left.is_empty() {
        return Ok(left);
    }
    let places: Vec<_> = left.iter().map(|left| OpIndex { rank: left.rank, op: left.op }).collect();
    let found = file.locate(&places).map_err(CliError::usage)?;
    let found: BTreeMap<_, _> =
        found.into_iter().map(|at| ((at.rank, at.op), (at.line, at.offset))).collect();
    for left in &mut left {
        let place = found.get(&(left.rank, left.op));
        left.line = place.map(|place| place.0);
        left.offset_bytes = place.map(|place| place.1);
    }
    Ok(left)
}
