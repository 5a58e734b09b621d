//! `loggap show`: prints profiles from their files.

use std::path::PathBuf;

use loggap_core::model::Preset;
use loggap_core::units::Bytes;
use serde::Serialize;

use super::parameter_args::preset;
use crate::flags::{ReportArgs, draw, parse};
use crate::output::plot::bars;
use crate::output::plot::chart::Axes;
use crate::output::plot::profiles::{self, NamedProfile};
use crate::output::{self, PendingFile};
use crate::profile::ProfileDocument;
use crate::terminal::{CliError, Console, Exit, Failures, NamedFiles};

/// Print profiles from their files: screen, table, CSV, plot.
///
/// One profile is printed as `loggap measure` printed it, without the link. Several are a row for
/// each range, and one picture: gaps with their lines, and send overheads. `--bars` draws the
/// parameters at one size beside each other.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap show node7.json
  loggap show node7.json --csv > node7.csv
  loggap show node7.json --plot node7.svg
  loggap show tcp.json shm.json --linear --plot links.svg
  loggap show --preset paragon,meiko,myrinet --bars figure8.svg")]
pub(super) struct Args {
    /// Profiles, as `measure -o` writes them.
    #[arg(value_name = "PROFILE.json", required_unless_present = "presets")]
    profiles: Vec<PathBuf>,
    /// Published links beside them.
    #[arg(long = "preset", value_name = "NAMES", value_delimiter = ',', value_parser = preset)]
    presets: Vec<Preset>,
    /// Draw one-way time, divided into o_s, o_r and L, and gap as bars.
    ///
    /// Whiskers are intervals. The gap of a signature and of the presets paragon, meiko and
    /// myrinet is that of request and reply.
    #[arg(long, value_name = "FILE.svg")]
    bars: Option<PathBuf>,
    /// Message size of the bars [default: the smallest].
    #[arg(short, long, value_name = "BYTES", value_parser = parse::size, requires = "bars")]
    size: Option<u64>,
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
    files.written("--bars", args.bars.as_deref(), &["svg"]);
    files.check()?;
    let read = args.profiles.iter().map(|path| ProfileDocument::read(path));
    let read = read.chain(args.presets.iter().map(|preset| Ok(preset.into())));
    let documents = read.collect::<Result<Vec<_>, _>>().map_err(CliError::usage)?;
    if let (2.., Some(option)) = (documents.len(), args.report.for_one_profile()) {
        return Err(CliError::usage(format_args!("{option} takes one profile")));
    }
    let plot = args.report.open_plot()?;
    let bars = args.bars.as_ref().map(PendingFile::create).transpose()?;
    let names = args.names();
    let profiles: Vec<NamedProfile<'_>> = names
        .iter()
        .zip(&documents)
        .map(|(name, document)| NamedProfile { name, document })
        .collect();
    let mut failures = Failures::default();
    failures.add(plot.map_or(Ok(()), |file| args.draw(&profiles, file)));
    failures.add(bars.map_or(Ok(()), |file| args.draw_bars(&profiles, file)));
    if files.take_standard_output() {
        console.leave_standard_output();
    }
    failures.add(match &documents[..] {
        [document] if args.presets.is_empty() => args.report.print(document, document, console),
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
    /// Names of the files without folder and ending, or whole paths if two are equal; then the
    /// presets'.
    fn names(&self) -> Vec<String> {
        let presets = self.presets.iter().map(|preset| preset.name.to_owned());
        [self.file_names(), presets.collect()].concat()
    }

    fn file_names(&self) -> Vec<String> {
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

    fn draw_bars(&self, profiles: &[NamedProfile<'_>], file: PendingFile) -> Result<(), CliError> {
        let size = self.size.map_or_else(|| bars::smallest(profiles), Bytes);
        let picture = bars::svg(profiles, size).map_err(CliError::failed)?;
        Ok(file.commit(|out| out.write_all(picture.as_bytes()))?)
    }
}
