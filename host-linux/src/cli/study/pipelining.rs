//! `loggap study pipelining`: how wrong a broadcast is that was measured in a loop.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::model::{LogGops, Preset};
use loggap_core::sim::{Parameters, Settings};
use loggap_core::units::{Bytes, Picos};
use serde::Serialize;

use super::{MOST_BYTES, numbers_of_ranks};
use crate::cli::digits::{Digits, FormatArgs};
use crate::cli::parameter_args::{preset, preset_help};
use crate::flags::parse::{self, Sizes};
use crate::output::{Fields, PendingFile, number};
use crate::simulation::{Job, LoadError, RunError, Source, makespan};
use crate::study::Chart;
use crate::study::in_order;
use crate::study::pipelining::{Algorithm, Growth, Question, Row, charts, winners};
use crate::terminal::{CliError, Console, Exit, Failures, end_on_request};

/// Largest product of ranks and repetitions.
const MOST_BROADCASTS: u64 = 1 << 32;
/// Memory that a rank, or a segment, takes in program order, bytes.
const BYTES_IN_ORDER: u64 = 40;

/// How wrong is a broadcast measured in a loop?
///
/// Compares the time of one broadcast that all ranks begin together with that of a loop over its
/// number of repetitions, and of a loop whose root is the next rank each time, for a binomial tree
/// and a pipeline (section 4.2 and Fig. 9 of "LogGP in Theory and Practice"), or for a root that
/// sends to each rank (--algorithms linear).
///
/// Each rank handles messages in program order, as a blocking program does. With --rules arrival
/// the simulator's order applies: a message that arrives before a send is ready goes first, so
/// ranks receive several broadcasts before they forward one, which lengthens loops of the pipeline.
/// For a single broadcast both rules agree.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  loggap study pipelining
  loggap study pipelining --algorithms linear,binomial
  loggap study pipelining --preset ompi-mx -s 64K --segment 8K --ranks 2:4096 --plot mx")]
pub(super) struct Args {
    /// Published links, with their parameters for this size.
    #[arg(long, value_delimiter = ',', value_name = "NAME", value_parser = preset,
          default_value = "mpich2-tcp,ompi-ib-sdr", 
          long_help = preset_help("Published links, with their parameters for this size"))]
    preset: Vec<Preset>,
    /// Broadcast algorithms.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "NAMES",
        default_value = "binomial,pipeline"
    )]
    algorithms: Vec<Algorithm>,
    /// Message size of the broadcast.
    #[arg(short = 's', long, value_name = "BYTES", value_parser = parse::size, default_value = "1")]
    size: u64,
    /// Segment size of the pipeline [default: the whole message].
    #[arg(long, value_name = "BYTES", value_parser = parse::size)]
    segment: Option<u64>,
    /// Numbers of ranks: 16,64 or 64:4096, in powers of two.
    #[arg(short = 'p', long, value_name = "RANKS", value_parser = parse::rank_counts,
          default_value = "2:1024")]
    ranks: Sizes,
    /// Repetitions in a loop.
    #[arg(short = 'n', long, value_name = "COUNT", default_value = "1000",
          value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// Order in which ranks handle messages.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Rules::Order)]
    rules: Rules,
    /// Plot Fig. 9 to PREFIX-time.svg and PREFIX-error.svg.
    ///
    /// With several presets, to PREFIX-PRESET-time.svg and so on.
    #[arg(long, value_name = "PREFIX")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
}

/// Order in which ranks handle messages.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Rules {
    /// Program order.
    Order,
    /// Order of arrival, as in 'loggap simulate'.
    Arrival,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let _interrupt = end_on_request()?;
    args.run(console)
}

/// Makespan by the simulator's rules.
fn simulated(pattern: Pattern, options: &Options, set: &LogGops) -> Result<Picos, CliError> {
    let source = Source::Pattern(pattern, *options);
    let job =
        Job { most_bytes: MOST_BYTES, ..Job::new(Parameters::one(*set), Settings::default()) };
    makespan(&source, &job).map_err(|error| match error {
        RunError::Load(LoadError::Memory { needed, allowed }) => CliError::usage(format_args!(
            "{} broadcasts over {} ranks need {needed} bytes of memory, and {allowed} are \
             allowed; take fewer --ranks or -n",
            options.repeat, options.ranks
        )),
        other => CliError::failed(other),
    })
}

/// Rows of one link.
struct Link {
    preset: Preset,
    parameters: LogGops,
    rows: Vec<Row>,
}

