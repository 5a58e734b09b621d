//! Parameters: a line each, a column per range.

use loggap_core::model::{Coefficient, Curve, Mark};
use loggap_core::units::Bytes;

use super::super::number::{self, Unit, Units};
use super::super::quantity::{self, Quantity};
use super::super::text::{ALERT, BOLD, Block, DIM, Line};
use super::{Page, needs_more_time};
use crate::profile::{ProfileDocument, RangeRecord};

/// Most ranges beside each other.
const BESIDE: usize = 3;
/// Most ranges shown without `verbose`.
const SHOWN: usize = 6;
/// Columns between ranges.
const GAP: usize = 3;
/// Earlier runs needed to predict the next one without several launches.
const NEEDED_RUNS: u32 = 2;
/// Coefficient that is left out, as the table by size shows it better.
const NOT_SHOWN: Coefficient = Coefficient::PerByte(Curve::HalfRtt);

/// Visibility of the next run's intervals, for which there may be too little room.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum NextRun {
    Shown,
    Hidden,
}

/// A row of the block of parameters.
struct Row {
    label: String,
    of: Coefficient,
    /// Units of the inverse of the coefficient, if the row shows that.
    rate: Option<Units>,
}

fn rows(ranges: &[RangeRecord]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut push = |label, of, rate| rows.push(Row { label, of, rate });
    for of in Coefficient::ALL.into_iter().filter(|of| *of != NOT_SHOWN) {
        let is_hidden = of == Coefficient::Latency && ranges.iter().any(is_latency_hidden);
        let is_present = ranges.iter().any(|record| record.at_one(of).is_some());
        if !(is_present || is_hidden) {
            continue;
        }
        push(quantity::label(of), of, None);
        match of {
            Coefficient::AtOne(Curve::Gap) => {
                push("  message rate".to_owned(), of, Some(number::MESSAGE_RATE));
            }
            Coefficient::PerByte(Curve::Gap) => {
                push("  bandwidth 1/G".to_owned(), of, Some(number::BYTE_RATE));
            }
            _ => {}
        }
    }
    rows
}

const HIDDEN: &str = "hidden: overheads overlap it; use half round trip";

/// True if all parts of L were measured, and their difference is not positive.
fn is_latency_hidden(record: &RangeRecord) -> bool {
    let range = &record.range;
    let parts = [&range.half_rtt, &range.send_overhead, &range.recv_overhead];
    range.latency.is_none() && parts.iter().all(|part| part.is_some())
}

/// Parameters of the first ranges, or of all, followed by the meaning of marks.
pub(super) fn lines(document: &ProfileDocument, page: Page) -> Vec<Line> {
    let all = &document.ranges;
    let shown = if page.verbose { all.len() } else { all.len().min(SHOWN) };
    let (ranges, rest) = all.split_at(shown);
    let rows = rows(ranges);
    let columns = |records: &[RangeRecord], next| {
        let columns = records.iter().take(BESIDE).map(|record| column(&rows, record, ranges, next));
        [labels(&rows)].into_iter().chain(columns).collect::<Vec<Block>>()
    };
    let fits = |columns: &[Block]| {
        let gaps = GAP * (columns.len() - 1);
        columns.iter().map(Block::width).sum::<usize>() + gaps <= page.width
    };
    let next =
        if fits(&columns(ranges, NextRun::Shown)) { NextRun::Shown } else { NextRun::Hidden };
    let mut lines = Vec::new();
    let mut left = ranges;
    while !left.is_empty() {
        let mut columns = columns(left, next);
        while columns.len() > 2 && !fits(&columns) {
            columns.pop();
        }
        let taken = columns.len() - 1;
        let (these, others) = left.split_at(taken);
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.extend(with_hidden_latency(Block::beside(columns, GAP), &rows, these));
        left = others;
    }
    if let Some(next) = rest.first() {
        let from = number::size(next.range.first.0);
        let more = format!("{} more ranges from {from}: -v or --table", rest.len());
        lines.extend(page.wrapped(&more, ALERT));
    }
    for text in captions(document, ranges, next) {
        lines.extend(page.wrapped(&text, DIM));
    }
    lines
}

