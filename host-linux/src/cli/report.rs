//! How `measure` and `fit` hand on what they found.

use loggap_core::measure::{AssessOptions, SizeRow};
use loggap_core::model::Profile;
use loggap_core::stats::Confidence;
use serde::Serialize;

use super::{CliError, Console, Exit, parse};
use crate::output::plot::{self, Figure};
use crate::output::{FileError, PendingFile, flags, table};
use crate::profile::Requested;

/// How exact, shared by the verbs that assess samples.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ExactArgs {
    /// A number has converged when half its interval is at most this share
    /// of it.
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = parse::percent)]
    rel_err: u32,
    /// How often an interval is to hold the true value.
    #[arg(long, value_name = "PERCENT", default_value = "95%", value_parser = parse::percent)]
    confidence: u32,
    /// Exit with 4 when a number did not converge.
    #[arg(long)]
    pub(super) strict: bool,
}

impl ExactArgs {
    pub(super) fn options(&self) -> Result<AssessOptions, CliError> {
        const LEAST: f64 = 50.0;
        const MOST: f64 = 99.9;
        let percent = self.confidence_percent();
        let confidence = Confidence::from_percent(percent)
            .filter(|_| (LEAST..=MOST).contains(&percent))
            .ok_or_else(|| {
                CliError::usage(format_args!(
                    "--confidence takes from {LEAST}% to {MOST}%, not {percent}%"
                ))
            })?;
        let relative_error_ppm = self.rel_err;
        Ok(AssessOptions { confidence, relative_error_ppm, ..AssessOptions::default() })
    }

    pub(super) fn requested(&self) -> Requested {
        Requested {
            relative_error: f64::from(self.rel_err) / 1e6,
            confidence_percent: self.confidence_percent(),
        }
    }

    fn confidence_percent(&self) -> f64 {
        f64::from(self.confidence) / 1e4
    }
}

/// What is printed, shared by the verbs that find parameters.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ReportArgs {
    /// Print one JSON document instead of the table; the keys name SI units.
    #[arg(short = 'J', long)]
    json: bool,
    /// Print the parameters of the smallest messages as the flags that
    /// simulators take, in nanoseconds: -L -o -g -G -O, and as -S the last
    /// size before the first change of protocol. The table goes to standard
    /// error.
    #[arg(long, conflicts_with = "json")]
    flags: bool,
    /// Draw all times over the message size, as SVG.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<std::path::PathBuf>,
}

/// Parameters and what to say around them.
#[derive(Debug)]
pub(super) struct Report<'a, D> {
    /// The document for `--json`.
    pub(super) document: &'a D,
    /// Says what was measured, for table and picture.
    pub(super) title: &'a str,
    /// Says on what.
    pub(super) subtitle: &'a str,
    /// The parameters.
    pub(super) profile: &'a Profile,
    /// The per-size table.
    pub(super) rows: &'a [SizeRow],
    /// Level of the intervals, in percent.
    pub(super) confidence_percent: f64,
    /// Lines below the table.
    pub(super) closing: &'a [String],
}

impl ReportArgs {
    /// Opens the picture's file, so that a wrong path shows before the work.
    pub(super) fn open_plot(&self) -> Result<Option<PendingFile>, CliError> {
        Ok(self.plot.as_ref().map(PendingFile::create).transpose()?)
    }

    pub(super) fn print<D: Serialize>(
        &self,
        report: &Report<'_, D>,
        console: &mut Console,
    ) -> Result<(), CliError> {
        if self.json {
            return Ok(console.json(report.document)?);
        }
        let mut text = Vec::new();
        report.write_table(&mut text)?;
        if !self.flags {
            return Ok(console.data().write_all(&text)?);
        }
        console.note(String::from_utf8_lossy(&text).trim_end());
        match flags::line(report.profile) {
            Some(Ok(line)) => Ok(writeln!(console.data(), "{line}")?),
            Some(Err(error)) => Err(CliError::failed(format_args!("no flags: {error}"))),
            None => Err(CliError::failed("no flags: nothing was measured")),
        }
    }
}

impl<D> Report<'_, D> {
    fn write_table(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        writeln!(out, "# {}", self.title)?;
        writeln!(out, "# {}", self.subtitle)?;
        for line in table::legend(self.confidence_percent) {
            writeln!(out, "# {line}")?;
        }
        table::write(out, self.profile)?;
        for line in self.closing {
            writeln!(out, "# {line}")?;
        }
        for line in table::not_converged(self.profile) {
            writeln!(out, "# not converged: {line}")?;
        }
        Ok(())
    }

    /// Draws the picture into its file.
    pub(super) fn draw(&self, file: PendingFile) -> Result<(), CliError> {
        let figure = Figure {
            title: self.title,
            subtitle: self.subtitle,
            profile: self.profile,
            rows: self.rows,
            confidence_percent: self.confidence_percent,
        };
        let picture = plot::svg(&figure).map_err(CliError::failed)?;
        Ok(file.commit(|out| out.write_all(picture.as_bytes()))?)
    }
}

/// How to exit when everything was handed on.
pub(super) fn exit(strict: Strictness, profile: &Profile) -> Exit {
    match strict {
        Strictness::Strict if !is_converged(profile) => Exit::NotConverged,
        _ => Exit::Done,
    }
}

/// Whether a number that did not converge is a failure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Strictness {
    /// It is.
    Strict,
    /// It is only marked.
    Lenient,
}

/// Whether there are numbers and all are as exact as was asked for.
pub(super) fn is_converged(profile: &Profile) -> bool {
    !profile.ranges.is_empty() && profile.converged()
}

impl From<FileError> for CliError {
    fn from(error: FileError) -> Self {
        use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound, PermissionDenied};
        match error.source.kind() {
            NotFound | NotADirectory | IsADirectory => Self::usage(error),
            PermissionDenied => Self::refused(error),
            _ => Self::failed(error),
        }
    }
}