impl Args {
    fn run(&self, console: &mut Console) -> Result<Exit, CliError> {
        let ranks = self.numbers_of_ranks()?;
        let files = self.plot_files()?;
        let mut links = Vec::new();
        for preset in &self.preset {
            links.push(self.link(preset, &ranks)?);
        }
        let mut failures = Failures::default();
        for (link, files) in links.iter().zip(files) {
            for drawn in draw(files, &charts(link.preset.name, &link.rows)) {
                failures.add(drawn);
            }
        }
        let digits = self.format.digits(console);
        let document = self.document(&links);
        let printed =
            console.report(self.format.json, &document, |out| self.write(out, digits, &links));
        failures.add(printed.map_err(CliError::from));
        Ok(failures.end(Exit::Done, console))
    }

    fn numbers_of_ranks(&self) -> Result<Vec<u32>, CliError> {
        let too_many = || {
            CliError::usage(format_args!(
                "more than 2^32 broadcasts over ranks; take fewer --ranks, -n or larger --segment"
            ))
        };
        let segments = self.size.div_ceil(self.segment_size());
        let work = u64::from(self.repetitions).checked_mul(segments.max(1));
        let work = work.and_then(|work| work.checked_mul(self.ranks.last()));
        if work.is_none_or(|work| work > MOST_BROADCASTS) {
            return Err(too_many());
        }
        let ranks = numbers_of_ranks(&self.ranks)?;
        let most = ranks.iter().copied().max().map_or(0, u64::from).max(segments);
        if most > MOST_BYTES / BYTES_IN_ORDER {
            return Err(CliError::usage(format_args!(
                "{most} ranks or segments are more than fit into {MOST_BYTES} bytes of memory"
            )));
        }
        Ok(ranks)
    }

    /// Opens all plots, so that a wrong path is reported before the work: two per link, whose name
    /// is part of the file's if there are several links; none without --plot.
    fn plot_files(&self) -> Result<Vec<[PendingFile; 2]>, CliError> {
        let Some(prefix) = &self.plot else { return Ok(Vec::new()) };
        let of = |preset: &Preset| {
            let mut prefix = prefix.as_os_str().to_owned();
            if self.preset.len() > 1 {
                prefix.push(format!("-{}", preset.name));
            }
            plot_files(Path::new(&prefix))
        };
        self.preset.iter().map(of).collect()
    }

    fn segment_size(&self) -> u64 {
        self.segment.unwrap_or(self.size).max(1)
    }

    fn link(&self, preset: &Preset, ranks: &[u32]) -> Result<Link, CliError> {
        let none = || CliError::usage(format_args!("preset {} holds no parameters", preset.name));
        let question = |message: u64| {
            Ok::<_, CliError>(Question {
                parameters: *preset.at(Bytes(message)).ok_or_else(none)?,
                size: self.size,
                segment: Some(self.segment_size()),
                repetitions: self.repetitions,
            })
        };
        let whole = question(self.size)?;
        let in_segments = question(self.segment_size())?;
        let mut rows = Vec::new();
        for &ranks in ranks {
            for &algorithm in &self.algorithms {
                let question = match algorithm {
                    Algorithm::Pipeline => &in_segments,
                    Algorithm::Tree | Algorithm::Linear => &whole,
                };
                rows.push(question.answer(algorithm, ranks, |pattern, options, set| {
                    match self.rules {
                        Rules::Order => {
                            in_order::makespan(algorithm, options, set).map_err(CliError::failed)
                        }
                        Rules::Arrival => simulated(pattern, options, set),
                    }
                })?);
            }
        }
        Ok(Link { preset: *preset, parameters: whole.parameters, rows })
    }

    fn write(&self, out: &mut dyn Write, digits: Digits, links: &[Link]) -> io::Result<()> {
        writeln!(
            out,
            "# broadcast of {} B, messages handled {}\n# one synchronised, the mean of {} in a loop, and with a \
             root that moves\n# error = synchronised - measured",
            self.size,
            match self.rules {
                Rules::Order => "in program order",
                Rules::Arrival => "as they arrive",
            },
            self.repetitions
        )?;
        for link in links {
            writeln!(out, "#\n# {}: {}", link.preset.name, link.preset.source)?;
            writeln!(
                out,
                "#{:>7}  {:<9} {:>14} {:>12} {:>14} {:>14} {:>14}",
                "ranks",
                "algorithm",
                head("synchron.", digits),
                head("loop", digits),
                head("moving", digits),
                head("err.loop", digits),
                head("err.mov.", digits)
            )?;
            for row in &link.rows {
                writeln!(
                    out,
                    "{:>8}  {:<9} {:>14} {:>12} {:>14} {:>14} {:>14}",
                    row.ranks,
                    row.algorithm,
                    time(row.synchronised.seconds(), digits),
                    time(row.looped.seconds(), digits),
                    time(row.rotated.seconds(), digits),
                    time(row.loop_error_s(), digits),
                    time(row.rotated_error_s(), digits),
                )?;
            }
            conclude(out, &link.rows)?;
        }
        Ok(())
    }

