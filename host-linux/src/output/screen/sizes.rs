//! Table by message size.

use loggap_core::model::Mark;

use super::super::csv::bytes_per_s;
use super::super::number::{self, Unit};
use super::super::quantity::Quantity;
use super::super::tail::Tail;
use super::super::text::{ALERT, BOLD, Block, DIM, Line};
use super::Page;
use crate::profile::{COLUMNS, ProfileDocument, SizeRecord};

/// Most sizes shown without `verbose`.
const SHOWN: usize = 12;
/// Half width of an interval, as a fraction of the value, above which the value is marked.
const LOOSE: f64 = 0.25;

/// A value and its mark.
type Cell = Option<(f64, &'static str)>;

pub(super) fn lines(document: &ProfileDocument, page: Page) -> Vec<Line> {
    let measured: Vec<&SizeRecord> =
        document.sizes.iter().filter(|record| values(record).iter().any(Option::is_some)).collect();
    let sizes = if page.verbose { measured.clone() } else { thinned(&measured, document) };
    let size = |record: &&SizeRecord| Line::plain(number::bytes(record.row.size.0));
    let heads = [Line::styled("size", BOLD)];
    let mut blocks = vec![Block::right(heads.into_iter().chain(sizes.iter().map(size)).collect())];
    blocks.extend(columns(&sizes, Tail::of(document)));
    if blocks.len() < 2 {
        return Vec::new();
    }
    let mut lines = Block::beside(blocks, 2);
    let mut captions = Vec::new();
    let marks =
        |record: &&SizeRecord| values(record).iter().flatten().any(|cell| !cell.1.is_empty());
    if sizes.iter().any(marks) {
        captions.push(format!("? not within {:.0}% at this size alone", LOOSE * 100.0));
    }
    match measured.len() - sizes.len() {
        0 => {}
        hidden => captions.push(format!("{hidden} more sizes: -v; intervals: --csv")),
    }
    if !captions.is_empty() {
        lines.extend(page.wrapped(&captions.join("; "), DIM));
    }
    lines
}

/// RTT/2, gap, o_s and o_r at a size. A value at one size may be less accurate than the lines
/// through all sizes: it is marked if its half width exceeds [`LOOSE`].
fn values(record: &SizeRecord) -> [Cell; 4] {
    COLUMNS.map(|curve| {
        let quantity = Quantity::of_size(&record.row, curve)?;
        let half_width = quantity.this_half_width();
        let is_tight = half_width.is_some_and(|half| half <= LOOSE * quantity.value.abs());
        Some((quantity.value, if is_tight { "" } else { Mark::BudgetSpent.symbol() }))
    })
}

/// Columns that contain a value. If the tail column is p90, which says little about the tail, there
/// is a column of the longest round as well.
fn columns(sizes: &[&SizeRecord], tail: Tail) -> Vec<Block> {
    let [mut median, mut far, mut longest] = [const { Vec::new() }; 3];
    let mut count = Vec::new();
    let [mut gap, mut send, mut recv, mut rate] = [const { Vec::new() }; 4];
    for record in sizes {
        let [half_rtt, at_gap, at_send, at_recv] = values(record);
        let [p50, .., max] =
            record.rounds.as_ref().map(|rounds| rounds.percentiles).unwrap_or_default();
        median.push(half_rtt.map(|(value, mark)| (p50.unwrap_or(value), mark)));
        far.push(tail.at(record).map(|seconds| (seconds, "")));
        longest.push(max.filter(|_| tail == Tail::P90).map(|max| (max, "")));
        count.push(record.row.samples[0]);
        gap.push(at_gap);
        send.push(at_send);
        recv.push(at_recv);
        rate.push(bytes_per_s(record).map(|rate| (rate, "")));
    }
    let unit = |units, cells: &[Cell], least| {
        let values = cells.iter().flatten().map(|(value, _)| *value);
        let smallest = values.filter(|value| *value > 0.0).reduce(f64::min);
        Unit::fitting(units, smallest.unwrap_or(0.0), least)
    };
    let of_rtt = unit(number::TIME, &median, 1.0);
    let columns = [
        column("RTT/2 p50", of_rtt, &median),
        column(tail.name(), of_rtt, &far),
        column("max", of_rtt, &longest),
        counts(&count),
        column("gap", unit(number::TIME, &gap, 1.0), &gap),
        column("o_s", unit(number::TIME, &send, 1.0), &send),
        column("o_r", unit(number::TIME, &recv, 1.0), &recv),
        column("", unit(number::BYTE_RATE, &rate, 0.1), &rate),
    ];
    columns.into_iter().flatten().collect()
}

/// Column of the number of round trips; `None` if all are 0.
fn counts(counts: &[usize]) -> Option<Block> {
    counts.iter().find(|count| **count > 0)?;
    let cells = counts.iter().map(|count| Line::plain(number::count(*count as u64)));
    Some(Block::right([Line::styled("n", BOLD)].into_iter().chain(cells).collect()))
}

/// A column; `None` if it has no value.
fn column(head: &str, unit: Unit, cells: &[Cell]) -> Option<Block> {
    cells.iter().flatten().next()?;
    let head = format!("{head} {}", unit.name).trim_start().to_owned();
    let marked = cells.iter().flatten().any(|(_, mark)| !mark.is_empty());
    let cell = |cell: &Cell| {
        let (text, mark) =
            cell.map_or_else(|| ("-".to_owned(), ""), |(value, mark)| (unit.number(value), mark));
        let mut line = Line::plain(text);
        line.push(mark, ALERT);
        line.pad_to(line.width() + usize::from(marked && mark.is_empty()));
        line
    };
    Some(Block::right(
        [Line::styled(head, BOLD)].into_iter().chain(cells.iter().map(cell)).collect(),
    ))
}

/// About a dozen sizes: both ends, both sides of each change of protocol, powers of four, and then
/// sizes farthest from those chosen.
fn thinned<'d>(measured: &[&'d SizeRecord], document: &ProfileDocument) -> Vec<&'d SizeRecord> {
    let sizes: Vec<u64> = measured.iter().map(|record| record.row.size.0).collect();
    if sizes.len() <= SHOWN {
        return measured.to_vec();
    }
    let mut chosen = vec![0, sizes.len() - 1];
    for change in document.changes.iter().filter(|change| change.splits) {
        let after = sizes.partition_point(|size| *size < change.at_bytes);
        chosen.extend([after.saturating_sub(1), after]);
    }
    let power_of_four =
        |size: u64| size.is_power_of_two() && size.trailing_zeros().is_multiple_of(2);
    let places = |wanted: &dyn Fn(u64) -> bool| -> Vec<usize> {
        let wanted = sizes.iter().enumerate().filter(|(_, size)| wanted(**size));
        wanted.map(|(index, _)| index).collect()
    };
    for candidates in [places(&power_of_four), places(&|_| true)] {
        while let Some(next) = farthest(&candidates, &chosen, &sizes) {
            let distinct = chosen.iter().collect::<std::collections::BTreeSet<_>>().len();
            if distinct >= SHOWN {
                break;
            }
            chosen.push(next);
        }
    }
    let chosen = measured.iter().enumerate().filter(|(index, _)| chosen.contains(index));
    chosen.map(|(_, record)| *record).collect()
}

/// Candidate with the largest ratio to its nearest chosen size.
#[allow(clippy::cast_precision_loss, reason = "a ratio to compare")]
fn farthest(candidates: &[usize], chosen: &[usize], sizes: &[u64]) -> Option<usize> {
    let log = |index: usize| sizes.get(index).map_or(0.0, |size| (*size as f64).max(1.0).ln());
    let distance = |index: usize| {
        let distances = chosen.iter().map(|other| (log(index) - log(*other)).abs());
        distances.fold(f64::INFINITY, f64::min)
    };
    let unchosen = candidates.iter().copied().filter(|index| !chosen.contains(index));
    unchosen.max_by(|a, b| distance(*a).total_cmp(&distance(*b)).then(b.cmp(a)))
}
