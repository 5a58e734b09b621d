//! `loggap study overlap`: time that overlap could save an application.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use loggap_core::noise::Phases;
use loggap_core::units::Picos;
use serde::{Serialize, Serializer};

use crate::cli::digits::{Digits, FormatArgs};
use crate::cli::parameter_args::{OverheadArgs, ParameterArgs, SettingsArgs};
use crate::cli::pattern_args::PatternArgs;
use crate::cli::trace_args::TraceArgs;
use crate::flags::parse;
use crate::output::{Fields, PendingFile, number};
use crate::side_by_side::threads;
use crate::simulation::{Completed, ParameterSets, Plan, Point, RunError, run_each_point};
use crate::study::overlap::{GapRow, Overlap, Three, chart, overhead_exceeds_gap, with_gaps};
use crate::terminal::{
    CliError, Console, Exit, Failures, Interrupt, NamedFiles, RunsLine, end_on_request, interrupted,
};

/// How much could overlap of communication and computation save?
///
/// Simulates a schedule three times: with full overlap (o = O = 0: the
/// processor spends nothing on messages), as the parameters say, and without
/// overlap (o = g, O = G: the processor is held for as long as the interface
/// is), at both ends of each message. This is the first use case of the talk
/// on LogGOPSim (LSAP'10, "Application Overlap Potential").
///
/// With '--receive hold', the rule of LogGOPSim, a receiver is held for
/// (s - 1)G even where O = 0; '--receive overlap' lets it compute meanwhile.
///
/// Exits with 1 if the schedule cannot come to its end.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loggap study overlap app.goal --profile cluster.json
  loggap study overlap --trace app.trace --profile cluster.json --plot overlap.svg
  loggap study overlap app.bin -o 200 -O 0.01 -g 1500 -G 0.08 --receive overlap --plot overlap.svg
  loggap study overlap --pattern all-to-all --ranks 64 -s 64K --summary -J
'loggap goal generate --help' lists the patterns.")]
pub(super) struct Args {
    /// Schedule to read; '-' is standard input.
    #[arg(value_name = "FILE", conflicts_with_all = ["pattern", "trace"])]
    input: Option<PathBuf>,

    #[command(flatten)]
    trace: TraceArgs,

    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    overheads: OverheadArgs,

    #[command(flatten)]
    settings: SettingsArgs,

    /// Memory limit of all concurrent simulations, as 1.5G [default: none].
    #[arg(help_heading = "Run", long, value_name = "BYTES", value_parser = parse::size, allow_hyphen_values = true)]
    max_memory: Option<u64>,

    /// Concurrent simulations [default: all processors].
    #[arg(help_heading = "Run", long, value_name = "COUNT", value_parser = parse::threads, allow_hyphen_values = true)]
    threads: Option<NonZeroUsize>,

    /// Print only makespans, not every rank.
    #[arg(help_heading = "Output", long)]
    summary: bool,

    /// Plot the three makespans over g and G times --factors.
    #[arg(help_heading = "Output", long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Factors on g and G, for the plot and a table of makespans [with --plot
    /// default: 0.125,0.25,0.5,1,2,4,8].
    #[arg(help_heading = "Output", long, value_name = "LIST", value_delimiter = ',', value_parser = factor)]
    factors: Option<Vec<f64>>,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    pattern: PatternArgs,
}

/// Default factors of a plot.
const FACTORS: [f64; 7] = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

fn factor(text: &str) -> Result<f64, String> {
    /// Beyond these limits a gap of a nanosecond would be below a picosecond, or above a second.
    const RANGE: std::ops::RangeInclusive<f64> = 1e-3..=1e9;
    let value = text.trim().parse::<f64>().ok().filter(|value| RANGE.contains(value));
    value.ok_or_else(|| format!("'{text}' is no factor from 0.001 to 1000000000"))
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    args.check_files()?;
    let sets = args.parameters.sets(&args.overheads, args.settings, console)?;
    let file = args.plot.as_deref().map(PendingFile::create).transpose();
    let file = file.map_err(CliError::failed)?;
    let interrupt = end_on_request()?;
    let runs = args.simulate(&sets, &args.factors(), &interrupt, console)?;
    let report = Report::new(args, &sets, &runs);
    let part = if report.incomplete.is_some() { " (incomplete)" } else { "" };
    let chart = chart(&runs.rows, &format!("{}{part}", report.schedule));
    let drawn = file.map_or(Ok(()), |file| file.commit(|out| chart.write(1, out)));
    let mut failures = Failures::default();
    failures.add(drawn.map_err(CliError::failed));
    if report.overhead_exceeds_gap {
        console
            .note("note: o > g or O > G somewhere: 'no overlap' lowers it to the gap there, and may be faster");
    }
    let digits = args.format.digits(console);
    let printed = console.report(args.format.json, &report, |out| report.write(out, digits));
    failures.add(printed.map_err(CliError::from));
    let done = if report.incomplete.is_some() { Exit::Interrupted } else { Exit::Done };
    Ok(failures.end(done, console))
}

