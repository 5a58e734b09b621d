//! `loggap study algorithms`: which collective's algorithm a traced program should change.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use loggap_core::noise::Phases;
use loggap_core::units::Picos;
use serde::Serialize;

use super::MOST_BYTES;
use crate::best::Candidate;
use crate::cli::digits::{Digits, FormatArgs};
use crate::cli::parameter_args::{OverheadArgs, ParameterArgs, SettingsArgs};
use crate::cli::parameters_used::ParametersUsed;
use crate::cli::trace_args::{TraceArgs, Warn, grid};
use crate::collective::Operation;
use crate::flags::parse;
use crate::output::plot::choices::{Choice, Picture};
use crate::output::{PendingFile, number};
use crate::schedule::TraceSchedule;
use crate::side_by_side::{side_by_side, threads};
use crate::simulation::{ParameterSets, Plan, Point, RunError, Source, run_points};
use crate::study::algorithms::{candidates, fastest, is_faster, occurring, option};
use crate::terminal::{
    CliError, Console, Exit, Failures, Interrupt, NamedFiles, RunsLine, end_on_request,
};
use crate::trace::extrapolate::{Extrapolation, Grid, Scaling};

/// Which collective's algorithm should a traced program change?
///
/// Simulates the program with the algorithms that its library chooses, then
/// once for each other algorithm of each of its collective operations (with
/// segments of 1, 8 and 64 KiB where it has them; the best is shown), and with
/// all together that make it 1% faster. '--algorithms' changes what it starts
/// from.
///
/// An algorithm for powers of two is left out unless the program's number of
/// ranks is one. What blocks cost to copy is not counted (docs/best.md).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loggap study algorithms --trace app.trace --profile cluster.json
  loggap study algorithms --trace app.trace --extrapolate 32 --preset ompi-ib-sdr --plot algorithms.svg")]
pub(super) struct Args {
    #[command(flatten)]
    trace: TraceArgs,

    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    overheads: OverheadArgs,

    #[command(flatten)]
    settings: SettingsArgs,

    /// Run a larger grid, as AxB or TRACED:AxB: neighbours stay neighbours.
    #[arg(long, value_name = "AxBxC", value_parser = grid, help_heading = "Conversion of traces")]
    grid: Option<Grid>,

    /// Concurrent simulations [default: all processors].
    #[arg(help_heading = "Run", long, value_name = "COUNT", value_parser = parse::threads, allow_hyphen_values = true)]
    threads: Option<NonZeroUsize>,

    /// Draw the change of the makespan by each algorithm.
    #[arg(help_heading = "Output", long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArgs,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let mut files = NamedFiles::default();
    args.trace.name_files(&mut files);
    args.parameters.name_files(&mut files);
    files.written("--plot", args.plot.as_deref(), &["svg"]);
    files.check()?;
    if args.trace.trace.is_empty() {
        return Err(CliError::usage("give the traced program: --trace DIR"));
    }
    if args.trace.conversion.has_own_algorithms() {
        return Err(CliError::usage("--compat has algorithms of its own"));
    }
    let interrupt = end_on_request()?;
    let sets = args.parameters.sets(&args.overheads, args.settings, console)?;
    let plot = args.plot.as_deref().map(PendingFile::create).transpose()?;
    let program = args.program(&mut |text: String| console.warn(text))?;
    let ranks = program.ranks();
    let candidates = candidates_of(&program)?;
    let Some(found) = args.simulate(&program, &sets, &candidates, &interrupt, console)? else {
        console.warn("interrupted before the last run");
        return Ok(Exit::Interrupted);
    };
    let parameters = ParametersUsed::new(&args.parameters, &sets, None);
    let document = Document::new(args, ranks, &parameters, &found);
    let digits = args.format.digits(console);
    let mut failures = Failures::default();
    failures.add(plot.map_or(Ok(()), |file| draw(file, &document)));
    let text = |out: &mut dyn Write| document.write(out, digits);
    failures.add(console.report(args.format.json, &document, text).map_err(CliError::from));
    Ok(failures.end(Exit::Done, console))
}