    fn document(&self, links: &[Link]) -> Document {
        let links = links.iter().map(|link| LinkDocument {
            fields: Fields(vec![
                ("name", link.preset.name.into()),
                ("source", link.preset.source.into()),
                ("latency_s", link.parameters.latency.seconds().into()),
                ("overhead_s", link.parameters.overhead.seconds().into()),
                ("gap_s", link.parameters.gap.seconds().into()),
                ("gap_per_byte_s", link.parameters.gap_per_byte.seconds().into()),
            ]),
            rows: link.rows.iter().map(fields).collect(),
            loop_misleads_at_ranks: misled(&link.rows),
        });
        Document {
            study: "pipelining",
            size_bytes: self.size,
            segment_bytes: self.segment_size(),
            repetitions: self.repetitions,
            links: links.collect(),
        }
    }
}

/// Heading of a column of [`time`]s.
fn head(name: &str, digits: Digits) -> String {
    match digits {
        Digits::Exact => format!("{name}[us]"),
        Digits::Rounded => name.to_owned(),
    }
}

/// Formats a time in microseconds with three decimals, or rounded with a unit.
fn time(seconds: f64, digits: Digits) -> String {
    match digits {
        Digits::Exact => format!("{:.3}", seconds * 1e6),
        Digits::Rounded if seconds == 0.0 => "0".to_owned(),
        Digits::Rounded => number::in_units(seconds, number::TIME),
    }
}

/// Rank counts at which the loop prefers the wrong algorithm.
fn misled(rows: &[Row]) -> Vec<u32> {
    let wrong = winners(rows).into_iter().filter(|winner| winner.looped != winner.synchronised);
    wrong.map(|winner| winner.ranks).collect()
}

/// Writes conclusions from the rows.
fn conclude(out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
    for &algorithm in Algorithm::value_variants() {
        if let Some(growth) = Growth::of_loop_error(rows, algorithm) {
            let law = if growth.is_linear() { "P" } else { "log P" };
            writeln!(out, "# the loop's error of {algorithm} grows like {law}")?;
        }
    }
    if rows.iter().all(|row| Some(row.algorithm) == rows.first().map(|row| row.algorithm)) {
        return Ok(());
    }
    let wrong = misled(rows);
    match (wrong.first(), wrong.last()) {
        (Some(first), Some(last)) => writeln!(
            out,
            "# the loop makes the slower algorithm look faster at {} of {} numbers of ranks, from \
             {first} to {last}",
            wrong.len(),
            winners(rows).len()
        )?,
        _ => writeln!(out, "# the loop shows the faster algorithm everywhere")?,
    }
    Ok(())
}

/// Opens both plots of a link.
fn plot_files(prefix: &Path) -> Result<[PendingFile; 2], CliError> {
    let open = |ending: &str| {
        let mut name = prefix.as_os_str().to_owned();
        name.push(ending);
        PendingFile::create(PathBuf::from(name)).map_err(CliError::failed)
    };
    Ok([open("-time.svg")?, open("-error.svg")?])
}

fn draw(files: [PendingFile; 2], charts: &[Chart; 2]) -> Vec<Result<(), CliError>> {
    // Times have three lines per algorithm, errors two.
    let each = files.into_iter().zip(charts).zip([3, 2]).map(|((file, chart), group)| {
        file.commit(|out| chart.write(group, out)).map_err(CliError::failed)
    });
    each.collect()
}

#[derive(Serialize)]
struct Document {
    study: &'static str,
    size_bytes: u64,
    segment_bytes: u64,
    repetitions: u32,
    links: Vec<LinkDocument>,
}

#[derive(Serialize)]
struct LinkDocument {
    #[serde(flatten)]
    fields: Fields,
    rows: Vec<Fields>,
    loop_misleads_at_ranks: Vec<u32>,
}

fn fields(row: &Row) -> Fields {
    Fields(vec![
        ("ranks", row.ranks.into()),
        ("algorithm", row.algorithm.to_string().into()),
        ("synchronised_s", row.synchronised.seconds().into()),
        ("loop_s", row.looped.seconds().into()),
        ("rotated_s", row.rotated.seconds().into()),
        ("loop_error_s", row.loop_error_s().into()),
        ("rotated_error_s", row.rotated_error_s().into()),
    ])
}
