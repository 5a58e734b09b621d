//! `loggap-mpi check`: collective operations as measured, beside the model's
//! predictions for the library's algorithms.

mod app;
mod cause;
mod demonstrate;
mod noise;
mod predict;
mod report;
mod taking;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use loggap::flags::parse::{self, Sizes};
use loggap::output::{FileError, PendingFile};
use loggap::profile::{ProfileDocument, Severity, WarningRecord};
use loggap::terminal::{CliError, Console, Exit, command_line};
use loggap_core::units::Picos;

use self::app::AppArgs;
use self::cause::{Evidence, System};
use self::noise::NoiseReport;
use self::predict::{Basis, Prediction};
use self::report::{Document, LevelRecord, Predicted, ResultRecord};
use self::taking::{Level, Pair, Profiled, Taken};
use super::measure::DONE;
use super::{BufferArgs, Session, ToleranceArgs, create};
use crate::algorithm::{self, InForce, Program};
use crate::clocks::Domains;
use crate::collective::operation::{self, Cell, Operation, Operations};
use crate::collective::run::{Bench, CollectiveError, Plan};
use crate::collective::scheme::SchemeName;
use crate::collective::stop::StopRule;
use crate::job::CONTROLLER;
use crate::library;
use loggap::check::Asserted;

/// Compare measurements with the model's predictions: of collective operations
/// in this job, or with --app of an MPI program, from its trace.
///
/// Of operations: measures this system's profile and the operations in one job,
/// simulates the library's algorithms with the profile, and names the likely
/// cause where the two disagree by more than their intervals. --noise measures
/// the noise of all ranks first, and predicts with it.
///
/// Times are from a common start to the last exit, without those of the start
/// and of reading the clock. A prediction simulates the algorithm's messages,
/// each at the profile's cost for its exact size (an empty message is measured
/// beside the operation), and the work of the call on one rank alone. Its
/// interval is that of all parameters at their lower and at their upper ends.
/// One profile serves all pairs of ranks: that of the farthest level.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mpirun -n 2 --bind-to core loggap-mpi check
  loggap-mpi check --app --launcher 'mpirun -n 2' -- lmp -in in.lj
  mpirun -n 8 loggap-mpi check --op bcast,gather,alltoall -s 8,1K,64K -o profile.json
  mpirun -n 8 loggap-mpi check --op bcast --processes 2:8:x2 --plot curve.svg
  mpirun -n 4 loggap-mpi check --algorithms library --assert 25%
  mpirun -n 2 --bind-to core loggap-mpi check --noise 5s
  mpirun -n 4 loggap-mpi check --demonstrate")]
pub(super) struct Args {
    /// Operations: bcast, reduce, allreduce, barrier, gather, scatter,
    /// allgather, alltoall.
    #[arg(long, value_name = "NAMES", default_value = "bcast,allreduce,barrier",
          value_parser = operation::operations)]
    op: Operations,
    /// Bytes per rank, as in coll.
    #[arg(short, long = "size", value_name = "SIZES", default_value = "8,1K",
          value_parser = parse::message_sizes)]
    sizes: Sizes,
    /// Numbers of ranks, such as 2,4,8: each operation is compared among the
    /// first ranks of the job. All unless given.
    #[arg(long, value_name = "P", value_parser = parse::rank_counts,
          conflicts_with = "demonstrate")]
    processes: Option<Sizes>,
    /// Algorithms to compare: known, library.
    ///
    /// known: asks the library for algorithms that loggap knows, unless its
    /// variables are set; library: its own choice, without a prediction if that
    /// is unknown.
    #[arg(long, value_enum, default_value = "known", hide_possible_values = true)]
    algorithms: Algorithms,
    /// Show the five mistakes in measuring collective operations one by one,
    /// each beside the synchronised result, instead of comparing.
    #[arg(long)]
    demonstrate: bool,
    /// Measure the noise of all ranks at the same time, for 1s or the time
    /// given, and predict with it: the median of many simulated repetitions, in
    /// which each rank meets its own detours at another phase.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1s",
          value_parser = parse::duration, conflicts_with = "demonstrate")]
    noise: Option<Duration>,
    #[command(flatten)]
    buffers: BufferArgs,
    /// Seed of the ranks' phases in their detours; decimal or 0x hexadecimal.
    #[arg(long, default_value = "1", value_parser = parse::seed)]
    seed: u64,
    /// Time limit of an operation and size, and of each of two profiles: one
    /// before the operations and one after them.
    #[arg(long, value_name = "SECONDS", default_value = "1s", value_parser = parse::duration)]
    max_time: Duration,
    /// Stop when half the interval of the median is within this share of it.
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = parse::percent)]
    rel_err: u32,
    #[command(flatten)]
    tolerance: ToleranceArgs,
    /// Exit with 3 if measured and predicted times differ by more, or one of
    /// them is missing, and with 4 if one is not known this precisely.
    #[arg(long, value_name = "PERCENT", value_parser = parse::percent)]
    assert: Option<u32>,
    /// Write the profile measured before the operations, as JSON.
    #[arg(short, long, value_name = "PROFILE.json")]
    output: Option<PathBuf>,
    /// Draw measured and predicted times with their intervals over size, or
    /// over several --processes, as SVG.
    #[arg(long, value_name = "FILE.svg", conflicts_with = "demonstrate")]
    plot: Option<PathBuf>,
    /// Print comma-separated values.
    #[arg(long, conflicts_with_all = ["json", "demonstrate"])]
    csv: bool,
    /// Print one JSON document.
    #[arg(short = 'J', long)]
    json: bool,
    #[command(flatten)]
    app: AppArgs,
}

