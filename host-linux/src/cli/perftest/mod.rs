//! The habit of perftest: columns and flags of its tests, on any transport.
//!
//! They run over the same links and sessions as `loggap measure`, round after
//! round without a pause, at one size after the other.

pub(super) mod bw;
pub(super) mod lat;

use std::ops::ControlFlow;
use std::time::Duration;

use loggap_core::measure::{
    Buffers, Experiment, Initiator, Link, Outcome, Quantity, SessionError, SessionOptions,
};
use loggap_core::units::Picos;
use serde::Serialize;

use super::measure::EndArgs;
use super::measure::endpoints::Endpoints;
use super::measuring::Ends;
use super::parse::{self, Sizes};
use super::{CliError, Console, Exit, Interrupt};
use crate::link::{AnyLink, LinkError, Operation, Transport};
use crate::machine::clock::{Deadline, HostClock};
use crate::machine::environment::LinkFingerprint;
use crate::measure::MeasureError;
use crate::serve::respond::present_bytes;

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
    /// Of perftest, and not here: one queue pair is measured.
    #[arg(short = 'q', long = "qp", value_name = "N", hide = true, value_parser = one_queue_pair)]
    queue_pairs: Option<u32>,
    /// Of perftest, and not here: one direction is measured.
    #[arg(short = 'b', long, hide = true, num_args = 0, value_parser = refuse_bidirectional, default_missing_value = "true")]
    bidirectional: Option<bool>,
}

fn one_queue_pair(text: &str) -> Result<u32, String> {
    match text {
        "1" => Ok(1),
        _ => Err("one queue pair is measured; run several processes at different ports".to_owned()),
    }
}

fn refuse_bidirectional(_: &str) -> Result<bool, String> {
    Err("one direction is measured; run a second test the other way at the same time".to_owned())
}

/// Sizes of `-a`.
const ALL: std::ops::RangeInclusive<u32> = 1..=23;
/// Rounds between two looks at Ctrl-C and the time.
const CHUNK: u32 = 500;

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

/// Values of one kind of round.
struct Values {
    elapsed: Vec<Picos>,
    /// Rounds of which a message was lost.
    lost: u64,
}

/// Rounds over an open session.
trait Rounds {
    /// Repeats a round so many times, or until the time is over.
    fn repeat(
        &mut self,
        experiment: Experiment,
        repetitions: (u32, Option<Duration>),
    ) -> Result<Values, SessionError<LinkError>>;

    /// Says goodbye and closes the link.
    fn close(self: Box<Self>) -> Result<(), SessionError<LinkError>>;
}

/// An open session over the link's own type, so that its own code is timed,
/// and what stands around it.
struct Test<'b, L> {
    session: Initiator<'b, HostClock, L>,
    interrupt: &'b Interrupt,
}

impl<L: Link<Error = LinkError>> Rounds for Test<'_, L> {
    fn repeat(
        &mut self,
        experiment: Experiment,
        (times, time): (u32, Option<Duration>),
    ) -> Result<Values, SessionError<LinkError>> {
        let deadline = time.map(Deadline::after);
        let capacity = usize::try_from(times).unwrap_or(0).min(1 << 20);
        let mut values = Values { elapsed: Vec::with_capacity(capacity), lost: 0 };
        let mut left = times;
        while !self.interrupt.is_requested() {
            let chunk = if deadline.is_some() { CHUNK.min(64) } else { CHUNK.min(left) };
            let experiments = vec![experiment; usize::try_from(chunk).unwrap_or(1)];
            self.session.run(&experiments, |outcome| match outcome {
                Outcome::Sample(sample) => values.elapsed.push(sample.elapsed),
                Outcome::Late(_) => {}
                Outcome::Lost(_) => values.lost += 1,
            })?;
            left = left.saturating_sub(chunk);
            match &deadline {
                Some(deadline) if deadline.expired() => break,
                None if left == 0 => break,
                _ => {}
            }
        }
        Ok(values)
    }

    fn close(self: Box<Self>) -> Result<(), SessionError<LinkError>> {
        self.session.close().map(drop)
    }
}

