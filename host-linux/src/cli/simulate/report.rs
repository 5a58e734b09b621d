//! What a simulation prints.

use std::collections::BTreeMap;
use std::io::{self, Write};

use loggap_core::goal::{ANY, ANY_TAG};
use loggap_core::sim::network::Taper;
use loggap_core::sim::{RankCounters, Unfinished};
use loggap_core::units::Picos;
use serde::Serialize;

use super::Args;
use super::explanation::{Explanation, nanos};
use super::how::How;
use super::monte_carlo::{Distribution, Drawn};
use super::network_args::hosts_used;
use super::network_report::NetworkReport;
use super::sensitivity::Sensitivities;
use super::sweep::SweepReport;
use crate::cli::parameters_used::ParametersUsed;
use crate::cli::{CliError, Console, Exit};
use crate::simulation::{NetworkPlan, Outcome, ParameterSets, Source, Stuck};

/// What `--json` prints and the text says.
#[derive(Serialize)]
pub(super) struct Report {
    schema_version: u32,
    ranks: u32,
    ops: u64,
    events: u64,
    /// Absent where the schedule did not come to its end.
    makespan_s: Option<f64>,
    makespan_ps: Option<u64>,
    last_rank: Option<u32>,
    load_s: f64,
    run_s: f64,
    events_per_s: Option<f64>,
    memory_bytes: u64,
    parameters: ParametersUsed,
    #[serde(flatten)]
    how: How,
    unmatched_total: u64,
    unmatched: Vec<StuckDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_ps: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<Vec<CountersDocument>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation>,
    network: NetworkReport,
    #[serde(flatten)]
    sensitivities: Option<Sensitivities>,
    #[serde(skip_serializing_if = "Option::is_none")]
    monte_carlo: Option<Distribution>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<SweepReport>,
    /// Why further runs, or what they find, are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete: Option<String>,
}

/// Something that never came to its end.
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
    message: String,
}

impl StuckDocument {
    /// `rank` and `op` are those of the operation in the schedule.
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
        Self { kind, rank, op, peer, tag, line: None, offset_bytes: None, message }
    }
}

/// What one rank did.
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
    /// The makespan less all that; of several processors together.
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
        outcome: &Outcome,
    ) -> Result<Self, CliError> {
        let finished = outcome.finished;
        let whole = outcome.stuck.total == 0;
        let explanation = match &outcome.causes {
            Some(causes) if args.explain && whole => {
                let model = args.network.model().filter(|_| outcome.network.is_some());
                Some(Explanation::of(causes, sets, finished.last_rank, model)?)
            }
            _ => None,
        };
        let counters = outcome.counters.as_ref().map(|counters| {
            let document =
                |(rank, counters)| CountersDocument::new(rank, counters, finished.makespan);
            (0..).zip(counters).map(document).collect()
        });
        Ok(Self {
            schema_version: 1,
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
            parameters: ParametersUsed::new(&args.parameters, sets),
            how: How::of(outcome),
            unmatched_total: outcome.stuck.total,
            unmatched: stuck(source, outcome)?,
            finish_ps: outcome
                .finish
                .as_ref()
                .map(|finish| finish.iter().map(|time| time.0).collect()),
            counters,
            explanation,
            network: NetworkReport::new(args, sets, outcome),
            sensitivities: None,
            monte_carlo: None,
            sweep: None,
            incomplete: None,
        })
    }

    pub(super) fn add_hosts_used(&mut self, plan: Option<&NetworkPlan>, ranks: u32) {
        if let Some(plan) = plan {
            self.network.add_hosts_used(hosts_used(plan, ranks));
        }
    }

    pub(super) fn add_taper(&mut self, taper: Option<Taper>) {
        self.network.add_taper(taper);
    }

    pub(super) const fn sensitivities(&self) -> Option<&Sensitivities> {
        self.sensitivities.as_ref()
    }

    /// Adds sensitivities: `Some(None)` where somebody stopped the runs that find them, `None`
    /// where they failed.
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

    /// How to exit after nothing failed.
    pub(super) const fn exit(&self) -> Exit {
        if self.incomplete.is_some() { Exit::Interrupted } else { Exit::Done }
    }

    /// Whether the schedule came to its end.
    pub(super) const fn is_whole(&self) -> bool {
        self.unmatched_total == 0
    }

    pub(super) fn print(&self, args: &Args, console: &mut Console) -> Result<Exit, CliError> {
        if let (None, Some(reason)) = (args.program, &self.how.program_reason) {
            console
                .note(format_args!("the operations were read from the file as it ran: {reason}"));
        }
        if args.json {
            console.json(self)?;
        } else {
            self.write(console.data())?;
        }
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
        let cycle = self.unmatched.iter().all(|left| left.kind == "never_ready");
        let hint = if cycle {
            "; operations that wait for each other are shown by 'loggap goal check'"
        } else {
            "; 'loggap goal check' finds messages that cannot match"
        };
        Err(CliError::failed(format_args!(
            "the schedule cannot come to its end: {} operations and messages are left{more}{hint}",
            self.unmatched_total
        )))
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if let (Some(makespan), Some(rank)) = (self.makespan_ps, self.last_rank) {
            writeln!(out, "makespan               {} ns, on rank {rank}", nanos(makespan))?;
        } else {
            writeln!(out, "makespan               none: the schedule does not come to its end")?;
        }
        writeln!(out, "parameters             {}", self.parameters.text())?;
        writeln!(out, "ranks, operations      {}, {}", self.ranks, self.ops)?;
        writeln!(out, "events                 {}", self.events)?;
        let speed = self.events_per_s.map(speed).unwrap_or_default();
        writeln!(out, "time to load, to run   {:.3} s, {:.3} s{speed}", self.load_s, self.run_s)?;
        self.how.write(out)?;
        self.network.write(out)?;
        if let Some(explanation) = &self.explanation {
            explanation.write(out)?;
        }
        if let Some(sensitivities) = &self.sensitivities {
            sensitivities.write(out)?;
        }
        if let Some(distribution) = &self.monte_carlo {
            distribution.write(out)?;
        }
        if let Some(sweep) = &self.sweep {
            sweep.write(out, self.sensitivities.as_ref())?;
        }
        if let Some(why) = &self.incomplete {
            writeln!(out, "# INCOMPLETE: {why}")?;
        }
        if let Some(counters) = &self.counters {
            write_counters(out, counters)?;
        }
        if let Some(finish) = &self.finish_ps {
            writeln!(out, "#  rank       finish[ns]")?;
            for (rank, finish) in finish.iter().enumerate() {
                writeln!(out, "{rank:>7} {:>16}", nanos(*finish))?;
            }
        }
        Ok(())
    }
}