/// Origin of the algorithms.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Algorithms {
    /// loggap's table.
    Known,
    /// The library's own choice.
    Library,
}

/// True if this process starts the jobs, and is not a rank of one.
pub(super) const fn is_driver(args: &Args) -> bool {
    args.app.is_given()
}

pub(in crate::cli) use app::run as drive;

/// Sets the environment of MPI; has to come first in this process.
pub(super) fn prepare(args: &Args) {
    if !is_driver(args) && args.algorithms == Algorithms::Known {
        algorithm::force();
    }
}

pub(super) fn run(
    args: &Args,
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    let list = refuse(args, session)?;
    args.buffers.check(session)?;
    if args.demonstrate {
        return demonstrate::run(args, session, console);
    }
    let processes = processes(args, session)?;
    compare(args, &subjects(args, &list, &processes)?, session, console)
}

/// Numbers of ranks to compare, or an error that all ranks find.
fn processes(args: &Args, session: &Session<'_>) -> Result<Vec<u32>, CliError> {
    let all = session.job.size().unsigned_abs();
    let Some(given) = &args.processes else { return Ok(vec![all]) };
    let valid = |ranks: u64| {
        u32::try_from(ranks).ok().filter(|ranks| (2..=all).contains(ranks)).ok_or_else(|| {
            CliError::usage(format_args!("--processes {ranks}: expected 2 to {all}, as started"))
        })
    };
    given.list().into_iter().map(valid).collect()
}

/// Subjects by their number of ranks.
fn subjects(
    args: &Args,
    list: &[Operation],
    processes: &[u32],
) -> Result<Vec<Vec<Subject>>, CliError> {
    let of_ranks = |&ranks: &u32| {
        let cells = operation::cells(list, &args.sizes.list(), ranks.into());
        let subject = |cell: Cell| {
            let algorithm = algorithm::in_force(cell.operation.collective, ranks);
            Subject { cell, algorithm, ranks }
        };
        Ok(cells.map_err(CliError::usage)?.into_iter().map(subject).collect())
    };
    processes.iter().map(of_ranks).collect()
}

/// Operations to compare, or an error that all ranks find.
fn refuse(args: &Args, session: &Session<'_>) -> Result<Vec<Operation>, CliError> {
    if session.job.size() < 2 {
        return Err(CliError::usage(
            "a collective operation takes at least two ranks: mpirun -n 2 loggap-mpi check",
        ));
    }
    let is_checked =
        |operation: &&Operation| !operation.immediate && algorithm::has_known(operation.collective);
    if args.op.all {
        return Ok(args.op.list.iter().filter(is_checked).copied().collect());
    }
    match args.op.list.iter().find(|operation| !is_checked(operation)) {
        Some(operation) => Err(CliError::usage(format_args!(
            "check knows no algorithm of {operation}; it compares bcast, reduce, allreduce, \
             barrier, gather, scatter, allgather and alltoall"
        ))),
        None => Ok(args.op.list.clone()),
    }
}

/// An operation and size, and the algorithm that it uses.
struct Subject {
    cell: Cell,
    algorithm: InForce,
    /// Number of ranks that take part.
    ranks: u32,
}

impl Subject {
    /// Schedule of its ranks; `None` if the algorithm is unknown.
    fn program(&self) -> Option<Program> {
        let InForce::Known(known) = &self.algorithm else { return None };
        Some(Program::new(known.shape, self.ranks, self.cell.bytes()))
    }

