//! `loggap-mpi coll`: collective operations.

mod driver;
mod export;
mod lines;

pub(super) use driver::drive;
pub(in crate::cli) use driver::{attend, listen};

use std::path::PathBuf;
use std::time::Duration;

use clap::ArgAction;
use loggap::flags::parse::{self, Sizes};
use loggap::terminal::{CliError, Console, Exit};
use loggap_core::random::Random;
use loggap_core::units::Picos;

use self::export::Files;
use self::lines::{LaunchMessage, Lines};
use super::{BufferArgs, DriftArgs, Session, ToleranceArgs};
use crate::clocks::Domains;
use crate::collective::arrival::{self, Arrival};
use crate::collective::operation::{self, Cell, Operation, Operations};
use crate::collective::overlap;
use crate::collective::report::{CellSamples, Document, ResultRecord};
use crate::collective::run::{Bench, CollectiveError, Plan};
use crate::collective::scheme::SchemeName;
use crate::collective::series::Measured;
use crate::collective::stop::StopRule;
use crate::library;

/// Measure collective operations: from a common start by synchronised clocks to
/// the exit of the last rank, with the skew of the starts.
///
/// Sizes are bytes per rank as OSU counts them: the message of bcast, each
/// rank's vector of reduce, allreduce, scan and exscan, the block for one rank
/// of gather, scatter, allgather, alltoall and reduce_scatter_block. Reductions
/// are sums of 32-bit words, their sizes rounded up to whole ones; forms ending
/// in v have equal counts. Every result is verified, outside of the timed part.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mpirun -n 4 loggap-mpi coll --op bcast,allreduce -s 8:64K
  mpirun -n 4 loggap-mpi coll --op iallreduce -s 64K --overlap
  mpirun -n 4 loggap-mpi coll --op alltoall -s 1K --arrival one-late:100us
  loggap-mpi coll --launches 10 --op bcast -s 8,64K -- mpirun -n 4

With --launches the command starts the job itself, once per launch, by the
words after --: do not put mpirun before it.")]
pub(super) struct Args {
    /// Operations: names such as bcast,iallreduce, or all (30 of them: blocking
    /// and, with an i before the name, immediate ones).
    #[arg(long, value_name = "NAMES", default_value = "bcast,allreduce,alltoall",
          value_parser = operation::operations)]
    op: Operations,
    /// Bytes per rank, such as 8,64K or 1:1M.
    #[arg(short, long, visible_alias = "size", value_name = "SIZES", default_value = "8,1K,64K",
          value_parser = parse::message_sizes)]
    sizes: Sizes,
    /// Root of the operations that have one.
    #[arg(long, value_name = "RANK", default_value = "0")]
    root: u32,
    /// How repetitions start: roundtime or window, by the clock; for
    /// comparison, each with a known flaw: barrier, announced (as soon as a
    /// rank receives the announcement), loop, rotate.
    #[arg(long, value_enum, default_value = "roundtime", hide_possible_values = true)]
    scheme: SchemeName,
    /// Arrival of the ranks: balanced, sorted[:TIME], one-late:TIME[@RANK], or
    /// a file with a time for each rank.
    #[arg(long, value_name = "PATTERN", default_value = "balanced",
          value_parser = arrival::arrival)]
    arrival: Arrival,
    /// Time limit of each operation and size.
    #[arg(long, value_name = "SECONDS", default_value = "2s", value_parser = parse::duration)]
    max_time: Duration,
    /// Stop when half the interval of the median is within this share of it.
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = parse::percent)]
    rel_err: u32,
    #[command(flatten)]
    tolerance: ToleranceArgs,
    /// Also measure how much computation each immediate operation hides.
    #[arg(long)]
    overlap: bool,
    /// Number of launches of the job; more than 1 only as loggap-mpi coll
    /// --launches K … -- mpirun -n N, without mpirun before it.
    #[arg(long, value_name = "K", default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    launches: u32,
    /// Ranks that share a clock: machine (those on one machine, as its kernel
    /// says), or rank (each rank has its own, to try out what synchronising
    /// achieves).
    #[arg(long, value_enum, default_value = "machine", hide_possible_values = true)]
    domains: Domains,
    #[command(flatten)]
    buffers: BufferArgs,
    #[command(flatten)]
    drift: DriftArgs,
    /// Seed of the order of operations and sizes.
    #[arg(long, default_value = "1", value_parser = parse::seed)]
    seed: u64,
    /// Exit with 4 if an interval is wider than --rel-err.
    #[arg(long)]
    strict: bool,
    /// Print one JSON document.
    #[arg(short = 'J', long, conflicts_with = "csv", action = ArgAction::SetTrue)]
    json: bool,
    /// Print comma-separated values.
    #[arg(long)]
    csv: bool,
    /// Write each finished operation and size at once as a line of JSON, so
    /// that a job that dies loses only the one in progress; - is standard
    /// output, instead of the table.
    #[arg(long, value_name = "FILE")]
    json_lines: Option<PathBuf>,
    /// Write the times of each rank in each repetition, as comma-separated values.
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// Draw medians and their intervals over size, as SVG.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Index of this launch, from 0, which the command with --launches passes
    /// to the jobs that it starts. Reports results on standard output, and
    /// leaves files and exit codes to that command.
    #[arg(long, value_name = "N", hide = true)]
    launch: Option<u32>,
    /// Command that starts the job, such as mpirun -n 4.
    #[arg(last = true, value_name = "MPIRUN")]
    mpirun: Vec<String>,
}

