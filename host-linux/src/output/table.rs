//! Columns for programs: a row per range; headings and remarks begin with `#`.

use std::io::{self, Write};

use loggap_core::model::{Coefficient, Mark};

use super::number::Unit;
use super::quantity::Quantity;
use super::text::{self, Block, Line};
use super::warnings::{self, Notes};
use super::{agreement, calls, changes, heading, methods};
use crate::profile::{ProfileDocument, RangeRecord, gap_deviation};

/// Text for an unknown number.
const UNKNOWN: &str = "-";

/// Suffixes of the columns of a parameter.
const COLUMNS: [&str; 5] = ["", "_lo", "_hi", "_next_lo", "_next_hi"];

/// Writes `document` as columns: values at size 1, ends of this run's and of the next run's
/// interval, and the names of values that did not converge.
///
/// # Errors
///
/// Write errors of `out`.
pub fn write(out: &mut dyn Write, document: &ProfileDocument) -> io::Result<()> {
    let mut remarks = Vec::from_iter(heading::unusable(document));
    remarks.push(heading::title(document));
    remarks.extend(heading::ends(document));
    remarks.push(heading::effort(document));
    remarks.extend(document.incomplete.as_ref().map(|why| format!("INCOMPLETE: {why}")));
    remarks.push(format!(
        "values at size 1 and slopes; lo, hi: {}% interval of this run; next_lo, next_hi: of the \
         next; n: round trips; lsq: mean square deviation of the gap from its line",
        document.requested.confidence_percent
    ));
    write_remarks(out, &remarks)?;
    let heads = |of: Coefficient| {
        let (symbol, unit) = (of.symbol(), unit(of).name);
        COLUMNS.map(|column| format!("{symbol}{column}[{unit}]"))
    };
    let mut rows = vec![vec!["#first[B]".to_owned(), "last[B]".to_owned()]];
    if let Some(head) = rows.first_mut() {
        head.extend(Coefficient::ALL.into_iter().flat_map(heads));
        head.extend(["not_converged", "n", "lsq[us2]"].map(str::to_owned));
    }
    rows.extend(document.ranges.iter().map(|record| row(record, document)));
    let column = |index: usize| {
        let cells = rows.iter().filter_map(|row| row.get(index));
        Block::right(cells.map(Line::plain).collect())
    };
    let width = rows.first().map_or(0, Vec::len);
    text::write(out, &Block::beside((0..width).map(column).collect(), 2))?;
    let mut remarks = agreement::lines(document);
    remarks.extend(methods::lines(document, usize::MAX));
    remarks.extend(changes::sentences(document));
    remarks.extend(calls::sentences(document));
    let warnings = warnings::sentences(document, Notes::Shown);
    remarks.extend(warnings.iter().map(|warning| format!("warning: {warning}")));
    write_remarks(out, &remarks)
}

fn write_remarks(out: &mut dyn Write, remarks: &[String]) -> io::Result<()> {
    let lines: Vec<Line> =
        remarks.iter().map(|remark| Line::plain(format!("# {remark}"))).collect();
    text::write(out, &lines)
}

/// Unit of the columns of a coefficient.
const fn unit(of: Coefficient) -> Unit {
    if of.is_per_byte() {
        Unit { name: "ns/B", size: 1e-9 }
    } else {
        Unit { name: "us", size: 1e-6 }
    }
}

