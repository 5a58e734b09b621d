//! Output of `coll`: files first, then standard output.

use loggap::output::{FileError, PendingFile};
use loggap::terminal::{CliError, Console, Exit};

use super::Args;
use super::told::Told;
use crate::collective::course::Sample;
use crate::collective::operation::Cell;
use crate::collective::report::{self, Document};
use crate::collective::stop::Stopped;

/// Requested output files, under temporary names until they are complete.
#[derive(Debug)]
pub(super) struct Files {
    samples: Option<PendingFile>,
    plot: Option<PendingFile>,
}

impl Files {
    /// Creates the files. A launch has none: its driver writes them.
    pub(super) fn open(args: &Args) -> Result<Self, CliError> {
        if args.launch.is_some() {
            return Ok(Self { samples: None, plot: None });
        }
        let create = |path: &Option<_>| path.as_ref().map(PendingFile::create).transpose();
        let opened = create(&args.samples)
            .and_then(|samples| Ok(Self { samples, plot: create(&args.plot)? }));
        opened.map_err(|error: FileError| CliError::usage(error))
    }
}

/// Document with the fields that the command line determines.
pub(super) fn skeleton(args: &Args) -> Document {
    // Paths need not be text.
    let command = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    Document {
        schema_version: report::SCHEMA_VERSION,
        loggap_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command.collect::<Vec<_>>().join(" "),
        seed: args.seed(),
        root: args.root,
        size_meaning: report::SIZE_MEANING.to_owned(),
        ..Document::default()
    }
}

/// Warnings about `document`.
pub(super) fn warnings(document: &Document) -> Vec<String> {
    /// Number of repetitions from which on their range is a 95% interval of the median.
    const FEW: u64 = 6;
    let mut warnings = Vec::new();
    if document.oversubscribed {
        warnings.push(
            "ranks share processors: they wait for each other to be run, so these numbers say \
             little about the network; ranks that wait for a start let others run, and late \
             starts count unless --max-skew is given"
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
        if (1..FEW).contains(&result.reps) && result.stopped != Stopped::Interrupted.name() {
            warnings.push(format!(
                "{} of {} bytes: {} repetitions counted, which is too few for any interval; give \
                 more with --max-time",
                result.op, result.size_bytes, result.reps
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

/// Writes the files, then standard output.
pub(super) fn export(
    args: &Args,
    document: &Document,
    (files, samples): (Files, &[(Cell, Vec<Sample>)]),
    console: &mut Console,
) -> Result<(), CliError> {
    if args.launch.is_some() {
        return Told::Ends(Box::new(document.clone())).say(console);
    }
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
        file.commit(|out| chart.write(1, out)).map_err(failed)?;
    }
    match (args.json, args.csv) {
        // All lines have been printed already.
        _ if args.prints_lines() => {}
        (true, _) => console.json(document)?,
        (_, true) => report::csv(console.data(), document)?,
        _ => report::table(console.data(), document)?,
    }
    Ok(())
}

/// Exit code after `document` has been printed.
pub(super) fn exit(args: &Args, document: &Document) -> Result<Exit, CliError> {
    if document.incomplete.is_some() {
        return Ok(Exit::Interrupted);
    }
    // The driver judges all launches together.
    if args.launch.is_some() {
        return Ok(Exit::Done);
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
