//! `loggap study noise`: slowdown of collectives by noise, over the number of ranks.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::random::Random;
use serde::Serialize;

use super::{MOST_BYTES, numbers_of_ranks};
use crate::cli::digits::{Digits, FormatArgs};
use crate::cli::parameter_args::{OverheadArgs, ParameterArgs, SettingsArgs};
use crate::cli::parameters_used::ParametersUsed;
use crate::cli::pattern_args::NamedPattern;
use crate::cli::simulate::noise_args::{NoiseArgs, NoiseDocument};
use crate::cli::trace_args::{TraceArgs, Warn, grid};
use crate::flags::parse::{self, Sizes};
use crate::output::{PendingFile, number};
use crate::side_by_side::threads;
use crate::simulation::{NoiseSource, ParameterSets, Plan, Point, RunError, Source, run_points};
use crate::study::noise::{Row, Slowdown, chart};
use crate::terminal::{
    CliError, Console, Exit, Failures, Interrupt, NamedFiles, RunsLine, end_on_request,
};
use crate::trace::convert::Conversion;
use crate::trace::extrapolate::Grid;

/// How much does noise of the operating system slow down collectives?
///
/// Simulates each collective without noise, and with it for several draws of the ranks' phases, and
/// shows the ratio of the makespans over the number of ranks, as the talk on LogGOPSim (LSAP'10,
/// "Influence on Collectives"). With --trace, copies of the traced ranks take the place of
/// collectives, as 'simulate --extrapolate' makes them, or with --grid larger grids.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loggap noise -o noise.txt && loggap study noise --noise noise.txt --plot noise.svg
  loggap study noise --noise-periodic 1ms:25us --ranks 2:64K --preset ompi-ib-sdr
  loggap study noise --noise noise.txt --pattern gather,scatter --ranks 16,256 -s 1K -J
  loggap study noise --noise noise.txt --trace app.trace --ranks 64:4096 --plot noise.svg
  loggap study noise --noise noise.txt --trace app.trace --grid 8x8,16x16,32x32
'loggap goal generate --help' lists the patterns.")]
pub(super) struct Args {
    /// Collectives, by the names of their patterns.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = NamedPattern, hide_possible_values = true,
          conflicts_with = "trace", default_value = "dissemination,allreduce_recdoub,binomialtreebcast")]
    pattern: Vec<Pattern>,

    /// Numbers of ranks: 16,64 or 64:4096, in powers of two.
    #[arg(short = 'p', long, value_name = "RANKS", value_parser = parse::rank_counts, default_value = "2:16K")]
    ranks: Sizes,

    /// Message size.
    #[arg(short = 's', long, value_name = "BYTES", value_parser = parse::size, conflicts_with = "trace", default_value = "8")]
    size: u64,

    /// Draws of the ranks' phases.
    #[arg(long, value_name = "COUNT", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    draws: u32,

    /// Seed of the phases.
    #[arg(long, value_name = "SEED", value_parser = parse::seed, default_value = "0")]
    seed: u64,

    #[command(flatten)]
    trace: TraceArgs,

    /// Run the traced program on larger grids: 8x8,16x16 or TRACED:8x8.
    #[arg(long, value_name = "AxBxC", value_delimiter = ',', value_parser = grid, requires = "trace",
          conflicts_with = "ranks", help_heading = "Conversion of traces")]
    grid: Vec<Grid>,

    #[command(flatten)]
    noise: NoiseArgs,

    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    overheads: OverheadArgs,

    #[command(flatten)]
    settings: SettingsArgs,

    /// Concurrent simulations [default: all processors].
    #[arg(help_heading = "Run", long, value_name = "COUNT", value_parser = parse::threads, allow_hyphen_values = true)]
    threads: Option<NonZeroUsize>,

    /// Plot the slowdown over the number of ranks.
    #[arg(help_heading = "Output", long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArgs,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let mut files = NamedFiles::default();
    args.noise.name_files(&mut files);
    args.parameters.name_files(&mut files);
    args.trace.name_files(&mut files);
    files.written("--plot", args.plot.as_deref(), &["svg"]);
    files.check()?;
    let interrupt = end_on_request()?;
    let Some(noise) = args.noise.source(args.seed)? else {
        return Err(CliError::usage(
            "give the noise: --noise FILE of 'loggap noise -o', --noise-periodic or \
             --noise-exponential",
        ));
    };
    let sets = args.parameters.sets(&args.overheads, args.settings, console)?;
    let plot = args.plot.as_deref().map(PendingFile::create).transpose()?;
    let (rows, is_whole) = args.rows(&sets, &noise, &interrupt, console)?;
    let about = args.noise.document(&noise);
    let digits = args.format.digits(console);
    let mut failures = Failures::default();
    let chart = chart(&rows, about.time_share);
    failures.add(plot.map_or(Ok(()), |file| Ok(file.commit(|out| chart.write(1, out))?)));
    let parameters = ParametersUsed::new(&args.parameters, &sets, args.size_bytes());
    let document = Document::new(args, &about, &parameters, &rows);
    let text = |out: &mut dyn Write| write(out, digits, &document);
    failures.add(console.report(args.format.json, &document, text).map_err(CliError::from));
    if !is_whole {
        console.warn("interrupted: the rows that were complete");
    }
    let done = if is_whole { Exit::Done } else { Exit::Interrupted };
    Ok(failures.end(done, console))
}

