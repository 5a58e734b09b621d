//! `loggap fit`.

use super::{CliError, Console, Exit};

/// Repeat the fit from a file of samples.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: &Args, _console: &mut Console) -> Result<Exit, CliError> {
    Err(CliError::failed("'fit' is being written"))
}
