//! Table and document of the study.

use std::io::{self, Write};

use serde::Serialize;

use super::{Plan, Row, TURNS, WINDOW};
use crate::output::number;

/// Rows of a study, as a JSON document and as text.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    study: &'static str,
    transport: String,
    size_bytes: u32,
    handler_s: f64,
    window: u32,
    turns: u32,
    /// `usable` if one row is, else `unusable`.
    verdict: &'static str,
    rows: Vec<Row>,
    /// Why turns are missing, if any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete: Option<String>,
}

impl Report {
    /// Report of the `rows` of `plan` over `transport`.
    #[must_use]
    pub fn new(plan: &Plan, rows: Vec<Row>, transport: String, incomplete: Option<String>) -> Self {
        let is_usable = rows.iter().any(Row::is_usable);
        Self {
            study: "contention",
            transport,
            size_bytes: plan.size,
            handler_s: plan.handler.seconds(),
            window: WINDOW,
            turns: TURNS,
            verdict: if is_usable { "usable" } else { "unusable" },
            rows,
            incomplete,
        }
    }

    /// True if a row has a ratio, of processes with a processor each.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.verdict == "usable"
    }

    /// True if turns are missing.
    #[must_use]
    pub const fn is_incomplete(&self) -> bool {
        self.incomplete.is_some()
    }

    /// Writes the table.
    ///
    /// # Errors
    ///
    /// Write errors of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "# gap of request and reply of {} B over {}, a single pair's and in the shape: medians \
             of {} turns, 95% intervals",
            self.size_bytes, self.transport, self.turns
        )?;
        writeln!(
            out,
            "#{:<6} {:>4}  {:<27} {:<27} {:<24} {:>7}  processors",
            "shape", "K", "single[us]", "gap[us]", "ratio", "ratio/K"
        )?;
        for row in &self.rows {
            let interval = |three: [Option<f64>; 3], cell: fn(Option<f64>) -> String| match (
                three,
                three.map(cell),
            ) {
                ([None, ..], _) => "-".to_owned(),
                (_, [value, low, high]) => format!("{value} ({low} to {high})"),
            };
            let ratio = |value| number::decimal(value, 2);
            writeln!(
                out,
                "{:<7} {:>4}  {:<27} {:<27} {:<24} {:>7}  {}",
                row.shape.name(),
                row.processes,
                interval(row.single, number::micros),
                interval(row.gap, number::micros),
                interval(row.ratio, ratio),
                ratio(row.ratio_per_process()),
                if row.is_shared { "SHARED" } else { "own" }
            )?;
        }
        if self.rows.iter().any(|row| row.is_shared) {
            writeln!(
                out,
                "# SHARED: fewer processors than processes; the numbers are of waits for them, not \
                 of the link"
            )?;
        }
        if let Some(why) = &self.incomplete {
            writeln!(out, "# INCOMPLETE: {why}")?;
        }
        Ok(())
    }
}
