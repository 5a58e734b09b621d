//! `loggap goal compile` and `loggap goal decompile`: convert schedules.

use std::fmt::Display;
use std::path::PathBuf;

use loggap_core::goal::{InterleaveError, Interleaver, KeptOrder, Sink};

use super::{
    Extent, FeedError, Form, ScheduleFile, Source, StreamWriter, Target, Trouble, WriteError,
    Writer, open,
};
use crate::schedule::OwnedRank;
use crate::terminal::{CliError, Console, Exit};

/// Convert a schedule, usually text to binary.
///
/// For an input that txt2bin accepts, the binary equals that of txt2bin byte for byte.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loggap goal compile bcast.goal -o bcast.bin
  loggap goal compile bcast.goal -o bcast.lgs")]
pub(super) struct CompileArgs {
    /// Schedule to read.
    input: PathBuf,

    #[command(flatten)]
    target: Target,
}

/// Write a schedule as text.
///
/// Labels are l1, l2, ... in the order of each rank's operations; each dependency follows its two
/// operations, as generators write it. Compiling the text gives the same binary.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  loggap goal decompile bcast.bin -o bcast.goal")]
pub(super) struct DecompileArgs {
    /// Schedule to read.
    input: PathBuf,

    /// File to write [default: standard output].
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn compile(args: &CompileArgs, console: &mut Console) -> Result<Exit, CliError> {
    if args.target.output.is_none() {
        return Err(CliError::usage("give the file to write: -o FILE.bin or -o FILE.lgs"));
    }
    args.target.check_files(&args.input, &[])?;
    args.target.write(None, &open(&args.input)?, console)?;
    Ok(Exit::Done)
}

pub(super) fn decompile(args: &DecompileArgs, console: &mut Console) -> Result<Exit, CliError> {
    let target = Target { output: args.output.clone(), form: Some(Form::Text) };
    target.check_files(&args.input, &["goal", "txt"])?;
    target.write(Some(Form::Text), &open(&args.input)?, console)?;
    Ok(Exit::Done)
}

impl Source for ScheduleFile {
    fn extent(&self) -> Result<Extent, Trouble> {
        Ok(Self::extent(self))
    }

    fn to_file(&self, writer: &mut Writer<'_, '_>) -> Result<(), Trouble> {
        if writer.is_text() { interleaved(self, writer) } else { Ok(self.feed(writer)?) }
    }

    fn to_stream(&self, writer: &mut StreamWriter<'_>) -> Result<(), Trouble> {
        interleaved(self, writer)
    }
}

/// Writes a file as text, each dependency close to its operations.
fn interleaved<S>(file: &ScheduleFile, sink: &mut S) -> Result<(), Trouble>
where
    S: Sink<Error: Into<WriteError> + Display>,
{
    let kept = match file.form() {
        Form::Text => return Ok(file.feed(sink)?),
        Form::Native => KeptOrder::All,
        Form::Reference => KeptOrder::OfEachOperation,
    };
    let extent = file.extent();
    let mut rank = OwnedRank::new(&extent);
    let mut interleaver = Interleaver::new(sink, rank.lend(), kept);
    Ok(file.feed(&mut interleaver).map_err(|error| match error {
        FeedError::Input(refused) => FeedError::Input(refused),
        FeedError::Sink { place, error } => {
            let error = match error {
                InterleaveError::Sink(error) => error.into(),
                other => WriteError::Schedule(other.to_string()),
            };
            FeedError::Sink { place, error }
        }
    })?)
}
