//! `loggap best`: fastest algorithm of a collective operation by rank count and size.

mod document;
mod files;
mod table;

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use loggap_core::random::Random;
use loggap_core::units::PerByte;

use self::document::Document;
use self::files::Files;
use super::digits::FormatArgs;
use super::parameter_args::{OverheadArgs, ParameterArgs, SettingsArgs};
use super::parameters_used::ParametersUsed;
use crate::best::{Answer, Cell, Offer, Question, Refused, Rules, RulesFormat, TooShort};
use crate::collective::Operation;
use crate::flags::help;
use crate::flags::parse::{self, Sizes};
use crate::profile::{ProfileDocument, ProfileDraws};
use crate::side_by_side::threads;
use crate::simulation::{ParameterSets, Plan};
use crate::terminal::{
    CliError, Console, Exit, Failures, NamedFiles, RunsLine, end_on_request, interrupted,
};

/// Largest number of ranks.
const MOST_RANKS: u64 = 1 << 20;
/// Largest vector or block, bytes.
const MOST_BYTES: u64 = 1 << 40;
/// Most pairs of ranks and sizes.
const MOST_CELLS: usize = 4_096;

/// Which algorithm of a collective operation wins where.
///
/// Simulates the algorithms of Open MPI 4.1's tuned component for each number
/// of ranks and each size, and says which one is the fastest, by how much, and
/// whether the intervals of a measured profile confirm it: all algorithms get
/// equal draws from the intervals, and a winner is certain if it is the
/// fastest in at least 95% of the draws, a tie if it is in fewer and less than
/// 0.05% ahead. '--rules FILE' writes the winners
/// as rules that Open MPI reads.
///
/// Sizes are those of a call, its count times its type: of the vector for bcast
/// and allreduce, of one block for allgather, alltoall, gather and scatter.
/// Ranks begin together; copies in memory and, without --combine, arithmetic
/// are not counted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loggap best bcast --ranks 64:4096 -s 8:1M --profile cluster.json
  loggap best allreduce --ranks 16,64,256 --preset ompi-ib-sdr --assume-commutative --combine 0.1
  loggap best alltoall --ranks 8:512 -s 1:64K --profile cluster.json --plot alltoall.svg --csv
  loggap best bcast --ranks 64:4096 --profile cluster.json --rules bcast.rules
  mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename bcast.rules ...
docs/best.md has the algorithms, what is and is not counted, and how to prove that Open MPI has read
the rules.")]
pub(super) struct Args {
    /// bcast, allreduce, allgather, alltoall, barrier, gather or scatter.
    #[arg(value_name = "COLLECTIVE", value_parser = operation)]
    operation: Operation,

    /// Numbers of ranks: 16,64 or 64:4096, in powers of two.
    #[arg(long, value_name = "RANKS", value_parser = parse::rank_counts)]
    ranks: Sizes,

    /// Sizes of the vector, or of each block [default: 8:1M].
    #[arg(short = 's', long, value_name = "BYTES", value_parser = parse::sizes)]
    sizes: Option<Sizes>,

    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    overheads: OverheadArgs,

    #[command(flatten)]
    settings: SettingsArgs,

    /// Draws from the profile's intervals; 0 for none [default: 100].
    #[arg(help_heading = "Run", long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(..=10_000))]
    draws: Option<u32>,

    /// Seed of the draws.
    #[arg(help_heading = "Run", long, value_name = "SEED", value_parser = parse::seed, allow_hyphen_values = true, default_value = "0")]
    seed: u64,

    /// Reduction cost per byte in allreduce, in ns/B or with a unit.
    #[arg(help_heading = "Operation", long, value_name = "NS/B", value_parser = parse::time_per_byte, allow_hyphen_values = true, default_value = "0")]
    combine: PerByte,

    /// Include algorithms that need a commutative operator.
    ///
    /// For other operators their results are silently wrong: Open MPI does not
    /// check the operator where rules apply.
    #[arg(help_heading = "Operation", long)]
    assume_commutative: bool,

    /// Size of a vector's element.
    ///
    /// With fewer elements than ranks Open MPI silently replaces some
    /// algorithms.
    #[arg(help_heading = "Operation", long, value_name = "BYTES", value_parser = parse::size, allow_hyphen_values = true, default_value = "8")]
    element: u64,

    /// Memory limit of all concurrent simulations, as 1.5G [default: none].
    #[arg(help_heading = "Run", long, value_name = "BYTES", value_parser = parse::size, allow_hyphen_values = true)]
    max_memory: Option<u64>,

    /// Concurrent simulations [default: all processors].
    #[arg(help_heading = "Run", long, value_name = "COUNT", value_parser = parse::threads, allow_hyphen_values = true)]
    threads: Option<NonZeroUsize>,

    /// Write a rules file for Open MPI's tuned component.
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    rules: Option<PathBuf>,

