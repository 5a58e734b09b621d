//! Exit codes, and errors that carry them.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use nix::sys::signal::{SigSet, Signal};

use super::Console;
use crate::simulation::Elsewhere;

/// Exit codes for the end of `--help`.
pub const EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  failed while running, or the peer did
    2  wrong usage or input
    3  an assertion does not hold, or a link is slower than before
    4  not converged, under --strict; or nothing can be said of the link
    5  the environment refuses: no device, no privilege
  130  stopped by Ctrl-C or SIGTERM, with what was found until then";

/// Outcome of a command; scripts rely on the numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Exit {
    /// done.
    Done = 0,
    /// something failed while running, or the peer did.
    Failed = 1,
    /// the command line or an input file is wrong.
    Usage = 2,
    /// an assertion or comparison failed.
    Differs = 3,
    /// a number did not converge under `--strict`, or the link could not be assessed.
    NotConverged = 4,
    /// the environment refuses: no device, no privilege.
    Refused = 5,
    /// stopped by Ctrl-C or SIGTERM; what was printed and written is valid.
    Interrupted = 130,
}

impl Exit {
    /// Exit code of the process.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Error of a command: an exit code and one message for standard error.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Message to print, without a trailing newline.
    #[error("{text}")]
    Message {
        /// Outcome of the command.
        exit: Exit,
        /// Cause, place and remedy.
        text: String,
    },
    /// The reader of standard output has closed the pipe, or another process reports the error: not a
    /// failure, and nothing to report.
    #[error("the reader of standard output has gone")]
    ReaderGone,
}

impl Elsewhere for CliError {
    const ELSEWHERE: Self = Self::ReaderGone;

    fn is_elsewhere(&self) -> bool {
        matches!(self, Self::ReaderGone)
    }
}

impl CliError {
    /// Something failed while running, or the peer did: exit 1.
    pub fn failed(text: impl Display) -> Self {
        Self::Message { exit: Exit::Failed, text: text.to_string() }
    }

    /// The command line or an input file is wrong: exit 2.
    pub fn usage(text: impl Display) -> Self {
        Self::Message { exit: Exit::Usage, text: text.to_string() }
    }

    /// The environment refuses: exit 5.
    pub fn refused(text: impl Display) -> Self {
        Self::Message { exit: Exit::Refused, text: text.to_string() }
    }

    /// Prints the message and returns the outcome.
    pub(crate) fn report(&self, console: &mut Console) -> Exit {
        match self {
            Self::Message { exit, text } => {
                console.note(format_args!("error: {text}"));
                *exit
            }
            Self::ReaderGone => Exit::Done,
        }
    }
}

/// Runs `command` on `console`, reports its error, and returns the exit code.
pub fn carry_out(
    mut console: Console,
    command: impl FnOnce(&mut Console) -> Result<Exit, CliError>,
) -> ExitCode {
    // A write beyond `ulimit -f` then fails and is reported, like a full disk, instead of killing
    // the process.
    let _told_less_well = SigSet::from(Signal::SIGXFSZ).thread_block();
    let outcome = command(&mut console);
    // Errors are printed below the report.
    let flushed = console.flush().map_err(CliError::from);
    if matches!(outcome, Ok(Exit::Interrupted)) {
        console.note("interrupted");
    }
    let exit = match (outcome, flushed) {
        (Err(error), _) | (Ok(Exit::Done), Err(error)) => error.report(&mut console),
        (Ok(exit), Err(error)) => {
            error.report(&mut console);
            exit
        }
        (Ok(exit), Ok(())) => exit,
    };
    exit.into()
}

/// Prints the message of the parser and returns the exit code: help and version go to standard
/// output and are no failure.
#[must_use]
pub fn explain(error: &clap::Error) -> ExitCode {
    let printed = error.print().map_err(CliError::from);
    let exit = match printed {
        _ if error.use_stderr() => Exit::Usage,
        Ok(()) => Exit::Done,
        Err(failure) => failure.report(&mut Console::standard()),
    };
    exit.into()
}

impl From<io::Error> for CliError {
    /// Converts an error of writing to standard output.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::failed(format_args!("writing to standard output: {error}")),
        }
    }
}
