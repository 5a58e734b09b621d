//! Flags of accuracy and output, of all programs that find parameters.

use loggap_core::measure::AssessOptions;
use loggap_core::stats::Confidence;
use serde::Serialize;

use crate::flags::parse;
use crate::output::screen::{self, ScreenOptions};
use crate::output::{PendingFile, csv, flags, plot, table};
use crate::profile::{ProfileDocument, Verdict};
use crate::terminal::{CliError, Console, NamedFiles, Terminal};

/// Options of accuracy, shared by the subcommands that assess samples.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ExactArgs {
    /// Target half-width of intervals [default: 5%; if busy 25%].
    ///
    /// Relative to the value. `measure` takes 25% where other programs take its processors.
    #[arg(long, value_name = "PERCENT", value_parser = parse::percent)]
    pub(crate) rel_err: Option<u32>,
    /// Confidence level of the intervals.
    #[arg(long, value_name = "PERCENT", default_value = "95%", value_parser = parse::percent)]
    confidence: u32,
    /// Largest misfit of a range's line; smaller jumps begin no new range.
    #[arg(long, value_name = "PERCENT", default_value = "6%", value_parser = parse::percent)]
    tolerance: u32,
    /// Exit with 4 if any value did not converge.
    #[arg(long)]
    pub(crate) strict: bool,
}

impl ExactArgs {
    pub(crate) fn options(&self) -> Result<AssessOptions, CliError> {
        const LEAST: f64 = 50.0;
        const MOST: f64 = 99.9;
        let percent = f64::from(self.confidence) / 1e4;
        let confidence = Confidence::from_percent(percent)
            .filter(|_| (LEAST..=MOST).contains(&percent))
            .ok_or_else(|| {
                CliError::usage(format_args!(
                    "--confidence takes from {LEAST}% to {MOST}%, not {percent}%"
                ))
            })?;
        let defaults = AssessOptions::default();
        let relative_error_ppm = self.rel_err.unwrap_or(defaults.relative_error_ppm);
        let tolerance_ppm = self.tolerance;
        Ok(AssessOptions { confidence, relative_error_ppm, tolerance_ppm, ..defaults })
    }
}

/// Options of the output, shared by the subcommands that find parameters.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ReportArgs {
    /// Print one JSON document, in SI units.
    #[arg(short = 'J', long, group = "form")]
    pub(crate) json: bool,
    /// Print columns, a row per range: the default into a pipe.
    ///
    /// Header and remark lines begin with #; - marks unknown values.
    #[arg(long, group = "form")]
    table: bool,
    /// Print CSV, a row per message size, in SI units.
    #[arg(long, group = "form")]
    csv: bool,
    /// Print simulator flags: -L -o -g (ns), -G -O (ns/B), -S (bytes).
    ///
    /// Values of the smallest messages; S is the last size before the first
    /// change of protocol. The report goes to standard error.
    #[arg(long, group = "form")]
    flags: bool,
    /// Show every size, range and warning.
    #[arg(short, long)]
    verbose: bool,
    /// No colours; the environment variable NO_COLOR does the same.
    #[arg(long)]
    no_color: bool,
    /// Plot all times over the message size, as SVG.
    ///
    /// Shows points, fitted lines, changes of protocol and percentiles of the
    /// round trip.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<std::path::PathBuf>,
}

impl ReportArgs {
    /// Adds the files of these options.
    pub(crate) fn name_files(&self, files: &mut NamedFiles) {
        files.written("--plot", self.plot.as_deref(), &["svg"]);
    }

    /// Opens the plot's file, so that a wrong path is reported before the work.
    pub(crate) fn open_plot(&self) -> Result<Option<PendingFile>, CliError> {
        Ok(self.plot.as_ref().map(PendingFile::create).transpose()?)
    }

    /// Prints `profile` in the requested form; `json` is the document for `--json`. Screen and
    /// table include the warnings; with other forms they go to standard error.
    pub(crate) fn print(
        &self,
        profile: &ProfileDocument,
        json: &impl Serialize,
        console: &mut Console,
    ) -> Result<(), CliError> {
        let terminal = if self.flags { console.talk_terminal } else { console.data_terminal };
        let screen = terminal.filter(|_| !(self.json || self.table || self.csv));
        if self.json || self.csv {
            profile.warnings.iter().for_each(|warning| console.warn(warning));
        }
        if self.json {
            return Ok(console.json(json)?);
        }
        if self.csv {
            return Ok(csv::write(console.data(), profile)?);
        }
        let mut text = Vec::new();
        match screen {
            Some(terminal) => screen::write(&mut text, profile, &self.screen(terminal))?,
            None => table::write(&mut text, profile)?,
        }
        if !self.flags {
            return Ok(console.data().write_all(&text)?);
        }
        console.note(String::from_utf8_lossy(&text).trim_end());
        match flags::line(profile) {
            Some(Ok(line)) => {
                if !flags::has_converged(profile) {
                    console.warn("values of this line did not converge: ~ and ? in the report");
                }
                Ok(writeln!(console.data(), "{line}")?)
            }
            Some(Err(error)) => Err(CliError::failed(format_args!("no flags: {error}"))),
            None if profile.verdict == Verdict::Unusable => {
                let reason = profile.reason.as_deref().unwrap_or("nothing was measured");
                console.note(format_args!("no flags, unusable: {reason}"));
                Ok(())
            }
            None => Err(CliError::failed("no flags: nothing was measured")),
        }
    }

    /// Given form that holds one profile.
    pub(crate) const fn for_one_profile(&self) -> Option<&'static str> {
        if self.csv {
            Some("--csv")
        } else if self.flags {
            Some("--flags")
        } else {
            None
        }
    }

    /// Adds lines below the report that [`ReportArgs::print`] printed; with forms that hold no
    /// remarks they go to standard error. JSON has keys for them.
    pub(crate) fn remark(&self, text: &str, console: &mut Console) -> Result<(), CliError> {
        if self.csv || self.flags {
            text.lines().for_each(|line| console.note(line));
        } else if !self.json {
            console.data().write_all(text.as_bytes())?;
        }
        Ok(())
    }

    fn screen(&self, terminal: Terminal) -> ScreenOptions {
        let Terminal { width, colour } = terminal;
        ScreenOptions { width, colour: colour && !self.no_color, verbose: self.verbose }
    }
}

/// Draws `profile` into its file.
pub(crate) fn draw(profile: &ProfileDocument, file: PendingFile) -> Result<(), CliError> {
    let picture = plot::svg(profile).map_err(CliError::failed)?;
    Ok(file.commit(|out| out.write_all(picture.as_bytes()))?)
}
