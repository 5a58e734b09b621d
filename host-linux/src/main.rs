//! The command `loggap`.

use std::process::ExitCode;

fn main() -> ExitCode {
    loggap::cli::main(std::env::args_os())
}
