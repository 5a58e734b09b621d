//! `loggap trace info`: calls, bytes, and time in MPI.

use std::io::{self, Write};
use std::path::PathBuf;

use super::open;
use crate::output::number;
use crate::terminal::{CliError, Console, Exit};
use crate::trace::{AlgorithmUse, Description, RankSummary, Summary};

/// Show calls, bytes and time in MPI, by rank and by call.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  loggap trace info loggap-trace")]
pub(super) struct Args {
    /// Directory that 'loggap-mpi trace -o' wrote.
    #[arg(value_name = "DIR")]
    input: PathBuf,

    /// Most ranks and calls to list, those with the most time first; 0 lists all.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,

    /// Print JSON, with all ranks and calls.
    #[arg(short = 'J', long)]
    json: bool,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let trace = open(&args.input, console)?;
    let summary = Summary::of(&trace).map_err(CliError::usage)?;
    if let Some(host) = trace.crowded_host() {
        console.warn(format_args!(
            "host '{host}' has more ranks than processors: times outside MPI include waiting for these"
        ));
    }
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    console.report(args.json, &summary, |out| print(out, &summary, trace.description(), limit))?;
    Ok(Exit::Done)
}

fn print(
    out: &mut dyn Write,
    all: &Summary,
    description: &Description,
    limit: usize,
) -> io::Result<()> {
    writeln!(out, "# {}", description.library)?;
    if let Some(command) = &description.command {
        writeln!(out, "# {}", command.join(" "))?;
    }
    let bound = |clocks: &[crate::trace::Offset]| clocks.iter().map(|clock| clock.bound_ns).max();
    let bounds = bound(&description.clocks_begin).max(bound(&description.clocks_end)).unwrap_or(0);
    writeln!(
        out,
        "# recording costs {:.0} ns a call and {:.0} ns to read the clock; clocks agree within {} us",
        description.cost_per_call_s * 1e9,
        description.clock_reads_s * 1e9,
        number::significant(bounds.unsigned_abs() as f64 * 1e-3)
    )?;
    writeln!(
        out,
        "{} ranks, {} calls, {} messages of {} B together, {} unmatched, {} unfinished; load balance {}",
        all.ranks,
        all.calls,
        all.messages,
        all.bytes_sent,
        all.unmatched,
        all.unfinished,
        number::decimal(all.load_balance, 3)
    )?;
    writeln!(
        out,
        "#rank    calls  threads   span[s]    MPI[s] compute[s]  flush[s] messages        bytes host"
    )?;
    let mut ranks: Vec<_> = all.by_rank.iter().collect();
    if ranks.len() > limit {
        ranks.sort_by(|one, other| other.mpi_s.total_cmp(&one.mpi_s));
    }
    for rank in ranks.iter().take(limit) {
        writeln!(
            out,
            "{:5} {:8} {:8} {:9.4} {:9.4} {:10.4} {:9.4} {:8} {:12} {}{}",
            rank.rank,
            rank.calls,
            rank.threads,
            rank.span_s,
            rank.mpi_s,
            rank.compute_s,
            rank.flush_s,
            rank.messages,
            rank.bytes_sent,
            rank.host,
            match rank {
                RankSummary { is_lost: true, .. } => "  lost",
                RankSummary { is_finished: false, .. } => "  no MPI_Finalize",
                _ => "",
            }
        )?;
    }
    writeln!(out, "#call                          calls     MPI[s]        bytes")?;
    let mut calls: Vec<_> = all.calls_by_name.iter().collect();
    calls.sort_by(|(_, one), (_, other)| other.mpi_s.total_cmp(&one.mpi_s));
    for (name, call) in calls.iter().take(limit) {
        writeln!(out, "{name:26} {:9} {:10.4} {:12}", call.calls, call.mpi_s, call.bytes_sent)?;
    }
    algorithms(out, all)
}

/// Algorithms of collective operations that the library used.
fn algorithms(out: &mut dyn Write, all: &Summary) -> io::Result<()> {
    if all.algorithms.is_empty() {
        return Ok(());
    }
    writeln!(out, "#collective           ranks        bytes        up to    calls algorithm")?;
    for one in &all.algorithms {
        let AlgorithmUse { operation, ranks, first_bytes, last_bytes, calls, .. } = one;
        write!(out, "{operation:20} {ranks:6} {first_bytes:12} {last_bytes:12} {calls:8} ")?;
        match (one.algorithm, one.segment_bytes, &one.reason) {
            (Some(name), 0, _) => writeln!(out, "{name}")?,
            (Some(name), segment, _) => writeln!(out, "{name}, segments of {segment} B")?,
            (None, _, reason) => writeln!(out, "- {}", reason.as_deref().unwrap_or_default())?,
        }
    }
    Ok(())
}
