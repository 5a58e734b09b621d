//! Talking with a person: standard output and standard error, exit codes, Ctrl-C, progress, and the
//! files that a command names.

mod console;
mod exit;
mod failures;
mod interrupt;
mod named_files;
mod progress;

pub use console::Console;
pub(crate) use console::Terminal;
pub use exit::{CliError, EXIT_CODES, Exit, carry_out, explain};
pub(crate) use failures::Failures;
pub use interrupt::Interrupt;
pub(crate) use interrupt::{end_on_request, interrupted};
pub(crate) use named_files::NamedFiles;
pub(crate) use progress::{Bar, ProgressLine, RunsLine};

/// Words of this command, for documents. Paths need not be text.
#[must_use]
pub fn command_line() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}
