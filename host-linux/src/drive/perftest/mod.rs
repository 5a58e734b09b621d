//! Tests as perftest has them: rounds without pauses, one size after another, over the links and
//! sessions of a measurement.

pub(crate) mod bw;
mod connections;
pub(crate) mod lat;
pub(crate) mod messages;
pub(crate) mod rate;
mod rounds;
pub(crate) mod watch;

use loggap_core::measure::{Experiment, Quantity, SessionError};
use loggap_core::units::Picos;
use loggap_core::wire::Limited;

use self::connections::{Connections, Opening};
pub(crate) use self::rounds::Budget;
use self::rounds::HOPELESS;
use super::{EndOptions, MeasureError};
use crate::link::{LinkError, LinkFingerprint, Operation, Transport};
use crate::machine::placement;
use crate::machine::warning::{self, Warning};
use crate::output::number;
use crate::terminal::{CliError, Console, Exit, Interrupt, end_on_request};

/// Message sizes of a test, bytes.
#[derive(Clone, Debug)]
pub(crate) enum TestSizes {
    /// Powers of two, as far as the link takes them.
    All(Vec<u32>),
    /// One size, or the longest of the link.
    Usual(u32),
    /// Exactly these.
    Listed(Vec<u32>),
}

impl TestSizes {
    /// Sizes for a link without limits.
    pub(crate) fn list(&self) -> Vec<u32> {
        match self {
            Self::All(sizes) | Self::Listed(sizes) => sizes.clone(),
            Self::Usual(size) => vec![*size],
        }
    }
}

impl EndOptions {
    /// True if a link of RDMA verbs with `depth` messages in flight allows fewer than a link for
    /// short messages would: its memory is divided by the longest message.
    fn is_narrow(&self, depth: u16) -> bool {
        const WIDE: u16 = 32;
        let verbs = self.settings(SHORT).verbs;
        let counts_places = !matches!(verbs.operation, Some(Operation::Datagram | Operation::Read));
        let short = verbs.depth.min(WIDE);
        self.transport == Transport::Verbs && counts_places && depth < 1 << short.max(1).ilog2()
    }
}

/// A message and its reply.
const fn round_trip(size: u32) -> Experiment {
    Experiment { quantity: Quantity::RoundTrip, messages: 1, delay: Picos::ZERO, size }
}

/// Measurement at each size.
pub(crate) trait SizeTest {
    /// Result for a size.
    type Row;

    /// Number of concurrent connections.
    fn connections(&self) -> u32 {
        1
    }

    fn measure(
        &self,
        connections: &mut Connections<'_>,
        size: u32,
    ) -> Result<SizeResult<Self::Row>, SessionError<LinkError>>;

    /// Kind of the lost rounds, if a row has no value because all of them were lost.
    fn missing(row: &Self::Row) -> Option<Missing>;
}

/// Kind of rounds that were all lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Missing {
    /// Single messages were lost.
    Messages,
    /// Bursts were lost, although single messages arrive.
    Bursts,
}

/// Outcome of one size.
pub(crate) struct SizeResult<R> {
    /// Result; `None` if the measurement was stopped before there was one.
    row: Option<R>,
    /// Error that ended it early.
    failure: Option<SessionError<LinkError>>,
}

/// Outcome of a test.
pub(crate) struct Tested<R> {
    pub(crate) results: Vec<R>,
    /// First link that gave a result, else the first one opened.
    pub(crate) link: Option<LinkFingerprint>,
    /// True if a person ended the test.
    pub(crate) is_stopped: bool,
    /// Error after `results`.
    pub(crate) outcome: Result<(), CliError>,
}

impl<R> Tested<R> {
    /// Test that was not begun.
    pub(crate) const fn failed(error: CliError) -> Self {
        Self { results: Vec::new(), link: None, is_stopped: false, outcome: Err(error) }
    }

    /// Outcome of the command.
    pub(crate) fn exit(self) -> Result<Exit, CliError> {
        let ended = if self.is_stopped { Exit::Interrupted } else { Exit::Done };
        self.outcome.map(|()| ended)
    }
}

/// Prints a row, measured over the link.
pub(crate) type Show<'s, R> =
    &'s mut dyn FnMut(&LinkFingerprint, &R, &mut Console) -> Result<(), CliError>;

/// Opens the connections and measures each size over them. Shows each row at once.
pub(crate) fn run<T: SizeTest>(
    test: &T,
    options: EndOptions,
    sizes: &TestSizes,
    console: &mut Console,
    show: Show<'_, T::Row>,
) -> Result<Tested<T::Row>, CliError> {
    connections::check_processors(&options, test.connections(), console)?;
    let interrupt = end_on_request()?;
    interrupt.listen();
    let allowed = placement::allowed();
    let opening = Opening { options, allowed, again: false, queues: true, told: Vec::new() };
    let (results, reached, missing) = (Vec::new(), None, None);
    let link = None;
    let mut run =
        TestRun { test, sizes, show, interrupt, opening, link, results, reached, missing };
    let outcome = run.all(console).and_then(|()| run.check_values());
    let is_stopped = run.interrupt.is_requested();
    Ok(Tested { results: run.results, link: run.link, is_stopped, outcome })
}

/// A running test.
struct TestRun<'a, T: SizeTest> {
    test: &'a T,
    sizes: &'a TestSizes,
    show: Show<'a, T::Row>,
    interrupt: Interrupt,
    opening: Opening,
    link: Option<LinkFingerprint>,
    results: Vec<T::Row>,
    /// Last size with a value, bytes.
    reached: Option<u32>,
    /// First size without a value, and the kind of its lost rounds.
    missing: Option<(Missing, u32)>,
}

