//! Comparison of profiles, as lines of text.

use std::io::{self, Write};

use loggap_core::model::Coefficient;
use serde_json::Value;

use super::number;
use super::quantity;
use super::text::{self, Block, Line};
use crate::compare::{Comparison, CurveChange, MovedProcessors, Outcome};

/// Heads of the columns.
const HEADS: [&str; 7] =
    ["#parameter", "sizes", "before", "after", "change", "interval", "verdict"];

/// Writes the verdict, a row for each parameter and for each of `sizes`, and the properties that
/// differ.
///
/// # Errors
///
/// Write errors of `out`.
pub fn write(out: &mut dyn Write, found: &Comparison, sizes: &[CurveChange]) -> io::Result<()> {
    let mut rows = vec![HEADS.map(str::to_owned)];
    rows.extend(found.parameters.iter().chain(sizes).map(row));
    let column = |index: usize| {
        let cells = rows.iter().filter_map(|row| row.get(index));
        let cells: Vec<Line> = cells.map(Line::plain).collect();
        if (2..6).contains(&index) { Block::right(cells) } else { Block(cells) }
    };
    let mut lines = vec![Line::plain(format!("# {}", verdict(found)))];
    lines.extend(Block::beside((0..HEADS.len()).map(column).collect(), 2));
    let mut remarks = Vec::new();
    if let Some(MovedProcessors { before_s, after_s }) = found.moved_processors {
        let [before, after] = [before_s, after_s].map(|time| number::in_units(time, number::TIME));
        remarks.push(format!(
            "a cache line takes {after} from one processor to the other and back, {before} before: what \
             that explains is not told; measure again, or on the same processors"
        ));
    }
    remarks.push(format!(
        "{} of {} sizes compared; values are those of each row's median change",
        found.sizes_compared, found.sizes_measured
    ));
    for change in &found.environment {
        let (before, after) = (list(&change.before), list(&change.after));
        remarks.push(format!("{}: {before} before, {after} after", change.property));
    }
    lines.extend(remarks.into_iter().map(|remark| Line::plain(format!("# {remark}"))));
    text::write(out, &lines)
}

/// Values of a property, without the quotes and brackets of JSON.
fn list(values: &[Value]) -> String {
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(Value::to_string).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    let texts: Vec<String> = values.iter().map(plain).collect();
    if texts.is_empty() { "-".to_owned() } else { texts.join(" or ") }
}

/// The verdict, with the parameter that decides it.
fn verdict(found: &Comparison) -> String {
    let of = |wanted| found.parameters.iter().filter(move |change| change.verdict == wanted);
    let named = |change: &CurveChange| {
        let percent = number::signed_percent(change.ratio - 1.0);
        format!("{} of {} {percent}", label(change), sizes(change))
    };
    let by = |one: &&CurveChange, other: &&CurveChange| {
        one.ratio.ln().abs().total_cmp(&other.ratio.ln().abs())
    };
    let most = of(found.verdict).max_by(by).map(named).unwrap_or_default();
    let percent = (found.threshold * 1e6).round() / 1e4;
    let verdict = match found.verdict {
        Outcome::Slower => format!("slower: {most}"),
        Outcome::Faster => format!("faster: {most}"),
        Outcome::Same => format!("same, within {percent}%"),
        Outcome::Unknown => {
            let by = |one: &&CurveChange, other: &&CurveChange| {
                (one.ratio_hi / one.ratio_lo).total_cmp(&(other.ratio_hi / other.ratio_lo))
            };
            let best = of(Outcome::Unknown).min_by(by).map(|change| {
                let [low, high] = interval(change);
                let runs = change.runs_needed.map_or_else(String::new, |runs| {
                    format!("; {runs} runs a side, a minute apart, narrow it")
                });
                let tell = found.telling_percent().map_or_else(String::new, |tell| {
                    format!("; these runs tell {tell}% (--threshold {tell}%)")
                });
                format!("{} of {} by {low} to {high}{runs}{tell}", label(change), sizes(change))
            });
            format!("cannot tell {percent}%: {}", best.unwrap_or_default())
        }
    };
    let slower = found.sizes.iter().filter(|change| change.verdict == Outcome::Slower).count();
    match found.verdict {
        Outcome::Slower => verdict,
        _ if slower > 0 => {
            format!("{verdict}; slower at {}: -v", number::counted(slower as u64, "size"))
        }
        _ => verdict,
    }
}

/// A row as a line of text.
#[must_use]
pub fn line(change: &CurveChange) -> String {
    let [symbol, sizes, before, after, percent, interval, verdict] = row(change);
    format!(
        "{verdict}: {symbol} of {sizes}, {before} before, {after} after, {percent} ({interval})"
    )
}

fn interval(change: &CurveChange) -> [String; 2] {
    [change.ratio_lo, change.ratio_hi].map(|ratio| number::signed_percent(ratio - 1.0))
}

fn label(change: &CurveChange) -> &'static str {
    Coefficient::AtOne(change.curve).symbol()
}

fn sizes(change: &CurveChange) -> String {
    let (first, last) = (number::bytes(change.first_bytes), number::bytes(change.last_bytes));
    if first == last { first } else { format!("{first}:{last}") }
}

fn row(change: &CurveChange) -> [String; 7] {
    let smaller = change.before_s.min(change.after_s);
    let unit = quantity::unit(Coefficient::AtOne(change.curve), smaller);
    let [low, high] = interval(change);
    let verdict = match change.verdict {
        Outcome::Same => "same",
        Outcome::Slower => "slower",
        Outcome::Faster => "faster",
        Outcome::Unknown => "cannot tell",
    };
    [
        label(change).to_owned(),
        sizes(change),
        unit.with_name(change.before_s),
        unit.with_name(change.after_s),
        number::signed_percent(change.ratio - 1.0),
        format!("{low} to {high}"),
        verdict.to_owned(),
    ]
}
