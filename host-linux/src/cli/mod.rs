//! The subcommands of `loggap`.
//!
//! A verb is a subcommand with a file in this folder. It holds `Args`, which clap parses, and
//! `run`, which calls the library and passes results to the exporters. Decisions and computations
//! belong in the library, not here.
//!
//! # How to add a subcommand
//!
//! 1. Write `cli/NAME.rs`:
//!
//!    ```text
//!    //! `loggap NAME`: what it answers.
//!
//!    /// One line for `loggap --help`.
//!    ///
//!    /// Further paragraphs for `loggap NAME --help`, with units.
//!    #[derive(Debug, clap::Args)]
//!    #[command(after_help = "Examples:\n  loggap NAME …")]
//!    pub struct Args {
//!        /// Message sizes in bytes.
//!        #[arg(short = 's', long, value_parser = parse::sizes)]
//!        sizes: Sizes,
//!    }
//!
//!    pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> { … }
//!    ```
//!
//! 2. Add `mod NAME;`, a variant of `Command` and a line in `dispatch`.
//! 3. Add an end-to-end test in `tests/tests/NAME.rs`.
//!
//! # Rules that hold for all
//!
//! - Results go to [`Console::data`], messages to [`Console::note`] and [`Console::warn`];
//!   `println!` is not used. Files are written before standard output, so that a closed pipe loses
//!   nothing; their failures are kept in `Failures` until the report is printed.
//! - Every file that is read or written is listed in `NamedFiles`, which refuses to overwrite
//!   inputs, to write two results to one file, and to write a file whose ending belongs to another
//!   format.
//! - Errors are [`CliError`]s, which carry the [`Exit`] code and name a remedy. An `io::Error` of
//!   standard output is converted by `?`.
//! - Values are parsed by [`parse`](crate::flags::parse), so that a size, a time or a percentage has the same syntax
//!   everywhere.

mod best;
mod check;
mod compare;
mod digits;
mod exit_codes;
mod extrapolation;
mod fit;
mod goal;
mod link;
mod measure;
mod noise;
mod parameter_args;
mod parameters_used;
mod pattern_args;
mod perftest;
mod predict;
mod profile_warnings;
mod serve;
mod show;
pub mod simulate;
mod study;
mod trace;
mod trace_args;
mod verbs;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::flags::help::ShortHelp;
use crate::terminal::{CliError, Console, EXIT_CODES, Exit, carry_out, explain};

/// Measure network links as LogP-family parameters, simulate parallel programs.
///
/// A link is measured as latency L, overhead o, gap g and gap per byte G, with
/// confidence intervals; GOAL schedules and collectives are simulated with them.
#[derive(Debug, Parser)]
#[command(name = "loggap", version, propagate_version = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
enum Command {
    Measure(Box<measure::Args>),
    Lat(perftest::lat::Args),
    Bw(perftest::bw::Args),
    Serve(serve::Args),
    Fit(fit::Args),
    Show(show::Args),
    Compare(compare::Args),
    Check(Box<check::Args>),
    Goal(goal::Args),
    Simulate(Box<simulate::Args>),
    Predict(predict::Args),
    Study(study::Args),
    Best(Box<best::Args>),
    Noise(noise::Args),
    Watch(Box<watch::Args>),
    Trace(trace::Args),
}

const HELP: ShortHelp = ShortHelp {
    long: &[
        "measure",
        "lat",
        "bw",
        "serve",
        "fit",
        "simulate",
        "predict",
        "best",
        "check",
        "study overlap",
        "study messages",
        "study algorithms",
        "study noise",
        "goal generate",
        "watch",
    ],
    options: "\
        port transport block cpu sizes rel_err strict max_time launches output samples json \
        table csv flags verbose plot bind once clients allow max_message device \
        detector latency overhead gap gap_per_byte eager_limit profile preset topology explain \
        sensitivity timeline sweep trace pattern ranks size exact assume_commutative combine rules \
        summary factors form all iters duration rtt queue_pairs bidirectional \
        report_gbits op counts draws budget interval time assertions hold openmetrics processes assert",
};

