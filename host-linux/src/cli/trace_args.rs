//! A traced program, and options of its conversion.

use std::fs;
use std::path::{Path, PathBuf};

use loggap_core::units::PerByte;

use crate::flags::parse;
use crate::schedule::TraceSchedule;
use crate::simulation::Source;
use crate::terminal::{CliError, Console, NamedFiles};
use crate::trace::Trace;
use crate::trace::convert::{Algorithms, Conversion, Graph, Input, OpenError, Options, Strictness};
use crate::trace::extrapolate::{Extrapolation, Grid, Scaling};

/// A traced program in place of another schedule.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct TraceArgs {
    /// Traced program: the directory of 'loggap-mpi trace'.
    ///
    /// Or the file of rank 0 of liballprof. Repeatable for --grid and
    /// --to-ranks.
    #[arg(long, value_name = "DIR")]
    pub(super) trace: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) conversion: ConversionArgs,
}

impl TraceArgs {
    pub(super) fn name_files(&self, files: &mut NamedFiles) {
        self.trace.iter().for_each(|trace| files.read("--trace", Some(trace)));
    }

    /// Schedule of the trace, if one is given; with a `grid`, on a larger one.
    pub(super) fn source(
        &self,
        grid: Option<&Grid>,
        warn: Warn<'_>,
    ) -> Result<Option<Source>, CliError> {
        match self.conversion.given() {
            Some(option) if self.trace.is_empty() => {
                Err(CliError::usage(format_args!("{option} is for --trace DIR")))
            }
            _ if self.trace.is_empty() => Ok(None),
            _ => self.conversion.source(&self.trace, grid, warn).map(Some),
        }
    }

    /// Says that noise beside a trace counts twice.
    pub(super) fn warn_of_noise(&self, console: &mut Console) {
        if !self.trace.is_empty() {
            console.warn(
                "what the traced ranks computed contains the noise of their machine: it counts \
                 beside that which is given",
            );
        }
    }
}

/// Where warnings about traces go.
pub(super) type Warn<'w> = &'w mut dyn FnMut(String);

/// How a trace becomes a schedule.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Conversion of traces")]
pub(super) struct ConversionArgs {
    /// Speed of the processors against the traced ones: a factor, or a file
    /// with one a rank [default: 1].
    ///
    /// 2 halves all calculations, also the traced time to combine bytes in
    /// reductions. The last factor of a file counts for all
    /// further ranks.
    #[arg(long, value_name = "FACTOR|FILE")]
    cpu_speed: Option<String>,

    /// Time of a call that tracing took, outside of the call, in ns [default:
    /// as the trace says].
    #[arg(long, value_name = "NS", allow_hyphen_values = true, value_parser = nanos)]
    trace_overhead: Option<f64>,

    /// Algorithms of collective operations: known, a file of Open MPI's rules,
    /// or OPERATION=ALGORITHM[:SEGMENT] [default: known].
    ///
    /// 'known' are those that the library's settings name, else the fixed rules
    /// of its version of Open MPI; 'loggap trace info' lists them by names that
    /// count here, too. Files are
    /// those that 'loggap best --rules' writes. Repeatable; what is named goes
    /// before a file.
    #[arg(long, value_name = "known|FILE|OPERATION=ALGORITHM", value_delimiter = ',')]
    algorithms: Vec<String>,

    /// Time to combine a byte in reductions of a trace, in ns/B or with a unit
    /// [default: that of MPI_Reduce_local where it was traced, over --cpu-speed].
    #[arg(id = "trace_combine", long = "combine", value_name = "NS/B", value_parser = parse::time_per_byte, allow_hyphen_values = true)]
    combine: Option<PerByte>,

    /// Operations and dependencies as Schedgen 1 makes them, to compare;
    /// docs/goal.md says where they are wrong.
    #[arg(long, value_enum, value_name = "TOOL", conflicts_with_all = ["cpu_speed", "trace_overhead", "algorithms", "trace_combine"])]
    compat: Option<Compat>,

    /// Run F copies of the traced ranks, with collectives in common.
    ///
    /// As Schedgen extrapolates.
    #[arg(long, value_name = "F", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "to_ranks")]
    extrapolate: Option<u32>,

    /// Run a program of rings, lines and trees on this number of ranks.
    ///
    /// With several traces, on different numbers of ranks, the smaller ones
    /// test the rule, and tell how sizes and computation grow; also with --grid.
    #[arg(long, value_name = "RANKS", value_parser = clap::value_parser!(u32).range(2..), conflicts_with = "compat")]
    to_ranks: Option<u32>,

