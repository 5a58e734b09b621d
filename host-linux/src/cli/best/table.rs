//! Text of `loggap best`: a map of letters, then a row per cell.

use std::io::{self, Write};

use loggap_core::units::Picos;

use super::Report;
use super::files::name;
use crate::best::{Cell, Contest, TOLD_APART_PERCENT, Time, TooShort};
use crate::cli::digits::Digits;
use crate::collective::Algorithm;
use crate::decimal::fixed;
use crate::output::{number, wrap};

/// Widest line of the map, columns.
const WIDTH: usize = 100;
/// Width of the column of ranks.
const RANKS: usize = 9;

pub(super) fn write(out: &mut dyn Write, digits: Digits, report: &Report<'_>) -> io::Result<()> {
    write_remarks(out, &heading(report, digits))?;
    write_map(out, report)?;
    writeln!(
        out,
        "#{:>8} {:>10} {:>13} {:<24} {:>9} {:>6} runner-up",
        "ranks",
        "size[B]",
        if digits == Digits::Exact { "time[us]" } else { "time" },
        "winner",
        "slower[%]",
        "won[%]"
    )?;
    for cell in report.done() {
        write_row(out, digits, cell)?;
    }
    write_remarks(out, &remarks(report))
}

/// Writes comments, wrapped to a terminal's width.
fn write_remarks(out: &mut dyn Write, remarks: &[String]) -> io::Result<()> {
    let lines = remarks.iter().flat_map(|remark| wrap(remark, WIDTH - 2, 2));
    for line in lines {
        writeln!(out, "# {line}")?;
    }
    Ok(())
}

fn heading(report: &Report<'_>, digits: Digits) -> Vec<String> {
    let args = report.args;
    let number = args.operation.algorithms().count();
    let mut lines = vec![
        format!(
            "{}: the fastest of {number} algorithms of Open MPI 4.1, by simulation; all ranks begin \
             together",
            args.operation
        ),
        format!("parameters: {}", report.parameters.text(digits)),
        match report.draws {
            0 => "no uncertainty available: no draws from intervals".to_owned(),
            draws => format!(
                "{draws} draws from the profile's intervals, seed {}; a winner is certain if it is the \
                 fastest in {TOLD_APART_PERCENT}% of them (capitals in the map)",
                args.seed
            ),
        },
    ];
    let items = args.operation.algorithms().enumerate().map(|(place, algorithm)| {
        format!("{} {} ({})", letter(place), algorithm.name, algorithm.number)
    });
    let mut items = items.collect::<Vec<_>>().join(", ");
    if report.done().iter().any(|cell| cell.tied().next().is_some()) {
        items += ", = a tie: less than 0.05% apart";
    }
    lines.push(items);
    lines
}

/// Letter of the algorithm at `place`.
fn letter(place: usize) -> char {
    ('A'..='Z').nth(place).unwrap_or('?')
}

/// Writes the map of winners as letters: a line per number of ranks, a column per size, in several
/// blocks if they are too wide.
fn write_map(out: &mut dyn Write, report: &Report<'_>) -> io::Result<()> {
    let algorithms: Vec<&Algorithm> = report.args.operation.algorithms().collect();
    let of_winner = |cell: &Cell| {
        let winner = cell.winner()?.candidate.algorithm;
        let place = algorithms.iter().position(|algorithm| *algorithm == winner)?;
        let letter = letter(place);
        if cell.tied().next().is_some() {
            return Some('=');
        }
        let sure = cell.is_told_apart() != Some(false);
        Some(if sure { letter } else { letter.to_ascii_lowercase() })
    };
    let columns = report.sizes.len().max(1);
    let names: Vec<String> = report.sizes.iter().map(|&size| number::bytes(size)).collect();
    let width = names.iter().map(String::len).max().unwrap_or(1) + 1;
    let beside = ((WIDTH - RANKS - 1) / width).max(1);
    for first in (0..columns).step_by(beside) {
        let shown = names.iter().skip(first).take(beside);
        let shown: String = shown.map(|name| format!("{name:>width$}")).collect();
        writeln!(out, "#{:>8} {shown}", "ranks")?;
        for row in report.answer.cells.chunks(columns) {
            let Some(ranks) = row.first().map(|cell| cell.ranks) else { continue };
            let shown = row.iter().skip(first).take(beside).map(|cell| {
                let letter = of_winner(cell).unwrap_or('?');
                format!("{letter:>width$}")
            });
            writeln!(out, "#{ranks:>8} {}", shown.collect::<String>())?;
        }
    }
    Ok(())
}