impl<T: SizeTest> TestRun<'_, T> {
    /// Measures all sizes over one link; if that has too few message slots, over one link for all
    /// short sizes and one for each long size.
    fn all(&mut self, console: &mut Console) -> Result<(), CliError> {
        let sizes = self.sizes.list();
        let asked = self.opening.options.settings(largest(&sizes)).verbs.depth;
        let is_split = is_mixed(&sizes) && self.opening.options.is_narrow(asked);
        if !is_split && self.over_one_link(&sizes, console)? {
            return Ok(());
        }
        for sizes in sizes.chunk_by(|before, size| before.max(size) <= &SHORT) {
            if !self.interrupt.is_requested() {
                self.over_one_link(sizes, console)?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, size: u32, row: T::Row) {
        match T::missing(&row) {
            None => self.reached = Some(size),
            Some(missing) => self.missing = self.missing.or(Some((missing, size))),
        }
        self.results.push(row);
    }

    /// Fails if a size has no value, unless the test was stopped.
    fn check_values(&self) -> Result<(), CliError> {
        let Some((missing, size)) = self.missing.filter(|_| !self.interrupt.is_requested()) else {
            return Ok(());
        };
        Err(CliError::failed(match (missing, self.reached) {
            (Missing::Bursts, _) => format!(
                "all bursts of {size} B lost messages; smaller -n makes shorter ones, down to 32 messages with -n 640"
            ),
            (Missing::Messages, Some(reached)) if reached < size => {
                Warning::NothingBeyond { reached }.to_string()
            }
            (Missing::Messages, _) => {
                format!("no message of {size} B arrives: the first {HOPELESS} were lost")
            }
        }))
    }

    /// Measures `sizes` over one link. Returns false if that has too few slots for all of them
    /// together.
    fn over_one_link(&mut self, sizes: &[u32], console: &mut Console) -> Result<bool, CliError> {
        let interrupt = self.interrupt.clone();
        let largest = largest(sizes);
        let mut memory = connections::memory(self.test.connections(), largest)?;
        let opening = &mut self.opening;
        let mut connections =
            Connections::open(opening, largest, &mut memory, &interrupt, console)?;
        let link = connections.link.clone();
        let depth = link.verbs.as_ref().map(|verbs| verbs.depth);
        if is_mixed(sizes) && depth.is_some_and(|depth| opening.options.is_narrow(depth)) {
            return connections.close().map(|()| false);
        }
        let longest = connections.longest();
        let mut disturbance = connections.watch();
        for size in self.that_fit(&mut connections, sizes, console) {
            if interrupt.is_requested() {
                break;
            }
            let measured = self.test.measure(&mut connections, size);
            let measured = measured.map_err(|error| beyond(error, longest))?;
            if let Some(row) = measured.row {
                (self.show)(&link, &row, console)?;
                self.keep(size, row);
            }
            self.link.get_or_insert_with(|| link.clone());
            if let Some(failure) = measured.failure {
                return Err(failed(failure));
            }
        }
        connections.responders().for_each(|process| disturbance.add_responder(process));
        self.opening.tell(disturbance.warnings(), console);
        self.opening.tell(warning::about_path(&link), console);
        self.link.get_or_insert(link);
        connections.close().map(|()| true)
    }

    /// The `sizes` that fit the open connections; prints a note if some do not. Sizes that the user
    /// has listed are kept.
    fn that_fit(
        &self,
        connections: &mut Connections<'_>,
        sizes: &[u32],
        console: &mut Console,
    ) -> Vec<u32> {
        let (longest, allowed) = (connections.longest(), connections.allowed());
        let (fit, what): (Vec<u32>, _) = match self.sizes {
            TestSizes::All(_) => {
                (sizes.iter().copied().filter(|size| *size <= allowed).collect(), "-a ends at")
            }
            TestSizes::Usual(_) => {
                (sizes.iter().map(|size| allowed.min(*size)).collect(), "the size is")
            }
            TestSizes::Listed(_) => return sizes.to_vec(),
        };
        if let (Some(last), true) = (fit.last(), fit != sizes) {
            let why = if allowed < longest {
                "the responder takes no longer message"
            } else {
                "no datagram over this link is longer than that"
            };
            console.note(format_args!("{what} {last} B: {why}"));
        }
        fit
    }
}

fn largest(sizes: &[u32]) -> u32 {
    sizes.iter().copied().max().unwrap_or(1)
}

/// True if short and long sizes, or several long ones, would share a link.
fn is_mixed(sizes: &[u32]) -> bool {
    sizes.len() > 1 && largest(sizes) > SHORT
}

/// Largest size, bytes, that counts as short: short sizes only share a link with longer ones if
/// that has enough message slots.
const SHORT: u32 = 16 << 10;

fn failed(error: SessionError<LinkError>) -> CliError {
    MeasureError::Session(error).into()
}

/// Error at a size, over a link whose longest message has `longest` bytes.
fn beyond(error: SessionError<LinkError>, longest: u32) -> CliError {
    match error {
        SessionError::OutOfBounds { what: Limited::Message, allowed, .. }
            if allowed == u64::from(longest) =>
        {
            let (error, most) = (MeasureError::Session(error), number::bytes(allowed));
            CliError::usage(format_args!(
                "{error}; -s 1:{most}, as datagrams of this link end there"
            ))
        }
        error => failed(error),
    }
}
