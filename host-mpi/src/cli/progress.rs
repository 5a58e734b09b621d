//! `loggap-mpi progress`: does MPI move messages while the program computes?

use std::io::{self, Write};
use std::path::PathBuf;

use loggap::flags::parse::{self, Sizes};
use loggap::output::number;
use loggap::terminal::{CliError, Console, Exit};
use serde::{Deserialize, Serialize};

use super::{Session, create};
use crate::progress::{self, Progress};

/// Does MPI move a message while a rank computes? Rank 0 asks rank 1 for messages; then one of them
/// computes twice as long as a message takes before it waits.
///
/// The longest message whose send does not wait for its receive is the eager limit, S.
/// A message that has arrived meanwhile is simulated by `--receive overlap`, otherwise by `hold`. A
/// long one that does not leave while the sender computes is simulated by `--rendezvous handshake`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mpirun -n 2 --bind-to core loggap-mpi progress
  mpirun -n 2 --map-by node loggap-mpi progress -s 1K:1M:x4 -J")]
pub(super) struct Args {
    /// Message sizes in bytes [default: S/16, S and 4·S, or 1K,64K,1M].
    #[arg(short, long = "size", value_name = "SIZES", value_parser = parse::message_sizes)]
    sizes: Option<Sizes>,
    /// Write the document as JSON into a file.
    #[arg(short, long, value_name = "FILE.json")]
    output: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(short = 'J', long)]
    json: bool,
}

/// Result.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Document {
    pub(super) rows: Vec<Progress>,
    /// Longest message whose send does not wait for its receive; null from 1 MiB on.
    pub(super) eager_limit_bytes: Option<u32>,
}

pub(super) fn run(
    args: &Args,
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    if session.job.size() < 2 {
        return session.told_by_first(Err(CliError::usage(
            "progress takes two ranks: mpirun -n 2 loggap-mpi progress",
        )));
    }
    let size = |size: u64| u32::try_from(size).map_err(|_| CliError::usage("-s: up to 4 GiB - 1"));
    let sizes = args.sizes.as_ref().map(|sizes| sizes.list().into_iter().map(size).collect());
    let sizes: Option<Vec<_>> = sizes.transpose()?;
    let file = session.agreed(create(args.output.as_ref()))?;
    let eager_limit_bytes = progress::eager_limit(session.job);
    let sizes = sizes.unwrap_or_else(|| match eager_limit_bytes {
        Some(limit) => {
            vec![limit.div_ceil(16).max(1), limit.max(1), limit.saturating_mul(4).max(2)]
        }
        None => vec![1 << 10, 1 << 16, 1 << 20],
    });
    let rows = progress::measure(session.job, &sizes);
    if !session.job.leads() {
        return Ok(Exit::Done);
    }
    session.job.sharing().warnings().iter().for_each(|warning| console.warn(warning));
    let document = Document { rows, eager_limit_bytes };
    if let Some(file) = file {
        file.commit_json(&document)?;
    }
    console.report(args.json, &document, |out| print(out, &document))?;
    Ok(Exit::Done)
}

fn print(out: &mut dyn Write, document: &Document) -> io::Result<()> {
    writeln!(
        out,
        "#size [B]  time [us]  wait after computing [us]  beside a computing sender [us]  moves"
    )?;
    for row in &document.rows {
        let moves = match (row.moves_beside_receiver(), row.moves_beside_sender()) {
            (true, true) => "always",
            (true, false) => "beside the receiver",
            (false, true) => "beside the sender",
            (false, false) => "only inside of MPI",
        };
        let [time, wait, sender] =
            [row.time_s, row.wait_s, row.beside_sender_s].map(|time| number::micros(Some(time)));
        writeln!(out, "{:>9} {time:>10} {wait:>26} {sender:>31}  {moves}", row.size_bytes)?;
    }
    let limit = document.eager_limit_bytes;
    match limit {
        Some(limit) => {
            writeln!(out, "# sends of up to {limit} B do not wait for their receive (S)")?;
        }
        None => writeln!(out, "# sends of up to 1 MiB and more do not wait for their receive (S)")?,
    }
    let settings = Progress::settings(&document.rows, limit.map_or(u64::MAX, u64::from));
    writeln!(out, "# to simulate: {}", progress::options(settings, limit))
}
