//! Tables for the screen.

use std::io::{self, Write};

use loggap::output::{Columns, number};

use super::super::operation::Operation;
use super::super::overlap::{Overlap, Point};
use super::{Document, ResultRecord};
use crate::job::Host;

/// Width of a column of times.
const TIME: usize = 11;
/// Width of a column of times with a long name.
const LONG: usize = 14;
/// Names of the ends of an interval within one launch.
const LAUNCH_ENDS: [&str; 2] = ["launch lo [us]", "launch hi [us]"];

/// Writes one table per operation.
///
/// # Errors
///
/// Errors of `out`.
pub fn table(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    head(out, document)?;
    let columns = columns(document);
    let mut operation = "";
    for result in &document.results {
        if result.op != operation {
            operation = &result.op;
            explain(out, document, result)?;
            columns.head(out)?;
        }
        columns.row(out, result)?;
    }
    for result in &document.results {
        if let Some(overlap) = &result.overlap {
            overlapped(out, result, overlap)?;
        }
    }
    Ok(())
}

fn head(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    let Document { loggap_version, library, ranks, seed, launches, .. } = document;
    writeln!(out, "# loggap-mpi {loggap_version} coll, {library}, {ranks} ranks, seed {seed}")?;
    for Host { host, ranks, processors, bound, .. } in &document.hosts {
        writeln!(out, "# {host}: {ranks} ranks, {processors} processors, {bound} ranks bound")?;
    }
    writeln!(out, "# {}", document.alignment)?;
    writeln!(out, "# command: {}", document.command)?;
    if let Some(why) = &document.incomplete {
        writeln!(out, "# INCOMPLETE: {why}")?;
    }
    if *launches > 1 {
        writeln!(out, "# medians over the medians of {launches} launches")?;
    }
    writeln!(out, "# size: {}", document.size_meaning)
}

/// Writes the meaning of the columns of an operation.
fn explain(out: &mut dyn Write, document: &Document, first: &ResultRecord) -> io::Result<()> {
    let ResultRecord { op, scheme, arrival, .. } = first;
    let root = root_of(document, op);
    writeln!(out, "\n# {op}, scheme {scheme}, arrival {arrival}{root}")?;
    match &first.flaw {
        Some(flaw) => writeln!(out, "# FLAWED: {flaw}")?,
        None => writeln!(
            out,
            "# from the common start: avg, min, max over ranks of each one's mean exit; median of \
             the last exit"
        )?,
    }
    if document.launches > 1 {
        writeln!(out, "# lo, hi: 95% interval of the median over launches, from 6 of them on")?;
    } else {
        writeln!(
            out,
            "# launch lo, hi: 95% interval of this launch's median; other launches differ by more, \
             which --launches tells"
        )?;
    }
    if first.flaw.is_none() {
        writeln!(out, "# ± clock: the most by which clocks may falsify a time; no part of lo, hi")?;
    }
    Ok(())
}

fn columns(document: &Document) -> Columns<'_, ResultRecord> {
    let has_launches = document.launches > 1;
    let [low, high] = if has_launches { ["lo [us]", "hi [us]"] } else { LAUNCH_ENDS };
    let columns = Columns::<ResultRecord>::default()
        .right(10, "size [B]", |r| r.size_bytes)
        .right(TIME, "avg [us]", |r| micros(r.avg_s))
        .right(TIME, "min [us]", |r| micros(r.min_s))
        .right(TIME, "max [us]", |r| micros(r.max_s))
        .right(TIME, "median [us]", |r| micros(r.median_s))
        .right(LONG, low, |r| micros(r.median_s_lo))
        .right(LONG, high, |r| micros(r.median_s_hi))
        .right(LONG, "skew [us]", |r| micros(r.skew_s))
        .right(LONG, "± clock [us]", |r| micros(r.clock_error_s))
        .right(8, "valid", |r| r.reps)
        .right(9, "discarded", |r| r.discarded)
        .apart(0, "stopped by", |r| {
            // A mean that a few pauses dominate does not describe the operation.
            let is_of_pauses = |(mean, median): (f64, f64)| mean > 2.0 * median;
            let pauses = r.avg_s.zip(r.median_s).is_some_and(is_of_pauses);
            format!("{}{}", r.stopped, if pauses { ", means are of pauses" } else { "" })
        });
    if !has_launches {
        return columns;
    }
    let spread = |r: &ResultRecord| r.spread.map(|spread| format!("{:.1}%", spread * 100.0));
    columns.apart(0, "spread", move |r| number::or_dash(spread(r)))
}

