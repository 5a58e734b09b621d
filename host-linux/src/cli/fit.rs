//! `loggap fit`: repeats the assessment from a file of samples.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use loggap_core::fit::{Detector, LookAhead, MOST_AHEAD};
use loggap_core::measure::AssessOptions;
use loggap_core::model::Range;

use crate::drive::{Analysis, is_converged, requested};
use crate::flags::{ExactArgs, ReportArgs, draw};
use crate::link::LinkFingerprint;
use crate::machine::environment::Fingerprint;
use crate::output::{number, warnings};
use crate::profile::{
    ChangeRecord, FitDocument, FittedRange, Literal, LiteralRange, LiteralSettings,
    ProfileDocument, RangeRecord, SCHEMA_VERSION, SizeRecord, gap_deviation, gap_points,
};
use crate::samples::{Limits, SampleReader, SamplesError, SamplesErrorKind, netgauge};
use crate::schedule::Coding;
use crate::terminal::{CliError, Console, Exit, Failures, Interrupt, NamedFiles, command_line};

/// Repeat the assessment from a file of samples, on any machine.
///
/// The file is CSV with a header line: either that of `loggap measure --samples`,
/// `size_bytes,n,delay_s,prtt_s,receive_s,launch,time_s`, with a line per timed round (the last two
/// or three columns may be missing), or `size_bytes,value_s`, with a value of the gap per line; or
/// the output of netgauge's loggp pattern. The samples of a run give the numbers of that run again,
/// if --rel-err and --confidence are the same, --detector is not given, and processors were not
/// busy.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap measure --samples run.csv && loggap fit run.csv
  loggap fit gaps.csv -J --plot gaps.svg
  loggap fit gaps.csv --detector lookahead --pfact 3 --lookahead 4
  loggap fit gaps.csv --detector lookahead --literal")]
pub(super) struct Args {
    /// Samples, from `loggap measure --samples` or other tools.
    #[arg(value_name = "SAMPLES.csv")]
    samples: PathBuf,
    #[command(flatten)]
    detection: DetectionArgs,
    #[command(flatten)]
    exact: ExactArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Options of the detector of protocol changes.
#[derive(Clone, Debug, clap::Args)]
struct DetectionArgs {
    /// Detector of protocol changes.
    ///
    /// optimal: jumps of any curve, significant over the whole sweep;
    /// lookahead: Hoefler et al. 2007, a few sizes ahead.
    #[arg(long, value_name = "DETECTOR", default_value = "optimal", value_parser = ["optimal", "lookahead"])]
    detector: String,
    /// For lookahead: growth of the misfit that makes a change [default: 2].
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pfact: Option<f64>,
    /// For lookahead: number of sizes to look ahead [default: 3; --literal 5].
    #[arg(long, value_name = "SIZES", value_parser = clap::value_parser!(u8).range(3..=MOST_AHEAD as i64))]
    lookahead: Option<u8>,
    /// For lookahead: show what Eq. 6 as printed finds as well.
    ///
    /// Without the corrections that docs/fit.md lists: ranges, their least-squares lines and mean
    /// square deviations, below the report and as `literal` in JSON.
    #[arg(long)]
    literal: bool,
}

impl DetectionArgs {
    fn detector(&self) -> Result<Detector, CliError> {
        if self.detector == "lookahead" {
            let defaults = LookAhead::default();
            return Ok(Detector::look_ahead(LookAhead {
                factor: self.pfact.unwrap_or(defaults.factor),
                points: self.lookahead.map_or(defaults.points, usize::from),
                ..defaults
            }));
        }
        if self.pfact.is_some() || self.lookahead.is_some() || self.literal {
            return Err(CliError::usage(
                "--pfact, --lookahead and --literal are for --detector lookahead; add it",
            ));
        }
        Ok(Detector::optimal())
    }

