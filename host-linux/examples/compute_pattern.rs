//! Runs a built-in pattern without storing it: `compute_pattern NAME RANKS BYTES`.

use std::time::Instant;

use loggap::simulation::{Job, run_pattern};
use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::model::LogGops;
use loggap_core::sim::implicit::PatternProgram;
use loggap_core::sim::{NoNoise, Parameters, Settings};
use loggap_core::units::{Bytes, PerByte, Picos};

/// LogGOPSim's defaults.
const DEFAULTS: LogGops = LogGops {
    latency: Picos(2_500_000),
    overhead: Picos(1_500_000),
    gap: Picos(1_000_000),
    gap_per_byte: PerByte(6_000 << 16),
    overhead_per_byte: PerByte(0),
    eager_limit: Bytes(65_535),
};

#[allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example talks and times")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: compute_pattern NAME RANKS BYTES";
    let pattern: Pattern = args.next().ok_or(usage)?.parse()?;
    let ranks = args.next().ok_or(usage)?.parse()?;
    let size = args.next().ok_or(usage)?.parse()?;
    let options = Options::new(ranks, size);
    let program = PatternProgram::new(pattern, &options)?.ok_or("this pattern has to be stored")?;
    let start = Instant::now();
    let job = Job::new(Parameters::one(DEFAULTS), Settings::default());
    let computed = run_pattern(&program, &job, NoNoise, &|_| {})?;
    let outcome = computed.outcome;
    let seconds = start.elapsed().as_secs_f64();
    let rate = outcome.events as f64 / seconds / 1e6;
    println!(
        "makespan {}, {} events in {seconds:.3} s, {rate:.1} M/s, {} open ties",
        outcome.makespan, outcome.events, outcome.open_ties
    );
    Ok(())
}
