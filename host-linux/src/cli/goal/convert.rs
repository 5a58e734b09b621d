//! `loggap goal compile` and `loggap goal decompile`.

use std::path::PathBuf;

use super::{Extent, Form, ScheduleFile, Source, StreamWriter, Target, Trouble, Writer, open};
use crate::cli::{CliError, Console, Exit};

/// Convert a schedule, usually text to binary.
///
/// The binary of an input that txt2bin compiles is, byte for byte, the one
/// that txt2bin writes.
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
/// Labels are l1, l2, ... in the order of each rank's operations. The
/// reference's binary format groups dependencies by the operation that
/// others wait for, and so does the text; compiling it gives the same
/// binary.
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
    args.target.write(None, &open(&args.input)?, console)?;
    Ok(Exit::Done)
}

pub(super) fn decompile(args: &DecompileArgs, console: &mut Console) -> Result<Exit, CliError> {
    let target = Target { output: args.output.clone(), form: Some(super::FormName::Text) };
    target.write(Some(Form::Text), &open(&args.input)?, console)?;
    Ok(Exit::Done)
}

impl Source for ScheduleFile {
    fn extent(&self) -> Result<Extent, Trouble> {
        Ok(Self::extent(self))
    }

    fn to_file(&self, writer: &mut Writer<'_, '_>) -> Result<(), Trouble> {
        Ok(self.feed(writer)?)
    }

    fn to_stream(&self, writer: &mut StreamWriter<'_>) -> Result<(), Trouble> {
        Ok(self.feed(writer)?)
    }
}