fn labels(rows: &[Row]) -> Block {
    let labels = rows.iter().map(|row| Line::plain(&*row.label));
    Block([Line::default()].into_iter().chain(labels).collect())
}

/// Replaces the line of L by advice if L is hidden in all ranges.
fn with_hidden_latency(mut lines: Vec<Line>, rows: &[Row], ranges: &[RangeRecord]) -> Vec<Line> {
    let latency = rows.iter().position(|row| row.of == Coefficient::Latency);
    let place = latency.and_then(|row| lines.get_mut(row + 1));
    if let Some(line) = place.filter(|_| ranges.iter().all(is_latency_hidden)) {
        *line = Line::plain("latency L");
        line.pad_to(labels(rows).width() + GAP);
        line.push(HIDDEN, DIM);
    }
    lines
}

/// Cells of one range. The values in `beside` determine the units.
fn column(rows: &[Row], record: &RangeRecord, beside: &[RangeRecord], next: NextRun) -> Block {
    let value = |row: &Row| Line::plain(value_text(row, record, beside));
    let values = Block(rows.iter().map(value).collect());
    let marks = Block(rows.iter().map(|row| Line::styled(mark(row, record), ALERT)).collect());
    let widths = |half_width: HalfWidth| {
        let text = |row| Line::styled(width_text(row, record, half_width), DIM);
        rows.iter().map(text).collect::<Vec<Line>>()
    };
    let mut blocks = vec![values, marks, Block(widths(Quantity::this_half_width))];
    if record.range.first > Bytes(1) {
        let at_one = rows.iter().map(|row| Line::styled(at_one_text(row, record, beside), DIM));
        blocks.push(Block::right(at_one.collect()));
    }
    blocks.retain(|block| block.width() > 0);
    let range = &record.range;
    let mut sizes = number::size(range.first.0);
    if range.last > range.first {
        sizes = format!("{sizes} to {}", number::size(range.last.0));
    }
    let under = |head: &str, lines: Vec<Line>| {
        Block([Line::styled(head, BOLD)].into_iter().chain(lines).collect())
    };
    let this_run = under(&sizes, Block::beside(blocks, 1));
    let next_run = widths(Quantity::next_half_width);
    if next == NextRun::Hidden || next_run.iter().all(|line| line.width() == 0) {
        return this_run;
    }
    Block(Block::beside(vec![this_run, under("next run", next_run)], 2))
}

fn value_text(row: &Row, record: &RangeRecord, beside: &[RangeRecord]) -> String {
    let Some(quantity) = record.at_first(row.of) else {
        let is_hidden = row.of == Coefficient::Latency && is_latency_hidden(record);
        return if is_hidden { "hidden" } else { "-" }.to_owned();
    };
    let Quantity { value, high, .. } = quantity;
    let unit = common_unit(row.of, beside);
    match (row.rate, high.filter(|high| *high > 0.0)) {
        (Some(rate), _) if value > 0.0 => number::in_units(value.recip(), rate),
        (Some(_), _) => "-".to_owned(),
        (None, _) if value > 0.0 => unit.with_name(value),
        (None, Some(high)) => format!("below {}", unit.with_name(high)),
        (None, None) => "0".to_owned(),
    }
}

/// Unit of a row: that of its smallest value.
fn common_unit(of: Coefficient, beside: &[RangeRecord]) -> Unit {
    let quantities = beside.iter().filter_map(|record| record.at_first(of));
    let positive = quantities.filter_map(|quantity| match (quantity.value, quantity.high) {
        (value, _) if value > 0.0 => Some(value),
        (_, high) => high.filter(|high| *high > 0.0),
    });
    quantity::unit(of, positive.reduce(f64::min).unwrap_or(0.0))
}

fn mark(row: &Row, record: &RangeRecord) -> &'static str {
    let quantity = record.at_first(row.of).filter(|_| row.rate.is_none());
    quantity.map_or("", |quantity| quantity.mark.symbol())
}