/// Completed runs; Ctrl-C may have prevented some.
struct Runs {
    /// Makespans with the given parameters.
    given: Option<Three<Completed>>,
    /// Makespans with other gaps.
    rows: Vec<GapRow>,
    /// Number of completed runs, and of all.
    done: usize,
    all: usize,
}

impl Args {
    /// Refuses a plot that would overwrite an input.
    fn check_files(&self) -> Result<(), CliError> {
        let mut files = NamedFiles::default();
        files.read("FILE", self.input.as_deref());
        self.trace.name_files(&mut files);
        self.parameters.name_files(&mut files);
        files.written("--plot", self.plot.as_deref(), &["svg"]);
        files.check()
    }

    fn factors(&self) -> Vec<f64> {
        let usual = if self.plot.is_some() { FACTORS.to_vec() } else { Vec::new() };
        let mut factors = self.factors.clone().unwrap_or(usual);
        factors.sort_by(f64::total_cmp);
        factors.dedup();
        factors
    }

    /// Runs the three degrees of overlap with the given gaps and with the others. Ctrl-C stops them
    /// and keeps the completed runs.
    fn simulate(
        &self,
        sets: &ParameterSets,
        factors: &[f64],
        interrupt: &Interrupt,
        console: &mut Console,
    ) -> Result<Runs, CliError> {
        let mut points = Overlap::ALL.map(|overlap| overlap.sets(sets)).to_vec();
        for &factor in factors {
            let too_long =
                || CliError::usage(format_args!("g or G times {factor} is longer than 213 days"));
            let gaps = with_gaps(sets, factor).ok_or_else(too_long)?;
            points.extend(Overlap::ALL.map(|overlap| overlap.sets(&gaps)));
        }
        let plan = Plan {
            most_bytes: self.max_memory.unwrap_or(u64::MAX),
            threads: threads(self.threads),
            finish: if self.summary { 0 } else { Overlap::ALL.len() },
            stop: Some(interrupt.flag()),
            ..Plan::new(self.settings.settings())
        };
        let (input, warn) = (self.input.as_deref(), &mut |text: String| console.warn(text));
        let source = self.pattern.source(input, &self.trace, plan.threads, warn)?;
        let line = RunsLine::new(console, points.len() as u64);
        let point = |at: usize| Point {
            sets: points.get(at).unwrap_or(sets).clone(),
            phases: Phases::Together { seed: 0 },
        };
        interrupt.listen();
        let ran = run_each_point(&source, points.len(), &point, &plan, &|| line.advance());
        drop(line);
        // `None` for runs that were not started.
        let run = ran?.into_iter().map(|ended| match ended {
            Err(RunError::Interrupted) => Ok(None),
            ended => ended.map(Some),
        });
        let run = run.collect::<Result<Vec<Option<Completed>>, RunError>>()?;
        let (done, all) = (run.iter().flatten().count(), run.len());
        let mut run = run.into_iter();
        let mut three = || {
            let [full, present, none] = [run.next(), run.next(), run.next()].map(Option::flatten);
            Some(Three { full: full?, present: present?, none: none? })
        };
        let given = three();
        let row = |&factor| Some(GapRow { factor, makespans: makespans(&three()?) });
        Ok(Runs { given, rows: factors.iter().filter_map(row).collect(), done, all })
    }
}

const fn makespans(three: &Three<Completed>) -> Three<Picos> {
    Three { full: three.full.makespan, present: three.present.makespan, none: three.none.makespan }
}