    /// Format of the rules: 1 (Open MPI 4.1 and 5) or 2 (rule-file-version-2, from 5.0.7 on).
    #[arg(help_heading = "Output", long, value_name = "VERSION", requires = "rules",
          default_value = "1", value_parser = rules_format)]
    rules_format: RulesFormat,

    /// Write rules that fail, to prove that Open MPI reads the file.
    ///
    /// They name an algorithm that does not exist: a call that they apply to
    /// fails with MPI_ERR_ARG.
    #[arg(help_heading = "Output", long, requires = "rules")]
    rules_probe: bool,

    /// Plot a map of the winners.
    #[arg(help_heading = "Output", long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Print CSV, a row for each number of ranks and size.
    #[arg(help_heading = "Output", long, conflicts_with = "json")]
    csv: bool,

    #[command(flatten)]
    format: FormatArgs,
}

/// Default number of draws.
const DRAWS: u32 = 100;

/// Parses the name of an operation; case, a prefix `MPI_` and hyphens are ignored.
fn operation(name: &str) -> Result<Operation, String> {
    let plain = name.to_lowercase().replace(['-', '_'], "");
    let plain = match plain.strip_prefix("mpi").unwrap_or(&plain) {
        "broadcast" => "bcast",
        plain => plain,
    };
    let found = Operation::ALL.into_iter().find(|operation| operation.name() == plain);
    found.ok_or_else(|| {
        let all: Vec<&str> = Operation::ALL.iter().map(|operation| operation.name()).collect();
        let all = all.join(", ");
        match plain {
            "reduce" | "reducescatter" | "reducescatterblock" => format!(
                "the simulator does not know two algorithms of '{name}' that are safe in rules; there \
                 are: {all}"
            ),
            _ => {
                let names = Operation::ALL.iter().map(|operation| operation.name());
                let meant = help::did_you_mean(plain, names);
                format!("unknown collective '{name}'; {meant}expected one of: {all}")
            }
        }
    })
}

/// Question and result.
pub(super) struct Report<'a> {
    args: &'a Args,
    ranks: Vec<u32>,
    sizes: Vec<u64>,
    /// Number of draws made.
    draws: usize,
    answer: Answer,
    /// Why cells are missing, if any are.
    incomplete: Option<String>,
    rules: Rules,
    parameters: ParametersUsed,
    /// Algorithms that were left out because their vectors have too few elements, with the cells.
    short: Vec<TooShort>,
}

fn rules_format(text: &str) -> Result<RulesFormat, String> {
    match text {
        "1" => Ok(RulesFormat::First),
        "2" => Ok(RulesFormat::Second),
        _ => Err("expected 1 or 2".to_owned()),
    }
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    args.check_files()?;
    let (sets, profile) = args.parameters.sets_and_profile(&args.overheads, args.settings)?;
    args.check_parameters()?;
    let ranks = args.numbers_of_ranks()?;
    let sizes = args.all_sizes(&ranks)?;
    let draws = args.drawn(profile.as_ref(), &sets, console);
    let files = Files::open(args)?;
    let interrupt = end_on_request()?;
    interrupt.listen();
    let question = Question {
        operation: args.operation,
        ranks: &ranks,
        sizes: &sizes,
        offer: Offer { element: args.element, commutative: args.assume_commutative },
        combine: args.combine,
        measured: &sets,
        draws: &draws,
        plan: Plan {
            most_bytes: args.max_memory.unwrap_or(u64::MAX),
            threads: threads(args.threads),
            stop: Some(interrupt.flag()),
            ..Plan::new(args.settings.settings())
        },
    };
    let line = RunsLine::new(console, (ranks.len() * sizes.len()) as u64);
    let mut refusals = Vec::new();
    let answer = question.answer(&mut |done| {
        line.advance();
        refusals.extend(done.err().map(refused));
    });
    drop(line);
    let mut failures = Failures::default();
    let (unknown, all) = (refusals.len(), answer.done);
    if let Some(first) = refusals.into_iter().next() {
        if unknown == all {
            return Err(first);
        }
        console.warn(format_args!("{unknown} of {all} cells have no winner"));
        failures.add::<()>(Err(first));
    }
    let rules = Rules::of(args.operation, &answer.cells);
    let parameters = ParametersUsed::new(&args.parameters, &sets, sizes.last().copied());
    let short = question.too_short();
    let draws = draws.len();
    let incomplete = interrupted(answer.done, answer.cells.len(), "cells");
    let exit = if incomplete.is_some() { Exit::Interrupted } else { Exit::Done };
    let report = Report { args, ranks, sizes, draws, answer, incomplete, rules, parameters, short };
    for written in files.write(&report) {
        failures.add(written);
    }
    let printed = report.print(console).map_err(CliError::from);
    failures.add(printed);
    Ok(failures.end(exit, console))
}

