//! Options of a communication pattern, shared by all subcommands that take one.

use std::path::{Path, PathBuf};

use clap::builder::PossibleValue;
use loggap_core::goal::pattern::{Algorithm, Background, Options, Pattern};
use loggap_core::units::Picos;

use super::trace_args::{TraceArgs, Warn, grid};
use crate::flags::help;
use crate::flags::parse;
use crate::output::number;
use crate::schedule::{PrttRound, ScheduleFile};
use crate::simulation::Source;
use crate::terminal::CliError;
use crate::trace::extrapolate::Grid;

/// Pattern and its options.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Pattern")]
pub(super) struct PatternArgs {
    /// Communication pattern; 'goal generate --help' describes them.
    #[arg(long, value_name = "NAME", value_parser = NamedPattern, hide_possible_values = true)]
    pub(super) pattern: Option<Pattern>,

    /// A measuring round in place of a pattern: N messages and one reply.
    ///
    /// PRTT(n,d,s) of "LogGP in Theory and Practice" (Fig. 2): rank 0 sends N messages of -s bytes
    /// to rank 1, --delay apart, which replies to the last.
    #[arg(long, value_name = "N", conflicts_with_all = ["pattern", "ranks"],
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    prtt: Option<u32>,

    /// Wait between messages of --prtt, in ns or with a unit [default: none].
    #[arg(long, value_name = "NS", value_parser = parse::time, allow_hyphen_values = true, requires = "prtt")]
    delay: Option<Picos>,

    /// Number of ranks, such as 1024 or 1M.
    #[arg(long, value_name = "P", value_parser = parse::rank_count, allow_hyphen_values = true)]
    pub(super) ranks: Option<u32>,

    /// Message size, as 4K or 1.5M [default: 1].
    #[arg(short = 's', long, value_name = "BYTES", value_parser = parse::size, allow_hyphen_values = true)]
    size: Option<u64>,

    /// Root of broadcast, reduction, gather and scatter [default: 0].
    #[arg(long, value_name = "RANK", allow_hyphen_values = true)]
    root: Option<u32>,

    /// Targets per round of the n-way dissemination [default: 1].
    #[arg(long, value_name = "RANKS", allow_hyphen_values = true)]
    nway: Option<u32>,

    /// Segment size of pipelined rings [default: the whole message].
    #[arg(long, value_name = "BYTES", value_parser = parse::size, allow_hyphen_values = true)]
    segment: Option<u64>,

    /// Extents of the grid of ranks along x, y, z, such as 8x4 [default: the most balanced].
    ///
    /// With --trace, those of a larger grid to run, where neighbours stay
    /// neighbours; TRACED:AxB gives those of the trace, which are
    /// MPI_Cart_create's, or found.
    #[arg(long, value_name = "AxBxC", value_parser = grid)]
    pub(super) grid: Option<Grid>,

    /// Concurrent sends of Schedgen 2's linear collectives [default: all].
    #[arg(long, value_name = "SENDS", allow_hyphen_values = true)]
    window: Option<u32>,

    /// Computation between rounds, or before messages to neighbours, in ns or with a unit [default: none].
    #[arg(long, value_name = "NS", value_parser = parse::time, allow_hyphen_values = true)]
    compute: Option<Picos>,

    /// Size divisor of the skewed all-to-all's small messages [default: 1].
    #[arg(long, value_name = "DIVISOR", allow_hyphen_values = true)]
    skew: Option<u32>,

    /// Skewed all-to-all: the rank above the root sends only large messages.
    #[arg(long)]
    outcast: bool,

    /// Computation concurrent with the pattern, on every rank [default: none].
    #[arg(long, value_name = "NS", value_parser = parse::time, allow_hyphen_values = true)]
    nb: Option<Picos>,

    /// Piece length of that computation [default: one piece].
    #[arg(long, value_name = "NS", value_parser = parse::time, allow_hyphen_values = true, requires = "nb")]
    nb_poll: Option<Picos>,

    /// GOAL cpu of that computation [default: 0].
    #[arg(long, alias = "cpu", value_name = "CPU", requires = "nb")]
    nb_cpu: Option<u8>,