impl Args {
    /// Completed rows, and whether they are all.
    fn rows(
        &self,
        sets: &ParameterSets,
        noise: &NoiseSource,
        interrupt: &Interrupt,
        console: &mut Console,
    ) -> Result<(Vec<Row>, bool), CliError> {
        let programs = self.programs(console)?;
        interrupt.listen();
        // One without noise beside the draws.
        let runs = programs.len() as u64 * (1 + u64::from(self.draws));
        let line = RunsLine::new(console, runs);
        let threads = threads(self.threads);
        let quiet = Plan {
            threads,
            most_bytes: MOST_BYTES,
            stop: Some(interrupt.flag()),
            ..Plan::new(self.settings.settings())
        };
        let noisy = Plan { noise: Some(noise), ..quiet };
        let mut rows = Vec::new();
        let mut told = BTreeSet::new();
        for program in &programs {
            let warn = &mut |text: String| {
                if told.insert(text.clone()) {
                    console.warn(text);
                }
            };
            let source = self.source(program, warn)?;
            let point = |at: usize| Point {
                sets: sets.clone(),
                phases: self.noise.phases(Random::stream(self.seed, at as u64).draw()),
            };
            let run = |count: u32, plan: &Plan<'_>| {
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                let runs = run_points(&source, count, &point, plan, &|| line.advance())?;
                Ok::<Vec<_>, RunError>(runs.iter().map(|run| run.makespan).collect())
            };
            let both = run(1, &quiet).and_then(|alone| Ok((alone, run(self.draws, &noisy)?)));
            let (alone, noisy) = match both {
                Err(RunError::Interrupted) => return Ok((rows, false)),
                both => both?,
            };
            let alone = alone.first().copied().unwrap_or_default();
            let slowdown = Slowdown::of(alone, &noisy);
            let (pattern, ranks) = (program.name(), source.ranks());
            rows.push(Row { pattern, ranks, quiet: alone, slowdown });
        }
        Ok((rows, true))
    }

    /// Size of the messages of collectives.
    fn size_bytes(&self) -> Option<u64> {
        self.trace.trace.is_empty().then_some(self.size)
    }

    /// Programs to run, each on one number of ranks.
    fn programs(&self, console: &mut Console) -> Result<Vec<Program<'_>>, CliError> {
        let TraceArgs { trace, conversion } = &self.trace;
        self.trace.warn_of_noise(console);
        if !self.grid.is_empty() {
            return Ok(self.grid.iter().map(Program::Grid).collect());
        }
        let counts = numbers_of_ranks(&self.ranks)?;
        if trace.is_empty() {
            let on_each =
                |pattern| counts.iter().map(move |ranks| Program::Collective(pattern, *ranks));
            return Ok(self.pattern.iter().copied().flat_map(on_each).collect());
        }
        let one = conversion.with_copies(1)?.conversions(trace, &mut |_| {})?;
        let traced = one.first().map_or(1, Conversion::ranks);
        let copies = |ranks: &u32| match ranks.is_multiple_of(traced) {
            true => Ok(Program::Copies(ranks / traced)),
            false => Err(CliError::usage(format_args!(
                "--ranks: {ranks} is no multiple of the {traced} ranks of the trace"
            ))),
        };
        counts.iter().map(copies).collect()
    }

    fn source(&self, program: &Program<'_>, warn: Warn<'_>) -> Result<Source, CliError> {
        let TraceArgs { trace, conversion } = &self.trace;
        match *program {
            Program::Collective(pattern, ranks) => {
                Ok(Source::Pattern(pattern, Options::new(ranks, self.size)))
            }
            Program::Copies(copies) => conversion.with_copies(copies)?.source(trace, None, warn),
            Program::Grid(grid) => conversion.source(trace, Some(grid), warn),
        }
    }
}

