//! `loggap predict`: closed forms compared with simulation.

use std::io::{self, Write};

use clap::ValueEnum;
use loggap_core::goal::pattern::{Options, Pattern};
use loggap_core::model::{Caveat, ClosedForm, LogGops, Protocol};
use loggap_core::sim::{Parameters, Receive, Rendezvous, Settings};
use loggap_core::units::{Bytes, Overflow};
use serde::Serialize;

use super::digits::{Digits, FormatArgs};
use super::parameter_args::{ParameterArgs, SettingsArgs, parameters};
use crate::flags::parse::{self, Sizes};
use crate::output::wrap;
use crate::simulation::{Job, Source, makespan};
use crate::terminal::{CliError, Console, Exit, end_on_request};

/// Widest line, columns.
const WIDTH: usize = 100;
/// Most ranks that are simulated.
const MOST_RANKS: u64 = 1 << 27;

/// Predict how long a collective takes, by formula and by simulation.
///
/// The formulas are those of the talk on LogGOPSim (LSAP '10), with s - 1
/// bytes after the first. Where formula and simulation differ, the reason is
/// printed below.
#[derive(Debug, clap::Args)]
#[command(after_help = "Formulas, P ranks, w = s - 1:
  scatter, gather  2o + L + max{(P-2)o + (P-1)wO, (P-2)g + (P-1)wG}
  binomial         (2o + L + max{wO, wG}) ceil(log2 P)
  dissemination    (d + 2o + L + max{wO, wG}) ceil(log2 P), d = max{0, wO - L}

Examples:
  loggap predict --ranks 2:4096 -s 1,1K
  loggap predict gather --ranks 8 -s 51 --receive overlap
  loggap predict binomial --ranks 1M --profile profile.json -J")]
pub(super) struct Args {
    /// Collectives [default: all].
    #[arg(value_enum, value_name = "COLLECTIVE")]
    collectives: Vec<Collective>,

    /// Numbers of ranks: 16,64 or 64:4096, in powers of two.
    #[arg(long, value_name = "RANKS", value_parser = parse::rank_counts, default_value = "2,8,64,1024")]
    ranks: Sizes,

    /// Message sizes.
    #[arg(short = 's', long, value_name = "BYTES", value_parser = parse::sizes,
          default_value = "1,1K")]
    sizes: Sizes,

    #[command(flatten)]
    parameters: ParameterArgs,

    #[command(flatten)]
    settings: SettingsArgs,

    /// Memory limit of a simulation, as 1.5G [default: none].
    #[arg(help_heading = "Run", long, value_name = "BYTES", value_parser = parse::size, allow_hyphen_values = true)]
    max_memory: Option<u64>,

    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Collective {
    /// One rank sends to each other.
    Scatter,
    /// One rank receives from each other.
    Gather,
    /// A broadcast by a binomial tree.
    Binomial,
    /// All ranks learn from all others, as in a barrier.
    Dissemination,
}

impl Collective {
    const fn form(self) -> ClosedForm {
        match self {
            Self::Scatter => ClosedForm::Scatter,
            Self::Gather => ClosedForm::Gather,
            Self::Binomial => ClosedForm::BinomialTree,
            Self::Dissemination => ClosedForm::Dissemination,
        }
    }

    const fn pattern(self) -> Pattern {
        match self {
            Self::Scatter => Pattern::Scatter,
            Self::Gather => Pattern::Gather,
            Self::Binomial => Pattern::BinomialBroadcast,
            Self::Dissemination => Pattern::Dissemination,
        }
    }