/// Accessor of the half width of an interval, in the units of its value.
type HalfWidth = fn(&Quantity) -> Option<f64>;

fn width_text(row: &Row, record: &RangeRecord, half_width: HalfWidth) -> String {
    let quantity = record.at_first(row.of).filter(|_| row.rate.is_none());
    let quantity = quantity.filter(|quantity| quantity.value > 0.0);
    let share = quantity.and_then(|quantity| Some(half_width(&quantity)? / quantity.value));
    share.map_or_else(String::new, number::plus_minus)
}

/// Value at size 1, if it reads differently from that at the first size.
fn at_one_text(row: &Row, record: &RangeRecord, beside: &[RangeRecord]) -> String {
    if row.rate.is_some() {
        return String::new();
    }
    let unit = common_unit(row.of, beside);
    let number = |quantity: Option<Quantity>| quantity.map(|quantity| unit.number(quantity.value));
    let (one, first) = (number(record.at_one(row.of)), number(record.at_first(row.of)));
    one.filter(|one| first.as_ref() != Some(one)).map_or_else(String::new, |one| format!("({one})"))
}

/// Explanations of the signs that occur in the block.
fn captions(document: &ProfileDocument, ranges: &[RangeRecord], next: NextRun) -> Vec<String> {
    let level = document.requested.confidence_percent;
    let all = || ranges.iter().flat_map(|record| Coefficient::ALL.map(|of| record.at_first(of)));
    let quantities = || all().flatten();
    if quantities().next().is_none() {
        return Vec::new();
    }
    let is_next_known = quantities().any(|quantity| quantity.next.is_some());
    let next_run = match (is_next_known, next) {
        (false, _) if document.launches == 1 && is_history_kept(document) => {
            let more = NEEDED_RUNS.saturating_sub(document.history_runs).max(1);
            let more = number::counted(more.into(), "more run");
            format!("other runs differ more: after {more} --history tells by how much")
        }
        (false, _) => "other runs differ more".to_owned(),
        (true, NextRun::Hidden) => "where another run would fall: --table".to_owned(),
        (true, NextRun::Shown) => {
            format!("next run: where another run would fall, {}", source_of_next(document))
        }
    };
    let mut texts = vec![format!("±: how well this run knows its value ({level}%); {next_run}")];
    if ranges.iter().any(|record| record.range.first > Bytes(1)) {
        texts.push("values at the first size of the range, in brackets at 1 B".to_owned());
    }
    let is_marked = |mark| quantities().any(|quantity| quantity.mark == mark);
    if is_marked(Mark::BudgetSpent) {
        let goal = document.requested.relative_error * 100.0;
        texts.push(match quantities().any(|quantity| quantity.needs_more_samples()) {
            true if needs_more_time(document) => {
                format!("? not within {goal}% yet: needs more time")
            }
            true => format!("? not within {goal}%"),
            false => format!("? not within {goal}%: not to be told from 0"),
        });
    }
    if is_marked(Mark::Misfit) {
        texts.push("~ no straight line over these sizes: use the table by size".to_owned());
    }
    let hidden = ranges.iter().filter(|record| is_latency_hidden(record)).count();
    if hidden > 0 && hidden < ranges.len() {
        texts.push(format!("L {HIDDEN}"));
    }
    texts
}

/// True if the run used `--history`.
fn is_history_kept(document: &ProfileDocument) -> bool {
    document.command.iter().any(|word| word == "--history" || word.starts_with("--history="))
}

/// Basis of the next run's intervals, in words.
fn source_of_next(document: &ProfileDocument) -> String {
    let launches = match document.launches {
        1 => "1 launch".to_owned(),
        launches => format!("{launches} launches"),
    };
    match document.history_runs {
        0 if is_history_kept(document) => {
            format!("mostly assumed from {launches}; the next runs in --history measure it")
        }
        0 => format!("mostly assumed from {launches}; --history DIR measures it"),
        runs => format!("from {launches} and a history of {}", number::counted(runs.into(), "run")),
    }
}