    /// Algorithm of Schedgen 2's collectives: auto, linear, binomialtree,
    /// recdoub or ring [default: auto].
    #[arg(long, value_name = "NAME")]
    algorithm: Option<Algorithm>,

    /// Disjoint groups of ranks that each run the pattern [default: 1].
    #[arg(long, value_name = "GROUPS", allow_hyphen_values = true)]
    groups: Option<u32>,

    /// Repetitions, one after the other [default: 1].
    #[arg(long, value_name = "COUNT", allow_hyphen_values = true)]
    repeat: Option<u32>,

    /// Move the root by one rank with each repetition.
    #[arg(long)]
    rotate_root: bool,

    /// Seed of patterns, placements, noise and draws.
    #[arg(help_heading = "Run", long, value_name = "SEED", value_parser = parse::seed, allow_hyphen_values = true, default_value = "0")]
    pub(super) seed: u64,
}

impl PatternArgs {
    /// Schedule of the trace, of the file at `input`, opened on several threads, or of the pattern.
    pub(super) fn source(
        &self,
        input: Option<&Path>,
        trace: &TraceArgs,
        threads: usize,
        warn: Warn<'_>,
    ) -> Result<Source, CliError> {
        if !trace.trace.is_empty() {
            if self.ranks.is_some() {
                return Err(CliError::usage(
                    "--ranks is for --pattern: --to-ranks, --grid and --extrapolate run a trace on \
                     more ranks",
                ));
            }
            self.for_pattern_only("a trace", &["--grid"])?;
            if self.pattern.is_some() {
                return Err(CliError::usage("--pattern cannot be used with --trace"));
            }
        }
        if let Some(source) = trace.source(self.grid.as_ref(), warn)? {
            return Ok(source);
        }
        match (input, self.pattern, self.ranks) {
            (Some(path), ..) if path.is_dir() => Err(CliError::usage(format_args!(
                "'{0}' is a directory: --trace {0}, if it is that of a trace",
                path.display()
            ))),
            (Some(path), ..) => {
                self.for_pattern_only("a FILE", &[])?;
                ScheduleFile::open_on(path, threads).map(Source::File).map_err(CliError::usage)
            }
            (None, Some(pattern), Some(ranks)) => {
                Ok(Source::Pattern(pattern, self.options(ranks)?))
            }
            (None, Some(pattern), None) => Err(Self::without_ranks(pattern)),
            (None, None, _) if let Some(round) = self.round() => {
                let given = self.of_pattern_but(&["--prtt", "--size"]);
                given.map_or(Ok(Source::Prtt(round)), |option| {
                    Err(CliError::usage(format_args!("{option} is for --pattern, not for --prtt")))
                })
            }
            (None, ..) => Err(CliError::usage(
                "give a schedule's FILE, --trace DIR, or --pattern NAME and --ranks P; \
                 'loggap goal generate --help' lists the patterns",
            )),
        }
    }

    /// Refuses options of patterns, but those that are `meant`, where the schedule is `other`.
    fn for_pattern_only(&self, other: &str, meant: &[&str]) -> Result<(), CliError> {
        self.of_pattern_but(meant).map_or(Ok(()), |option| {
            Err(CliError::usage(format_args!(
                "{option} is for --pattern: {other} has ranks and sizes of its own"
            )))
        })
    }

    /// The measuring round, if one is asked for.
    pub(super) fn round(&self) -> Option<PrttRound> {
        let delay = self.delay.unwrap_or_default();
        let size = self.size.unwrap_or(1);
        self.prtt.map(|messages| PrttRound { messages, delay, size, repliers: 1 })
    }

    pub(super) fn without_ranks(pattern: Pattern) -> CliError {
        CliError::usage(format_args!(
            "--pattern {} needs --ranks P, such as 1024 or 1M",
            pattern.name()
        ))
    }

