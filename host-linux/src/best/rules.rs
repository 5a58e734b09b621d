//! Rules for the `tuned` component of Open MPI 4.1.
//!
//! Whole numbers without zeros in front (they would be octal), ascending. The
//! reader takes the last rule whose number does not exceed what it looks for,
//! and the first rule of communicators also for smaller ones: a first rule of
//! 0 ranks, and one at twice the largest number of ranks, leave what was not
//! tested to the library. So do the first threshold of sizes, which has to be
//! 0, and one at twice the largest size.

use std::io::{self, Write};

use super::cell::Cell;
use super::choice::{Choice, settle};
use super::question::Case;
use crate::collective::Operation;

/// What a rule names.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Rule {
    /// Number of the algorithm; 0 for the library's own choice.
    pub algorithm: u32,
    /// Fan-out, for chains.
    pub fanout: u32,
    /// Bytes of a segment; 0 for whole messages.
    pub segment: u64,
    /// The algorithm's name.
    pub name: &'static str,
}

/// From a size on, in the unit of the operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Threshold {
    /// The size.
    pub from: u64,
    /// What is done.
    pub rule: Rule,
}

/// From a number of ranks on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CommunicatorRules {
    /// The number of ranks.
    pub ranks: u32,
    /// By size; the first from 0.
    pub thresholds: Vec<Threshold>,
}

/// The rules of one operation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rules {
    /// The operation.
    pub operation: Operation,
    /// By number of ranks; the first from 0.
    pub rows: Vec<CommunicatorRules>,
}

/// What the library decides by itself.
const LIBRARY_DECIDES: Rule =
    Rule { algorithm: 0, fanout: 0, segment: 0, name: "Open MPI's choice" };
/// No algorithm has this number: whoever reads the rules fails.
const NO_ALGORITHM: u32 = 99;

impl Rule {
    fn of(choice: Choice) -> Self {
        choice.map_or(LIBRARY_DECIDES, |candidate| Self {
            algorithm: candidate.algorithm.number,
            fanout: candidate.algorithm.fanout(),
            segment: candidate.segment,
            name: candidate.algorithm.name,
        })
    }
}

impl Rules {
    /// The rules of `cells`, which come by ranks, then by size.
    #[must_use]
    pub fn of(operation: Operation, cells: &[Cell]) -> Self {
        let own = |ranks| CommunicatorRules {
            ranks,
            thresholds: vec![Threshold { from: 0, rule: LIBRARY_DECIDES }],
        };
        let mut rows = vec![own(0)];
        let mut add = |ranks: u32, cells: &[Cell]| {
            let next = CommunicatorRules { ranks, thresholds: thresholds(operation, cells) };
            if rows.last().is_none_or(|last| last.thresholds != next.thresholds) {
                rows.push(next);
            }
        };
        let mut rest = cells;
        while let Some(ranks) = rest.first().map(|cell| cell.ranks) {
            let (row, others) =
                rest.split_at(rest.iter().take_while(|cell| cell.ranks == ranks).count());
            let most_ranks = Case::most_ranks(ranks, others.first().map(|cell| cell.ranks));
            add(ranks, row);
            // Numbers of ranks between tested ones, where the library would take
            // another algorithm than the one that the row names.
            let between = (ranks.saturating_add(1), most_ranks);
            if between.0 <= between.1 {
                let row: Vec<Cell> = row.iter().map(|cell| cell.for_all(between)).collect();
                add(between.0, &row);
            }
            rest = others;
        }
        if let Some(last) = cells.last() {
            rows.push(own(last.ranks.saturating_mul(2)));
        }
        Self { operation, rows }
    }

    /// The same conditions, each with an algorithm that does not exist: a call
    /// they apply to fails with `MPI_ERR_ARG` if the file is read.
    #[must_use]
    pub fn probe(&self) -> Self {
        let mut probe = self.clone();
        for threshold in probe.rows.iter_mut().flat_map(|row| &mut row.thresholds) {
            if threshold.rule.algorithm != LIBRARY_DECIDES.algorithm {
                let rule =
                    Rule { algorithm: NO_ALGORITHM, name: "no such algorithm", ..LIBRARY_DECIDES };
                threshold.rule = rule;
            }
        }
        probe
    }

    /// Writes the file; `remarks` first, as comments.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write, remarks: &[String]) -> io::Result<()> {
        for remark in remarks {
            // A comment ends with its line.
            writeln!(out, "# {}", remark.replace(char::is_control, "?"))?;
        }
        writeln!(out, "1 # number of operations")?;
        writeln!(out, "{} # {}", self.operation.number(), self.operation.name())?;
        writeln!(out, "{} # numbers of ranks", self.rows.len())?;
        for row in &self.rows {
            let ranks = if row.ranks == 0 { "fewer".to_owned() } else { row.ranks.to_string() };
            writeln!(out, "{} {} # {ranks} ranks", row.ranks, row.thresholds.len())?;
            for Threshold { from, rule } in &row.thresholds {
                let Rule { algorithm, fanout, segment, name } = rule;
                writeln!(out, "{from} {algorithm} {fanout} {segment} # {name}")?;
            }
        }
        Ok(())
    }
}

/// The thresholds of one number of ranks. What does not change is not said
/// again.
fn thresholds(operation: Operation, row: &[Cell]) -> Vec<Threshold> {
    let mut thresholds: Vec<Threshold> = Vec::new();
    let mut add = |from: u64, rule: Rule| {
        if thresholds.last().is_none_or(|last| last.rule != rule) {
            thresholds.push(Threshold { from, rule });
        }
    };
    let size = |cell: &Cell| operation.rule_size(cell.size, cell.ranks);
    if row.first().is_some_and(|cell| size(cell) > 0) {
        add(0, LIBRARY_DECIDES);
    }
    for (cell, choice) in row.iter().zip(settle(row)) {
        add(size(cell), Rule::of(choice));
    }
    if let Some(last) = row.last().filter(|cell| size(cell) > 0) {
        add(size(last).saturating_mul(2), LIBRARY_DECIDES);
    }
    thresholds
}
