//! Tests with the columns and options of perftest, on any transport.
//!
//! They use the links and sessions of `loggap measure`, and run rounds without pauses, one size
//! after another.

pub(super) mod bw;
mod connections;
pub(super) mod lat;
mod rate;
mod rounds;

use loggap_core::measure::{Experiment, Quantity, SessionError};
use loggap_core::units::Picos;
use loggap_core::wire::Limited;
use serde::Serialize;

use self::connections::{Connections, Opened, Opening};
use self::rounds::HOPELESS;
use super::measure::EndArgs;
use crate::drive::MeasureError;
use crate::flags::parse::{self, Sizes};
use crate::link::{LinkError, Operation, Transport, VerbsRecord};
use crate::machine::environment::LinkFingerprint;
use crate::machine::placement;
use crate::machine::warning::{self, Warning};
use crate::output::number;
use crate::terminal::{CliError, Console, Exit, Interrupt, end_on_request};

/// Options shared by both tests.
#[derive(Clone, Debug, clap::Args)]
struct TestArgs {
    #[command(flatten)]
    ends: EndArgs,
    /// Message sizes: 8, 1,64,4K, 1:64K or @FILE.
    #[arg(short, long = "size", value_name = "BYTES", value_parser = parse::message_sizes)]
    sizes: Option<Sizes>,
    /// All powers of two from 2 B to 8 MiB.
    ///
    /// With --op ud up to the MTU, with -b up to what fits both ways.
    #[arg(short, long, conflicts_with = "sizes")]
    all: bool,
    /// Accepted for compatibility, ignored.
    #[arg(short = 'F', long = "CPU-freq")]
    force: bool,
    /// Print one JSON document, in SI units.
    #[arg(short = 'J', long)]
    json: bool,
}

/// Exponents of the sizes of `-a`.
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

    /// The `sizes` of at most `longest` bytes. A default size is lowered instead; sizes of -s are
    /// kept.
    fn that_fit(&self, sizes: &[u32], longest: u32) -> Vec<u32> {
        match &self.sizes {
            _ if self.all => sizes.iter().copied().filter(|size| *size <= longest).collect(),
            None => sizes.iter().map(|size| longest.min(*size)).collect(),
            Some(_) => sizes.to_vec(),
        }
    }

    /// Sizes that fit the open connections; prints a note if some do not.
    fn that_fit_over(
        &self,
        connections: &mut Connections<'_>,
        sizes: &[u32],
        console: &mut Console,
    ) -> Vec<u32> {
        let (longest, allowed) = (connections.longest(), connections.allowed());
        let fit = self.that_fit(sizes, allowed);
        if let (Some(last), true) = (fit.last(), fit != sizes) {
            let what = if self.all { "-a ends at" } else { "the size is" };
            let why = if allowed < longest {
                "the responder takes no longer message"
            } else {
                "no datagram over this link is longer than that"
            };
            console.note(format_args!("{what} {last} B: {why}"));
        }
        fit
    }

    /// True if a link of RDMA verbs with `depth` messages in flight allows fewer than a link for
    /// short messages would: its memory is divided by the longest message.
    fn is_narrow(&self, depth: u16) -> bool {
        const WIDE: u16 = 32;
        let link = &self.ends.link;
        let counts_places =
            !matches!(link.verbs.operation(), Some(Operation::Datagram | Operation::Read));
        let short = link.settings(SHORT).verbs.depth.min(WIDE);
        link.transport == Transport::Verbs && counts_places && depth < 1 << short.max(1).ilog2()
    }
}

/// A message and its reply.
const fn round_trip(size: u32) -> Experiment {
    Experiment { quantity: Quantity::RoundTrip, messages: 1, delay: Picos::ZERO, size }
}

/// Description of a test in its document.
struct About {
    command: &'static str,
    /// Meaning of the times.
    quantity: String,
    /// Number of concurrent connections.
    connections: u32,
}

/// Measurement at each size, and its presentation.
trait SizeTest {
    /// Result for a size.
    type Row: Serialize;

    fn measure(
        &self,
        connections: &mut Connections<'_>,
        link: &LinkFingerprint,
        size: u32,
    ) -> Result<Measured<Self::Row>, SessionError<LinkError>>;

    /// Prints the text before the first row.
    fn head(&self, console: &mut Console) -> Result<(), CliError>;

    fn show(&self, row: &Self::Row, console: &mut Console) -> Result<(), CliError>;

    /// Kind of the lost rounds, if a row has no value because all of them were lost.
    fn missing(row: &Self::Row) -> Option<Missing>;
}

/// Kind of rounds that were all lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Missing {
    /// Single messages were lost.
    Messages,
    /// Bursts were lost, although single messages arrive.
    Bursts,
}