#[allow(clippy::cast_precision_loss, reason = "a rate of few digits")]
fn rate(events: u64, run: Picos) -> Option<f64> {
    (run > Picos::ZERO).then(|| events as f64 / run.seconds())
}

/// A rate in a unit that suits its size, in parentheses.
fn speed(events_per_s: f64) -> String {
    match events_per_s {
        1e6.. => format!(" ({:.1} million events/s)", events_per_s / 1e6),
        1e3.. => format!(" ({:.1} thousand events/s)", events_per_s / 1e3),
        _ => format!(" ({events_per_s:.0} events/s)"),
    }
}

fn write_counters(out: &mut dyn Write, counters: &[CountersDocument]) -> io::Result<()> {
    writeln!(
        out,
        "#  rank     sent received unexp. calculating[ns]     sending[ns]   receiving[ns]       \
         noise[ns]        idle[ns] msgs.waited[ns] posted unexp.most"
    )?;
    for c in counters {
        let idle = c.idle_ps.map_or_else(|| "-".to_owned(), nanos);
        writeln!(
            out,
            "{:>7} {:>8} {:>8} {:>6} {:>15} {:>15} {:>15} {:>15} {:>15} {:>15} {:>6} {:>10}",
            c.rank,
            c.messages_sent,
            c.messages_received,
            c.messages_unexpected,
            nanos(c.calculating_ps),
            nanos(c.sending_ps),
            nanos(c.receiving_ps),
            nanos(c.noise_ps),
            idle,
            nanos(c.messages_waited_ps),
            c.max_posted,
            c.max_unexpected,
        )?;
    }
    Ok(())
}

/// The list of what is left, with places where the schedule is a text.
fn stuck(source: &Source, outcome: &Outcome) -> Result<Vec<StuckDocument>, CliError> {
    let mut left: Vec<_> =
        outcome.stuck.listed().take(Stuck::LISTED).map(StuckDocument::new).collect();
    let Source::File(file) = source else { return Ok(left) };
    if left.is_empty() {
        return Ok(left);
    }
    let places: Vec<_> = left.iter().map(|left| (left.rank, left.op)).collect();
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
