//! Results and samples as comma-separated values.

use std::io::{self, Write};

use loggap::output::csv;

use super::super::operation::Cell;
use super::super::scheme::SchemeName;
use super::super::series::Sample;
use super::{Document, ResultRecord};

/// Writes results as comma-separated values; unknown values are empty.
///
/// # Errors
///
/// Errors of `out`.
pub fn csv(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    let heads = "op,size_bytes,scheme,arrival,median_s,median_s_lo,median_s_hi,avg_s,min_s,max_s,reps,\
                 reps_effective,discarded,discarded_no_clock,skew_s,skew_max_s,clock_error_s,\
                 stopped,spread";
    let record = |r: &ResultRecord| {
        let times = [r.median_s, r.median_s_lo, r.median_s_hi, r.avg_s, r.min_s, r.max_s];
        let counts = [r.reps, r.reps_effective, r.discarded, r.discarded_no_clock];
        let rest = [r.skew_s, r.skew_max_s, r.clock_error_s];
        [r.op.clone(), r.size_bytes.to_string(), r.scheme.clone(), r.arrival.clone()]
            .into_iter()
            .chain(times.map(csv::cell))
            .chain(counts.map(|count| count.to_string()))
            .chain(rest.map(csv::cell))
            .chain([r.stopped.clone(), csv::cell(r.spread)])
    };
    csv::table(out, heads.split(','), document.results.iter().map(record), None)
}

/// Header of a file of samples.
pub const SAMPLES_HEAD: &str = "op,size_bytes,scheme,repetition,valid,rank,start_s,exit_s";

/// Times of the ranks in the repetitions of a cell.
#[derive(Debug)]
pub struct CellSamples {
    /// Operation and size.
    pub cell: Cell,
    /// Repetitions, in order.
    pub samples: Vec<Sample>,
}

/// Writes the times of each rank in a cell, relative to the common start.
///
/// # Errors
///
/// Errors of `out`.
pub fn samples(
    out: &mut dyn Write,
    scheme: SchemeName,
    CellSamples { cell, samples }: &CellSamples,
) -> io::Result<()> {
    let (operation, bytes, scheme) = (cell.operation, cell.bytes(), scheme.name());
    for Sample { repetition, valid, starts, exits } in samples {
        for (rank, (start, exit)) in starts.iter().zip(exits).enumerate() {
            let (start, exit) = (start.seconds(), exit.seconds());
            writeln!(
                out,
                "{operation},{bytes},{scheme},{repetition},{},{rank},{start:.12},{exit:.12}",
                u8::from(*valid)
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{document, text};
    use super::*;

    #[test]
    fn what_is_not_known_is_empty() {
        let document = document();
        let csv = text(|out| csv(out, &document));
        assert!(csv.lines().nth(2).unwrap().starts_with("bcast,128,roundtime,balanced,,,,"));
        let fields = |line: &str| line.split(',').count();
        assert!(csv.lines().all(|line| fields(line) == 19), "{csv}");
    }
}
