//! Files of `loggap best`: rules and a map.

use std::path::PathBuf;

use super::{Args, Report};
use crate::best::{Candidate, Cell, Timed};
use crate::cli::digits::Digits;
use crate::output::plot::winners::{Labels, WinnerMap, WonCell};
use crate::output::{PendingFile, number};
use crate::terminal::{CliError, command_line};

/// Requested files, opened before the work.
pub(super) struct Files {
    rules: Option<PendingFile>,
    plot: Option<PendingFile>,
}

impl Files {
    pub(super) fn open(args: &Args) -> Result<Self, CliError> {
        let open = |path: &Option<PathBuf>| {
            path.as_ref().map(PendingFile::create).transpose().map_err(CliError::failed)
        };
        Ok(Self { rules: open(&args.rules)?, plot: open(&args.plot)? })
    }

    /// Writes both files; a failure of one does not prevent the other.
    pub(super) fn write(self, report: &Report<'_>) -> [Result<(), CliError>; 2] {
        let Self { rules, plot } = self;
        let rules = rules.map_or(Ok(()), |file| {
            let remarks = remarks(report, &file.path().display().to_string());
            let rules =
                if report.args.rules_probe { report.rules.probe() } else { report.rules.clone() };
            file.commit(|out| rules.write(out, report.args.rules_format, &remarks))
                .map_err(CliError::failed)
        });
        let plot = plot.map_or(Ok(()), |file| {
            let svg = map(report).svg().map_err(CliError::failed)?;
            file.commit(|out| out.write_all(svg.as_bytes())).map_err(CliError::failed)
        });
        [rules, plot]
    }
}

/// Comments above the rules.
fn remarks(report: &Report<'_>, path: &str) -> Vec<String> {
    let Report { args, ranks, sizes, .. } = report;
    let unit = match args.operation.rule_size(1, 2) {
        0 => "sizes: always 0 for a barrier",
        1 => "sizes: count times type, in bytes",
        _ => "sizes: count times type times ranks, in bytes",
    };
    let mut remarks = vec![
        format!("Rules of coll/tuned of Open MPI 4.1 for {}, from simulations.", args.operation),
        format!("Made by: {}", command_line().join(" ")),
        format!(
            "Load: mpirun --mca coll_tuned_use_dynamic_rules 1 --mca \
             coll_tuned_dynamic_rules_filename {path} ..."
        ),
        "Open MPI says nothing when it cannot read this file. To prove that it does, write it once \
         more"
            .to_owned(),
        "with --rules-probe: a call that these rules apply to then fails with MPI_ERR_ARG.".to_owned(),
        format!("Parameters: {}.", report.parameters.text(Digits::Exact)),
        unit.to_owned(),
        "A rule holds from the smallest tested size (number of ranks) at which it was the best until"
            .to_owned(),
        "the next one; below the first and from twice the last on Open MPI decides (algorithm 0)."
            .to_owned(),
        "Algorithms less than 0.05% apart tie: the rule before or after holds there, too.".to_owned(),
    ];
    if let (Some(first), Some(last), Some(low), Some(high)) =
        (ranks.first(), ranks.last(), sizes.first(), sizes.last())
    {
        let sizes = if args.operation.has_size() {
            format!(", {} to {} B", low, high)
        } else {
            String::new()
        };
        remarks.push(format!("Tested: {first} to {last} ranks{sizes}."));
    }
    if let Some(why) = &report.incomplete {
        remarks.push(format!("INCOMPLETE: {why}; what is missing is left to Open MPI."));
    }
    if args.assume_commutative {
        remarks.push("Only for operators that commute (--assume-commutative).".to_owned());
    }
    if args.rules_probe {
        remarks
            .push("PROBE: algorithm 99 does not exist. Do not use this file for work.".to_owned());
    }
    remarks
}

/// Name of a candidate with its segment size.
pub(super) fn name(candidate: &Candidate) -> String {
    let name = candidate.algorithm.name;
    match candidate.segment {
        0 => name.to_owned(),
        segment => format!("{name}/{}", number::bytes(segment)),
    }
}

fn map(report: &Report<'_>) -> WinnerMap {
    let Report { args, ranks, sizes, answer, draws, incomplete, .. } = report;
    let algorithms: Vec<_> = args.operation.algorithms().collect();
    let won = |cell: &Cell| {
        let Timed { candidate: winner, time } = cell.winner()?;
        let place = algorithms.iter().position(|algorithm| *algorithm == winner.algorithm)?;
        let time = number::in_units(time.bound().seconds(), number::TIME);
        let mut told =
            format!("{} ranks, {}: {} {time}", cell.ranks, number::size(cell.size), name(winner));
        if let (Some(next), Some(margin)) = (cell.runner_up(), cell.margin()) {
            told += &format!("; {} {}", name(&next.candidate), number::signed_percent(margin));
        }
        if let Some(contest) = &cell.contest {
            told += &format!("; fastest in {} of {} draws", contest.won, contest.draws);
        }
        let mut tied = cell.tied().map(name).peekable();
        let sure = cell.is_told_apart() != Some(false) && tied.peek().is_none();
        told.extend(tied.map(|other| format!("; tie with {other}")));
        Some(WonCell { winner: place, sure, told })
    };
    let note = match draws {
        0 => "no uncertainty available: parameters without intervals; pale and hatched: a tie"
            .to_owned(),
        draws => {
            format!("pale and hatched: a tie, or the fastest in less than 95% of {draws} draws")
        }
    };
    let across = if args.operation.has_size() { "message size [bytes]" } else { "" };
    WinnerMap {
        title: format!(
            "{}: the fastest algorithm{}",
            args.operation,
            if incomplete.is_some() { " (incomplete)" } else { "" }
        ),
        subtitle: "Open MPI 4.1's algorithms, simulated; all ranks begin together".to_owned(),
        across: Labels {
            title: across.to_owned(),
            names: sizes.iter().map(|&size| number::bytes(size)).collect(),
        },
        up: Labels {
            title: "number of ranks".to_owned(),
            names: ranks.iter().map(ToString::to_string).collect(),
        },
        names: algorithms.iter().map(|algorithm| algorithm.name.to_owned()).collect(),
        cells: answer.cells.iter().map(won).collect(),
        notes: vec![note, format!("parameters: {}", report.parameters.text(Digits::Exact))],
    }
}
