//! `loggap compare`: is a link slower than before?

use std::path::PathBuf;

use serde::Serialize;

use crate::compare::{CompareError, Comparison, Finding, Named, compare};
use crate::flags::parse;
use crate::output::comparison;
use crate::profile::ProfileDocument;
use crate::terminal::{CliError, Console, EXIT_CODES_OF_CHECKS, Exit, NamedFiles, command_line};

/// Compare profiles of a link: is it slower than before?
///
/// Half round trip, overheads and gap are compared at the sizes that all profiles have measured, as
/// ratios with 95% intervals. The intervals include the variation between runs, as each profile
/// states it and as the profiles of a side show it: several on each side tell smaller changes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  loggap compare last-week.json today.json
  loggap compare last-week/*.json -- today/*.json
  loggap compare a.json b.json --threshold 10% || echo slower, or no answer")]
#[command(after_long_help = EXIT_CODES_OF_CHECKS)]
pub(super) struct Args {
    /// Profiles from before; without --, the second one of two is from after.
    #[arg(value_name = "BEFORE.json", required = true)]
    before: Vec<PathBuf>,
    /// Profiles from after.
    #[arg(value_name = "AFTER.json", last = true)]
    after: Vec<PathBuf>,
    /// Change that counts as none.
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = parse::percent)]
    threshold: u32,
    /// Show each size.
    #[arg(short, long)]
    verbose: bool,
    /// Print one JSON document.
    #[arg(short = 'J', long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    loggap_version: &'static str,
    command: Vec<String>,
    before: Vec<&'a str>,
    after: Vec<&'a str>,
    #[serde(flatten)]
    found: &'a Comparison,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let (before, after) = match (&args.before[..], &args.after[..]) {
        ([before, after], []) => (std::slice::from_ref(before), std::slice::from_ref(after)),
        (_, []) => {
            return Err(CliError::usage(
                "name two profiles, or several on each side: compare BEFORE.json... -- AFTER.json...",
            ));
        }
        sides => sides,
    };
    let mut files = NamedFiles::default();
    before.iter().chain(after).for_each(|path| files.read("BEFORE.json", Some(path)));
    files.check()?;
    let (before, after) = (read(before)?, read(after)?);
    warn(&before, &after, console);
    let threshold = f64::from(args.threshold) / 1e6;
    let found = compare(&before, &after, threshold).map_err(|error| match error {
        CompareError::Unusable { .. } => {
            CliError::Message { exit: Exit::NotConverged, text: error.to_string() }
        }
        _ => CliError::usage(error),
    })?;
    let names = |side: &'_ [Named]| -> Vec<String> {
        side.iter().map(|named| named.path.display().to_string()).collect()
    };
    let (before, after) = (names(&before), names(&after));
    let document = Document {
        loggap_version: env!("CARGO_PKG_VERSION"),
        command: command_line(),
        before: before.iter().map(String::as_str).collect(),
        after: after.iter().map(String::as_str).collect(),
        found: &found,
    };
    let sizes = if args.verbose { &found.sizes[..] } else { &[] };
    console.report(args.json, &document, |out| comparison::write(out, &found, sizes))?;
    Ok(if found.verdict == Finding::Slower { Exit::Differs } else { Exit::Done })
}

fn read(paths: &[PathBuf]) -> Result<Vec<Named>, CliError> {
    let named = |path: &PathBuf| {
        let profile = ProfileDocument::read(path).map_err(CliError::usage)?;
        Ok(Named { path: path.clone(), profile })
    };
    paths.iter().map(named).collect()
}

/// Warns of incomplete profiles, and of another machine.
fn warn(before: &[Named], after: &[Named], console: &mut Console) {
    for Named { path, profile } in before.iter().chain(after) {
        if let Some(why) = &profile.incomplete {
            console.warn(format_args!("'{}' is incomplete: {why}", path.display()));
        }
    }
    let host = |named: &Named| named.profile.host.hostname.clone();
    if let (Some(first), Some(other)) = (
        before.first(),
        after.iter().rfind(|named| before.first().is_some_and(|first| host(first) != host(named))),
    ) {
        console.warn(format_args!(
            "'{}' was measured on {}, '{}' on {}",
            first.path.display(),
            host(first),
            other.path.display(),
            host(other)
        ));
    }
}
