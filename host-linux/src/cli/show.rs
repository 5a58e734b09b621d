//! `loggap show`: prints profiles from their files.

use std::path::PathBuf;

use crate::flags::{ReportArgs, draw};
use crate::profile::ProfileDocument;
use crate::terminal::{CliError, Console, Exit, Failures, NamedFiles};

/// Print a profile from its file: screen, table, CSV, plot.
///
/// Everything is as `loggap measure` printed it, without the link.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap show node7.json
  loggap show node7.json --csv > node7.csv
  loggap show node7.json --plot node7.svg")]
pub(super) struct Args {
    /// Profile, as `measure -o` writes it.
    #[arg(value_name = "PROFILE.json")]
    profile: PathBuf,
    #[command(flatten)]
    report: ReportArgs,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let mut files = NamedFiles::default();
    files.read("PROFILE.json", Some(&args.profile));
    args.report.name_files(&mut files);
    files.check()?;
    let profile = ProfileDocument::read(&args.profile).map_err(CliError::usage)?;
    let plot = args.report.open_plot()?;
    let mut failures = Failures::default();
    failures.add(plot.map_or(Ok(()), |file| draw(&profile, file)));
    if files.take_standard_output() {
        console.leave_standard_output();
    }
    failures.add(args.report.print(&profile, &profile, console));
    Ok(failures.end(Exit::Done, console))
}
