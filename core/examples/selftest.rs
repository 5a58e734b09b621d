//! The core's self-test on this machine: a line for each check and a closing
//! count. `cargo run --package loggap-core --example selftest`

#![allow(clippy::print_stdout, reason = "what it is for")]

use std::process::ExitCode;

use loggap_core::selftest;

fn main() -> ExitCode {
    let count = selftest::run(|check| println!("{check}"));
    println!("{count}");
    if count.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
