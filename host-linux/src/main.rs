//! The command `loggap`.

use std::process::ExitCode;

use loggap::cli;
use loggap::serve::local;

fn main() -> ExitCode {
    match local::child_main(std::env::args_os()) {
        Some(exit) => exit,
        None => cli::main(std::env::args_os()),
    }
}