impl Args {
    /// Seed of the order, different in each launch.
    fn seed(&self) -> u64 {
        self.seed.wrapping_add(self.launch.unwrap_or(0).into())
    }

    /// True if lines of JSON replace the table.
    fn prints_lines(&self) -> bool {
        self.json_lines.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    fn max_time(&self) -> Picos {
        Picos::from_duration(self.max_time)
    }
}

/// True if this process starts the job, and is not a rank of it.
pub(super) fn is_driver(args: &Args) -> bool {
    args.launch.is_none() && (args.launches > 1 || !args.mpirun.is_empty())
}

/// Longest planned lateness of a rank, for which the others wait.
pub(super) fn planned_wait(args: &Args) -> Duration {
    args.arrival.longest(args.max_time)
}

/// Measures as a rank of the job.
pub(super) fn run(
    args: &Args,
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    let ranks = u32::try_from(session.job.size()).unwrap_or(0);
    let list = check(args, ranks)?;
    args.buffers.check(session)?;
    let mut cells =
        operation::cells(&list, &args.sizes.list(), ranks.into()).map_err(CliError::usage)?;
    Random::new(args.seed()).shuffle(&mut cells);
    // Only rank 0 needs access to the files.
    let prepared = session.job.leads().then(|| prepare(args, ranks)).transpose();
    let prepared = session.agreed(prepared)?;
    let mut delays = vec![0; session.job.places().len()];
    if let Some(Prepared { delays: own, .. }) = &prepared {
        delays.iter_mut().zip(own).for_each(|(delay, own)| *delay = own.0);
    }
    session.job.share(&mut delays);
    let plan = plan(args, session, delays.into_iter().map(Picos).collect());
    let mut bench = Bench::new(session.job, session.interrupt, &plan);
    let begin = bench.clock().read();
    session.interrupt.listen();
    let Some(Prepared { files, lines, .. }) = prepared else {
        return take(args, &cells, &mut bench, None).map_err(CliError::failed).map(|()| Exit::Done);
    };
    let sharing = session.job.sharing();
    let document = Document {
        ranks: session.job.places().len(),
        hosts: sharing.hosts().to_vec(),
        oversubscribed: sharing.is_shared(),
        alignment: args.buffers.alignment(),
        library: library::version(),
        clock: bench.clock().source().to_owned(),
        clock_read_s: bench.clock().read_cost().seconds(),
        launches: 1,
        ..export::skeleton(args)
    };
    if args.launch.is_some() {
        LaunchMessage::Begins(Box::new(document.clone())).say(console)?;
    }
    let mut results = Results { document, lines, samples: Vec::new(), console };
    let failure = take(args, &cells, &mut bench, Some(&mut results)).err();
    let Results { mut document, lines, samples, console } = results;
    let clock = bench.clock();
    document.wall_s = clock.local(clock.read()).since(clock.local(begin)).seconds();
    document.results = in_order(&list, document.results);
    document.warnings = export::warnings(&document);
    document.incomplete = match &failure {
        Some(error) => Some(error.to_string()),
        None if session.interrupt.is_requested() => Some("interrupted".to_owned()),
        None => None,
    };
    export::export(args, &document, files, &samples, console)?;
    lines.close()?;
    failure.map_or_else(|| export::exit(args, &document), |error| Err(CliError::failed(error)))
}

/// Arrival delays of the ranks, and output files.
struct Prepared {
    delays: Vec<Picos>,
    files: Files,
    lines: Lines,
}

/// Prepares the run at rank 0, with the errors that only rank 0 can find.
fn prepare(args: &Args, ranks: u32) -> Result<Prepared, CliError> {
    let delays = args.arrival.delays(ranks, args.max_time()).map_err(CliError::usage)?;
    Ok(Prepared { delays, files: Files::open(args)?, lines: Lines::open(args)? })
}

/// Operations to measure, or an error that all ranks find.
fn check(args: &Args, ranks: u32) -> Result<Vec<Operation>, CliError> {
    if ranks < 2 {
        return Err(CliError::usage(
            "a collective operation takes at least two ranks: mpirun -n 4 loggap-mpi coll",
        ));
    }
    if args.root >= ranks {
        let root = args.root;
        return Err(CliError::usage(format_args!("--root {root}: there are {ranks} ranks")));
    }
    if !args.arrival.is_balanced() && !args.scheme.is_synchronised() {
        return Err(CliError::usage(format_args!(
            "--arrival needs a start by the clock, which --scheme {} has not; use roundtime or \
             window",
            args.scheme.name()
        )));
    }
    if args.prints_lines() && (args.json || args.csv) {
        return Err(CliError::usage(
            "--json-lines - writes to standard output, and so do --json and --csv: one of them",
        ));
    }
    let Operations { list, all } = &args.op;
    let fits = |operation: &Operation| {
        let rooted = args.scheme != SchemeName::Rotate || operation.has_root();
        rooted && (!args.overlap || operation.immediate)
    };
    if *all {
        return Ok(list.iter().copied().filter(fits).collect());
    }
    match list.iter().find(|operation| !fits(operation)) {
        Some(operation) if args.overlap && !operation.immediate => Err(CliError::usage(
            format_args!("--overlap is about immediate operations; did you mean i{operation}?"),
        )),
        Some(operation) => Err(CliError::usage(format_args!(
            "--scheme rotate moves the root, and {operation} has none"
        ))),
        None => Ok(list.clone()),
    }
}

fn plan(args: &Args, session: &Session<'_>, delays: Vec<Picos>) -> Plan {
    /// Minimum number of repetitions: the interval of fewer may be narrow by chance.
    const LEAST: usize = 32;
    const MOST: usize = 200_000;
    /// Maximum number of ranks' times that are kept as samples.
    const MOST_SAMPLES: usize = 10_000_000;
    let sharing = session.job.sharing();
    let keeps_samples = args.samples.is_some();
    let most = if keeps_samples { MOST_SAMPLES / delays.len().max(1) } else { MOST };
    let rule = StopRule {
        max_time: args.max_time(),
        rel_err_ppm: args.rel_err,
        least: LEAST,
        most: most.clamp(LEAST, MOST),
    };
    Plan {
        scheme: args.scheme,
        root: args.root,
        delays,
        tolerance: args.tolerance.tolerance(&sharing),
        rule,
        keeps_samples,
        alignment: args.buffers.alignment(),
        domains: args.domains,
        assumptions: args.drift.assumptions(),
    }
}

/// Results at rank 0 so far, and the streams on which it tells of them.
struct Results<'c> {
    document: Document,
    lines: Lines,
    samples: Vec<CellSamples>,
    console: &'c mut Console,
}

