//! `loggap show`: prints profiles from their files.

use std::path::PathBuf;

use serde::Serialize;

use crate::flags::{ReportArgs, draw};
use crate::output::plot::chart::Axes;
use crate::output::plot::profiles::{self, NamedProfile};
use crate::output::{self, PendingFile};
use crate::profile::ProfileDocument;
use crate::terminal::{CliError, Console, Exit, Failures, NamedFiles};

/// Print profiles from their files: screen, table, CSV, plot.
///
/// One profile is printed as `loggap measure` printed it, without the link. Several are a row for
/// each range, and one picture: gaps with their lines, and send overheads.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap show node7.json
  loggap show node7.json --csv > node7.csv
  loggap show node7.json --plot node7.svg
  loggap show tcp.json shm.json --linear --plot links.svg")]
pub(super) struct Args {
    /// Profiles, as `measure -o` writes them.
    #[arg(value_name = "PROFILE.json", required = true)]
    profiles: Vec<PathBuf>,
    /// Plot gaps and send overheads on linear axes: slopes can be read off.
    #[arg(long, requires = "plot")]
    linear: bool,
    #[command(flatten)]
    report: ReportArgs,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let mut files = NamedFiles::default();
    for path in &args.profiles {
        files.read("PROFILE.json", Some(path));
    }
    args.report.name_files(&mut files);
    files.check()?;
    let read = args.profiles.iter().map(|path| ProfileDocument::read(path));
    let documents = read.collect::<Result<Vec<_>, _>>().map_err(CliError::usage)?;
    if let (2.., Some(option)) = (documents.len(), args.report.for_one_profile()) {
        return Err(CliError::usage(format_args!("{option} takes one profile")));
    }
    let plot = args.report.open_plot()?;
    let names = args.names();
    let profiles: Vec<NamedProfile<'_>> = names
        .iter()
        .zip(&documents)
        .map(|(name, document)| NamedProfile { name, document })
        .collect();
    let mut failures = Failures::default();
    failures.add(plot.map_or(Ok(()), |file| args.draw(&profiles, file)));
    if files.take_standard_output() {
        console.leave_standard_output();
    }
    failures.add(match &documents[..] {
        [document] => args.report.print(document, document, console),
        _ => {
            let all = Several { profiles: &documents };
            let text = |out: &mut dyn std::io::Write| output::profiles::write(out, &profiles);
            console.report(args.report.json, &all, text).map_err(CliError::from)
        }
    });
    Ok(failures.end(Exit::Done, console))
}

/// Document of several profiles.
#[derive(Serialize)]
struct Several<'d> {
    profiles: &'d [ProfileDocument],
}

impl Args {
    /// Names of the files without folder and ending, or whole paths if two are equal.
    fn names(&self) -> Vec<String> {
        let stem = |path: &PathBuf| path.file_stem().unwrap_or_default().display().to_string();
        let mut stems: Vec<String> = self.profiles.iter().map(stem).collect();
        let names = stems.clone();
        stems.sort_unstable();
        stems.dedup();
        if stems.len() == names.len() {
            return names;
        }
        self.profiles.iter().map(|path| path.display().to_string()).collect()
    }

    fn draw(&self, profiles: &[NamedProfile<'_>], file: PendingFile) -> Result<(), CliError> {
        if let ([profile], false) = (profiles, self.linear) {
            return draw(profile.document, file);
        }
        let axes = if self.linear { Axes::Linear } else { Axes::Powers };
        let chart = profiles::chart(profiles, axes).map_err(CliError::failed)?;
        Ok(file.commit(|out| chart.write(profiles::LINES, out))?)
    }
}
