//! The habit of perftest: columns and flags of its tests, on any transport.
//!
//! They run over the same links and sessions as `loggap measure`, round after
//! round without a pause, at one size after the other.

pub(super) mod bw;
mod connections;
mod flags;
pub(super) mod lat;
mod rounds;

use loggap_core::measure::{Experiment, Quantity, SessionError};
use loggap_core::units::Picos;
use serde::Serialize;

use self::connections::{Connections, Opened};
use super::measure::EndArgs;
use super::parse::{self, Sizes};
use super::{CliError, Console, Exit, Interrupt};
use crate::link::LinkError;
use crate::machine::environment::LinkFingerprint;
use crate::measure::MeasureError;

/// What both tests take.
#[derive(Clone, Debug, clap::Args)]
struct TestArgs {
    #[command(flatten)]
    ends: EndArgs,
    /// Message sizes in bytes, as `loggap measure -s` takes them.
    #[arg(short, long = "size", value_name = "SIZES", value_parser = parse::message_sizes)]
    sizes: Option<Sizes>,
    /// All sizes from 2 B to 8 MiB, in powers of two; with --op ud up to the
    /// MTU.
    #[arg(short, long, conflicts_with = "sizes")]
    all: bool,
    /// Taken for the sake of perftest's users, to whom it means not to fail
    /// when the processor changes its clock rate: this program never does.
    #[arg(short = 'F', long = "CPU-freq")]
    force: bool,
    /// Print one JSON document; the keys name SI units.
    #[arg(short = 'J', long)]
    json: bool,
}

/// Sizes of `-a`.
const ALL: std::ops::RangeInclusive<u32> = 1..=23;

impl TestArgs {
    fn sizes(&self, default: u32) -> Vec<u32> {
        if self.all {
            return ALL.map(|power| 1 << power).collect();
        }
        match &self.sizes {
            None => vec![default],
            // At most 1 GiB by the parser.
            Some(sizes) => {
                sizes.list().into_iter().filter_map(|size| u32::try_from(size).ok()).collect()
            }
        }
    }

    /// Those of `sizes` that fit over `link`: of `-a`, a datagram ends at the MTU.
    fn that_fit(&self, sizes: &[u32], link: &LinkFingerprint) -> Vec<u32> {
        let datagrams = link.verbs.as_ref().filter(|verbs| verbs.operation == "ud");
        let longest =
            datagrams.filter(|_| self.all).map_or(u32::MAX, |verbs| verbs.mtu_bytes.into());
        sizes.iter().copied().filter(|size| *size <= longest).collect()
    }
}

/// A message there and one back.
const fn round_trip(size: u32) -> Experiment {
    Experiment { quantity: Quantity::RoundTrip, messages: 1, delay: Picos::ZERO, size }
}

/// What a test is, in its document.
struct About {
    command: &'static str,
    /// What the times are of.
    quantity: String,
    /// Connections at a time.
    connections: u32,
}

/// What came of a test.
struct Tested<R> {
    results: Vec<R>,
    /// How it ended, after what `results` holds.
    outcome: Result<Exit, CliError>,
}

/// Opens the connections and lets `work` measure each size over them. Each
/// result is handed to `show` at once, or all are printed as one document,
/// also where the test fails after some of them.
fn run_test<R: Serialize>(
    (args, about): (&TestArgs, &About),
    sizes: &[u32],
    console: &mut Console,
    mut work: impl FnMut(
        &mut Connections<'_>,
        &LinkFingerprint,
        u32,
    ) -> Result<R, SessionError<LinkError>>,
    mut show: impl FnMut(&mut Console, Option<&LinkFingerprint>, &R) -> Result<(), CliError>,
) -> Result<Tested<R>, CliError> {
    let interrupt = Interrupt::catch()
        .map_err(|error| CliError::failed(format_args!("cannot take over Ctrl-C: {error}")))?;
    interrupt.listen();
    let largest = sizes.iter().copied().max().unwrap_or(1);
    let mut memory = connections::memory(about.connections, largest);
    let Opened { mut connections, fingerprint } =
        Connections::open((&args.ends, largest), &mut memory, &interrupt, console)?;
    let fit = args.that_fit(sizes, &fingerprint);
    if let (Some(last), true) = (fit.last(), fit.len() < sizes.len()) {
        console
            .note(format_args!("-a ends at {last} B: a datagram is one packet, whose MTU it is"));
    }
    let mut results = Vec::new();
    let mut first = Some(&fingerprint);
    let each = || {
        for size in &fit {
            if interrupt.is_requested() {
                break;
            }
            let result = work(&mut connections, &fingerprint, *size).map_err(failed)?;
            if !args.json {
                show(console, first.take(), &result)?;
                console.flush()?;
            }
            results.push(result);
        }
        connections.close()
    };
    let outcome = each().map(|()| match interrupt.is_requested() {
        true => Exit::Interrupted,
        false => Exit::Done,
    });
    if args.json {
        let document = Document {
            schema_version: 1,
            loggap_version: env!("CARGO_PKG_VERSION"),
            command: about.command,
            quantity: &about.quantity,
            connections: about.connections,
            link: &fingerprint,
            complete: matches!(outcome, Ok(Exit::Done)),
            error: outcome.as_ref().err().map(ToString::to_string),
            results: &results,
        };
        console.json(&document)?;
        console.flush()?;
    }
    Ok(Tested { results, outcome })
}

fn failed(error: SessionError<LinkError>) -> CliError {
    MeasureError::Session(error).into()
}

/// The JSON document of a test.
#[derive(Serialize)]
struct Document<'t, R> {
    schema_version: u32,
    loggap_version: &'static str,
    command: &'static str,
    /// What the times are of.
    quantity: &'t str,
    /// Connections at a time.
    connections: u32,
    link: &'t LinkFingerprint,
    /// Whether all sizes were measured to the end.
    complete: bool,
    /// Why not, where something failed.
    error: Option<String>,
    results: &'t [R],
}

/// What the link is, as remarks before the columns.
fn remarks(console: &mut Console, link: &LinkFingerprint) -> Result<(), CliError> {
    let data = console.data();
    writeln!(data, "# {} to {}", link.transport, link.peer)?;
    if let Some(verbs) = &link.verbs {
        let (here, there) = (&verbs.here, &verbs.there);
        writeln!(
            data,
            "# {} from {} port {} to {} port {}, {}, MTU {}, inline {} B, depth {}",
            verbs.operation,
            here.device,
            here.port,
            there.device,
            there.port,
            here.link_layer,
            verbs.mtu_bytes,
            verbs.inline_bytes,
            verbs.depth
        )?;
    }
    Ok(())
}

/// A number of a column, or what stands where none was measured.
fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}