impl Report<'_> {
    /// Cells that were simulated.
    fn done(&self) -> &[Cell] {
        self.answer.cells.get(..self.answer.done).unwrap_or_default()
    }

    fn print(&self, console: &mut Console) -> io::Result<()> {
        let Args { csv, format, .. } = self.args;
        let digits = format.digits(console);
        console.report(format.json, &Document::of(self), |out| match csv {
            true => document::write_csv(out, self),
            false => table::write(out, digits, self),
        })
    }
}

/// Adds the simulated call to the message.
fn refused(error: Refused) -> CliError {
    let whose =
        format!("{} ({} ranks, {} B)", error.algorithm.name, error.call.ranks, error.call.size);
    match CliError::from(error.source) {
        CliError::Message { exit, text } => {
            CliError::Message { exit, text: format!("{whose}: {text}") }
        }
        gone @ CliError::ReaderGone => gone,
    }
}

impl Args {
    /// Refuses output files that would overwrite inputs or each other.
    fn check_files(&self) -> Result<(), CliError> {
        let mut files = NamedFiles::default();
        self.parameters.name_files(&mut files);
        files.written("--rules", self.rules.as_deref(), &[]);
        files.written("--plot", self.plot.as_deref(), &["svg"]);
        files.check()
    }

    /// Refuses rules without parameters of a machine, and draws without intervals.
    fn check_parameters(&self) -> Result<(), CliError> {
        if self.rules.is_some() && !self.parameters.are_complete(&self.overheads) {
            return Err(CliError::usage(
                "--rules are for a machine, and its parameters are not given; give --profile (which \
                 'loggap measure -o' makes), --preset, or all of -L, -o, -g and -G",
            ));
        }
        if self.draws.is_some_and(|draws| draws > 0) && self.parameters.profile().is_none() {
            return Err(CliError::usage(
                "--draws draws from measured intervals, which only --profile has; leave it out",
            ));
        }
        Ok(())
    }

    fn numbers_of_ranks(&self) -> Result<Vec<u32>, CliError> {
        let narrow =
            |ranks: u64| u32::try_from(ranks).ok().filter(|_| (2..=MOST_RANKS).contains(&ranks));
        let list: Option<Vec<u32>> = self.ranks.list().into_iter().map(narrow).collect();
        list.ok_or_else(|| CliError::usage("--ranks takes numbers from 2 to 1M"))
    }

    fn all_sizes(&self, ranks: &[u32]) -> Result<Vec<u64>, CliError> {
        let sizes = match (&self.sizes, self.operation.has_size()) {
            (Some(_), false) => {
                return Err(CliError::usage("messages of a barrier are empty; leave -s out"));
            }
            (None, false) => vec![0],
            (Some(sizes), true) => sizes.list(),
            (None, true) => Sizes::Span { first: 8, last: 1 << 20 }.list(),
        };
        let possible = 1..=MOST_BYTES;
        if self.operation.has_size() && sizes.iter().any(|size| !possible.contains(size)) {
            return Err(CliError::usage("-s takes sizes from 1 B to 1024G"));
        }
        if sizes.len().saturating_mul(ranks.len()) > MOST_CELLS {
            return Err(CliError::usage(format_args!(
                "{} numbers of ranks times {} sizes are more than {MOST_CELLS}; take larger steps, \
                 as in 8:1M:x4",
                ranks.len(),
                sizes.len()
            )));
        }
        if self.element == 0 {
            return Err(CliError::usage("--element takes at least one byte"));
        }
        Ok(sizes)
    }

    /// Parameter sets drawn from the intervals of `profile`, as many as requested; empty without
    /// intervals.
    fn drawn(
        &self,
        profile: Option<&ProfileDocument>,
        measured: &ParameterSets,
        console: &mut Console,
    ) -> Vec<ParameterSets> {
        let count = self.draws.unwrap_or(DRAWS);
        let Some(profile) = profile.filter(|_| count > 0) else { return Vec::new() };
        let parameters = match ProfileDraws::new(profile) {
            Ok(parameters) => parameters,
            Err(error) => {
                let path = self.parameters.profile().unwrap_or(Path::new("")).display();
                console.warn(format_args!(
                    "'{path}': {error}; until then no uncertainty available, as with --draws 0"
                ));
                return Vec::new();
            }
        };
        if parameters.is_exact() {
            console.warn(
                "no interval of the profile has a width, so that nothing can be told apart; \
                 measure with 'loggap measure -o'",
            );
            return Vec::new();
        }
        let limit = self.parameters.eager_limit(Some(profile));
        let draw = |at: u32| {
            let mut random = Random::stream(self.seed, at.into());
            // As in 'loggap simulate --monte-carlo', where the first number is used for phases.
            random.draw();
            let ranges = parameters.draw(&mut random);
            let rendezvous = self.settings.settings().rendezvous;
            ParameterSets::of_ranges(&ranges, limit, rendezvous)
                .unwrap_or_else(|_| measured.clone())
        };
        (0..count).map(draw).collect()
    }
}
