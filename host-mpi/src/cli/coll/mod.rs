//! `loggap-mpi coll`: collective operations.

mod driver;
mod export;

use std::path::PathBuf;
use std::time::Duration;

use clap::ArgAction;
use loggap::cli::parse::{self, Sizes};
use loggap::cli::{CliError, Console, Exit, Interrupt};
use loggap_core::random::Random;
use loggap_core::units::Picos;
use mpi::collective::Root as _;
use mpi::topology::Communicator as _;

use self::export::Files;
use super::{DriftArgs, Session};
use crate::clocks::Domains;
use crate::collective::arrival::{self, Arrival};
use crate::collective::course::Sample;
use crate::collective::judge::Tolerance;
use crate::collective::operation::{self, Cell, Operation, Operations};
use crate::collective::overlap;
use crate::collective::report::{self, Document, ResultRecord};
use crate::collective::run::{Bench, CollectiveError, LEADER, Plan};
use crate::collective::scheme::SchemeName;
use crate::collective::stop::StopRule;
use crate::library;

/// Measure collective operations: from a common start, by clocks that were
/// synchronised, to the exit of the last rank, with the skew of the starts.
///
/// Sizes are bytes per rank as OSU counts them: the message of bcast, each
/// rank's vector of reduce, allreduce, scan and exscan, the block for one rank
/// of gather, scatter, allgather, alltoall and reduce_scatter_block. Reductions
/// are sums of 32-bit words, their sizes rounded up to whole ones; forms ending
/// in v have equal counts. Every result is compared with what it has to be,
/// outside of the timed part.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mpirun -n 4 loggap-mpi coll --op bcast,allreduce -s 8:64K
  mpirun -n 4 loggap-mpi coll --op iallreduce -s 64K --overlap
  mpirun -n 4 loggap-mpi coll --op alltoall -s 1K --arrival one-late:100us
  loggap-mpi coll --launches 10 --op bcast -s 8,64K -- mpirun -n 4

With --launches the command starts the job itself, once a launch, by what
stands behind --: without mpirun before it.")]
pub(super) struct Args {
    /// Operations: names such as bcast,iallreduce, or all (30 of them: blocking
    /// and, with an i before the name, immediate ones).
    #[arg(long, value_name = "NAMES", default_value = "bcast,allreduce,alltoall",
          value_parser = operation::operations)]
    op: Operations,
    /// Bytes per rank, such as 8,64K or 1:1M.
    #[arg(short, long, value_name = "SIZES", default_value = "8,1K,64K",
          value_parser = parse::message_sizes)]
    sizes: Sizes,
    /// The root of operations that have one.
    #[arg(long, value_name = "RANK", default_value = "0")]
    root: u32,
    /// How repetitions start: roundtime or window by the clock; barrier, loop
    /// or rotate as in the literature, announced without a lead, each with what is wrong with it.
    #[arg(long, value_enum, default_value = "roundtime", hide_possible_values = true)]
    scheme: SchemeName,
    /// When ranks arrive: balanced, sorted[:TIME], one-late:TIME[@RANK], or a
    /// file with a time for each rank.
    #[arg(long, value_name = "PATTERN", default_value = "balanced",
          value_parser = arrival::arrival)]
    arrival: Arrival,
    /// Most time for an operation and size.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse::duration)]
    max_time: Duration,
    /// Stop where half the interval of the median is within so much of it.
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = parse::percent)]
    rel_err: u32,
    /// Discard a repetition where a rank starts later than planned by more than
    /// twice the clocks' error and so much of the time.
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = parse::percent)]
    max_skew: u32,
    /// Also find how much computation each immediate operation hides.
    #[arg(long)]
    overlap: bool,
    /// Starts of the job; more than 1 only as loggap-mpi coll --launches K …
    /// -- mpirun -n N, without mpirun before it.
    #[arg(long, value_name = "K", default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    launches: u32,
    /// What is taken for one clock: machine (as its kernel says), or rank (each
    /// has its own, to try out what synchronising achieves).
    #[arg(long, value_enum, default_value = "machine", hide_possible_values = true)]
    domains: Domains,
    #[command(flatten)]
    drift: DriftArgs,
    /// Decides the order of operations and sizes.
    #[arg(long, default_value = "1", value_parser = parse::seed)]
    seed: u64,
    /// Exit with 4 where the interval is wider than --rel-err.
    #[arg(long)]
    strict: bool,
    /// Print one JSON document.
    #[arg(short = 'J', long, conflicts_with = "csv", action = ArgAction::SetTrue)]
    json: bool,
    /// Print comma-separated values.
    #[arg(long)]
    csv: bool,
    /// Write what each rank timed in each repetition, as comma-separated values.
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// Draw medians and their intervals over size.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// What starts the job, such as mpirun -n 4.
    #[arg(last = true, value_name = "MPIRUN")]
    mpirun: Vec<String>,
}