    /// Result; `taken` is the measurement, or the reason for its absence.
    fn record(&self, taken: Result<&Taken, &String>, basis: &Basis<'_>) -> ResultRecord {
        let predicted = match (self.program(), &self.algorithm, taken) {
            (_, _, Err(_)) if basis.system.interrupted => Err(INTERRUPTED.to_owned()),
            (_, _, Err(why)) => Err(why.clone()),
            (Some(program), _, Ok(taken)) => predicted(&program, taken, basis),
            (None, InForce::Known(_), _) => Err(LACKING.to_owned()),
            (None, InForce::Other(words), _) => Err(format!("algorithm not known: {words}")),
        };
        ResultRecord::new(self, taken.ok(), predicted)
    }
}

/// Measures profiles, each of `parts`, which are subjects of one number of ranks, and profiles
/// again; compares.
fn compare(
    args: &Args,
    parts: &[Vec<Subject>],
    session: &Session<'_>,
    console: &mut Console,
) -> Result<Exit, CliError> {
    session.interrupt.listen();
    let is_shared = session.job.sharing().is_shared();
    let pairs = taking::pairs(session);
    let sizes = profiled(parts.iter().flatten());
    let noise = args.noise.map(|time| noise::take(time, session)).transpose();
    // Profiles are measured before and after the operations, so that a machine
    // that changes meanwhile shows.
    let alignment = args.buffers.alignment();
    let profiled = Profiled { pairs: &pairs, sizes: &sizes, time: args.max_time, alignment };
    let profiles = match taking::profiles(&profiled, session, console) {
        // Interrupted before the first number.
        Err(_) if session.interrupt.is_requested() => Ok(Vec::new()),
        profiles => profiles,
    };
    let prepared =
        profiles.and_then(|profiles| Ok((profiles, Files::open(args, session)?, noise?)));
    let (profiles, files, noise) = session.agreed(prepared)?;
    let mut taken = Vec::new();
    for subjects in parts {
        taken.push(take_among_first(args, subjects, session)?);
    }
    let left = if session.interrupt.is_requested() { &[] } else { &pairs[..] };
    let after = taking::profiles(&Profiled { pairs: left, ..profiled }, session, console)?;
    if !session.job.leads() {
        return Ok(Exit::Done);
    }
    let farthest = pairs.last().map_or(1, |pair| pair.peer);
    let eager_limit = library::limits(library::route(session.job, farthest))
        .iter()
        .filter(|limit| limit.about == "eager limit" || limit.about == "rendezvous")
        .map(|limit| limit.bytes)
        .min();
    let interrupted = session.interrupt.is_requested();
    let system = System { is_shared, eager_limit, interrupted };
    let mut results = Vec::new();
    for (subjects, Part { level, taken }) in parts.iter().zip(&taken) {
        let level = pairs.iter().position(|pair| pair.level == *level).unwrap_or(0);
        let both: Vec<&ProfileDocument> =
            profiles.get(level).into_iter().chain(after.get(level)).collect();
        let ranks = subjects.first().map_or(0, |subject| subject.ranks as usize);
        let noise = noise.as_deref().map(|noise| noise.get(..ranks).unwrap_or(noise));
        let basis = Basis { profiles: &both, noise, seed: args.seed, system };
        let subjects = subjects.iter().zip(taken);
        results.extend(subjects.map(|(subject, taken)| subject.record(taken.as_ref(), &basis)));
    }
    let levels = levels(&pairs, &profiles, &after);
    let mut document = document(args, session, results, system, levels);
    document.noise = noise.zip(args.noise).and_then(|(noise, time)| NoiseReport::of(&noise, time));
    files.write(profiles.last(), &document)?;
    print(args, &document, console)?;
    exit(args, session, &document)
}

/// Measurements among one number of ranks.
struct Part {
    /// The farthest level among these ranks.
    level: Level,
    /// Of each subject; empty but at the leader.
    taken: Vec<taking::Round>,
}