/// Makespans of the program.
struct Found {
    /// With the algorithms that it starts from.
    present: Picos,
    /// The best of each algorithm.
    rows: Vec<(Candidate, Picos)>,
    /// With the fastest algorithm of each operation, where those of several are 1% faster.
    together: Option<(Vec<Candidate>, Picos)>,
}

/// Algorithms to try.
fn candidates_of(program: &Extrapolation) -> Result<Vec<Candidate>, CliError> {
    let operations: Vec<_> = occurring(program.report()).collect();
    let found = candidates(&operations, program.ranks());
    if found.is_empty() {
        let known = Operation::ALL.map(Operation::name).join(", ");
        return Err(CliError::usage(format_args!(
            "the program has no collective operation with other algorithms: {known}"
        )));
    }
    Ok(found)
}

/// The program with `chosen` algorithms.
fn with_algorithms(program: &Extrapolation, chosen: &[Candidate]) -> Result<Source, CliError> {
    let mut program = program.clone();
    for Candidate { algorithm, segment } in chosen {
        let name = format!("{}:{segment}", algorithm.name);
        let named = program.algorithms().name(algorithm.operation.name(), &name);
        named.map_err(CliError::usage)?;
    }
    Ok(Source::Trace(Box::new(program.into())))
}

impl Args {
    /// The program; on its own ranks as one copy of it.
    fn program(&self, warn: Warn<'_>) -> Result<Extrapolation, CliError> {
        let TraceArgs { trace, conversion } = &self.trace;
        match conversion.schedule(trace, self.grid.as_ref(), warn)? {
            TraceSchedule::Extrapolated(program) => Ok(*program),
            TraceSchedule::Converted(trace, _) => {
                Extrapolation::new(&[*trace], &Scaling::Copies(1)).map_err(CliError::usage)
            }
        }
    }

    /// `None` if it was interrupted.
    fn simulate(
        &self,
        program: &Extrapolation,
        sets: &ParameterSets,
        candidates: &[Candidate],
        interrupt: &Interrupt,
        console: &Console,
    ) -> Result<Option<Found>, CliError> {
        let threads = threads(self.threads);
        interrupt.listen();
        let line = RunsLine::new(console, candidates.len() as u64 + 2);
        let makespan = |chosen: &[Candidate]| {
            let plan = Plan {
                most_bytes: MOST_BYTES / threads as u64,
                stop: Some(interrupt.flag()),
                ..Plan::new(self.settings.settings())
            };
            let point = |_| Point { sets: sets.clone(), phases: Phases::Together { seed: 0 } };
            let source = with_algorithms(program, chosen)?;
            let runs = match run_points(&source, 1, &point, &plan, &|| line.advance()) {
                Err(RunError::Interrupted) => return Ok(None),
                runs => runs?,
            };
            Ok::<_, CliError>(runs.first().map(|run| run.makespan))
        };
        // The first run is of the present algorithms.
        let points: Vec<usize> = (0..=candidates.len()).collect();
        let one = |at: usize| match at.checked_sub(1).and_then(|at| candidates.get(at)) {
            Some(candidate) => makespan(&[*candidate]),
            None => makespan(&[]),
        };
        let runs = side_by_side(threads, &points, || Ok(()), |(), at| one(at))?;
        let Some(runs) = runs.into_iter().collect::<Option<Vec<Picos>>>() else { return Ok(None) };
        let Some((&present, runs)) = runs.split_first() else { return Ok(None) };
        let rows = fastest(candidates.iter().copied().zip(runs.iter().copied()), |candidate| {
            (candidate.algorithm.operation.number(), candidate.algorithm.number)
        });
        let faster = rows.iter().copied().filter(|(_, makespan)| is_faster(*makespan, present));
        let winners = fastest(faster, |candidate| (candidate.algorithm.operation.number(), 0));
        let winners: Vec<Candidate> = winners.into_iter().map(|(winner, _)| winner).collect();
        let together = match &winners[..] {
            [] | [_] => None,
            several => {
                let Some(makespan) = makespan(several)? else { return Ok(None) };
                Some((winners, makespan))
            }
        };
        Ok(Some(Found { present, rows, together }))
    }
}