/// Whether this process starts the job, and is no rank of it.
pub(super) fn is_driver(args: &Args) -> bool {
    args.launches > 1 || !args.mpirun.is_empty()
}

/// Starts the job once a launch.
pub(super) fn drive(
    args: &Args,
    (is_rank, interrupt): (bool, &Interrupt),
    console: &mut Console,
) -> Result<Exit, CliError> {
    driver::run(args, (is_rank, interrupt), console)
}

/// Measures as a rank of the job.
pub(super) fn run(
    args: &Args,
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    let outcome = measure(args, session, console);
    match outcome {
        // Rank 0 says what is to be said, and how the job ends: `mpirun` would
        // end it before it has, if another rank failed first.
        Err(CliError::Message { .. }) if session.job.rank() != LEADER => Ok(Exit::Done),
        outcome => outcome,
    }
}

fn measure(args: &Args, session: &Session<'_>, console: &mut Console) -> Result<Exit, CliError> {
    let ranks = u32::try_from(session.job.size()).unwrap_or(0);
    let leads = session.job.rank() == LEADER;
    let list = check(args, ranks)?;
    let mut cells =
        operation::cells(&list, &args.sizes.list(), ranks.into()).map_err(CliError::usage)?;
    Random::new(args.seed).shuffle(&mut cells);
    let (hosts, oversubscribed) = report::hosts(session.job.places());
    // Only rank 0 need see the files.
    let prepared = leads.then(|| prepare(args, ranks)).transpose();
    let delays = agree(session, ranks, &prepared)?;
    let files = prepared?.map(|(_, files)| files);
    let plan = Plan { yields: oversubscribed, ..plan(args, delays) };
    let mut bench = Bench::new((session.job, session.watch), session.interrupt, &plan);
    let begin = bench.clock().read();
    session.interrupt.listen();
    let mut taken = Taken::default();
    let failure = take(args, &mut bench, &cells, (&mut taken, console)).err();
    let Some(files) = files else {
        return failure.map_or(Ok(Exit::Done), |error| Err(CliError::failed(error)));
    };
    let mut document = Document {
        ranks: session.job.places().len(),
        hosts,
        oversubscribed,
        library: library::version(),
        clock: bench.clock().source().to_owned(),
        clock_read_s: bench.clock().read_cost().seconds(),
        launches: 1,
        wall_s: bench
            .clock()
            .local(bench.clock().read())
            .since(bench.clock().local(begin))
            .seconds(),
        results: in_order(&list, taken.results),
        ..export::skeleton(args)
    };
    document.warnings = export::warnings(&document);
    document.incomplete = match &failure {
        Some(error) => Some(error.to_string()),
        None if session.interrupt.is_requested() => Some("interrupted".to_owned()),
        None => None,
    };
    export::export(args, &document, (files, &taken.samples), console)?;
    failure.map_or_else(|| export::exit(args, &document), |error| Err(CliError::failed(error)))
}

/// Arrivals of ranks, and files: what only rank 0 can find to be wrong.
fn prepare(args: &Args, ranks: u32) -> Result<(Vec<Picos>, Files), CliError> {
    let delays = args.arrival.delays(ranks).map_err(CliError::usage)?;
    Ok((delays, Files::open(args)?))
}

type Prepared = Option<(Vec<Picos>, Files)>;

