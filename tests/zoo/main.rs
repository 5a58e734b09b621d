//! A zoo of links whose truth is known: measures them all with `loggap` as a
//! user would and holds the results against the truth.
//!
//! `cargo run --release -p loggap-tests --bin zoo -- [--quick] [--only WORD]
//! [--repeat N] [--json FILE]`
//!
//! Prints a table on standard output and how it goes on standard error. Exits
//! with 3 where a goal is missed and lists which; a link that cannot be made
//! on this machine is listed as skipped, with the reason.

mod catalogue;
mod judge;
mod keeper;
#[path = "../../core/tests/measured/mod.rs"]
mod measured;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use loggap_tests::cleanup;
use loggap_tests::command::binary;

use catalogue::catalogue;
use judge::Verdict;
use table::Row;

/// Measure links whose truth is known.
#[derive(Debug, Parser)]
struct Args {
    /// Only a few links, in less than a minute.
    #[arg(long)]
    quick: bool,
    /// Only links whose name contains this.
    #[arg(long, value_name = "WORD", default_value = "")]
    only: String,
    /// Measure each link so many times, with other seeds.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    repeat: u64,
    /// Write everything as JSON, too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// List the links and measure nothing.
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let chosen = |entry: &catalogue::Entry| {
        (entry.is_quick() || !args.quick) && entry.name.contains(&args.only)
    };
    let entries: Vec<_> = catalogue().into_iter().filter(chosen).collect();
    if args.list {
        entries.iter().for_each(|entry| println!("{}", entry.name));
        return ExitCode::SUCCESS;
    }
    cleanup::on_signals();
    eprintln!("building loggap");
    binary();
    let mut rows = Vec::new();
    for seed in 1..=args.repeat {
        for (number, entry) in entries.iter().enumerate() {
            eprint!("{}/{} {} ... ", number + 1, entries.len(), entry.name);
            let row = Row::new(entry, seed, keeper::measure(entry, seed));
            eprintln!("{}", row.verdict());
            rows.push(row);
        }
    }
    table::print(&rows);
    if let Some(path) = &args.json
        && let Err(error) = fs::write(path, table::json(&rows))
    {
        eprintln!("cannot write {}: {error}", path.display());
        return ExitCode::FAILURE;
    }
    let missed = rows.iter().any(|row| matches!(row.verdict(), Verdict::Missed(_)));
    if missed { ExitCode::from(3) } else { ExitCode::SUCCESS }
}
