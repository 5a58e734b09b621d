//! `loggap-mpi simulate`: `loggap simulate` on several processes.

use loggap::cli::simulate::{Args, run_across};
use loggap::terminal::{CliError, Console, Exit};

use super::Session;
use crate::processes::MpiProcesses;

pub(super) fn run(
    args: &Args,
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    run_across(args, &MpiProcesses::new(session.job), session.interrupt, console)
}