/// What rank 0 has prepared, on all ranks. Where rank 0 has failed, it goes on
/// to say so, and the others end.
fn agree(
    session: &Session<'_>,
    ranks: u32,
    prepared: &Result<Prepared, CliError>,
) -> Result<Vec<Picos>, CliError> {
    const READY: u64 = 1;
    let mut numbers = vec![0; usize::try_from(ranks).unwrap_or(0) + 1];
    if let Ok(Some((delays, _))) = prepared {
        let all = [READY].into_iter().chain(delays.iter().map(|delay| delay.0));
        numbers.iter_mut().zip(all).for_each(|(place, number)| *place = number);
    }
    let leader = session.job.control().process_at_rank(LEADER);
    session.watch.during(|| leader.broadcast_into(&mut numbers[..]));
    match numbers.split_first() {
        Some((&READY, delays)) => Ok(delays.iter().copied().map(Picos).collect()),
        _ if session.job.rank() == LEADER => Ok(Vec::new()),
        _ => Err(CliError::failed(CollectiveError::Ended)),
    }
}

/// Operations to measure; what all ranks find to be wrong.
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
    if args.arrival != Arrival::Balanced && !args.scheme.is_synchronised() {
        return Err(CliError::usage(format_args!(
            "--arrival needs a start by the clock, which --scheme {} has not; use roundtime or \
             window",
            args.scheme.name()
        )));
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

fn plan(args: &Args, delays: Vec<Picos>) -> Plan {
    /// Repetitions below which an interval may be narrow by chance.
    const LEAST: usize = 30;
    const MOST: usize = 200_000;
    /// Rank times that samples may hold.
    const MOST_SAMPLES: usize = 10_000_000;
    let keeps_samples = args.samples.is_some();
    let most = if keeps_samples { MOST_SAMPLES / delays.len().max(1) } else { MOST };
    let nanos = u64::try_from(args.max_time.as_nanos()).ok();
    let rule = StopRule {
        max_time: nanos.and_then(Picos::from_nanos).unwrap_or(Picos::MAX),
        rel_err_ppm: args.rel_err,
        least: LEAST,
        most: most.clamp(LEAST, MOST),
    };
    Plan {
        scheme: args.scheme,
        root: args.root,
        delays,
        tolerance: Tolerance { share_ppm: args.max_skew },
        rule,
        keeps_samples,
        yields: false,
        domains: args.domains,
        assumptions: args.drift.assumptions(),
    }
}

/// What rank 0 has of the cells so far.
#[derive(Default)]
struct Taken {
    results: Vec<ResultRecord>,
    samples: Vec<(Cell, Vec<Sample>)>,
}

/// Measures all cells, or up to an interruption.
fn take(
    args: &Args,
    bench: &mut Bench<'_>,
    cells: &[Cell],
    (taken, console): (&mut Taken, &mut Console),
) -> Result<(), CollectiveError> {
    let arrival = export::arrival_name(&args.arrival);
    for (index, cell) in cells.iter().enumerate() {
        if bench.leads() && console.is_watched() {
            let (number, of) = (index + 1, cells.len());
            let Cell { operation, .. } = cell;
            console.note(format_args!("{number} of {of}: {operation}, {} bytes", cell.bytes()));
        }
        let measured = bench.measure(*cell)?;
        let overlap =
            if args.overlap { overlap::sweep(bench, *cell, measured.as_ref())? } else { None };
        // What had hardly begun is no result.
        let measured = measured.filter(|found| !bench.is_halted() || found.median.is_some());
        if let Some(mut measured) = measured {
            taken.samples.push((*cell, std::mem::take(&mut measured.samples)));
            let record = ResultRecord::new(*cell, (args.scheme, &arrival), &measured);
            taken.results.push(ResultRecord { overlap, ..record });
        }
        if bench.is_halted() {
            break;
        }
    }
    Ok(())
}

/// In the order asked for, not in that of measuring.
fn in_order(list: &[Operation], mut results: Vec<ResultRecord>) -> Vec<ResultRecord> {
    let place = |result: &ResultRecord| {
        list.iter().position(|operation| operation.to_string() == result.op)
    };
    results.sort_by_key(|result| (place(result), result.size_bytes));
    results
}