fn row(record: &RangeRecord, document: &ProfileDocument) -> Vec<String> {
    let mut cells = vec![record.range.first.0.to_string(), record.range.last.0.to_string()];
    for of in Coefficient::ALL {
        let Some(quantity) = record.at_one(of) else {
            cells.extend(COLUMNS.map(|_| UNKNOWN.to_owned()));
            continue;
        };
        let Quantity { value, low, high, next, .. } = quantity;
        let next = [next.map(|[low, _]| low), next.map(|[_, high]| high)];
        let number = |number: Option<f64>| {
            number.map_or_else(|| UNKNOWN.to_owned(), |number| decimal(number / unit(of).size))
        };
        cells.extend([Some(value), low, high, next[0], next[1]].map(number));
    }
    let marked = not_converged(record, &Coefficient::ALL);
    let sizes = document.sizes.iter().map(|size| &size.row);
    let within = sizes.filter(|row| (record.range.first..=record.range.last).contains(&row.size));
    let round_trips: usize = within.map(|row| row.samples[0]).sum();
    let deviation = gap_deviation(&document.sizes, &record.range);
    let deviation = deviation.map_or_else(|| UNKNOWN.to_owned(), |s2| format!("{:.4e}", s2 * 1e12));
    cells.extend([marked, round_trips.to_string(), deviation]);
    cells
}

/// Symbols of the `columns` that did not converge, and why.
pub(super) fn not_converged(record: &RangeRecord, columns: &[Coefficient]) -> String {
    let marked = columns.iter().filter_map(|of| match record.at_one(*of)?.mark {
        Mark::Converged => None,
        Mark::BudgetSpent => Some(format!("{}:time", of.symbol())),
        Mark::Misfit => Some(format!("{}:misfit", of.symbol())),
    });
    let marked: Vec<String> = marked.collect();
    if marked.is_empty() { UNKNOWN.to_owned() } else { marked.join(",") }
}

/// Formats to six decimals without trailing zeros: picoseconds in microseconds.
fn decimal(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    fn table(document: &ProfileDocument) -> String {
        let mut out = Vec::new();
        write(&mut out, document).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Heads and rows, as awk splits them.
    fn fields(text: &str) -> Vec<Vec<&str>> {
        let is_row =
            |line: &&str| line.trim_start().starts_with("#first[B]") || !line.starts_with('#');
        text.lines().filter(is_row).map(|line| line.split_whitespace().collect()).collect()
    }

    #[test]
    fn every_row_has_as_many_fields_as_there_are_heads() {
        for (name, document) in fixtures::all() {
            let text = table(&document);
            let rows = fields(&text);
            assert_eq!(rows.len(), document.ranges.len() + 1, "{name}: {text}");
            assert!(rows.iter().all(|row| row.len() == 50), "{name}: {text}");
        }
    }

    #[test]
    fn value_both_intervals_and_marks_are_found_by_their_heads() {
        let text = table(&fixtures::shm());
        let rows = fields(&text);
        let cell = |row: usize, head: &str| {
            let column = rows[0].iter().position(|found| *found == head).unwrap();
            rows[row][column]
        };
        assert_eq!(cell(1, "#first[B]"), "1");
        assert_eq!(cell(2, "last[B]"), "4095");
        assert_eq!(cell(1, "RTT/2[us]"), "0.112");
        assert_eq!(cell(1, "RTT/2_lo[us]"), "0.10864");
        assert_eq!(cell(1, "RTT/2_next_hi[us]"), "0.1232");
        assert_eq!(cell(3, "G_next_hi[ns/B]"), "0.10125");
        assert_eq!(cell(1, "L[us]"), "-");
        assert_eq!(cell(1, "not_converged"), "-");
        assert_eq!(cell(3, "not_converged"), "g:misfit");
    }

    #[test]
    fn changes_warnings_and_failures_are_remarks() {
        let text = table(&fixtures::shm());
        for remark in [
            "\n# change of protocol at 249 B (between 245 B and 257 B): +18% half round trip\n",
            "\n# small changes: 32 KiB: +1.4% gap\n",
            "\n# bends without a jump: 4 KiB\n",
            "\n# warning: gap: no straight line over the sizes, by up to 12.1%, from 4 KiB; use",
        ] {
            assert!(text.contains(remark), "{remark}: {text}");
        }
        assert!(table(&fixtures::incomplete()).contains("\n# INCOMPLETE: node7:5647 closed"));
    }
}
