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
use crate::link::{LinkError, VerbsRecord};
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
        /// The longest datagram over IPv4.
        const LONGEST_UDP: u32 = 65_507;
        let datagrams = link.verbs.as_ref().filter(|verbs| verbs.operation == "ud");
        let longest = match datagrams {
            _ if !self.all => u32::MAX,
            Some(verbs) => verbs.mtu_bytes.into(),
            None if link.transport == "udp" => LONGEST_UDP,
            None => u32::MAX,
        };
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
    ) -> Result<Measured<R>, SessionError<LinkError>>,
    mut show: impl FnMut(&mut Console, Option<&LinkFingerprint>, &R) -> Result<(), CliError>,
) -> Result<Tested<R>, CliError> {
    let interrupt = Interrupt::catch()
        .map_err(|error| CliError::failed(format_args!("cannot take over Ctrl-C: {error}")))?;
    interrupt.listen();
    let mut results = Vec::new();
    let mut told = None;
    let mut link = None;
    let mut each = |sizes: &[u32], may_part: bool| {
        let largest = sizes.iter().copied().max().unwrap_or(1);
        let mut memory = connections::memory(about.connections, largest);
        let Opened { mut connections, fingerprint } = Connections::open(
            (&args.ends, largest),
            &mut memory,
            &interrupt,
            (console, &mut told),
        )?;
        if may_part && fingerprint.verbs.as_ref().is_some_and(is_narrow) {
            return connections.close().map(|()| false);
        }
        let fit = args.that_fit(sizes, &fingerprint);
        if let (Some(last), true) = (fit.last(), fit.len() < sizes.len()) {
            console.note(format_args!(
                "-a ends at {last} B: no datagram over this link is longer than that"
            ));
        }
        for size in &fit {
            if interrupt.is_requested() {
                break;
            }
            let (result, failure) = work(&mut connections, &fingerprint, *size).map_err(failed)?;
            if !args.json {
                show(console, link.is_none().then_some(&fingerprint), &result)?;
                console.flush()?;
            }
            link.get_or_insert_with(|| fingerprint.clone());
            results.push(result);
            if let Some(failure) = failure {
                return Err(failed(failure));
            }
        }
        link.get_or_insert(fingerprint);
        connections.close().map(|()| true)
    };
    let mut outcome = each(sizes, sizes.len() > 1 && sizes.iter().max() > Some(&SHORT));
    if let Ok(false) = outcome {
        // One link for all short sizes, and one for each long one.
        let groups = sizes.chunk_by(|before, size| before.max(size) <= &SHORT);
        for sizes in groups {
            outcome = each(sizes, false);
            if outcome.is_err() || interrupt.is_requested() {
                break;
            }
        }
    }
    let ended = if interrupt.is_requested() { Exit::Interrupted } else { Exit::Done };
    let tested = Tested { results, outcome: outcome.map(|_| ended) };
    if args.json {
        tested.print(about, link.as_ref(), console)?;
    }
    Ok(tested)
}

/// What came of one size, and what ended it before its time.
type Measured<R> = (R, Option<SessionError<LinkError>>);

/// Longest of the sizes that share a link with long ones only where that is wide
/// enough, in bytes.
const SHORT: u32 = 16 << 10;

/// Whether a link over RDMA verbs takes fewer messages at a time than it would for
/// short messages alone: the memory of an end holds as many as the longest allows.
fn is_narrow(verbs: &VerbsRecord) -> bool {
    const WIDE: u16 = 32;
    !matches!(verbs.operation.as_str(), "ud" | "read") && verbs.depth < WIDE
}

impl<R: Serialize> Tested<R> {
    fn print(
        &self,
        about: &About,
        link: Option<&LinkFingerprint>,
        console: &mut Console,
    ) -> Result<(), CliError> {
        let document = Document {
            schema_version: 1,
            loggap_version: env!("CARGO_PKG_VERSION"),
            command: about.command,
            quantity: &about.quantity,
            connections: about.connections,
            link,
            complete: matches!(self.outcome, Ok(Exit::Done)),
            error: self.outcome.as_ref().err().map(ToString::to_string),
            results: &self.results,
        };
        console.json(&document)?;
        console.flush()?;
        Ok(())
    }
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
    /// `None` where none could be opened.
    link: Option<&'t LinkFingerprint>,
    /// Whether all sizes were measured to the end.
    complete: bool,
    /// Why not, where something failed.
    error: Option<String>,
    results: &'t [R],
}

/// What the link is, as remarks before the columns.
fn remarks(console: &mut Console, link: &LinkFingerprint) -> Result<(), CliError> {
    let data = console.data();
    writeln!(data, "# {} to {}, {}", link.transport, link.peer, link.waiting)?;
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
