//! The habit of perftest: columns and flags of its tests, on any transport.
//!
//! They run over the same links and sessions as `loggap measure`, round after
//! round without a pause, at one size after the other.

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
use super::interrupt::end_on_request;
use super::measure::EndArgs;
use super::parse::{self, Sizes};
use super::{CliError, Console, Exit, Interrupt};
use crate::link::{LinkError, Operation, Transport, VerbsRecord};
use crate::machine::environment::LinkFingerprint;
use crate::machine::placement;
use crate::machine::warning::{self, Warning};
use crate::measure::MeasureError;
use crate::output::number;

/// What both tests take.
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

    /// What of `sizes` fits where a message has `longest` bytes at most. Sizes that were
    /// typed are kept.
    fn that_fit(&self, sizes: &[u32], longest: u32) -> Vec<u32> {
        match &self.sizes {
            _ if self.all => sizes.iter().copied().filter(|size| *size <= longest).collect(),
            None => sizes.iter().map(|size| longest.min(*size)).collect(),
            Some(_) => sizes.to_vec(),
        }
    }

    /// Sizes that fit over open connections; says so where some do not.
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

    /// Whether a link of RDMA verbs that takes `depth` messages at a time takes fewer than
    /// one for short messages would: memory holds as many as the longest allows.
    fn is_narrow(&self, depth: u16) -> bool {
        const WIDE: u16 = 32;
        let link = &self.ends.link;
        let counts_places =
            !matches!(link.verbs.operation(), Some(Operation::Datagram | Operation::Read));
        let short = link.settings(SHORT).verbs.depth.min(WIDE);
        link.transport == Transport::Verbs && counts_places && depth < 1 << short.max(1).ilog2()
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

/// What is done at each size, and how it is shown.
trait SizeTest {
    /// What comes of a size.
    type Row: Serialize;

    fn measure(
        &self,
        connections: &mut Connections<'_>,
        link: &LinkFingerprint,
        size: u32,
    ) -> Result<Measured<Self::Row>, SessionError<LinkError>>;

    /// What stands before the first row.
    fn head(&self, console: &mut Console) -> Result<(), CliError>;

    fn show(&self, row: &Self::Row, console: &mut Console) -> Result<(), CliError>;

    /// The reason why a row has no value, where all its messages or bursts were lost.
    fn missing(row: &Self::Row) -> Option<Missing>;
}

/// Rounds none of which came to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Missing {
    /// Single messages.
    Messages,
    /// Bursts, of messages that arrive alone.
    Bursts,
}

/// What came of one size.
struct Measured<R> {
    /// `None` where it was stopped before there was a value.
    row: Option<R>,
    /// What ended it before its time.
    failure: Option<SessionError<LinkError>>,
}

/// What came of a test.
struct Tested<R> {
    results: Vec<R>,
    /// How it ended, after what `results` holds.
    outcome: Result<Exit, CliError>,
}

/// Opens the connections and measures each size over them. Each result is
/// shown at once, or all are printed as one document, also where the test
/// fails after some of them.
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

/// A test under way.
struct TestRun<'a, T: SizeTest> {
    test: &'a T,
    args: &'a TestArgs,
    about: &'a About,
    interrupt: Interrupt,
    opening: Opening,
    /// The first one over which something was measured, or which was opened.
    link: Option<LinkFingerprint>,
    /// What was shown of the last one.
    places: Option<String>,
    results: Vec<T::Row>,
    /// Last size with a value, in bytes.
    reached: Option<u32>,
    /// First size without one.
    missing: Option<(Missing, u32)>,
}

/// Whether a link that is too narrow for all sizes together is measured.
#[derive(Clone, Copy, Eq, PartialEq)]
enum IfNarrow {
    Close,
    Measure,
}

/// What a link was taken for.
#[derive(Eq, PartialEq)]
enum Taken {
    /// It was measured.
    Measured,
    /// It is too narrow for all sizes together, and was closed.
    Narrow,
}

impl<T: SizeTest> TestRun<'_, T> {
    /// Measures all sizes: over one link, or, where that would be too narrow,
    /// over one for all short sizes, and one for each long one.
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

    /// A size without a value is a failure, unless the test was stopped.
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

    /// Shows a row, after what is new about its link.
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

/// Longest of the sizes that share a link with long ones only where that is wide
/// enough, in bytes.
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

/// The error of a size, over a link whose longest message has `longest` bytes.
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

/// How many messages are under way over a link, and how many have a completion.
fn places(verbs: &VerbsRecord) -> String {
    format!("signal every {}, depth {}", verbs.signal_every, verbs.depth)
}

/// A number of a column, or what stands where none was measured.
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
        // Those of the device, as perftest has them.
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
