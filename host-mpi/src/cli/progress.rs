//! `loggap-mpi progress`: does MPI move messages while the program computes?

use std::io::{self, Write};
use std::path::PathBuf;

use loggap::flags::parse::{self, Sizes};
use loggap::output::number;
use loggap::terminal::{CliError, Console, Exit};
use serde::{Deserialize, Serialize};

use super::{Session, create};
use crate::progress::{self, Progress, Rules};

/// Does MPI move a message while a rank computes? Rank 0 asks rank 1 for messages (or the first rank
/// on another machine); then one of them
/// computes, for twice the time of a message and 20 us, before it waits.
///
/// The longest message whose send does not wait for its receive is the eager limit, S.
/// A message that has arrived meanwhile is simulated by `--receive overlap`, otherwise by `hold`. A
/// long one that does not leave while the sender computes is simulated by `--rendezvous handshake`.
/// Where an interval contains the limit of a verdict, that is unclear: repeat it on a quiet machine.
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
    /// Longest message whose send does not wait for its receive; null if none of up to 1 MiB waits.
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
    if session.job.size() > 2 {
        return session.on_one_link(|session| run(args, session, console));
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
        "# medians [95% intervals] in us: a message moves beside a computing receiver that waits for \
         less than half of its time,\n# and beside a computing sender if it takes less than computing"
    )?;
    writeln!(
        out,
        "#size[B] {:>30} {:>11} {:>30}         {:>30}",
        "time", "computing", "receiver waits", "beside a computing sender"
    )?;
    let interval = |times: [f64; 3]| {
        let [time, low, high] = times.map(|time| number::micros(Some(time)));
        format!("{time} [{low}, {high}]")
    };
    let verdict = |moves| match moves {
        Some(true) => "moves",
        Some(false) => "waits",
        None => "unclear",
    };
    for row in &document.rows {
        let time = interval([row.time_s, row.time_s_lo, row.time_s_hi]);
        let wait = interval([row.wait_s, row.wait_s_lo, row.wait_s_hi]);
        let sender =
            interval([row.beside_sender_s, row.beside_sender_s_lo, row.beside_sender_s_hi]);
        writeln!(
            out,
            "{:>8} {time:>30} {:>11} {wait:>30} {:<7} {sender:>30} {}",
            row.size_bytes,
            number::micros(Some(row.compute_s)),
            verdict(row.moves_beside_receiver()),
            verdict(row.moves_beside_sender())
        )?;
    }
    if let Some(limit) = document.eager_limit_bytes {
        writeln!(out, "# sends of up to {limit} B do not wait for their receive (S)")?;
    }
    let rules = Rules::of(&document.rows, document.eager_limit_bytes);
    let known = rules.known();
    if !known.is_empty() {
        writeln!(out, "# to simulate: {}", known.join(" "))?;
    }
    rules.unknown().iter().try_for_each(|option| writeln!(out, "# not known: {option}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_stand_beside_their_intervals_and_options_only_where_they_are_known() {
        let row = Progress {
            size_bytes: 1024,
            time_s_lo: 1e-6,
            time_s_hi: 1.2e-6,
            wait_s_lo: 0.4e-6,
            wait_s_hi: 0.7e-6,
            beside_sender_s_hi: 2e-6,
            compute_s: 22e-6,
            ..Progress::default()
        };
        let mut text = Vec::new();
        print(&mut text, &Document { rows: vec![row], eager_limit_bytes: None }).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(" [0.400, 0.700] unclear"), "{text}");
        assert!(text.contains(" [0.000, 2.000] moves"), "{text}");
        assert!(!text.contains("to simulate") && !text.contains("18446744073709551615"), "{text}");
        assert_eq!(text.matches("# not known: -").count(), 3, "{text}");
    }
}
