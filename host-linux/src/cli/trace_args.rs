//! Options of the conversion of traces.

use std::fs;
use std::path::PathBuf;

use loggap_core::units::PerByte;

use crate::flags::parse;
use crate::terminal::CliError;
use crate::trace::convert::{Algorithms, Conversion, Graph, Input, Options, Strictness};

/// How a trace becomes a schedule.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Conversion of traces")]
pub(super) struct TraceArgs {
    /// Speed of the processors against the traced ones: a factor, or a file
    /// with one a rank [default: 1].
    ///
    /// 2 halves all calculations. The last factor of a file counts for all
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
    /// 'known' are those that the trace's settings of Open MPI name, else its
    /// fixed rules (version 4.0). Files are those that 'loggap best --rules'
    /// writes. Repeatable; what is named goes before a file.
    #[arg(long, value_name = "known|FILE|OPERATION=ALGORITHM", value_delimiter = ',')]
    algorithms: Vec<String>,

    /// Time to combine a byte in reductions of a trace, in ns/B or with a unit
    /// [default: 0].
    #[arg(id = "trace_combine", long = "combine", value_name = "NS/B", value_parser = parse::time_per_byte, allow_hyphen_values = true)]
    combine: Option<PerByte>,

    /// Operations and dependencies as Schedgen 1 makes them, to compare;
    /// docs/goal.md says where they are wrong.
    #[arg(long, value_enum, value_name = "TOOL", conflicts_with_all = ["cpu_speed", "trace_overhead", "algorithms", "trace_combine"])]
    compat: Option<Compat>,

    /// Use what can be read of a trace that is not whole, and say what not.
    #[arg(long)]
    pub(super) lenient: bool,
}

/// Tools whose graphs are made.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Compat {
    Schedgen,
}

fn nanos(text: &str) -> Result<f64, &'static str> {
    let nanos = text.parse().ok().filter(|nanos: &f64| nanos.is_finite() && *nanos >= 0.0);
    nanos.ok_or("a number of nanoseconds, such as 50")
}

impl TraceArgs {
    /// First of the given options, if any.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--cpu-speed", self.cpu_speed.is_some()),
            ("--trace-overhead", self.trace_overhead.is_some()),
            ("--algorithms", !self.algorithms.is_empty()),
            ("--combine", self.combine.is_some()),
            ("--compat", self.compat.is_some()),
            ("--lenient", self.lenient),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }

    /// Opens the trace at `paths`.
    pub(super) fn conversion(&self, paths: &[PathBuf]) -> Result<Conversion, CliError> {
        let options = Options {
            cpu_speed: self.speeds()?,
            overhead: self.trace_overhead,
            combine: self.combine.unwrap_or(PerByte::ZERO),
            algorithms: self.chosen()?,
            graph: match self.compat {
                Some(Compat::Schedgen) => Graph::Schedgen,
                None => Graph::Derived,
            },
            strictness: if self.lenient { Strictness::Lenient } else { Strictness::Strict },
        };
        let input = Input::open(paths).map_err(CliError::usage)?;
        Ok(Conversion::new(input, options))
    }

    fn speeds(&self) -> Result<Vec<f64>, CliError> {
        let Some(text) = &self.cpu_speed else { return Ok(Vec::new()) };
        if let Ok(factor) = parse::factor(text) {
            return Ok(vec![factor]);
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

fn read(path: &str, option: &str) -> Result<String, CliError> {
    fs::read_to_string(path)
        .map_err(|error| CliError::usage(format_args!("{option}: cannot read '{path}': {error}")))
}