    /// Use what can be used of a trace that is not whole, and say what not.
    #[arg(long)]
    pub(super) lenient: bool,
}

/// Tools whose graphs are made.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Compat {
    Schedgen,
}

/// Extents of a grid of ranks, and of the traced one where these are given.
pub(super) fn grid(text: &str) -> Result<Grid, &'static str> {
    let extents = |text: &str| {
        let one = |extent: &str| extent.parse().ok().filter(|extent| *extent > 0);
        text.split('x').map(one).collect::<Option<Vec<u32>>>()
    };
    let wrong = "expected extents such as 8x4 or 8x4x2, or 5x8:140x200 with those of a trace";
    Ok(match text.split_once(':') {
        Some((traced, target)) => Grid {
            traced: Some(extents(traced).ok_or(wrong)?),
            target: extents(target).ok_or(wrong)?,
        },
        None => Grid { traced: None, target: extents(text).ok_or(wrong)? },
    })
}

fn nanos(text: &str) -> Result<f64, &'static str> {
    let nanos = text.parse().ok().filter(|nanos: &f64| nanos.is_finite() && *nanos >= 0.0);
    nanos.ok_or("a number of nanoseconds, such as 50")
}

impl ConversionArgs {
    /// First of the given options, if any.
    fn given(&self) -> Option<&'static str> {
        let given = [
            ("--cpu-speed", self.cpu_speed.is_some()),
            ("--trace-overhead", self.trace_overhead.is_some()),
            ("--algorithms", !self.algorithms.is_empty()),
            ("--combine", self.combine.is_some()),
            ("--compat", self.compat.is_some()),
            ("--lenient", self.lenient),
            ("--extrapolate", self.extrapolate.is_some()),
            ("--to-ranks", self.to_ranks.is_some()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }

    /// True if Schedgen's algorithms are taken whatever `--algorithms` says.
    pub(super) const fn has_own_algorithms(&self) -> bool {
        self.compat.is_some()
    }

    /// These options, for `copies` of the traced ranks.
    pub(super) fn with_copies(&self, copies: u32) -> Result<Self, CliError> {
        if self.extrapolate.is_some() || self.to_ranks.is_some() {
            return Err(CliError::usage("--ranks says how many copies run"));
        }
        Ok(Self { extrapolate: Some(copies), ..self.clone() })
    }

    /// Schedule of the trace at `paths`, or of traces in several directories; with a `grid`, on a
    /// larger one.
    pub(super) fn source(
        &self,
        paths: &[PathBuf],
        grid: Option<&Grid>,
        warn: Warn<'_>,
    ) -> Result<Source, CliError> {
        Ok(Source::Trace(Box::new(self.schedule(paths, grid, warn)?)))
    }

    /// As [`Self::source`].
    pub(super) fn schedule(
        &self,
        paths: &[PathBuf],
        grid: Option<&Grid>,
        warn: Warn<'_>,
    ) -> Result<TraceSchedule, CliError> {
        let others = [
            ("--extrapolate", self.extrapolate.is_some()),
            ("--to-ranks", self.to_ranks.is_some()),
            ("--compat", self.compat.is_some()),
        ];
        let scaling = match (self.extrapolate, grid, self.to_ranks) {
            (_, Some(grid), _) => match others.iter().find(|(_, given)| *given) {
                None => Some(Scaling::Grid(grid.clone())),
                Some((option, _)) => {
                    return Err(CliError::usage(format_args!(
                        "--grid cannot be used with {option}"
                    )));
                }
            },
            // Its graph has the copies.
            (Some(_), ..) if self.compat.is_some() => None,
            (Some(copies), ..) => Some(Scaling::Copies(copies)),
            (None, _, Some(ranks)) => Some(Scaling::Ranks(ranks)),
            (None, ..) => None,
        };
        let mut traces = self.conversions(paths, warn)?;
        match (scaling, traces.pop()) {
            (None, Some(trace)) if traces.is_empty() => Ok(trace.into()),
            (None, _) => Err(CliError::usage(
                "several traces are those of one program on different numbers of ranks, and need \
                 --grid or --to-ranks",
            )),
            (Some(scaling), last) => {
                traces.extend(last);
                let program = Extrapolation::new(&traces, &scaling).map_err(CliError::usage)?;
                program.doubt().into_iter().for_each(warn);
                Ok(program.into())
            }
        }
    }

    /// Opens the trace at `paths`, or one in each of several directories.
    pub(super) fn conversions(
        &self,
        paths: &[PathBuf],
        warn: Warn<'_>,
    ) -> Result<Vec<Conversion>, CliError> {
        let is_each = paths.iter().all(|path| path.is_dir());
        let traces = paths.chunks(if is_each { 1 } else { paths.len().max(1) });
        let mut command = None;
        let conversion = |paths| {
            let (input, options) = self.opened(paths)?;
            if let Input::Trace(trace) = &input {
                check(trace, &mut command, warn)?;
            }
            Ok(Conversion::new(input, options))
        };
        traces.map(conversion).collect()
    }

    fn opened(&self, paths: &[PathBuf]) -> Result<(Input, Options), CliError> {
        let options = Options {
            cpu_speed: self.speeds()?,
            overhead: self.trace_overhead,
            combine: self.combine,
            algorithms: self.chosen()?,
            traced_combine: PerByte::ZERO,
            graph: match self.compat {
                Some(Compat::Schedgen) => Graph::Schedgen { copies: self.extrapolate.unwrap_or(1) },
                None => Graph::Derived,
            },
            strictness: if self.lenient { Strictness::Lenient } else { Strictness::Strict },
        };
        let input = Input::open(paths, options.strictness).map_err(|error| match error {
            OpenError::Lost { .. } => CliError::failed(error),
            _ => CliError::usage(error),
        })?;
        Ok((input, options))
    }

    fn speeds(&self) -> Result<Vec<f64>, CliError> {
        let Some(text) = &self.cpu_speed else { return Ok(Vec::new()) };
        if text.parse::<f64>().is_ok() {
            let wrong = |error| CliError::usage(format_args!("--cpu-speed {text}: {error}"));
            return Ok(vec![parse::factor(text).map_err(wrong)?]);
        }
        let file = read(text, "--cpu-speed")?;
        let words = (1..).zip(file.lines()).flat_map(|(number, line)| {
            let line = line.split('#').next().unwrap_or_default();
            line.split_whitespace().map(move |word| (number, word))
        });
        let factor = |(line, word): (usize, &str)| {
            parse::factor(word).map_err(|error| {
                CliError::usage(format_args!("--cpu-speed '{text}':{line}: {error}"))
            })
        };
        words.map(factor).collect()
    }

    fn chosen(&self) -> Result<Algorithms, CliError> {
        let mut chosen = Algorithms::default();
        for text in self.algorithms.iter().filter(|text| *text != "known") {
            let wrong = |error| CliError::usage(format_args!("--algorithms {text}: {error}"));
            match text.split_once('=') {
                Some((operation, algorithm)) => chosen.name(operation, algorithm).map_err(wrong)?,
                None => chosen.rules(&read(text, "--algorithms")?).map_err(wrong)?,
            }
        }
        Ok(chosen)
    }
}

/// Warns of what makes a trace a bad basis of a simulation, and refuses that of another program than
/// the `command` of those before.
fn check(trace: &Trace, command: &mut Option<Vec<String>>, warn: Warn<'_>) -> Result<(), CliError> {
    for error in trace.missing() {
        warn(format!("{error}: the rank is left out"));
    }
    if let Some(host) = trace.crowded_host() {
        warn(format!(
            "host '{host}' had more ranks than processors: what these computed includes waiting for \
             processors"
        ));
    }
    let Some(own) = &trace.description().command else { return Ok(()) };
    let name = |command: &[String]| Some(Path::new(command.first()?).file_name()?.to_owned());
    match command {
        Some(known) if name(known) != name(own) => Err(CliError::usage(format_args!(
            "the traces are of different programs: '{}' and '{}'",
            known.join(" "),
            own.join(" ")
        ))),
        Some(known) => {
            if known != own {
                warn(format!(
                    "the traced programs had different arguments: '{}' and '{}'",
                    known.join(" "),
                    own.join(" ")
                ));
            }
            Ok(())
        }
        None => {
            *command = Some(own.clone());
            Ok(())
        }
    }
}

fn read(path: &str, option: &str) -> Result<String, CliError> {
    fs::read_to_string(path)
        .map_err(|error| CliError::usage(format_args!("{option}: cannot read '{path}': {error}")))
}
