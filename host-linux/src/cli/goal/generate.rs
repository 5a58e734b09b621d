//! `loggap goal generate`: writes the schedule of a pattern.

use loggap_core::goal::Sink;
use loggap_core::goal::pattern::{GenerateError, Options, Pattern, generate, scratch_words};
use loggap_core::goal::stats::Counter;

use super::{Extent, Form, Source, StreamWriter, Target, Trouble, WriteError, Writer};
use crate::cli::pattern_args::{PatternArgs, pattern_help, pattern_names};
use crate::schedule::PrttRound;
use crate::terminal::{CliError, Console, Exit};

/// Write the schedule of a communication pattern.
///
/// The patterns are those of Schedgen 1 and 2, operation by operation, and
/// repaired where those do not run: a binary tree with any root, recursive
/// doubling for any number of ranks.
#[derive(Debug, clap::Args)]
#[command(after_help = pattern_names(), after_long_help = pattern_help())]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    pattern: PatternArgs,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    args.target.write(Some(Form::Text), &Generated::of(&args.pattern)?, console)?;
    Ok(Exit::Done)
}

/// A schedule that is computed anew each time it is played.
enum Generated {
    Pattern(Pattern, Options),
    Prtt(PrttRound),
}

impl Generated {
    fn of(args: &PatternArgs) -> Result<Self, CliError> {
        if let Some(round) = args.round() {
            return Ok(Self::Prtt(round));
        }
        let pattern = args.pattern.ok_or_else(|| {
            CliError::usage(
                "give --pattern NAME and --ranks P; 'loggap goal generate --help' lists the \
                 patterns",
            )
        })?;
        let ranks = args.ranks.ok_or_else(|| PatternArgs::without_ranks(pattern))?;
        Ok(Self::Pattern(pattern, args.options(ranks)?))
    }

    fn play<S: Sink>(&self, sink: &mut S) -> Result<(), GenerateError<S::Error>> {
        match self {
            Self::Pattern(pattern, options) => {
                let words = scratch_words(*pattern, options).map_err(GenerateError::Options)?;
                generate(*pattern, options, &mut vec![0; words], sink)
            }
            Self::Prtt(round) => round.feed(sink).map_err(GenerateError::Sink),
        }
    }

    fn write<S: Sink<Error: Into<WriteError>>>(&self, sink: &mut S) -> Result<(), Trouble> {
        self.play(sink).map_err(|error| match error {
            GenerateError::Options(error) => Trouble::Options(error.to_string()),
            GenerateError::Sink(error) => Trouble::Write(error.into()),
        })
    }
}

impl Source for Generated {
    fn extent(&self) -> Result<Extent, Trouble> {
        let mut counter = Counter::new(&mut []);
        self.play(&mut counter).map_err(|error| Trouble::Options(error.to_string()))?;
        let counted = counter.finish().map_err(|error| Trouble::Options(error.to_string()))?;
        Ok(counted.0.extent)
    }

    fn to_file(&self, writer: &mut Writer<'_, '_>) -> Result<(), Trouble> {
        self.write(writer)
    }

    fn to_stream(&self, writer: &mut StreamWriter<'_>) -> Result<(), Trouble> {
        self.write(writer)
    }
}