/// Contents of the report, as JSON and as text.
#[derive(Serialize)]
struct Report {
    study: &'static str,
    /// File or pattern.
    schedule: String,
    /// True if an overhead exceeds its gap.
    overhead_exceeds_gap: bool,
    /// Null if Ctrl-C stopped one of the three runs.
    makespan: Option<Times>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ranks: Vec<RankTimes>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<GapTimes>,
    /// Why runs are missing, if any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete: Option<String>,
}

/// A makespan or finishing time, for each degree of overlap.
struct Times(Three<Picos>);

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Three { full, present, none } = self.0;
        let fields = vec![
            ("full_s", full.seconds().into()),
            ("present_s", present.seconds().into()),
            ("none_s", none.seconds().into()),
            ("full_ps", full.0.into()),
            ("present_ps", present.0.into()),
            ("none_ps", none.0.into()),
            ("saved_share", self.0.saved().into()),
            ("used_share", self.0.used().into()),
        ];
        Fields(fields).serialize(serializer)
    }
}

#[derive(Serialize)]
struct RankTimes {
    rank: usize,
    #[serde(flatten)]
    times: Times,
}

#[derive(Serialize)]
struct GapTimes {
    /// Factor on g and G.
    factor: f64,
    #[serde(flatten)]
    times: Times,
}

/// Headings of [`Times::columns`].
fn columns(digits: Digits) -> String {
    let [full, present, none] = ["full", "present", "none"].map(|name| digits.head(name));
    format!("{full:>16} {present:>16} {none:>16} {:>9} {:>8}", "saved[%]", "used[%]")
}

impl Times {
    /// Cells of a table's row.
    fn columns(&self, digits: Digits) -> String {
        let percent = |share: Option<f64>| number::decimal(share.map(|share| 100.0 * share), 2);
        format!(
            "{:>16} {:>16} {:>16} {:>9} {:>8}",
            digits.cell(self.0.full.0),
            digits.cell(self.0.present.0),
            digits.cell(self.0.none.0),
            percent(self.0.saved()),
            percent(self.0.used()),
        )
    }
}

impl Report {
    fn new(args: &Args, sets: &ParameterSets, runs: &Runs) -> Self {
        let Runs { given, rows, done, all } = runs;
        let ends = given.iter().flat_map(|three| {
            three.full.finish.iter().zip(&three.present.finish).zip(&three.none.finish)
        });
        let rank = |(rank, ((full, present), none)): (usize, ((&Picos, &Picos), &Picos))| {
            let times = Three { full: *full, present: *present, none: *none };
            RankTimes { rank, times: Times(times) }
        };
        let gap = |row: &GapRow| GapTimes { factor: row.factor, times: Times(row.makespans) };
        Self {
            study: "overlap",
            schedule: args.pattern.schedule(args.input.as_deref(), &args.trace),
            overhead_exceeds_gap: overhead_exceeds_gap(sets),
            makespan: given.as_ref().map(|three| Times(makespans(three))),
            ranks: ends.enumerate().map(rank).collect(),
            gaps: rows.iter().map(gap).collect(),
            incomplete: interrupted(*done, *all, "runs"),
        }
    }

    fn write(&self, out: &mut dyn Write, digits: Digits) -> io::Result<()> {
        let heads = columns(digits);
        writeln!(
            out,
            "# potential for overlap of {}\n# full: o = O = 0; present: as given; none: o = g, O = G\n\
             # saved = (present - full) / present; used = (none - present) / (none - full)",
            self.schedule
        )?;
        if let Some(makespan) = &self.makespan {
            writeln!(out, "# {:>9} {heads}", "makespan")?;
            writeln!(out, "{:>11} {}", "all", makespan.columns(digits))?;
        }
        if !self.gaps.is_empty() {
            writeln!(out, "# {:>9} {heads}", "g, G *")?;
        }
        for gap in &self.gaps {
            writeln!(out, "{:>11} {}", gap.factor, gap.times.columns(digits))?;
        }
        if !self.ranks.is_empty() {
            writeln!(out, "# {:>9} {heads}", "rank")?;
        }
        for rank in &self.ranks {
            writeln!(out, "{:>11} {}", rank.rank, rank.times.columns(digits))?;
        }
        if let Some(why) = &self.incomplete {
            writeln!(out, "# INCOMPLETE: {why}")?;
        }
        Ok(())
    }
}
