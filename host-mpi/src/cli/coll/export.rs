//! What `coll` leaves: files first, then standard output.

use loggap::cli::{CliError, Console, Exit};
use loggap::output::{FileError, PendingFile};

use super::Args;
use crate::collective::arrival::Arrival;
use crate::collective::course::Sample;
use crate::collective::operation::Cell;
use crate::collective::report::{self, Document};

/// The files that were asked for, open but not there yet.
#[derive(Debug)]
pub(super) struct Files {
    samples: Option<PendingFile>,
    plot: Option<PendingFile>,
}

impl Files {
    pub(super) fn open(args: &Args) -> Result<Self, CliError> {
        let create = |path: &Option<_>| path.as_ref().map(PendingFile::create).transpose();
        let opened = create(&args.samples)
            .and_then(|samples| Ok(Self { samples, plot: create(&args.plot)? }));
        opened.map_err(|error: FileError| CliError::failed(error))
    }
}

/// The document as far as the command line tells.
pub(super) fn skeleton(args: &Args) -> Document {
    Document {
        schema_version: report::SCHEMA_VERSION,
        loggap_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        seed: args.seed,
        root: args.root,
        size_meaning: report::SIZE_MEANING.to_owned(),
        ..Document::default()
    }
}

/// As it is written on the command line.
pub(super) fn arrival_name(arrival: &Arrival) -> String {
    match arrival {
        Arrival::Balanced => "balanced".to_owned(),
        Arrival::Sorted(time) => format!("sorted:{}us", micros(*time)),
        Arrival::OneLate(time, None) => format!("one-late:{}us", micros(*time)),
        Arrival::OneLate(time, Some(rank)) => format!("one-late:{}us@{rank}", micros(*time)),
        Arrival::File(path) => path.display().to_string(),
    }
}

fn micros(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// What deserves attention in `document`.
pub(super) fn warnings(document: &Document) -> Vec<String> {
    let mut warnings = Vec::new();
    if document.oversubscribed {
        warnings.push(
            "ranks share processors: they wait for each other to be run, so these numbers say \
             little about the network; ranks that wait for a start let others run"
                .to_owned(),
        );
    }
    for result in &document.results {
        if let Some(diagnosis) = &result.diagnosis {
            warnings.push(format!("{} of {} bytes: {diagnosis}", result.op, result.size_bytes));
        }
        if result.lost_segments > 0 {
            warnings.push(format!(
                "{} of {} bytes: {} repetitions between {} pairs of synchronisations were \
                 discarded, as a rank's clock was set or lost there",
                result.op, result.size_bytes, result.discarded_no_clock, result.lost_segments
            ));
        }
        let of_clocks = result.median_s.zip(result.clock_error_s);
        if result.flaw.is_none() && of_clocks.is_some_and(|(median, error)| error > median / 2.0) {
            warnings.push(format!(
                "{} of {} bytes: clocks are known to within {:.2} us only, more than half of the \
                 time",
                result.op,
                result.size_bytes,
                result.clock_error_s.unwrap_or_default() * 1e6
            ));
        }
    }
    warnings
}

/// Writes files and standard output.
pub(super) fn export(
    args: &Args,
    document: &Document,
    (files, samples): (Files, &[(Cell, Vec<Sample>)]),
    console: &mut Console,
) -> Result<(), CliError> {
    let failed = |error: FileError| CliError::failed(error);
    document.warnings.iter().for_each(|warning| console.warn(warning));
    if let Some(file) = files.samples {
        file.commit(|out| {
            writeln!(out, "{}", report::SAMPLES_HEAD)?;
            samples
                .iter()
                .try_for_each(|(cell, samples)| report::samples(out, *cell, (args.scheme, samples)))
        })
        .map_err(failed)?;
    }
    if let Some(file) = files.plot {
        let chart = report::chart(document);
        file.commit(|out| chart.write(report::LINES_OF_ONE, out)).map_err(failed)?;
    }
    match (args.json, args.csv) {
        (true, _) => console.json(document)?,
        (_, true) => report::csv(console.data(), document)?,
        _ => report::table(console.data(), document)?,
    }
    Ok(())
}

/// How to exit with `document` printed.
pub(super) fn exit(args: &Args, document: &Document) -> Result<Exit, CliError> {
    if document.incomplete.is_some() {
        return Ok(Exit::Interrupted);
    }
    if !document.has_numbers() {
        return Err(CliError::failed(
            "no repetition counted, so that there is no number at all; see the warnings",
        ));
    }
    let converged = document.results.iter().all(|result| {
        let half = result.median_s_hi.zip(result.median_s_lo).map(|(hi, lo)| (hi - lo) / 2.0);
        let within = |(half, median): (f64, f64)| half <= median * f64::from(args.rel_err) / 1e6;
        half.zip(result.median_s).is_some_and(within)
    });
    Ok(if args.strict && !converged { Exit::NotConverged } else { Exit::Done })
}