/// Measures `subjects` among the first ranks of the job, as many as they name; the others sleep.
/// All ranks call this together.
fn take_among_first(
    args: &Args,
    subjects: &[Subject],
    session: &Session<'_>,
) -> Result<Part, CliError> {
    /// Ranks that measure end the job if one of them does not answer.
    const LONGEST: Duration = Duration::from_hours(24);
    let ranks = subjects.first().map_or(0, |subject| subject.ranks);
    let Some(job) = session.job.first(ranks) else {
        let _done = session.job.hear_after(LONGEST, CONTROLLER);
        return session
            .agreed::<_, CliError>(Ok(Part { level: Level::Machine, taken: Vec::new() }));
    };
    let first = Session { job: &job, interrupt: session.interrupt };
    let plan = plan(args, &first, SchemeName::Roundtime);
    let max_time = Picos(plan.rule.max_time.0 / u64::from(taking::ROUNDS));
    let plan = Plan { rule: StopRule { max_time, ..plan.rule }, ..plan };
    let farthest = taking::pairs(&first).last().copied();
    let Pair { level, peer } = farthest.unwrap_or(Pair { level: Level::Machine, peer: 1 });
    let taken = take(&mut Bench::new(&job, session.interrupt, &plan), subjects, peer);
    if job.leads() {
        let idle = session.job.others().skip(ranks.saturating_sub(1) as usize);
        idle.for_each(|rank| session.job.tell(rank, DONE));
    }
    let taken = session.agreed(taken.map_err(CliError::failed))?;
    Ok(Part { level, taken })
}

/// Prints warnings, and the document in the requested format.
fn print(args: &Args, document: &Document, console: &mut Console) -> Result<(), CliError> {
    document.warnings.iter().for_each(|warning| console.warn(warning));
    let text = if args.csv { report::csv } else { report::table };
    Ok(console.report(args.json, document, |out| text(out, document))?)
}

/// Measures all subjects in turn, round by round. At the leader: the result of
/// each, or the reason why it has none.
fn take(
    bench: &mut Bench<'_>,
    subjects: &[Subject],
    peer: i32,
) -> Result<Vec<taking::Round>, CollectiveError> {
    let mut rounds = vec![Vec::new(); subjects.len()];
    for _ in 0..taking::ROUNDS {
        for (subject, rounds) in subjects.iter().zip(&mut rounds) {
            rounds.extend(taking::take(bench, subject.cell, peer)?);
        }
    }
    let merged = |rounds: Vec<taking::Round>| {
        let (good, bad): (Vec<_>, Vec<_>) = rounds.into_iter().partition(Result::is_ok);
        let good: Vec<Taken> = good.into_iter().flatten().collect();
        let why = bad.into_iter().find_map(Result::err);
        Taken::merged(&good).ok_or_else(|| why.unwrap_or_else(|| INTERRUPTED.to_owned()))
    };
    Ok(rounds.into_iter().map(merged).collect())
}

/// Sizes of messages whose costs are needed.
fn profiled<'s>(subjects: impl Iterator<Item = &'s Subject>) -> Vec<u32> {
    let sizes = subjects.flat_map(|subject| {
        let sent = subject.program().map(|program| program.message_sizes());
        sent.into_iter().flatten().chain([subject.cell.bytes()])
    });
    let sizes = sizes.chain([1]);
    // An empty message is measured beside the operation.
    let sizes = sizes.filter(|size| *size > 0).map(|size| u32::try_from(size).unwrap_or(u32::MAX));
    sizes.collect::<BTreeSet<_>>().into_iter().collect()
}

fn plan(args: &Args, session: &Session<'_>, scheme: SchemeName) -> Plan {
    /// Minimum number of repetitions: the interval of fewer may be narrow by chance.
    const LEAST: usize = 100;
    /// Maximum number of exit times that are kept, over all ranks.
    const MOST_SAMPLES: usize = 4_000_000;
    let sharing = session.job.sharing();
    let count = session.job.places().len().max(1);
    Plan {
        scheme,
        root: 0,
        delays: vec![Picos::ZERO; count],
        tolerance: args.tolerance.tolerance(&sharing),
        rule: StopRule {
            max_time: Picos::from_duration(args.max_time),
            rel_err_ppm: args.rel_err,
            least: LEAST,
            most: (MOST_SAMPLES / count).max(LEAST),
        },
        keeps_samples: true,
        alignment: args.buffers.alignment(),
        domains: Domains::Machine,
        assumptions: loggap_core::sync::Assumptions::default(),
    }
}

const LACKING: &str =
    "the profile lacks a message of this algorithm: give it more time with --max-time";
const INTERRUPTED: &str = "interrupted";
const LATE: &str = "under this noise a rank is late in every simulated repetition";