/// A session over `link`, once it is this client's turn.
fn open<'b>(
    clock: HostClock,
    link: AnyLink,
    buffers: Buffers<'b>,
    interrupt: &'b Interrupt,
    console: &mut Console,
) -> Result<Box<dyn Rounds + 'b>, CliError> {
    match link {
        AnyLink::Tcp(link) => open_on(clock, link, buffers, interrupt, console),
        AnyLink::Udp(link) => open_on(clock, link, buffers, interrupt, console),
        AnyLink::Unix(link) => open_on(clock, link, buffers, interrupt, console),
        AnyLink::Shm(link) => open_on(clock, link, buffers, interrupt, console),
        AnyLink::Eth(link) => open_on(clock, link, buffers, interrupt, console),
        AnyLink::Verbs(link) => open_on(clock, *link, buffers, interrupt, console),
    }
}

fn open_on<'b, L: Link<Error = LinkError> + 'b>(
    clock: HostClock,
    link: L,
    buffers: Buffers<'b>,
    interrupt: &'b Interrupt,
    console: &mut Console,
) -> Result<Box<dyn Rounds + 'b>, CliError> {
    let on_queue = |position| {
        console.note(format_args!("waiting for {position} other clients"));
        if interrupt.is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let session = Initiator::connect(clock, link, buffers, SessionOptions::default(), on_queue);
    Ok(Box::new(Test { session: session.map_err(failed)?, interrupt }))
}

/// A message there and one back.
const fn round_trip(size: u32) -> Experiment {
    Experiment { quantity: Quantity::RoundTrip, messages: 1, delay: Picos::ZERO, size }
}

/// Opens the link and lets `work` measure each size, handing each result to
/// `show`.
fn run_test<R>(
    args: &TestArgs,
    sizes: &[u32],
    console: &mut Console,
    mut work: impl FnMut(&mut dyn Rounds, u32) -> Result<R, SessionError<LinkError>>,
    mut show: impl FnMut(&mut Console, Option<&LinkFingerprint>, R) -> Result<(), CliError>,
) -> Result<(Exit, LinkFingerprint), CliError> {
    let interrupt = Interrupt::catch()
        .map_err(|error| CliError::failed(format_args!("cannot take over Ctrl-C: {error}")))?;
    interrupt.listen();
    let largest = sizes.iter().copied().max().unwrap_or(1);
    let mut ends = Endpoints::new(&args.ends, largest)?;
    let clock = HostClock::calibrated();
    let link = ends.open(&clock)?;
    for warning in ends.take_warnings() {
        console.warn(warning);
    }
    let fingerprint = ends.fingerprint(&link);
    let length = usize::try_from(largest).unwrap_or(0).max(loggap_core::wire::FRAME_LEN);
    let (mut outgoing, mut incoming) = (present_bytes(length), present_bytes(length));
    let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
    let mut test = open(clock, link, buffers, &interrupt, console)?;
    let mut first = Some(&fingerprint);
    for size in sizes {
        if interrupt.is_requested() {
            break;
        }
        let result = work(&mut *test, *size).map_err(failed)?;
        show(console, first.take(), result)?;
    }
    test.close().map_err(failed)?;
    if let Some(error) = ends.close() {
        return Err(error);
    }
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
    quantity: &'static str,
    link: LinkFingerprint,
    results: Vec<R>,
}

impl<R> Document<R> {
    fn of(
        (command, quantity): (&'static str, &'static str),
        link: LinkFingerprint,
        results: Vec<R>,
    ) -> Self {
        let loggap_version = env!("CARGO_PKG_VERSION");
        Self { schema_version: 1, loggap_version, command, quantity, link, results }
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