    /// Settings of the detector as printed, if it is asked for.
    fn literal(&self) -> Option<LiteralSettings> {
        let defaults = LiteralSettings::default();
        self.literal.then(|| LiteralSettings {
            pfact: self.pfact.unwrap_or(defaults.pfact),
            lookahead: self.lookahead.map_or(defaults.lookahead, usize::from),
        })
    }
}

/// Parses a factor, which must exceed 1: at 1 every other point would be a change.
fn factor(text: &str) -> Result<f64, String> {
    const MOST: f64 = 1_000.0;
    let factor: Option<f64> = text.parse().ok();
    factor
        .filter(|factor| *factor > 1.0 && *factor <= MOST)
        .ok_or_else(|| format!("expected a factor above 1 and up to {MOST}, such as 2"))
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let options = AssessOptions { detector: args.detection.detector()?, ..args.exact.options()? };
    let mut files = NamedFiles::default();
    files.read("SAMPLES.csv", Some(&args.samples));
    args.report.name_files(&mut files);
    files.check()?;
    let plot = args.report.open_plot()?;
    let _ends_at_once = Interrupt::catch().map_err(CliError::failed)?;
    let analysis = analysis(&args.samples, &options)?;
    let document = document(args, &options, &analysis);
    let profile = as_profile(&args.samples, &document, &analysis);
    let drawn = plot.map_or(Ok(()), |file| draw(&profile, file));
    let mut failures = Failures::default();
    failures.add(drawn);
    if files.take_standard_output() {
        console.leave_standard_output();
    }
    let printed = args.report.print(&profile, &document, console);
    failures.add(printed);
    if let Some(literal) = &document.literal {
        let lines = describe(literal, &document).into_iter().map(|line| format!("# {line}\n"));
        failures.add(args.report.remark(&lines.collect::<String>(), console));
    }
    let fails = args.exact.strict && !document.converged;
    let done = if fails { Exit::NotConverged } else { Exit::Done };
    Ok(failures.end(done, console))
}

fn analysis(path: &Path, options: &AssessOptions) -> Result<Analysis, CliError> {
    let file = File::open(path).map_err(|error| at(path, error))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(at(path, "this is a folder; name a file of samples"));
    }
    let mut file = BufReader::new(file);
    if let Some(coding) = file.fill_buf().ok().and_then(Coding::of) {
        return Err(at(path, coding));
    }
    if file.fill_buf().is_ok_and(|head| head.starts_with(netgauge::MAGIC.as_bytes())) {
        let mut text = String::new();
        file.take(netgauge::LONGEST).read_to_string(&mut text).map_err(|error| at(path, error))?;
        let rows = netgauge::rows(&text).map_err(|error| at(path, error))?;
        return Analysis::of_results(&rows, options).map_err(|error| at(path, error));
    }
    let failed = |error: SamplesError| match error.kind {
        SamplesErrorKind::Io(ref source) if source.kind() != std::io::ErrorKind::InvalidData => {
            CliError::failed(format_args!("'{}': {error}", path.display()))
        }
        _ => at(path, error),
    };
    let mut reader = SampleReader::new(file, Limits::default()).map_err(failed)?;
    let mut rows = Vec::new();
    while let Some(row) = reader.next_row().map_err(failed)? {
        rows.push(row);
    }
    Analysis::of(&rows, options).map_err(|error| at(path, error))
}

/// Input error with the name of its file.
fn at(path: &Path, error: impl std::fmt::Display) -> CliError {
    CliError::usage(format_args!("'{}': {error}", path.display()))
}

fn document(args: &Args, options: &AssessOptions, analysis: &Analysis) -> FitDocument {
    let assessment = &analysis.assessment;
    let profile = &assessment.profile;
    let sizes: Vec<SizeRecord> = analysis.rows.iter().copied().map(SizeRecord::from).collect();
    let fitted = |range: &Range| FittedRange {
        record: RangeRecord::from(*range),
        gap_lsq_s2: gap_deviation(&sizes, range),
    };
    let literal = args.detection.literal();
    FitDocument {
        schema_version: SCHEMA_VERSION,
        loggap_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command_line(),
        detector: args.detection.detector.clone(),
        requested: requested(options),
        ranges: profile.ranges.iter().map(fitted).collect(),
        literal: literal.map(|settings| Literal::of(&gap_points(&sizes), settings)),
        changes: profile.changes.iter().copied().map(ChangeRecord::from).collect(),
        sizes,
        converged: is_converged(profile),
        warnings: warnings::ranked(&[], &assessment.warnings, warnings::BY_OPTIONS)
            .iter()
            .map(warnings::text)
            .collect(),
    }
}

/// Ranges of the detector as printed, beside the changes that the report has.
fn describe(literal: &Literal, document: &FitDocument) -> Vec<String> {
    let LiteralSettings { pfact, lookahead } = literal.settings;
    let [printed, ours] = [literal.ranges.len().saturating_sub(1), document.changes.len()]
        .map(|changes| number::counted(changes as u64, "change"));
    let mut lines = vec![format!(
        "Eq. 6 as printed (pfact {pfact}, {lookahead} sizes ahead): {printed}; with corrections: \
         {ours}"
    )];
    lines.extend(literal.ranges.iter().map(|range| {
        let LiteralRange { gap_s, gap_per_byte_s, gap_lsq_literal_s2, .. } = *range;
        let known = |value: Option<f64>, text: fn(f64) -> String| {
            value.map_or_else(|| "-".to_owned(), text)
        };
        format!(
            "{} to {}: g {}, G {}, lsq {}",
            number::size(range.first_bytes),
            number::size(range.last_bytes),
            known(gap_s, |gap| number::in_units(gap, number::TIME)),
            known(gap_per_byte_s, |slope| number::in_units(slope, number::TIME_PER_BYTE)),
            known(gap_lsq_literal_s2, number::square_micros)
        )
    }));
    lines
}

/// Converts `document` for the exporters; the file's name takes the place of the peer's.
fn as_profile(samples: &Path, document: &FitDocument, analysis: &Analysis) -> ProfileDocument {
    let link =
        LinkFingerprint { peer: samples.display().to_string(), ..LinkFingerprint::default() };
    ProfileDocument {
        command: document.command.clone(),
        host: Fingerprint { link, ..Fingerprint::default() },
        requested: document.requested,
        warnings: document.warnings.clone(),
        warning_details: warnings::ranked(&[], &analysis.assessment.warnings, warnings::BY_OPTIONS),
        ..analysis.document()
    }
}
