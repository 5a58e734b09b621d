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
use crate::link::{LinkError, Operation, Transport};
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
    /// All sizes from 2 B to 8 MiB, in powers of two; `loggap serve` needs
    /// --max-message 8M for that.
    #[arg(short, long, conflicts_with = "sizes")]
    all: bool,
    /// Rounds before those that count.
    #[arg(short, long, value_name = "N", default_value_t = 20)]
    warmup: u32,
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

    /// Whether a round is a read, which has no reply of its own.
    fn is_read(&self) -> bool {
        let link = &self.ends.link;
        link.transport == Transport::Verbs && link.verbs.operation() == Some(Operation::Read)
    }
}

/// A message there and one back.
const fn round_trip(size: u32) -> Experiment {
    Experiment { quantity: Quantity::RoundTrip, messages: 1, delay: Picos::ZERO, size }
}

/// Opens `count` connections and lets `work` measure each size over them,
/// handing each result to `show`.
fn run_test<R>(
    args: &TestArgs,
    (sizes, count): (&[u32], u32),
    console: &mut Console,
    mut work: impl FnMut(&mut Connections<'_>, u32) -> Result<R, SessionError<LinkError>>,
    mut show: impl FnMut(&mut Console, Option<&LinkFingerprint>, R) -> Result<(), CliError>,
) -> Result<(Exit, LinkFingerprint), CliError> {
    let interrupt = Interrupt::catch()
        .map_err(|error| CliError::failed(format_args!("cannot take over Ctrl-C: {error}")))?;
    interrupt.listen();
    let largest = sizes.iter().copied().max().unwrap_or(1);
    let mut memory = connections::memory(count, largest);
    let Opened { mut connections, fingerprint } =
        Connections::open((&args.ends, largest), &mut memory, &interrupt, console)?;
    let mut first = Some(&fingerprint);
    for size in sizes {
        if interrupt.is_requested() {
            break;
        }
        let result = work(&mut connections, *size).map_err(failed)?;
        show(console, first.take(), result)?;
    }
    connections.close()?;
    let exit = if interrupt.is_requested() { Exit::Interrupted } else { Exit::Done };
    Ok((exit, fingerprint))
}

fn failed(error: SessionError<LinkError>) -> CliError {
    MeasureError::Session(error).into()
}

/// The JSON document of a test.
#[derive(Serialize)]
struct Document<R> {
    schema_version: u32,
    loggap_version: &'static str,
    command: &'static str,
    /// What the times are of.
    quantity: String,
    /// Connections at a time.
    connections: u32,
    link: LinkFingerprint,
    results: Vec<R>,
}

impl<R> Document<R> {
    fn of(
        (command, quantity, connections): (&'static str, &str, u32),
        link: LinkFingerprint,
        results: Vec<R>,
    ) -> Self {
        let loggap_version = env!("CARGO_PKG_VERSION");
        let quantity = quantity.to_owned();
        Self { schema_version: 1, loggap_version, command, quantity, connections, link, results }
    }
}

/// What the link is, as remarks before the columns.
fn remarks(console: &mut Console, link: &LinkFingerprint) -> Result<(), CliError> {
    let data = console.data();
    writeln!(data, "# {} to {}", link.transport, link.peer)?;
    if let Some(verbs) = &link.verbs {
        let (here, there) = (&verbs.here, &verbs.there);
        writeln!(
            data,
            "# {} from {} port {} to {} port {}, {}, MTU {}, inline {} B",
            verbs.operation,
            here.device,
            here.port,
            there.device,
            there.port,
            here.link_layer,
            verbs.mtu_bytes,
            verbs.inline_bytes
        )?;
    }
    Ok(())
}

/// In microseconds.
fn micros(seconds: f64) -> f64 {
    seconds * 1e6
}
