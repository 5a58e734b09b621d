//! Rules files for the `tuned` component of Open MPI 4.1.
//!
//! All numbers are written without leading zeros (a zero would make them octal) and in ascending
//! order. Open MPI uses the last rule whose number does not exceed the one it looks up, and the
//! first rule of communicators even for smaller ones. Rules for 0 ranks and for twice the largest
//! tested rank count therefore leave untested communicators to the library. Likewise for sizes: the
//! first threshold must be 0, and another one stands at twice the largest size.

use std::io::{self, Write};

use super::cell::Cell;
use super::choice::{Choice, settle};
use super::question::Case;
use crate::collective::Operation;

/// Algorithm, fan-out and segment size of a rule.
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

/// A rule that applies from a size upwards.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Threshold {
    /// Size, in the unit of the operation.
    pub from: u64,
    /// Rule to apply.
    pub rule: Rule,
}

/// Rules that apply from a rank count upwards.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CommunicatorRules {
    /// Rank count.
    pub ranks: u32,
    /// Thresholds by size; the first is 0.
    pub thresholds: Vec<Threshold>,
}

/// Format of a rules file.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RulesFormat {
    /// That of Open MPI 4.1, which 5 reads, too.
    #[default]
    First,
    /// Version 2, from Open MPI 5.0.7 on.
    Second,
}

/// The rules of one operation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rules {
    /// The operation.
    pub operation: Operation,
    /// By rank count; the first is 0.
    pub rows: Vec<CommunicatorRules>,
}

/// Leaves the decision to Open MPI.
const LIBRARY_DECIDES: Rule =
    Rule { algorithm: 0, fanout: 0, segment: 0, name: "Open MPI's choice" };
/// Number that no algorithm has: a call to which such a rule applies fails.
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
    /// Builds the rules from `cells`, which are ordered by ranks, then by size.
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
            // Rank counts between tested ones, for which the library would replace the algorithm
            // that the row names.
            let next = ranks.saturating_add(1);
            if next <= most_ranks {
                let row: Vec<Cell> =
                    row.iter().map(|cell| cell.for_all(next, most_ranks)).collect();
                add(next, &row);
            }
            rest = others;
        }
        if let Some(last) = cells.last() {
            rows.push(own(last.ranks.saturating_mul(2)));
        }
        Self { operation, rows }
    }

    /// Copy of these rules in which every algorithm is replaced by a number that does not exist: a
    /// call fails with `MPI_ERR_ARG` if, and only if, the file is read and a rule applies.
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

    /// Writes the rules file, with `remarks` as leading comments.
    ///
    /// # Errors
    ///
    /// Errors of `out`.
    pub fn write(
        &self,
        out: &mut dyn Write,
        format: RulesFormat,
        remarks: &[String],
    ) -> io::Result<()> {
        // Version 2 ends a rule with the most requests of linear_sync; 0 leaves them to the library.
        let rest = match format {
            RulesFormat::First => "",
            RulesFormat::Second => {
                writeln!(out, "rule-file-version-2")?;
                " 0"
            }
        };
        for remark in remarks {
            // Control characters, such as a line feed, would end the comment.
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
                writeln!(out, "{from} {algorithm} {fanout} {segment}{rest} # {name}")?;
            }
        }
        Ok(())
    }
}

/// Thresholds of one rank count; neighbours with equal rules are merged.
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
