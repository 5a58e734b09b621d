//! `loggap-mpi simulate`: `loggap simulate` on several processes.

use loggap::cli::simulate::{Args, run_across};
use loggap::terminal::{CliError, Console, Exit};

use super::Session;
use crate::library::Implementation;
use crate::processes::MpiProcesses;

pub(super) fn run(
    args: &Args,
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    if session.job.size() > 1 && Implementation::of_this_process() == Implementation::Mpich {
        // Messages between processes were lost there, for a reason that is not known yet.
        return session.told_by_first(Err(CliError::failed(
            "several processes need Open MPI so far; under MPICH run it on one",
        )));
    }
    run_across(args, &MpiProcesses::new(session.job), session.interrupt, console)
}
