//! `loggap measure`.

use super::{CliError, Console, Exit};

/// Measure a link and fit its parameters.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: &Args, _console: &mut Console) -> Result<Exit, CliError> {
    Err(CliError::failed("'measure' is being written"))
}
