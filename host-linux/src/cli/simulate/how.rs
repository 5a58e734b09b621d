//! Way a schedule was simulated, as text and JSON.

use std::io::{self, Write};

use serde::Serialize;

use crate::output::number;
use crate::simulation::{Method, Outcome, SHARED_LINKS};

/// Way a schedule was simulated.
#[derive(Serialize)]
pub(super) struct How {
    /// "windows", "computed" or "sequential".
    engine: &'static str,
    /// Why not in windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    engine_reason: Option<String>,
    /// Number of processes, if the command is one of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<u32>,
    /// Share of the messages that are sent to another process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) crossing_share: Option<f64>,
    /// Of each process.
    threads: usize,
    partitions: usize,
    /// Location of operations: "stored" in memory, "computed" from the pattern, or "streamed" from
    /// the file.
    program: &'static str,
    /// Why streamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    program_reason: Option<String>,
    /// Largest number of active operations, if only these were in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    under_way_most: Option<u64>,
}

impl How {
    pub(super) fn of(outcome: &Outcome) -> Self {
        let sequential = |reason: &str| Self {
            engine: "sequential",
            engine_reason: Some(reason.to_owned()),
            processes: None,
            crossing_share: None,
            threads: 1,
            partitions: 1,
            program: "stored",
            program_reason: None,
            under_way_most: None,
        };
        let parts = |engine, program, [threads, partitions]: [usize; 2]| Self {
            engine,
            engine_reason: None,
            threads,
            partitions,
            program,
            ..sequential("")
        };
        match &outcome.method {
            &Method::Computed { threads, partitions } => {
                let engine_reason = outcome.network.as_ref().map(|_| SHARED_LINKS.to_owned());
                Self { engine_reason, ..parts("computed", "computed", [threads, partitions]) }
            }
            &Method::Windows { threads, partitions } => {
                parts("windows", "stored", [threads, partitions])
            }
            Method::InOrder { reason } => sequential(reason),
            Method::Streamed { reason, in_order, parts: divided } => Self {
                program: "streamed",
                program_reason: Some(reason.clone()),
                under_way_most: outcome.most_under_way,
                ..match in_order {
                    Some(why) => sequential(why),
                    None => parts("windows", "streamed", *divided),
                }
            },
        }
    }

    /// Adds the number of processes that ran this command together.
    #[allow(clippy::cast_precision_loss, reason = "a share of few digits")]
    pub(super) fn add_processes(&mut self, processes: u32, outcome: &Outcome) {
        let messages = outcome.finished.events.saturating_sub(outcome.ops);
        self.processes = Some(processes);
        self.crossing_share = Some(outcome.crossing as f64 / messages.max(1) as f64);
    }

    /// Numbers of threads and partitions, in words.
    fn divided(&self) -> String {
        let counted = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        let (threads, parts) = (self.threads, self.partitions);
        let threads = counted(threads, "thread");
        let processes = match self.processes {
            Some(processes) if processes > 1 => format!("{processes} processes with "),
            _ => String::new(),
        };
        format!("{processes}{threads}, ranks in {}", counted(parts, "partition"))
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match (&self.engine_reason, self.engine) {
            (Some(reason), "computed") => writeln!(
                out,
                "simulated              event by event, computed from the pattern: {reason}"
            )?,
            (Some(reason), _) => writeln!(out, "simulated              event by event: {reason}")?,
            (None, "computed") if self.threads == 1 && self.processes.unwrap_or(1) == 1 => {
                writeln!(out, "simulated              computed from the pattern")?;
            }
            (None, "computed") => writeln!(
                out,
                "simulated              computed from the pattern, on {}",
                self.divided()
            )?,
            (None, _) => writeln!(out, "simulated              in windows, on {}", self.divided())?,
        }
        if let (Some(2..), Some(share)) = (self.processes, self.crossing_share) {
            let percent = number::significant(share * 100.0);
            writeln!(out, "between processes      {percent}% of the messages")?;
        }
        if let (Some(reason), Some(most)) = (&self.program_reason, self.under_way_most) {
            writeln!(
                out,
                "program                read as it runs, {most} operations under way at most: {reason}"
            )?;
        }
        Ok(())
    }
}
