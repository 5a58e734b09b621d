//! The command `loggap`.

use std::process::ExitCode;

use loggap::{cli, embedded};

fn main() -> ExitCode {
    match embedded::child_main(std::env::args_os()) {
        Some(exit) => exit,
        None => cli::main(std::env::args_os()),
    }
}