/// Outcome of one size.
struct Measured<R> {
    /// Result; `None` if the measurement was stopped before there was one.
    row: Option<R>,
    /// Error that ended it early.
    failure: Option<SessionError<LinkError>>,
}

/// Outcome of a test.
struct Tested<R> {
    results: Vec<R>,
    /// Exit, or the error after `results`.
    outcome: Result<Exit, CliError>,
}

/// Opens the connections and measures each size over them. Prints each result at once, or all as
/// one document, also if the test fails after some of them.
fn run_test<T: SizeTest>(
    test: &T,
    (args, about): (&TestArgs, &About),
    sizes: &[u32],
    console: &mut Console,
) -> Result<Tested<T::Row>, CliError> {
    connections::check_processors(&args.ends, about.connections, console)?;
    let interrupt = end_on_request()?;
    interrupt.listen();
    let opening =
        Opening { allowed: placement::allowed(), again: false, told: Vec::new(), answered: None };
    let mut run = TestRun {
        test,
        args,
        about,
        interrupt,
        opening,
        link: None,
        places: None,
        results: Vec::new(),
        reached: None,
        missing: None,
    };
    let outcome = run.all(sizes, console).and_then(|()| run.check_values());
    let stopped = run.interrupt.is_requested();
    let ended = if stopped { Exit::Interrupted } else { Exit::Done };
    let tested = Tested { results: run.results, outcome: outcome.map(|()| ended) };
    if args.json {
        tested.print(about, run.link.as_ref(), console)?;
    } else if stopped {
        writeln!(console.data(), "# stopped")?;
    }
    Ok(tested)
}

/// A running test.
struct TestRun<'a, T: SizeTest> {
    test: &'a T,
    args: &'a TestArgs,
    about: &'a About,
    interrupt: Interrupt,
    opening: Opening,
    /// Link of the document: the first one that gave a result, else the first one opened.
    link: Option<LinkFingerprint>,
    /// Remark printed about the last link.
    places: Option<String>,
    results: Vec<T::Row>,
    /// Last size with a value, bytes.
    reached: Option<u32>,
    /// First size without a value, and the kind of its lost rounds.
    missing: Option<(Missing, u32)>,
}

/// Policy for a link with too few message slots for all sizes together.
#[derive(Clone, Copy, Eq, PartialEq)]
enum IfNarrow {
    Close,
    Measure,
}

/// Outcome of opening a link.
#[derive(Eq, PartialEq)]
enum Taken {
    /// The link was used to measure.
    Measured,
    /// The link has too few slots for all sizes together, and was closed.
    Narrow,
}