    /// First of the given options that only apply to patterns, but those that are `meant`.
    fn of_pattern_but(&self, meant: &[&str]) -> Option<&'static str> {
        let given = [
            ("--prtt", self.prtt.is_some()),
            ("--ranks", self.ranks.is_some()),
            ("--size", self.size.is_some()),
            ("--root", self.root.is_some()),
            ("--nway", self.nway.is_some()),
            ("--segment", self.segment.is_some()),
            ("--grid", self.grid.is_some()),
            ("--window", self.window.is_some()),
            ("--compute", self.compute.is_some()),
            ("--skew", self.skew.is_some()),
            ("--outcast", self.outcast),
            ("--nb", self.nb.is_some()),
            ("--algorithm", self.algorithm.is_some()),
            ("--groups", self.groups.is_some()),
            ("--repeat", self.repeat.is_some()),
            ("--rotate-root", self.rotate_root),
        ];
        let given = given.into_iter().find(|(option, given)| *given && !meant.contains(option));
        given.map(|(option, _)| option)
    }

    /// Title of the schedule: the file or trace, or the pattern.
    pub(super) fn schedule(&self, input: Option<&Path>, trace: &TraceArgs) -> String {
        match (input.or(trace.trace.first().map(PathBuf::as_path)), self.pattern) {
            (Some(path), _) => path.display().to_string(),
            (None, Some(pattern)) => pattern.name().to_owned(),
            (None, None) => self.round().map_or_else(String::new, |round| {
                let PrttRound { messages, delay, size, .. } = round;
                let delay = number::in_units(delay.seconds(), number::TIME);
                format!("PRTT({messages}, {delay}, {size} B)")
            }),
        }
    }

    /// Pattern options for `ranks` ranks.
    pub(super) fn options(&self, ranks: u32) -> Result<Options, CliError> {
        let grid = match &self.grid {
            Some(Grid { traced: None, target }) if target.len() <= 3 => {
                let mut extents = [1; 3];
                extents.iter_mut().zip(target).for_each(|(place, extent)| *place = *extent);
                Some(extents)
            }
            Some(_) => {
                return Err(CliError::usage("--grid takes at most three extents, such as 8x4x2"));
            }
            None => None,
        };
        let background = self.nb.map(|duration| Background {
            duration,
            poll: self.nb_poll,
            cpu: self.nb_cpu.unwrap_or(0),
        });
        Ok(Options {
            root: self.root.unwrap_or(0),
            ways: self.nway.unwrap_or(1),
            segment: self.segment,
            window: self.window,
            grid,
            compute: self.compute,
            skew: self.skew.unwrap_or(1),
            outcast: self.outcast,
            background,
            algorithm: self.algorithm.unwrap_or(Algorithm::Auto),
            groups: self.groups.unwrap_or(1),
            repeat: self.repeat.unwrap_or(1),
            rotate_root: self.rotate_root,
            seed: self.seed,
            ..Options::new(ranks, self.size.unwrap_or(1))
        })
    }
}

/// Help text of all patterns, two lines each, for the end of `--help`.
pub(super) fn pattern_help() -> String {
    let describe = |d: &loggap_core::goal::pattern::Description| {
        format!("  {}, {}\n      {}", d.name, d.alias, d.help)
    };
    let lines: Vec<String> = Pattern::all().iter().map(describe).collect();
    format!("Patterns:\n{}", lines.join("\n"))
}

/// Names of all patterns, for the end of `-h`.
pub(super) fn pattern_names() -> String {
    let names: Vec<&str> = Pattern::all().iter().map(|pattern| pattern.name).collect();
    format!("Patterns: {}", names.join(", "))
}

/// Parser of a pattern's name; the error lists all names.
#[derive(Clone, Debug)]
pub(super) struct NamedPattern;

impl clap::builder::TypedValueParser for NamedPattern {
    type Value = Pattern;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Pattern, clap::Error> {
        let names = clap::builder::StringValueParser::new();
        let name = names.parse_ref(command, argument, value)?;
        name.parse().map_err(|_unknown| {
            let all = Pattern::all().iter();
            let names = all.flat_map(|pattern| [pattern.name, pattern.alias]);
            let meant = help::did_you_mean(&name, names);
            let text = format!("no pattern is called '{name}'. {meant}{}\n", pattern_names());
            clap::Error::raw(clap::error::ErrorKind::InvalidValue, text).with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Pattern::all().iter().map(|pattern| PossibleValue::new(pattern.name))))
    }
}