/// Prediction for a program, or the reason for its absence.
fn predicted(program: &Program, taken: &Taken, basis: &Basis<'_>) -> Result<Predicted, String> {
    let system = basis.system;
    let lacking = if system.interrupted { INTERRUPTED } else { LACKING };
    let costs = basis.costs(program, taken).ok_or(lacking)?;
    let size = if program.message_sizes() == [0] { 0 } else { program.size };
    let cost = costs.iter().find(|cost| cost.size == size).or(costs.first()).ok_or(lacking)?;
    let none = if basis.noise.is_some() { LATE } else { LACKING };
    let Prediction { estimate, under_noise } = basis.predict(program, taken, &costs).ok_or(none)?;
    let cause = Evidence { predicted: &estimate, program, cost, taken, system }.cause();
    Ok(Predicted { estimate, under_noise, cause, one_way: cost.one_way.value })
}

fn levels(
    pairs: &[Pair],
    before: &[ProfileDocument],
    after: &[ProfileDocument],
) -> Vec<LevelRecord> {
    let after = after.iter().map(Some).chain(std::iter::repeat(None));
    let level = |((pair, before), after): ((&Pair, &ProfileDocument), Option<&ProfileDocument>)| {
        LevelRecord {
            level: pair.level,
            ranks: [CONTROLLER, pair.peer],
            profile: before.clone(),
            profile_after: after.cloned(),
        }
    };
    pairs.iter().zip(before).zip(after).map(level).collect()
}

fn document(
    args: &Args,
    session: &Session<'_>,
    results: Vec<ResultRecord>,
    system: System,
    levels: Vec<LevelRecord>,
) -> Document {
    let sharing = session.job.sharing();
    let mut warnings = sharing.warnings();
    if levels.len() > 1 {
        warnings.push(
            "ranks are at two levels of nearness, and the simulation takes one profile: that of \
             ranks on different machines"
                .to_owned(),
        );
    }
    let profiles =
        levels.iter().flat_map(|level| [Some(&level.profile), level.profile_after.as_ref()]);
    let spoils = |record: &&WarningRecord| record.severity == Severity::Spoils;
    let records = profiles.flatten().flat_map(|profile| &profile.warning_details);
    let mut problems: Vec<&str> = records.filter(spoils).map(|r| r.problem.as_str()).collect();
    problems.sort_unstable();
    problems.dedup();
    warnings.extend(problems.into_iter().map(|problem| {
        format!("while the profile was measured, {problem}: predictions are worth as little")
    }));
    let mut processes: Vec<u32> = results.iter().map(|result| result.ranks).collect();
    processes.dedup();
    Document {
        loggap_version: env!("CARGO_PKG_VERSION"),
        command: command_line(),
        library: library::version(),
        ranks: session.job.places().len(),
        processes,
        hosts: sharing.hosts().to_vec(),
        oversubscribed: sharing.is_shared(),
        alignment: args.buffers.alignment(),
        algorithms: args.algorithms,
        eager_limit_bytes: system.eager_limit,
        noise: None,
        levels,
        results,
        warnings,
        incomplete: session.interrupt.is_requested().then(|| INTERRUPTED.to_owned()),
    }
}

/// Output files besides standard output.
struct Files {
    profile: Option<PendingFile>,
    plot: Option<PendingFile>,
}

impl Files {
    /// Creates the files of rank 0 under temporary names.
    fn open(args: &Args, session: &Session<'_>) -> Result<Self, CliError> {
        let create = |path: &Option<PathBuf>| create(path.as_ref().filter(|_| session.job.leads()));
        Ok(Self { profile: create(&args.output)?, plot: create(&args.plot)? })
    }

    /// Writes the profile of the farthest level, and the plot.
    fn write(self, profile: Option<&ProfileDocument>, document: &Document) -> Result<(), CliError> {
        let failed = |error: FileError| CliError::failed(error);
        if let (Some(file), Some(profile)) = (self.profile, profile) {
            file.commit_json(profile).map_err(failed)?;
        }
        if let Some(file) = self.plot {
            let chart = report::chart(document);
            file.commit(|out| chart.write(2, out)).map_err(failed)?;
        }
        Ok(())
    }
}

fn exit(args: &Args, session: &Session<'_>, document: &Document) -> Result<Exit, CliError> {
    if session.interrupt.is_requested() {
        return Ok(Exit::Interrupted);
    }
    if document.results.iter().all(|result| result.taken.is_none()) {
        return Err(CliError::failed("no repetition counted, so that there is no number at all"));
    }
    let Some(ppm) = args.assert else { return Ok(Exit::Done) };
    let allowed = f64::from(ppm) / 1e6;
    Ok(match document.results.iter().map(|result| result.asserted(allowed)).max() {
        Some(Asserted::Broken) => Exit::Differs,
        Some(Asserted::Unknown) => Exit::NotConverged,
        Some(Asserted::Holds) | None => Exit::Done,
    })
}
