//! `loggap goal`: makes, converts, checks and counts schedules.

mod check;
mod convert;
mod from_trace;
mod generate;
mod merge;
mod stats;

use std::path::{Path, PathBuf};

use crate::output::{FileError, PendingFile};
use crate::schedule::{
    CutTags, Extent, FeedError, Form, RefusedInput, ScheduleFile, StreamOutput, WriteError, Writer,
    write, write_text,
};
use loggap_core::goal::ANY_TAG;
use loggap_core::goal::text::TextWriter;

use crate::terminal::{CliError, Console, Exit, NamedFiles, end_on_request};

/// Make, convert, check and count GOAL schedules.
///
/// Schedules are GOAL text (.goal), the binary format of LogGOPSim's txt2bin (.bin) or loggap's own
/// (.lgs), which also holds picoseconds, tags of 64 bits, cpus and nics up to 65535, more than 110
/// million operations a rank and the order of all dependency statements. The form of an input is
/// detected from its content; '-' is standard input.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Generate(generate::Args),
    Compile(convert::CompileArgs),
    Decompile(convert::DecompileArgs),
    Check(check::Args),
    Stats(stats::Args),
    FromTrace(from_trace::Args),
    Merge(merge::Args),
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let _interrupt = end_on_request()?;
    match &args.command {
        Command::Generate(args) => generate::run(args, console),
        Command::Compile(args) => convert::compile(args, console),
        Command::Decompile(args) => convert::decompile(args, console),
        Command::Check(args) => check::run(args, console),
        Command::Stats(args) => stats::run(args, console),
        Command::FromTrace(args) => from_trace::run(args, console),
        Command::Merge(args) => merge::run(args, console),
    }
}

/// Output file and form of a schedule.
#[derive(Debug, clap::Args)]
struct Target {
    /// File to write, in the form of its ending: .goal or .txt, .bin, .lgs.
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Form to write, regardless of the file's ending.
    #[arg(long, value_enum, value_name = "FORM")]
    form: Option<Form>,
}

impl Target {
    /// Requested form, by option or by ending.
    fn form(&self) -> Option<Form> {
        self.form.or_else(|| Form::of_name(self.output.as_deref()?))
    }

    /// Refuses to overwrite `input`, and an ending other than `endings` that belongs to another
    /// format.
    fn check_files(&self, input: &Path, endings: &'static [&'static str]) -> Result<(), CliError> {
        let mut files = NamedFiles::default();
        files.read("FILE", Some(input));
        let output = self.output.as_deref().filter(|path| *path != Path::new("-"));
        files.written("-o", output, endings);
        files.check()
    }

    /// Writes the schedule of `source`. The form is that of the option or ending, else `form`.
    fn write(
        &self,
        form: Option<Form>,
        source: &dyn Source,
        console: &mut Console,
    ) -> Result<(), CliError> {
        let Some(path) = self.output.as_deref().filter(|path| *path != Path::new("-")) else {
            return match self.form() {
                None | Some(Form::Text) => to_stream(source, console),
                Some(_) => Err(CliError::usage("a binary schedule needs a file: give -o FILE")),
            };
        };
        let named = path.extension().is_some();
        let Some(form) = self.form().or(form.filter(|_| !named)) else {
            return Err(CliError::usage(format_args!(
                "the ending of '{}' is none of .goal, .txt, .bin and .lgs: give --form text, bin or lgs",
                path.display()
            )));
        };
        let file = PendingFile::create(path).map_err(CliError::failed)?;
        let extent = source.extent().map_err(|trouble| trouble.at(path))?;
        let mut cut = CutTags::default();
        file.commit_with(|file| {
            cut = write(file, form, &extent, |writer| source.to_file(writer))?;
            Ok(())
        })
        .map_err(|trouble: Trouble| trouble.at(path))?;
        warn_of(cut, console);
        Ok(())
    }
}

/// Warns of tags truncated by LogGOPSim's format.
fn warn_of(cut: CutTags, console: &mut Console) {
    if cut.operations > 0 {
        console.warn(format_args!(
            "LogGOPSim's format holds 32 bits of a tag: the upper bits were cut off in {} \
             operations; .lgs keeps them",
            cut.operations
        ));
    }
    match cut.confused {
        Some([ANY_TAG, tag]) => console.warn(format_args!(
            "the file means another schedule: tag {tag} became the wildcard, so that any message \
             may meet its receive; write .lgs"
        )),
        Some([first, second]) => console.warn(format_args!(
            "the file means another schedule: tags {first} and {second} became the same, so that \
             messages of one may meet receives of the other; write .lgs"
        )),
        None => {}
    }
}

fn to_stream(source: &dyn Source, console: &mut Console) -> Result<(), CliError> {
    write_text(console.data(), |writer| source.to_stream(writer)).map_err(|trouble: Trouble| {
        match trouble {
            Trouble::Write(WriteError::Io(error)) => error.into(),
            other => other.at(Path::new("-")),
        }
    })
}

/// Writer of text to standard output.
type StreamWriter<'o> = TextWriter<StreamOutput<&'o mut dyn std::io::Write>>;

/// Source of a schedule, which can be played into a writer.
trait Source {
    /// Size of the schedule.
    fn extent(&self) -> Result<Extent, Trouble>;
    fn to_file(&self, writer: &mut Writer<'_, '_>) -> Result<(), Trouble>;
    fn to_stream(&self, writer: &mut StreamWriter<'_>) -> Result<(), Trouble>;
}

/// Errors between a schedule and its file.
#[derive(Debug)]
enum Trouble {
    /// The input could not be read.
    Input(RefusedInput),
    /// The options make no valid pattern.
    Options(String),
    /// The schedule cannot be written in this form.
    Write(WriteError),
    /// The file could not be written.
    File(FileError),
}

impl Trouble {
    /// Converts to an error about writing `path`.
    fn at(self, path: &Path) -> CliError {
        match self {
            Self::Input(refused) => CliError::usage(refused),
            Self::Options(reason) => CliError::usage(reason),
            Self::Write(WriteError::Schedule(reason)) => CliError::usage(format_args!(
                "cannot write '{}' in this form: {reason}",
                path.display()
            )),
            Self::Write(WriteError::Io(source)) => {
                CliError::failed(FileError { path: path.to_owned(), source })
            }
            Self::File(error) => CliError::failed(error),
        }
    }
}

impl From<WriteError> for Trouble {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl From<FileError> for Trouble {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl<E: Into<WriteError>> From<FeedError<E>> for Trouble {
    fn from(error: FeedError<E>) -> Self {
        match error {
            FeedError::Input(refused) => Self::Input(refused),
            FeedError::Sink { place, error } => Self::Write(match error.into() {
                WriteError::Schedule(reason) => WriteError::Schedule(format!("{place}: {reason}")),
                error => error,
            }),
        }
    }
}

/// Opens an input.
fn open(path: &Path) -> Result<ScheduleFile, CliError> {
    if path.is_dir() {
        return Err(CliError::usage(format_args!(
            "'{0}' is a directory: if it is that of a trace, 'loggap goal from-trace {0} -o FILE' makes \
             a schedule",
            path.display()
        )));
    }
    ScheduleFile::open(path).map_err(CliError::usage)
}