fn root_of(document: &Document, op: &str) -> String {
    let has_root = Operation::all().any(|known| known.has_root() && known.to_string() == op);
    if has_root { format!(", root {}", document.root) } else { String::new() }
}

/// Microseconds, with the digits of OSU's tables.
fn micros(seconds: Option<f64>) -> String {
    number::micros(seconds, 2)
}

fn overlapped(out: &mut dyn Write, result: &ResultRecord, overlap: &Overlap) -> io::Result<()> {
    let Overlap { blocking_s, injectable_s, injectable_tests, share, points } = overlap;
    let ResultRecord { op, size_bytes, .. } = result;
    match injectable_s.zip(*share) {
        Some((most, share)) => writeln!(
            out,
            "\n# {op} of {size_bytes} bytes hides {} us of computation ({:.0}% of its {} us) with \
             {injectable_tests} tests",
            micros(Some(most)),
            share * 100.0,
            micros(Some(*blocking_s)),
        )?,
        None => writeln!(
            out,
            "\n# {op} of {size_bytes} bytes: what it hides is not known, as {} of {} points have a \
             time; give more with --max-time",
            points.iter().filter(|point| point.time_s.is_some()).count(),
            points.len()
        )?,
    }
    let columns = Columns::<Point>::default()
        .right(14, "compute [us]", |point| micros(Some(point.compute_s)))
        .right(6, "tests", |point| point.tests)
        .right(TIME, "time [us]", |point| micros(point.time_s))
        .right(13, "overhead [us]", |point| micros(point.overhead_s))
        .right(8, "valid", |point| point.reps);
    columns.write(out, points)
}

#[cfg(test)]
mod tests {
    use super::super::super::scheme::SchemeName;
    use super::super::tests::{document, text};
    use super::*;

    #[test]
    fn what_is_not_known_is_no_number() {
        let document = document();
        let table = text(|out| table(out, &document));
        let rows: Vec<Vec<&str>> = table
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows[0][..5], ["64", "-", "-", "-", "2.50"]);
        assert_eq!(rows[1][..5], ["128", "-", "-", "-", "-"]);
    }

    #[test]
    fn the_clocks_error_and_what_an_interval_holds_for_stand_in_the_table() {
        let mut document = document();
        document.results[0].clock_error_s = Some(1.25e-6);
        let of_one = text(|out| table(out, &document));
        let row = of_one.lines().find(|line| line.trim_start().starts_with("64 ")).unwrap();
        assert_eq!(row.split_whitespace().nth(8), Some("1.25"), "{row}");
        assert!(of_one.contains("launch lo [us]") && of_one.contains("± clock [us]"));
        document.launches = 3;
        let of_three = text(|out| table(out, &document));
        assert!(of_three.contains("over launches") && !of_three.contains("launch lo"));
    }

    #[test]
    fn a_run_that_was_broken_off_is_marked() {
        let whole = document();
        assert!(!text(|out| table(out, &whole)).contains("INCOMPLETE"));
        let broken = Document { incomplete: Some("interrupted".into()), ..document() };
        assert!(text(|out| table(out, &broken)).contains("\n# INCOMPLETE: interrupted\n"));
    }

    #[test]
    fn a_flawed_scheme_says_so() {
        let mut document = document();
        document.results[0].flaw = SchemeName::Loop.flaw().map(str::to_owned);
        assert!(text(|out| table(out, &document)).contains("# FLAWED: repetitions overlap"));
    }
}
