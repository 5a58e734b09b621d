//! `loggap serve`.

use super::{CliError, Console, Exit};

/// Answer measurements from other machines.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: &Args, _console: &mut Console) -> Result<Exit, CliError> {
    Err(CliError::failed("'serve' is being written"))
}