/// A program that is simulated with noise.
enum Program<'a> {
    /// On this number of ranks.
    Collective(Pattern, u32),
    /// Copies of the ranks of the trace.
    Copies(u32),
    /// The traced program on a larger grid.
    Grid(&'a Grid),
}

impl Program<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Collective(pattern, _) => pattern.name(),
            Self::Copies(_) | Self::Grid(_) => "trace",
        }
    }
}

#[derive(Serialize)]
struct Document<'d> {
    study: &'static str,
    /// `None` for a traced program.
    size_bytes: Option<u64>,
    draws: u32,
    seed: u64,
    parameters: &'d ParametersUsed,
    noise: &'d NoiseDocument,
    rows: Vec<RowDocument>,
}

#[derive(Serialize)]
struct RowDocument {
    pattern: &'static str,
    ranks: u32,
    quiet_s: f64,
    quiet_ps: u64,
    /// Mean of the draws.
    slowdown: Option<f64>,
    slowdown_lo: Option<f64>,
    slowdown_hi: Option<f64>,
    slowdown_largest: Option<f64>,
}

impl<'d> Document<'d> {
    fn new(
        args: &Args,
        noise: &'d NoiseDocument,
        parameters: &'d ParametersUsed,
        rows: &[Row],
    ) -> Self {
        let row = |row: &Row| {
            let interval = row.slowdown.and_then(|slowdown| slowdown.interval);
            RowDocument {
                pattern: row.pattern,
                ranks: row.ranks,
                quiet_s: row.quiet.seconds(),
                quiet_ps: row.quiet.0,
                slowdown: row.slowdown.map(|slowdown| slowdown.mean),
                slowdown_lo: interval.map(|[low, _]| low),
                slowdown_hi: interval.map(|[_, high]| high),
                slowdown_largest: row.slowdown.map(|slowdown| slowdown.largest),
            }
        };
        Self {
            study: "noise",
            size_bytes: args.size_bytes(),
            draws: args.draws,
            seed: args.seed,
            parameters,
            noise,
            rows: rows.iter().map(row).collect(),
        }
    }
}

fn write(out: &mut dyn Write, digits: Digits, document: &Document<'_>) -> io::Result<()> {
    let Document { size_bytes, draws, noise, parameters, rows, .. } = document;
    writeln!(out, "# parameters: {}", parameters.text(digits))?;
    let of = match size_bytes {
        Some(bytes) => format!("collectives of {bytes} B"),
        None => "a traced program on more ranks".to_owned(),
    };
    writeln!(
        out,
        "# {of}; noise: {}\n# slowdown: time with noise over that without, \
         mean of {draws} draws, 95% interval, largest",
        noise.text(digits)
    )?;
    writeln!(
        out,
        "#{:<21} {:>9} {:>16} {:>9} {:>8} {:>8} {:>8}",
        "pattern",
        "ranks",
        digits.head("without"),
        "slowdown",
        "lo",
        "hi",
        "largest"
    )?;
    for row in rows {
        let [mean, low, high, largest] =
            [row.slowdown, row.slowdown_lo, row.slowdown_hi, row.slowdown_largest]
                .map(|factor| number::decimal(factor, 4));
        writeln!(
            out,
            "{:<22} {:>9} {:>16} {mean:>9} {low:>8} {high:>8} {largest:>8}",
            row.pattern,
            row.ranks,
            digits.cell(row.quiet_ps)
        )?;
    }
    Ok(())
}
