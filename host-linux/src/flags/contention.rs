//! Flags of the study of contention, which both programs have.

use std::time::Duration;

use loggap_core::units::Picos;

use crate::flags::parse::{self, Sizes};
use crate::study::contention::{LONGEST, Plan, Report, Shape};
use crate::terminal::{CliError, Console, Exit};

/// Most processes around one.
const MOST_PROCESSES: u64 = 64;

/// Runs and output of the study.
#[derive(Clone, Debug, clap::Args)]
pub struct ContentionArgs {
    /// Numbers K of processes, 2 to 64 [default: as many as there are processors for].
    #[arg(long, value_name = "LIST", value_parser = parse::rank_counts)]
    processes: Option<Sizes>,
    /// Size of requests and replies, up to 1K; 16 are the four words of Active Messages.
    #[arg(short, long, value_name = "BYTES", default_value = "16", value_parser = parse::size)]
    size: u64,
    /// Computation of the replier before each reply, up to 1 ms.
    #[arg(long, value_name = "SECONDS", value_parser = parse::handler_time)]
    handler_time: Option<Duration>,
    /// Time of all runs: seconds, or with a unit.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse::session_time)]
    max_time: Duration,
    /// Print one JSON document, in SI units.
    #[arg(short = 'J', long)]
    json: bool,
}

impl ContentionArgs {
    /// Runs with at most `most` processes; `usual` are the numbers of a shape unless given.
    ///
    /// # Errors
    ///
    /// A value out of its range, or too few processes.
    pub fn plan(&self, most: u32, usual: impl Fn(Shape) -> Vec<u32>) -> Result<Plan, CliError> {
        let asked = self.processes.as_ref().map(Sizes::list);
        if asked.iter().flatten().any(|k| !(2..=MOST_PROCESSES).contains(k)) {
            return Err(CliError::usage("--processes takes numbers from 2 to 64"));
        }
        if !(1..=LONGEST).contains(&self.size) {
            return Err(CliError::usage(
                "--size takes 1 to 1K: request and reply of short messages",
            ));
        }
        // At most 64, as checked.
        let narrow = |list: &Vec<u64>| list.iter().filter_map(|&k| u32::try_from(k).ok()).collect();
        let asked: Option<Vec<u32>> = asked.as_ref().map(narrow);
        let of = |shape: Shape| {
            let each = asked.clone().unwrap_or_else(|| usual(shape)).into_iter();
            each.filter(move |&k| k > 1 && shape.processes(k) <= most).map(move |k| (shape, k))
        };
        let runs: Vec<(Shape, u32)> = Shape::ALL.into_iter().flat_map(of).collect();
        let is_left_out = |k: &&u32| !runs.iter().any(|(_, other)| other == *k);
        if let Some(k) = asked.iter().flatten().find(is_left_out) {
            let needed = k + 1;
            return Err(CliError::usage(format_args!("K = {k} needs {needed} ranks, not {most}")));
        }
        Ok(Plan {
            size: u32::try_from(self.size).unwrap_or(1),
            handler: Picos::from_duration(self.handler_time.unwrap_or_default()),
            runs,
            max_time: self.max_time,
        })
    }

    /// Prints the report; exits with 4 if it says nothing.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written.
    pub fn print(&self, report: &Report, console: &mut Console) -> Result<Exit, CliError> {
        console.report(self.json, report, |out| report.write(out))?;
        Ok(if report.is_incomplete() {
            Exit::Interrupted
        } else if report.is_usable() {
            Exit::Done
        } else {
            console.warn("unusable: no shape has a processor for each of its processes, and a gap");
            Exit::NotConverged
        })
    }
}