impl<T: SizeTest> TestRun<'_, T> {
    /// Measures all sizes over one link; if that has too few message slots, over one link for all
    /// short sizes and one for each long size.
    fn all(&mut self, sizes: &[u32], console: &mut Console) -> Result<(), CliError> {
        let largest = sizes.iter().copied().max().unwrap_or(1);
        let is_mixed = sizes.len() > 1 && largest > SHORT;
        let asked = self.args.ends.link.settings(largest).verbs.depth;
        let is_one = !(is_mixed && self.args.is_narrow(asked));
        let if_narrow = if is_mixed { IfNarrow::Close } else { IfNarrow::Measure };
        if is_one && self.over_one_link(sizes, if_narrow, console)? == Taken::Measured {
            return Ok(());
        }
        for sizes in sizes.chunk_by(|before, size| before.max(size) <= &SHORT) {
            if !self.interrupt.is_requested() {
                self.over_one_link(sizes, IfNarrow::Measure, console)?;
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

    fn over_one_link(
        &mut self,
        sizes: &[u32],
        if_narrow: IfNarrow,
        console: &mut Console,
    ) -> Result<Taken, CliError> {
        let (args, interrupt) = (self.args, self.interrupt.clone());
        let largest = sizes.iter().copied().max().unwrap_or(1);
        let mut memory = connections::memory(self.about.connections, largest)?;
        let Opened { mut connections, fingerprint } = Connections::open(
            (&args.ends, largest),
            &mut memory,
            &interrupt,
            (console, &mut self.opening),
        )?;
        if if_narrow == IfNarrow::Close
            && fingerprint.verbs.as_ref().is_some_and(|verbs| args.is_narrow(verbs.depth))
        {
            return connections.close().map(|()| Taken::Narrow);
        }
        let longest = connections.longest();
        for size in args.that_fit_over(&mut connections, sizes, console) {
            if interrupt.is_requested() {
                break;
            }
            let measured = self.test.measure(&mut connections, &fingerprint, size);
            let measured = measured.map_err(|error| beyond(error, longest))?;
            if let Some(row) = measured.row {
                self.show(&fingerprint, &row, console)?;
                self.keep(size, row);
            }
            self.link.get_or_insert_with(|| fingerprint.clone());
            if let Some(failure) = measured.failure {
                return Err(failed(failure));
            }
        }
        self.opening.tell(warning::about_path(&fingerprint), console);
        self.link.get_or_insert(fingerprint);
        connections.close().map(|()| Taken::Measured)
    }

    /// Prints a row, preceded by remarks if its link differs from the last one.
    fn show(
        &mut self,
        link: &LinkFingerprint,
        row: &T::Row,
        console: &mut Console,
    ) -> Result<(), CliError> {
        if self.args.json {
            return Ok(());
        }
        let places = link.verbs.as_ref().map(places);
        if self.results.is_empty() {
            remarks(console, link)?;
            self.test.head(console)?;
        } else if let Some(new) = places.as_ref().filter(|_| places != self.places) {
            writeln!(console.data(), "# {new} from here on")?;
        }
        self.places = places;
        self.test.show(row, console)?;
        Ok(console.flush()?)
    }
}

/// Largest size, bytes, that counts as short: short sizes only share a link with longer ones if
/// that has enough message slots.
const SHORT: u32 = 16 << 10;

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

/// JSON document of a test.
#[derive(Serialize)]
struct Document<'t, R> {
    schema_version: u32,
    loggap_version: &'static str,
    command: &'static str,
    /// Meaning of the times.
    quantity: &'t str,
    /// Number of concurrent connections.
    connections: u32,
    /// `None` if no link could be opened.
    link: Option<&'t LinkFingerprint>,
    /// True if all sizes were measured completely.
    complete: bool,
    /// Error, if one ended the test.
    error: Option<String>,
    results: &'t [R],
}

/// Prints the properties of the link as comments above the columns.
fn remarks(console: &mut Console, link: &LinkFingerprint) -> Result<(), CliError> {
    let data = console.data();
    writeln!(data, "# {} to {}, {}", link.transport, link.peer, link.waiting)?;
    if let Some(verbs) = &link.verbs {
        let (here, there) = (&verbs.here, &verbs.there);
        writeln!(
            data,
            "# {} from {} port {} to {} port {}, {}, MTU {}, inline {} B, {}",
            verbs.operation,
            here.device,
            here.port,
            there.device,
            there.port,
            here.link_layer,
            verbs.mtu_bytes,
            verbs.inline_bytes,
            places(verbs)
        )?;
    }
    Ok(())
}

/// Numbers of messages in flight and of signalled completions, in words.
fn places(verbs: &VerbsRecord) -> String {
    format!("signal every {}, depth {}", verbs.signal_every, verbs.depth)
}

/// Number for a column; `-` if unknown.
fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::{bw, lat};
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Latency {
        #[command(flatten)]
        _args: lat::Args,
    }

    #[derive(Debug, Parser)]
    struct Bandwidth {
        #[command(flatten)]
        _args: bw::Args,
    }

    fn answer<P: Parser>(words: &str) -> String {
        match P::try_parse_from(["test"].into_iter().chain(words.split_whitespace())) {
            Ok(_) => "taken".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn flags_of_perftest_with_a_meaning_are_taken() {
        let common = [
            "-a",
            "--all",
            "-s 8",
            "--size 8",
            "-n 10",
            "--iters 10",
            "-D 2",
            "--duration 2",
            "-F",
            "--CPU-freq",
            "-J",
            "node7 -p 18515",
            "node7 --port 18515",
        ];
        // Device options with perftest's names.
        let device = [
            "-d rxe0",
            "--ib-dev rxe0",
            "-i 1",
            "--ib-port 1",
            "-x 1",
            "--gid-index 1",
            "-I 64",
            "--inline_size 64",
            "-m 1024",
            "--mtu 1024",
            "-S 1",
            "--sl 1",
            "--tclass 104",
            "-t 64",
            "--tx-depth 64",
            "-Q 8",
            "--cq-mod 8",
            "-e",
            "--events",
            "--use_hugepages",
            "--write_with_imm",
        ];
        for words in common {
            assert_eq!(answer::<Latency>(words), "taken", "lat {words}");
            assert_eq!(answer::<Bandwidth>(words), "taken", "bw {words}");
        }
        for words in device {
            let words = format!("--transport verbs {words}");
            assert_eq!(answer::<Latency>(&words), "taken", "lat {words}");
            assert_eq!(answer::<Bandwidth>(&words), "taken", "bw {words}");
        }
        for words in ["-q 4", "--qp 4", "-b", "--bidirectional", "--report_gbits", "-q 2 -b"] {
            assert_eq!(answer::<Bandwidth>(words), "taken", "bw {words}");
        }
        for words in ["-w 5", "--warmup 5"] {
            assert_eq!(answer::<Latency>(words), "taken", "lat {words}");
        }
    }
}
