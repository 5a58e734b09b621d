//! JSON and CSV of `loggap best`.

use std::io::{self, Write};

use serde::Serialize;

use super::Report;
use crate::best::{Cell, CommunicatorRules, TOLD_APART_PERCENT, Threshold, Time, Timed};
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
    winner: Option<CandidateDocument>,
    runner_up: Option<CandidateDocument>,
    /// Additional time of the runner-up, as a fraction of the winner's time.
    margin: Option<f64>,
    told_apart: Option<bool>,
    draws_won: Option<usize>,
    /// Algorithms less than 0.05% slower than the winner and not separated by draws.
    tied_with: Vec<&'static str>,
    /// Other algorithms that may be the fastest.
    not_told_from: Vec<&'static str>,
    candidates: Vec<CandidateDocument>,
}

#[derive(Clone, Serialize)]
struct CandidateDocument {
    algorithm: &'static str,
    number: u32,
    /// Segment size; 0 for unsegmented messages.
    segment_bytes: u64,
    /// Simulated time; null if the algorithm is known to be slower without a simulation.
    time_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least_s: Option<f64>,
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
        let candidates: Vec<_> = cell.candidates.iter().map(CandidateDocument::of).collect();
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

impl CandidateDocument {
    fn of(Timed { candidate, time }: &Timed) -> Self {
        let (time_s, at_least_s) = match time {
            Time::Simulated(time) => (Some(time.seconds()), None),
            Time::AtLeast(time) => (None, Some(time.seconds())),
        };
        Self {
            algorithm: candidate.algorithm.name,
            number: candidate.algorithm.number,
            segment_bytes: candidate.segment,
            time_s,
            at_least_s,
        }
    }

    /// Fields as text, for columns.
    fn fields(&self) -> [String; 4] {
        let Self { algorithm, number, segment_bytes, time_s, .. } = self;
        [(*algorithm).to_owned(), number.to_string(), segment_bytes.to_string(), csv::cell(*time_s)]
    }
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
        let cell = CellDocument::of(report, cell);
        let head = [cell.ranks.to_string(), cell.size_bytes.to_string()];
        let both = [&cell.winner, &cell.runner_up];
        let both = both.map(|candidate| candidate.as_ref().map(CandidateDocument::fields));
        let both = both.into_iter().flat_map(Option::unwrap_or_default);
        let parameters = report.parameters.text(Digits::Exact).to_owned();
        let tail = [
            csv::cell(cell.margin),
            csv::cell(cell.told_apart),
            csv::cell(cell.draws_won),
            parameters,
        ];
        head.into_iter().chain(both).chain(tail)
    };
    csv::table(out, HEADS, report.done().iter().map(record), report.incomplete.as_deref())
}
