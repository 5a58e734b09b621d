//! `loggap compare`: is a link slower than before?

use std::path::PathBuf;
use std::slice;

use serde::Serialize;

use crate::compare::{Comparison, Outcome, ProfileFile, compare};
use crate::flags::{annotate, parse, warn_of};
use crate::output::junit::{self, Check};
use crate::output::{PendingFile, comparison};
use crate::terminal::{CliError, Console, Exit, NamedFiles, command_line};

/// Compare profiles of a link: is it slower than before?
///
/// Half round trip, overheads and gap are compared at the sizes that all profiles have measured, as
/// ratios with 95% intervals. The intervals include the variation between runs, as the launches of
/// each and the profiles of a side show it: several on each side tell smaller changes.
/// Exits with 3 if anything is slower, with 0 if it is the same, faster, or cannot be told.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap compare last-week.json today.json
  loggap compare last-week/*.json -- today/*.json
  loggap compare a.json b.json --threshold 10% || echo slower
  loggap compare a.json b.json --threshold 30% --strict || echo slower, or no answer")]
pub(super) struct Args {
    /// Profiles from before; without --, the second one of two is from after.
    #[arg(value_name = "BEFORE.json", required = true)]
    before: Vec<PathBuf>,
    /// Profiles from after.
    #[arg(value_name = "AFTER.json", last = true)]
    after: Vec<PathBuf>,
    /// Smallest change that counts.
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = parse::percent)]
    threshold: u32,
    /// Exit with 4 if any parameter cannot be told and none is slower.
    #[arg(long)]
    strict: bool,
    /// Show each size.
    #[arg(short, long)]
    verbose: bool,
    /// Print one JSON document.
    #[arg(short = 'J', long)]
    json: bool,
    /// Write a test case for each parameter as JUnit XML.
    #[arg(long, value_name = "FILE.xml")]
    junit: Option<PathBuf>,
}

#[derive(Serialize)]
struct Document<'a> {
    loggap_version: &'static str,
    command: Vec<String>,
    before: Vec<String>,
    after: Vec<String>,
    #[serde(flatten)]
    found: &'a Comparison,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let (before, after) = match (&args.before[..], &args.after[..]) {
        ([before, after], []) => (slice::from_ref(before), slice::from_ref(after)),
        (named, []) => {
            return Err(CliError::usage(format_args!(
                "name two profiles, not {}, or several on each side: compare BEFORE.json... -- \
                 AFTER.json...",
                named.len()
            )));
        }
        sides => sides,
    };
    let mut files = NamedFiles::default();
    before.iter().for_each(|path| files.read("BEFORE.json", Some(path)));
    after.iter().for_each(|path| files.read("AFTER.json", Some(path)));
    files.written("--junit", args.junit.as_deref(), &["xml"]);
    files.check()?;
    let junit = args.junit.as_ref().map(PendingFile::create).transpose()?;
    let (before, after) = (read(before)?, read(after)?);
    let threshold = f64::from(args.threshold) / 1e6;
    let found = compare(&before, &after, threshold)?;
    warn_of(before.iter().chain(&after), console);
    let names =
        |side: &[ProfileFile]| side.iter().map(|file| file.path.display().to_string()).collect();
    let document = Document {
        loggap_version: env!("CARGO_PKG_VERSION"),
        command: command_line(),
        before: names(&before),
        after: names(&after),
        found: &found,
    };
    if files.take_standard_output() {
        console.leave_standard_output();
    }
    let sizes = if args.verbose { &found.sizes[..] } else { &[] };
    console.report(args.json, &document, |out| comparison::write(out, &found, sizes))?;
    let checks = Check::all(&[], Some(&found));
    annotate(&checks, console);
    if let Some(file) = junit {
        file.commit(|out| junit::write(out, "loggap compare", &checks))?;
    }
    Ok(match found.verdict {
        Outcome::Slower => Exit::Differs,
        _ if args.strict && found.is_open() => Exit::NotConverged,
        _ => Exit::Done,
    })
}

fn read(paths: &[PathBuf]) -> Result<Vec<ProfileFile>, CliError> {
    paths.iter().map(|path| ProfileFile::read(path).map_err(CliError::usage)).collect()
}
