//! JSON and CSV of `loggap best`.

use std::io::{self, Write};

use serde::Serialize;

use super::Report;
use crate::best::{Candidate, Cell, CommunicatorRules, TOLD_APART_PERCENT, Threshold, Time, Timed};
use crate::cli::digits::Digits;
use crate::cli::parameters_used::ParametersUsed;
use crate::output::{Fields, csv};

#[derive(Serialize)]
pub(super) struct Document {
    collective: &'static str,
    parameters: ParametersUsed,
    /// Number of draws from the intervals of the profile; 0 without any.
    draws: usize,
    seed: u64,
    told_apart_percent: usize,
    /// Algorithms slower than the fastest by more than this factor got no draws.
    draws_reach: f64,
    combine_s_per_byte: f64,
    element_bytes: u64,
    assume_commutative: bool,
    algorithms: Vec<Fields>,
    cells: Vec<CellDocument>,
    rules: Vec<RulesDocument>,
    /// Why cells are missing, if any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete: Option<String>,
}

#[derive(Serialize)]
struct CellDocument {
    ranks: u32,
    size_bytes: u64,
    /// Size in the sense of Open MPI's rules.
    rule_size_bytes: u64,
    winner: Option<Fields>,
    runner_up: Option<Fields>,
    /// Additional time of the runner-up, as a fraction of the winner's time.
    margin: Option<f64>,
    told_apart: Option<bool>,
    draws_won: Option<usize>,
    /// Algorithms less than 0.05% slower than the winner and not separated by draws.
    tied_with: Vec<&'static str>,
    /// Other algorithms that may be the fastest.
    not_told_from: Vec<&'static str>,
    candidates: Vec<Fields>,
}

#[derive(Serialize)]
struct RulesDocument {
    ranks: u32,
    thresholds: Vec<Fields>,
}

impl Document {
    pub(super) fn of(report: &Report<'_>) -> Self {
        let args = report.args;
        // "copies": within memory, besides the messages, which takes no simulated time.
        let algorithms = args.operation.algorithms().map(|algorithm| {
            Fields(vec![
                ("algorithm", algorithm.name.into()),
                ("number", algorithm.number.into()),
                ("needs_commutative", algorithm.commutes.into()),
                ("copies", algorithm.copies.into()),
            ])
        });
        let cells = report.done().iter();
        Self {
            collective: args.operation.name(),
            parameters: report.parameters.clone(),
            draws: report.draws,
            seed: args.seed,
            told_apart_percent: TOLD_APART_PERCENT,
            draws_reach: report.answer.reach,
            combine_s_per_byte: args.combine.seconds(),
            element_bytes: args.element,
            assume_commutative: args.assume_commutative,
            algorithms: algorithms.collect(),
            cells: cells.map(|cell| CellDocument::of(report, cell)).collect(),
            rules: report.rules.rows.iter().map(RulesDocument::of).collect(),
            incomplete: report.incomplete.clone(),
        }
    }
}

impl CellDocument {
    fn of(report: &Report<'_>, cell: &Cell) -> Self {
        let candidates: Vec<_> = cell.candidates.iter().map(fields).collect();
        Self {
            ranks: cell.ranks,
            size_bytes: cell.size,
            rule_size_bytes: report.args.operation.rule_size(cell.size, cell.ranks),
            winner: candidates.first().cloned(),
            runner_up: candidates.get(1).cloned(),
            margin: cell.margin(),
            told_apart: cell.is_told_apart(),
            draws_won: cell.contest.as_ref().map(|contest| contest.won),
            tied_with: cell.tied().map(|other| other.algorithm.name).collect(),
            not_told_from: cell.possible().skip(1).map(|rival| rival.algorithm.name).collect(),
            candidates,
        }
    }
}

/// Simulated time, seconds; `None` if the algorithm is known to be slower without a simulation.
fn simulated(time: Time) -> Option<f64> {
    match time {
        Time::Simulated(time) => Some(time.seconds()),
        Time::AtLeast(_) => None,
    }
}

fn fields(&Timed { candidate, time }: &Timed) -> Fields {
    let mut fields = vec![
        ("algorithm", candidate.algorithm.name.into()),
        ("number", candidate.algorithm.number.into()),
        // 0 for unsegmented messages.
        ("segment_bytes", candidate.segment.into()),
        ("time_s", simulated(time).into()),
    ];
    if let Time::AtLeast(time) = time {
        fields.push(("at_least_s", time.seconds().into()));
    }
    Fields(fields)
}

/// Columns of a candidate; empty without one.
fn columns(timed: Option<&Timed>) -> [String; 4] {
    timed.map_or_else(Default::default, |&Timed { candidate, time }| {
        let Candidate { algorithm, segment } = candidate;
        let (number, segment) = (algorithm.number.to_string(), segment.to_string());
        [algorithm.name.to_owned(), number, segment, csv::cell(simulated(time))]
    })
}

impl RulesDocument {
    fn of(row: &CommunicatorRules) -> Self {
        let thresholds = row.thresholds.iter().map(|Threshold { from, rule }| {
            Fields(vec![
                ("rule_size_bytes", (*from).into()),
                ("number", rule.algorithm.into()),
                ("fanout", rule.fanout.into()),
                ("segment_bytes", rule.segment.into()),
            ])
        });
        Self { ranks: row.ranks, thresholds: thresholds.collect() }
    }
}

/// Headings of the columns.
const HEADS: [&str; 14] = [
    "ranks",
    "size_bytes",
    "winner",
    "number",
    "segment_bytes",
    "time_s",
    "runner_up",
    "runner_up_number",
    "runner_up_segment_bytes",
    "runner_up_time_s",
    "margin",
    "told_apart",
    "draws_won",
    "parameters",
];

/// Writes a row per cell; unknown values are empty.
pub(super) fn write_csv(out: &mut dyn Write, report: &Report<'_>) -> io::Result<()> {
    let record = |cell: &Cell| {
        let head = [cell.ranks.to_string(), cell.size.to_string()];
        let [winner, runner_up] = [0, 1].map(|place| columns(cell.candidates.get(place)));
        let tail = [
            csv::cell(cell.margin()),
            csv::cell(cell.is_told_apart()),
            csv::cell(cell.contest.as_ref().map(|contest| contest.won)),
            report.parameters.text(Digits::Exact).to_owned(),
        ];
        head.into_iter().chain(winner).chain(runner_up).chain(tail)
    };
    csv::table(out, HEADS, report.done().iter().map(record), report.incomplete.as_deref())
}
