//! The command `loggap-mpi`, to be started by `mpirun`.

use std::process::ExitCode;

fn main() -> ExitCode {
    loggap_mpi::cli::main(std::env::args_os())
}