impl Results<'_> {
    /// Keeps the result of `cell`, with the samples of `measured`.
    fn finish(&mut self, cell: Cell, result: ResultRecord, measured: Measured) {
        self.lines.finished(&self.document, None, &result, self.console);
        self.document.results.push(result);
        self.samples.push(CellSamples { cell, samples: measured.samples });
    }
}

/// Measures all cells, or until an interruption. Rank 0 has a place for the results.
fn take(
    args: &Args,
    cells: &[Cell],
    bench: &mut Bench<'_>,
    mut results: Option<&mut Results<'_>>,
) -> Result<(), CollectiveError> {
    let arrival = args.arrival.to_string();
    for (number, &cell) in (1..).zip(cells) {
        if let Some(Results { console, .. }) = results.as_mut().filter(|t| t.console.is_watched()) {
            let (of, operation, bytes) = (cells.len(), cell.operation, cell.bytes());
            console.note(format_args!("{number} of {of}: {operation}, {bytes} bytes"));
        }
        let measured = bench.measure(cell)?;
        let overlap =
            if args.overlap { overlap::sweep(bench, cell, measured.as_ref())? } else { None };
        // A cell that was halted before its first number has no result.
        let measured = measured.filter(|found| !bench.is_halted() || found.median.is_some());
        if let Some((results, measured)) = results.as_mut().zip(measured) {
            let record = ResultRecord::new(cell, args.scheme, &arrival, &measured);
            results.finish(cell, ResultRecord { overlap, ..record }, measured);
        }
        if bench.is_halted() {
            break;
        }
    }
    Ok(())
}

/// Results in the requested order instead of the order of measuring.
fn in_order(list: &[Operation], mut results: Vec<ResultRecord>) -> Vec<ResultRecord> {
    let place = |result: &ResultRecord| {
        list.iter().position(|operation| operation.to_string() == result.op)
    };
    results.sort_by_key(|result| (place(result), result.size_bytes));
    results
}