    /// Name as on the command line.
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

#[derive(Serialize)]
struct Document {
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    collective: String,
    ranks: u32,
    size_bytes: u64,
    closed_form_s: f64,
    simulated_s: f64,
    closed_form_ps: u64,
    simulated_ps: u64,
    /// Simulated time minus that of the closed form.
    difference_ps: i128,
    /// Why the two differ; absent if they are equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, CliError> {
    let _interrupt = end_on_request()?;
    let protocols = args.parameters.protocols(console)?;
    let parameters = parameters(&protocols)?;
    let wanted =
        if args.collectives.is_empty() { Collective::value_variants() } else { &args.collectives };
    let ranks = args.ranks.list();
    if ranks.iter().any(|&ranks| ranks == 0 || ranks > MOST_RANKS) {
        return Err(CliError::usage("--ranks takes numbers from 1 to 128M"));
    }
    let mut rows = Vec::new();
    for &collective in wanted {
        for size in args.sizes.list() {
            for &ranks in &ranks {
                let ranks = u32::try_from(ranks).unwrap_or(u32::MAX);
                let set = at(&protocols, size)?;
                rows.push(args.row(collective, ranks, size, set, parameters)?);
            }
        }
    }
    let digits = args.format.digits(console);
    let document = Document { rows };
    console.report(args.format.json, &document, |out| print(out, digits, &document.rows))?;
    Ok(Exit::Done)
}

/// Parameters for messages of `size` bytes.
fn at(protocols: &[Protocol], size: u64) -> Result<&LogGops, CliError> {
    let found = protocols.iter().rev().find(|protocol| protocol.first.0 <= size);
    let found = found.or(protocols.first());
    found.map(|protocol| &protocol.parameters).ok_or_else(|| CliError::usage("no parameters"))
}

impl Args {
    fn row(
        &self,
        collective: Collective,
        ranks: u32,
        size: u64,
        set: &LogGops,
        parameters: Parameters<'_>,
    ) -> Result<Row, CliError> {
        let overflow = |error: Overflow| CliError::failed(error);
        let form = collective.form();
        let printed = form.time(set, ranks, Bytes(size)).map_err(overflow)?;
        let caveat = form.caveat(set, ranks, Bytes(size)).map_err(overflow)?;
        let settings = self.settings.settings();
        let source = Source::Pattern(collective.pattern(), Options::new(ranks, size));
        let most_bytes = self.max_memory.unwrap_or(u64::MAX);
        let job = Job { most_bytes, ..Job::new(parameters, settings) };
        let simulated = makespan(&source, &job)?;
        let reason = (simulated != printed).then(|| reason(caveat, settings, set, size));
        Ok(Row {
            collective: collective.name(),
            ranks,
            size_bytes: size,
            closed_form_s: printed.seconds(),
            simulated_s: simulated.seconds(),
            closed_form_ps: printed.0,
            simulated_ps: simulated.0,
            difference_ps: i128::from(simulated.0) - i128::from(printed.0),
            reason,
        })
    }
}

/// Reason of a difference between closed form and simulation. The caveats of the model assume the
/// default rules, some of which `settings` may change.
fn reason(caveat: Option<Caveat>, settings: Settings, set: &LogGops, size: u64) -> String {
    let handshake = settings.rendezvous == Rendezvous::Handshake;
    if handshake && Bytes(size) > set.eager_limit {
        return "above S an RTS and a CTS go before the data; the form leaves them out".into();
    }
    let caveat = match caveat {
        Some(Caveat::ReceiverHeld) if settings.receive == Receive::Overlap => {
            Some(Caveat::MixedMaximum)
        }
        caveat => caveat,
    };
    match caveat {
        Some(caveat) => caveat.to_string(),
        None => "the form is about the default rules, which --receive overlap changes".into(),
    }
}

fn print(out: &mut dyn Write, digits: Digits, rows: &[Row]) -> io::Result<()> {
    writeln!(
        out,
        "#{:<12} {:>9} {:>9} {:>17} {:>17} {:>15}",
        "collective",
        "ranks",
        "size[B]",
        digits.head("closed form"),
        digits.head("simulated"),
        digits.head("difference")
    )?;
    for row in rows {
        writeln!(
            out,
            "{:<13} {:>9} {:>9} {:>17} {:>17} {:>15}",
            row.collective,
            row.ranks,
            row.size_bytes,
            digits.cell(row.closed_form_ps),
            digits.cell(row.simulated_ps),
            digits.signed_cell(row.difference_ps)
        )?;
    }
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows {
        let Some(reason) = row.reason.as_deref() else { continue };
        match reasons.iter_mut().find(|known| known.0 == reason) {
            Some((_, collectives)) if !collectives.contains(&&*row.collective) => {
                collectives.push(&row.collective);
            }
            Some(_) => {}
            None => reasons.push((reason, vec![&*row.collective])),
        }
    }
    for (reason, collectives) in reasons {
        let text = format!("# {}: {reason}", collectives.join(", "));
        let lines = if digits == Digits::Exact { vec![text] } else { wrap(&text, WIDTH, 2) };
        // Every line needs its own `#`.
        for (index, line) in lines.iter().enumerate() {
            let line = if index == 0 { line.clone() } else { format!("# {}", line.trim_start()) };
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}