#[derive(Serialize)]
struct Document<'d> {
    study: &'static str,
    trace: String,
    ranks: u32,
    parameters: &'d ParametersUsed,
    /// With the algorithms that the program starts from.
    makespan_s: f64,
    makespan_ps: u64,
    /// One for each other algorithm.
    choices: Vec<ChoiceDocument>,
    /// The fastest algorithms of several operations together; null if fewer than two have one that
    /// is 1% faster.
    together: Option<ChoiceDocument>,
}

#[derive(Serialize)]
struct ChoiceDocument {
    /// Value of `--algorithms`.
    algorithms: String,
    makespan_s: f64,
    makespan_ps: u64,
    /// Relative change of the makespan; null if it was 0.
    change: Option<f64>,
}

impl<'d> Document<'d> {
    fn new(args: &Args, ranks: u32, parameters: &'d ParametersUsed, found: &Found) -> Self {
        let choice = |chosen: &[Candidate], makespan: Picos| ChoiceDocument {
            algorithms: chosen.iter().map(option).collect::<Vec<_>>().join(","),
            makespan_s: makespan.seconds(),
            makespan_ps: makespan.0,
            change: (found.present.0 > 0)
                .then(|| makespan.seconds() / found.present.seconds() - 1.0),
        };
        let inputs = args.trace.trace.iter().map(|input| input.display().to_string());
        Self {
            study: "algorithms",
            trace: inputs.collect::<Vec<_>>().join(", "),
            ranks,
            parameters,
            makespan_s: found.present.seconds(),
            makespan_ps: found.present.0,
            choices: found.rows.iter().map(|(one, makespan)| choice(&[*one], *makespan)).collect(),
            together: found.together.as_ref().map(|(all, makespan)| choice(all, *makespan)),
        }
    }

    /// Sentence that says which algorithms to change.
    fn advice(&self) -> String {
        let fastest = self.choices.iter().min_by_key(|choice| choice.makespan_ps);
        let fastest = self.together.as_ref().into_iter().chain(fastest);
        match fastest.min_by_key(|choice| choice.makespan_ps) {
            Some(choice) if is_faster(Picos(choice.makespan_ps), Picos(self.makespan_ps)) => {
                format!(
                    "fastest: --algorithms {} ({})",
                    choice.algorithms,
                    number::signed_percent(choice.change.unwrap_or_default())
                )
            }
            _ => "no other algorithm makes it 1% faster".to_owned(),
        }
    }

    fn write(&self, out: &mut dyn Write, digits: Digits) -> io::Result<()> {
        writeln!(out, "# collective algorithms of {}, {} ranks", self.trace, self.ranks)?;
        writeln!(out, "# parameters: {}", self.parameters.text(digits))?;
        writeln!(out, "#{:<39} {:>16} {:>10}", "algorithms", digits.head("makespan"), "change")?;
        writeln!(out, "{:<40} {:>16} {:>10}", "present", digits.cell(self.makespan_ps), "")?;
        for choice in self.choices.iter().chain(&self.together) {
            let change = choice.change.map_or_else(|| "-".to_owned(), number::signed_percent);
            let makespan = digits.cell(choice.makespan_ps);
            writeln!(out, "{:<40} {makespan:>16} {change:>10}", choice.algorithms)?;
        }
        writeln!(out, "# {}", self.advice())
    }
}

fn draw(file: PendingFile, document: &Document<'_>) -> Result<(), CliError> {
    let choices = document.choices.iter().chain(&document.together);
    let choice = |choice: &ChoiceDocument| Choice {
        name: choice.algorithms.clone(),
        change: choice.change.unwrap_or_default(),
    };
    let picture = Picture {
        title: format!("Algorithms of collectives: {}", document.trace),
        subtitle: format!(
            "{} ranks; makespan {} as it is; {}",
            document.ranks,
            number::in_units(document.makespan_s, number::TIME),
            document.advice()
        ),
        choices: choices.map(choice).collect(),
    };
    let svg = picture.svg().map_err(CliError::failed)?;
    file.commit(|out| out.write_all(svg.as_bytes())).map_err(CliError::failed)
}
