//! `loggap trace`: what a traced MPI program did.

mod check;
mod export;
mod info;

use std::path::Path;

use crate::terminal::{CliError, Console, Exit, end_on_request};
use crate::trace::Trace;

/// Show, check and export the trace of an MPI program.
///
/// 'mpirun -n N loggap-mpi trace -o DIR -- app' writes it: a file a rank, and trace.json.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Info(info::Args),
    Check(check::Args),
    Export(export::Args),
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let _interrupt = end_on_request()?;
    match &args.command {
        Command::Info(args) => info::run(args, console),
        Command::Check(args) => check::run(args, console),
        Command::Export(args) => export::run(args, console),
    }
}

/// Opens what is there of a trace. Ranks whose files are missing, or do not end as they should, are
/// named.
fn open(directory: &Path, console: &mut Console) -> Result<Trace, CliError> {
    let trace = Trace::open_what_is_there(directory).map_err(CliError::usage)?;
    for error in trace.missing() {
        console.warn(format_args!("{error}: the rank is left out"));
    }
    for rank in trace.ranks().iter().filter(|rank| rank.cut() > 0) {
        console.warn(format_args!(
            "'{}' is cut or damaged: its last {} bytes are no whole block and are left out",
            rank.path().display(),
            rank.cut()
        ));
    }
    Ok(trace)
}