/// Parser of the command line.
fn command() -> clap::Command {
    HELP.of(Cli::command())
}

/// Runs the command line `arguments`; the first one is the program's name.
#[must_use]
pub fn main<I, T>(arguments: I) -> ExitCode
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let parsed = command().try_get_matches_from(arguments);
    match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => carry_out(Console::standard(), |console| dispatch(&cli.command, console)),
        Err(error) => explain(&error),
    }
}

fn dispatch(command: &Command, console: &mut Console) -> Result<Exit, CliError> {
    match command {
        Command::Measure(args) => measure::run(args, console),
        Command::Lat(args) => perftest::lat::run(args, console),
        Command::Bw(args) => perftest::bw::run(args, console),
        Command::Serve(args) => serve::run(args, console),
        Command::Fit(args) => fit::run(args, console),
        Command::Show(args) => show::run(args, console),
        Command::Compare(args) => compare::run(args, console),
        Command::Check(args) => check::run(args, console),
        Command::Goal(args) => goal::run(args, console),
        Command::Simulate(args) => simulate::run(args, console),
        Command::Predict(args) => predict::run(args, console),
        Command::Study(args) => study::run(args, console),
        Command::Best(args) => best::run(args, console),
        Command::Noise(args) => noise::run(args, console),
        Command::Watch(args) => watch::run(args, console),
        Command::Trace(args) => trace::run(args, console),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    /// clap gives an argument without a heading that of the group before it.
    #[test]
    fn options_are_under_the_heading_where_one_looks_for_them() {
        for name in ["simulate", "best", "predict"] {
            let all = Cli::command();
            let command = all.find_subcommand(name).unwrap();
            let under = |heading: &str| {
                let arguments = command.get_arguments().filter(|a| a.get_id() != "help");
                let of = arguments.filter(|a| a.get_help_heading() == Some(heading));
                of.map(|a| a.get_id().as_str().to_owned()).collect::<Vec<_>>()
            };
            assert_eq!(under("Rules"), ["receive", "rendezvous"], "{name}");
            assert!(under("Output").contains(&"json".to_owned()), "{name}");
            assert!(under("Run").contains(&"max_memory".to_owned()), "{name}");
            assert!(!under("Parameters").contains(&"threads".to_owned()), "{name}");
        }
    }

    /// All subcommands, nested ones included.
    fn verbs(command: &clap::Command) -> Vec<clap::Command> {
        let mut found = vec![command.clone()];
        found.extend(command.get_subcommands().flat_map(verbs));
        found
    }

    #[test]
    fn help_names_only_what_there_is() {
        for mut verb in verbs(&command()) {
            let text = verb.render_long_help().to_string();
            assert!(!text.contains("compare and"), "{text}");
            let before = text.split_once("\nExamples:").map(|(before, _)| before);
            assert!(before.is_none_or(|before| before.ends_with('\n')), "{text}");
        }
    }

    #[test]
    fn the_short_help_of_every_verb_is_one_screen() {
        for mut verb in verbs(&command()) {
            let text = verb.render_help().to_string();
            let lines = text.lines().count();
            assert!(lines <= 45, "{}: {lines} lines\n{text}", verb.get_name());
        }
    }

    #[test]
    fn every_option_of_the_short_help_exists() {
        let verbs = verbs(&command());
        let options: Vec<_> = verbs.iter().flat_map(clap::Command::get_arguments).collect();
        for name in HELP.options.split_whitespace() {
            assert!(options.iter().any(|option| option.get_id() == name), "{name}");
        }
    }

    #[test]
    fn every_option_is_explained() {
        for command in Cli::command().get_subcommands() {
            for argument in command.get_arguments().filter(|a| a.get_id() != "help") {
                assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument);
            }
        }
    }
}
