//! Tables for the screen.

use std::io::{self, Write};

use loggap::output::number;

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
    let mut operation = "";
    for result in &document.results {
        if result.op != operation {
            operation = &result.op;
            columns(out, document, result)?;
        }
        row(out, document, result)?;
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

fn columns(out: &mut dyn Write, document: &Document, first: &ResultRecord) -> io::Result<()> {
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
    let [low, high] = if document.launches > 1 { ["lo [us]", "hi [us]"] } else { LAUNCH_ENDS };
    let spread = if document.launches > 1 { "  spread" } else { "" };
    writeln!(
        out,
        "# size [B]    avg [us]    min [us]    max [us] median [us] {low:>LONG$} {high:>LONG$} \
         \x20    skew [us]   ± clock [us]    valid discarded  stopped by{spread}"
    )
}

fn root_of(document: &Document, op: &str) -> String {
    let has_root = Operation::all().any(|known| known.has_root() && known.to_string() == op);
    if has_root { format!(", root {}", document.root) } else { String::new() }
}

fn row(out: &mut dyn Write, document: &Document, result: &ResultRecord) -> io::Result<()> {
    let r = result;
    write!(out, "{:>10}", r.size_bytes)?;
    for time in [r.avg_s, r.min_s, r.max_s, r.median_s] {
        write!(out, " {:>TIME$}", micros(time))?;
    }
    for time in [r.median_s_lo, r.median_s_hi, r.skew_s, r.clock_error_s] {
        write!(out, " {:>LONG$}", micros(time))?;
    }
    write!(out, " {:>8} {:>9}  {}", r.reps, r.discarded, r.stopped)?;
    // A mean that a few pauses dominate does not describe the operation.
    if r.avg_s.zip(r.median_s).is_some_and(|(mean, median)| mean > 2.0 * median) {
        write!(out, ", means are of pauses")?;
    }
    if document.launches > 1 {
        let spread = r.spread.map_or_else(|| "-".to_owned(), |s| format!("{:.1}%", s * 100.0));
        write!(out, "  {spread}")?;
    }
    writeln!(out)
}

/// Microseconds, with the digits of OSU's tables.
fn micros(seconds: Option<f64>) -> String {
    number::decimal(seconds.map(|seconds| seconds * 1e6), 2)
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
    writeln!(
        out,
        "{:>13} {:>6} {:>TIME$} {:>13} {:>8}",
        "# compute [us]", "tests", "time [us]", "overhead [us]", "valid"
    )?;
    for point in points {
        let [compute, time, overhead] =
            [Some(point.compute_s), point.time_s, point.overhead_s].map(micros);
        let Point { tests, reps, .. } = point;
        writeln!(out, "{compute:>14} {tests:>6} {time:>TIME$} {overhead:>13} {reps:>8}")?;
    }
    Ok(())
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
