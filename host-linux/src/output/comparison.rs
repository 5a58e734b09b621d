//! Comparison of profiles, as lines of text.

use std::io::{self, Write};

use loggap_core::model::Coefficient;
use serde_json::Value;

use super::number;
use super::quantity;
use super::text::{self, Block, Line};
use crate::compare::{Compared, Comparison, Finding};

/// Heads of the columns.
const HEADS: [&str; 7] =
    ["#parameter", "sizes", "before", "after", "change", "interval", "verdict"];

/// Writes the verdict, a row for each parameter and for each of `sizes`, and what differs in the
/// environment.
///
/// # Errors
///
/// Write errors of `out`.
pub fn write(out: &mut dyn Write, found: &Comparison, sizes: &[Compared]) -> io::Result<()> {
    let mut rows = vec![HEADS.map(str::to_owned)];
    rows.extend(found.parameters.iter().chain(sizes).map(row));
    let column = |index: usize| {
        let cells = rows.iter().filter_map(|row| row.get(index));
        let cells: Vec<Line> = cells.map(Line::plain).collect();
        if (2..6).contains(&index) { Block::right(cells) } else { Block(cells) }
    };
    let mut lines = vec![Line::plain(format!("# {}", verdict(found)))];
    lines.extend(Block::beside((0..HEADS.len()).map(column).collect(), 2));
    for difference in &found.environment {
        let list = |values: &[Value]| {
            let texts: Vec<String> = values.iter().map(plain).collect();
            if texts.is_empty() { "-".to_owned() } else { texts.join(" or ") }
        };
        let (before, after) = (list(&difference.before), list(&difference.after));
        lines.push(Line::plain(format!("# {}: {before} before, {after} after", difference.what)));
    }
    text::write(out, &lines)
}

/// A value without the quotes of JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The verdict, with the parameter that decides it.
fn verdict(found: &Comparison) -> String {
    let of = |wanted| found.parameters.iter().filter(move |row| row.verdict == wanted);
    let named = |row: &Compared| {
        let change = number::signed_percent(row.ratio - 1.0);
        format!("{} of {} {change}", label(row), sizes(row))
    };
    let by = |one: &&Compared, other: &&Compared| {
        one.ratio.ln().abs().total_cmp(&other.ratio.ln().abs())
    };
    let most = of(found.verdict).max_by(by).map(named).unwrap_or_default();
    let percent = found.threshold * 100.0;
    match found.verdict {
        Finding::Slower => format!("slower: {most}"),
        Finding::Faster => format!("faster: {most}"),
        Finding::Same => format!("same, within {percent}%"),
        Finding::Unknown => {
            let needed = of(Finding::Unknown).filter_map(|row| row.runs_needed).min();
            let runs = needed.map_or_else(String::new, |runs| {
                format!("; about {runs} runs on each side would tell the first of them")
            });
            format!("cannot tell changes of {percent}%{runs}")
        }
    }
}

fn label(row: &Compared) -> &'static str {
    Coefficient::AtOne(row.curve).symbol()
}

fn sizes(row: &Compared) -> String {
    let (first, last) = (number::bytes(row.first_bytes), number::bytes(row.last_bytes));
    if first == last { first } else { format!("{first}:{last}") }
}

fn row(row: &Compared) -> [String; 7] {
    let unit = quantity::unit(Coefficient::AtOne(row.curve), row.before_s.min(row.after_s));
    let [low, high] = [row.ratio_lo, row.ratio_hi].map(|ratio| number::signed_percent(ratio - 1.0));
    let verdict = match row.verdict {
        Finding::Same => "same".to_owned(),
        Finding::Slower => "slower".to_owned(),
        Finding::Faster => "faster".to_owned(),
        Finding::Unknown => match row.runs_needed {
            Some(runs) => format!("cannot tell; {runs} runs a side"),
            None => "cannot tell".to_owned(),
        },
    };
    [
        label(row).to_owned(),
        sizes(row),
        unit.with_name(row.before_s),
        unit.with_name(row.after_s),
        number::signed_percent(row.ratio - 1.0),
        format!("{low} to {high}"),
        verdict,
    ]
}