fn write_row(out: &mut dyn Write, digits: Digits, cell: &Cell) -> io::Result<()> {
    let Some(winner) = cell.winner() else {
        let Cell { ranks, size, .. } = cell;
        return writeln!(
            out,
            "{ranks:>9} {size:>10} {:>13} {:<24} {:>9} {:>6} -",
            "-", "-", "-", "-"
        );
    };
    let time = match (digits, winner.time.bound()) {
        (Digits::Exact, Picos(picos)) => fixed(picos.into(), 6),
        (Digits::Rounded, Picos(picos)) => digits.time(picos),
    };
    let tied: Vec<String> = cell.tied().map(name).collect();
    let best = match tied.as_slice() {
        [] => name(&winner.candidate),
        [one] => format!("{}={one}", name(&winner.candidate)),
        several => format!("{}={} others", name(&winner.candidate), several.len()),
    };
    let (mut slower, mut next) = ("-".to_owned(), "-".to_owned());
    if let (Some(timed), Some(margin)) = (cell.runner_up(), cell.margin()) {
        let least = if matches!(timed.time, Time::AtLeast(_)) { ">" } else { "" };
        slower = format!("{least}{:.1}", margin * 100.0);
        next = name(&timed.candidate);
    }
    #[allow(clippy::cast_precision_loss, reason = "a percentage of few digits")]
    let percent = |contest: &Contest| (contest.won * 100) as f64 / contest.draws.max(1) as f64;
    let won = number::decimal(cell.contest.as_ref().map(percent), 0);
    writeln!(
        out,
        "{:>9} {:>10} {time:>13} {:<24} {slower:>9} {won:>6} {next}",
        cell.ranks, cell.size, best
    )
}

fn remarks(report: &Report<'_>) -> Vec<String> {
    let args = report.args;
    let listed = |wanted: fn(&Algorithm) -> bool| {
        let found = args.operation.algorithms().filter(|algorithm| wanted(algorithm));
        found.map(|algorithm| algorithm.name).collect::<Vec<_>>().join(", ")
    };
    let copying = listed(|algorithm| algorithm.copies);
    let mut lines = vec![match copying.as_str() {
        "" => "copies in memory are not counted".to_owned(),
        copying => format!("copies in memory are not counted, of which {copying} makes more"),
    }];
    let commuting = listed(|algorithm| algorithm.commutes);
    if !commuting.is_empty() {
        if args.combine.0 == 0 {
            lines.push("combining vectors takes no time; --combine NS/B counts it".to_owned());
        }
        if !args.assume_commutative {
            lines.push(format!(
                "left out: {commuting}, which gives wrong results, without a word, where an operator \
                 does not commute; --assume-commutative takes it"
            ));
        }
    }
    for TooShort { algorithm, first, last } in &report.short {
        let sizes = match first == last {
            true => number::size(*first),
            false => format!("{} to {}", number::size(*first), number::size(*last)),
        };
        lines.push(format!(
            "left out at {sizes}: {}, where a communicator with the same rules may have more ranks \
             than the vector has elements of {} B",
            algorithm.name, args.element
        ));
    }
    if report.draws > 0 {
        lines.push(format!(
            "no draws for algorithms that take more than {:.2} times as long as the winner",
            report.answer.reach
        ));
    }
    lines.extend(report.incomplete.as_ref().map(|why| format!("INCOMPLETE: {why}")));
    lines
}
