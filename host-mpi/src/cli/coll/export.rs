//! Output of `coll`: files first, then standard output.

use std::path::PathBuf;

use loggap::output::{FileError, PendingFile};
use loggap::terminal::{CliError, Console, Exit, command_line};

use super::super::create;
use super::Args;
use super::lines::LaunchMessage;
use crate::collective::report::{self, CellSamples, Document};
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
        let create = |path: &Option<PathBuf>| create(path.as_ref()).map_err(CliError::usage);
        Ok(Self { samples: create(&args.samples)?, plot: create(&args.plot)? })
    }
}

/// Document with the fields that the command line determines.
pub(super) fn skeleton(args: &Args) -> Document {
    Document {
        loggap_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command_line().join(" "),
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
        let mut warn =
            |text| warnings.push(format!("{} of {} bytes: {text}", result.op, result.size_bytes));
        if let Some(diagnosis) = &result.diagnosis {
            warn(diagnosis.clone());
        }
        if result.lost_segments > 0 {
            warn(format!(
                "{} repetitions between {} pairs of synchronisations were discarded, as a rank's \
                 clock was set or lost there",
                result.discarded_no_clock, result.lost_segments
            ));
        }
        if (1..FEW).contains(&result.reps) && result.stopped != Stopped::Interrupted.name() {
            warn(format!(
                "{} repetitions counted, which is too few for any interval; give more with \
                 --max-time",
                result.reps
            ));
        }
        let of_clocks = result.median_s.zip(result.clock_error_s).filter(|_| result.flaw.is_none());
        if let Some((_, error)) = of_clocks.filter(|(median, error)| *error > median / 2.0) {
            warn(format!(
                "clocks are known to within {:.2} us only, more than half of the time",
                error * 1e6
            ));
        }
    }
    warnings
}

/// Writes the files, then standard output.
pub(super) fn export(
    args: &Args,
    document: &Document,
    files: Files,
    samples: &[CellSamples],
    console: &mut Console,
) -> Result<(), CliError> {
    if args.launch.is_some() {
        return LaunchMessage::Ends(Box::new(document.clone())).say(console);
    }
    let failed = |error: FileError| CliError::failed(error);
    document.warnings.iter().for_each(|warning| console.warn(warning));
    if let Some(file) = files.samples {
        file.commit(|out| {
            writeln!(out, "{}", report::SAMPLES_HEAD)?;
            samples.iter().try_for_each(|cell| report::samples(out, args.scheme, cell))
        })
        .map_err(failed)?;
    }
    if let Some(file) = files.plot {
        let chart = report::chart(document);
        file.commit(|out| chart.write(1, out)).map_err(failed)?;
    }
    // All lines have been printed already.
    if args.prints_lines() {
        return Ok(());
    }
    let text = if args.csv { report::csv } else { report::table };
    Ok(console.report(args.json, document, |out| text(out, document))?)
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
