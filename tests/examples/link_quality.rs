//! How repeatable and how predictive default runs are.
//!
//! Measures each link several times with `loggap measure` as a user would,
//! without a history and, where the program has one, with a history of the
//! five runs before. Prints, for each link: the share of runs with the usual
//! number of ranges and how far each boundary moves among those (largest by
//! smallest); negative parameters; of ordered pairs of runs the share in which
//! the interval for the next run of one holds the value of the other (this
//! run's interval where the program writes no other); and how well rounds
//! `PRTT(n, d, s)` are predicted that no fit used: sizes between those
//! measured, n from 3 to 40, d from 0 to four times the gap.
//!
//! `cargo run --release -p loggap-tests --example link_quality -- 20 tcp "100 Mb/s"`

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, ExitCode};

use loggap::link::{self, Endpoint, HostLink, LinkSettings, LinkVisitor, Transport, Waiting};
use loggap::machine::clock::HostClock;
use loggap::machine::placement::{self, Placement, Topology};
use loggap::profile::ProfileDocument;
use loggap::serve::local::Responder;
use loggap::serve::respond::present_bytes;
use loggap_core::measure::{Buffers, Experiment, Initiator, Outcome, Quantity, SessionOptions};
use loggap_core::model::{Profile, Prtt};
use loggap_core::random::Random;
use loggap_core::units::{Bytes, Picos};
use loggap_tests::cable::{Cable, End, Kind, Shape, Shaper};
use loggap_tests::cleanup::{Process, on_signals};
use loggap_tests::command::{Run, loggap_process, machine};
use loggap_tests::document::{Document, Number, PARAMETERS, Range, holds};

const LARGEST: u32 = 65_536;
/// Rounds predicted after each run, and how often each is measured.
const PREDICTIONS: usize = 100;
const ROUNDS: usize = 9;
/// Longest time for the predictions after a run.
const LONGEST: Picos = Picos(1_000_000_000_000);
/// Runs that a history holds.
const HISTORY: usize = 5;

fn main() -> ExitCode {
    if let Some(code) = loggap::serve::local::child_main(std::env::args_os()) {
        return code;
    }
    on_signals();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let _alone = machine();
    let mut arguments = std::env::args().skip(1);
    let runs: usize = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let names: Vec<String> = arguments.collect();
    let help = loggap_process().args(["measure", "--help"]).ended();
    let has_history = help.stdout.contains("--history");
    println!("| {} |", COLUMNS.join(" | "));
    println!("|{}", "---|".repeat(COLUMNS.len()));
    for link in links() {
        if !names.is_empty() && !names.iter().any(|name| name == link.name) {
            continue;
        }
        for history in [0, HISTORY] {
            if history == 0 || has_history {
                let series = Bench::new(&link)?.series(runs, history)?;
                println!("| {} |", series.cells(link.name, history).join(" | "));
            }
        }
    }
    Ok(())
}

const COLUMNS: [&str; 12] = [
    "link",
    "runs",
    "runs with the usual number of ranges",
    "boundaries move by a factor of",
    "negative parameters",
    "pairs held: RTT/2, G",
    "o_s, o_r, g, L",
    "all parameters",
    "the same, this run's interval",
    "prediction error p50, p95",
    "s",
    "messages",
];

/// A link to measure again and again.
struct Link {
    name: &'static str,
    transport: Transport,
    /// Between namespaces, or on this machine.
    cable: Option<Kind>,
}

fn links() -> Vec<Link> {
    let local = |name, transport| Link { name, transport, cable: None };
    let shaped = |name, rate, burst| {
        let ends = &[End::Server, End::Client];
        let shape = Some(Shape { shaper: Shaper::Tbf, rate, burst, ends });
        let kind = Kind { shape, ..Kind::plain(1_500) };
        Link { name, transport: Transport::Tcp, cable: Some(kind) }
    };
    vec![
        local("tcp", Transport::Tcp),
        local("unix", Transport::Unix),
        local("udp", Transport::Udp),
        local("shm", Transport::Shm),
        shaped("100 Mb/s", 100_000_000, 12_500),
        shaped("1 Gb/s", 1_000_000_000, 32_000),
    ]
}

/// A link that is there.
struct Bench<'l> {
    link: &'l Link,
    cable: Option<Cable>,
    clock: HostClock,
    placement: Option<Placement>,
}

impl<'l> Bench<'l> {
    fn new(link: &'l Link) -> Result<Self, Box<dyn Error>> {
        let allowed = placement::allowed();
        let placement = Placement::choose(&allowed, &Topology::of(&allowed));
        let cable = link.cable.as_ref().map(Cable::plug).transpose()?;
        Ok(Self { link, cable, clock: HostClock::calibrated(), placement })
    }

    /// So many runs, each with a history of so many before it.
    fn series(&self, runs: usize, history: usize) -> Result<Series, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let mut series = Series::default();
        for number in 0..runs + history {
            eprintln!("{}: run {} of {}", self.link.name, number + 1, runs + history);
            let past = (history > 0).then_some(folder.path());
            if let Some(past) = past {
                keep_newest(past, history)?;
            }
            let text = self.measure(number as u64 + 1, past)?;
            if number >= history {
                series.documents.push(Document::parse(&text).ok_or("no ranges")?);
                let profile = ProfileDocument::parse(&text).and_then(|document| document.model());
                let profile = profile.map_err(|error| format!("not a profile: {error:?}"))?;
                series.errors.extend(self.predict(number as u64 + 1, &profile)?);
            }
        }
        Ok(series)
    }

    /// The document that a default run prints.
    fn measure(&self, seed: u64, history: Option<&Path>) -> Result<Vec<u8>, Box<dyn Error>> {
        let (mut command, _server) = match &self.cable {
            None => (loggap_process(), None),
            Some(cable) => {
                let (server, endpoint) = cable.serve("tcp", &["--block"])?;
                let mut command = cable.loggap(End::Client);
                command.args(["measure", &endpoint, "--block"]);
                (command, Some(server))
            }
        };
        if self.cable.is_none() {
            command.arg("measure");
        }
        self.complete(&mut command, seed, history);
        let output = Process::start(&mut command).finish();
        if output.code == Some(0) {
            Ok(output.stdout.into_bytes())
        } else {
            Err(output.stderr.into())
        }
    }

    fn complete(&self, command: &mut Command, seed: u64, history: Option<&Path>) {
        command.args(["-J", "--transport", self.link.transport.name(), "--seed"]);
        command.arg(seed.to_string());
        if let Some(history) = history {
            command.arg("--history").arg(history);
        }
    }

    /// Relative errors of predicted rounds, drawn at random and measured over
    /// a link of their own.
    fn predict(&self, seed: u64, profile: &Profile) -> Result<Vec<f64>, Box<dyn Error>> {
        // On a thread of its own, which may be pinned and enter a namespace.
        let text = std::thread::scope(|scope| {
            let work = || self.rounds(seed, profile).map_err(|error| error.to_string());
            scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        Ok(text?)
    }

    fn rounds(&self, seed: u64, profile: &Profile) -> Result<Vec<f64>, Box<dyn Error>> {
        if let Some(placement) = self.placement {
            placement::pin(placement.initiator)?;
        }
        match &self.cable {
            None => {
                let mut responder = Responder::new(self.link.transport)?;
                responder.cpu = self.placement.map(|placement| placement.responder);
                let (link, process) = responder.spawn()?;
                let errors = link.visit(Prediction { clock: &self.clock, seed, profile })?;
                process.finish()?;
                Ok(errors)
            }
            Some(cable) => {
                let (_server, endpoint) = cable.serve("tcp", &["--block"])?;
                cable.enter(End::Client);
                let endpoint = Endpoint::parse(self.link.transport, &endpoint, 0)?;
                let settings = LinkSettings { waiting: Waiting::Block, ..LinkSettings::default() };
                let link = link::connect(self.link.transport, &endpoint, settings)?;
                link.visit(Prediction { clock: &self.clock, seed, profile })
            }
        }
    }
}

/// Relative errors of predicted rounds over a link.
struct Prediction<'a> {
    clock: &'a HostClock,
    seed: u64,
    profile: &'a Profile,
}

impl LinkVisitor for Prediction<'_> {
    type Output = Result<Vec<f64>, Box<dyn Error>>;

    fn visit<L: HostLink>(self, link: L) -> Self::Output {
        let Self { clock, seed, profile } = self;
        use loggap_core::measure::Clock;
        let mut outgoing = present_bytes(LARGEST as usize);
        let mut incoming = present_bytes(LARGEST as usize);
        let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
        let options = SessionOptions::default();
        let on_queue = |_| ControlFlow::Continue(());
        let mut session = Initiator::connect(clock, link, buffers, options, on_queue)?;
        let began = clock.now();
        let over = || clock.duration(clock.now() - began) > LONGEST;
        session.run(&[experiment(10, Picos::ZERO, 1_000); 200], |_| ())?;
        let mut random = Random::stream(seed, 3);
        let mut errors = Vec::new();
        for _ in 0..PREDICTIONS {
            let asked = draw(&mut random, profile);
            let (messages, delay, size) = (asked.messages, asked.delay, Bytes(asked.size.into()));
            let Ok(predicted) = profile.predict_prtt(Prtt { messages, delay, size }) else {
                continue;
            };
            if over() {
                break;
            }
            let mut times = Vec::new();
            session.run(&[asked; ROUNDS], |outcome| {
                if let Outcome::Sample(sample) = outcome {
                    // The delay kept is a little longer than the one asked for.
                    let more = sample.delay.since(asked.delay).0 * u64::from(messages - 1);
                    times.push(sample.elapsed.0.saturating_sub(more) as f64);
                }
            })?;
            if let Some(time) = quantile(&mut times, 0.5) {
                errors.push((predicted.value.0 as f64 / time - 1.0).abs());
            }
        }
        session.close()?;
        Ok(errors)
    }
}

/// Deletes all but the newest files of a folder.
fn keep_newest(folder: &Path, count: usize) -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        files.push((entry.metadata()?.modified()?, entry.path()));
    }
    files.sort();
    let surplus = files.len().saturating_sub(count);
    for (_, path) in &files[..surplus] {
        fs::remove_file(path)?;
    }
    Ok(())
}

fn experiment(messages: u32, delay: Picos, size: u32) -> Experiment {
    let quantity = if delay == Picos::ZERO { Quantity::Gap } else { Quantity::Paced };
    Experiment { quantity, messages, delay, size }
}

/// A size drawn evenly on the logarithmic scale, n and d evenly.
fn draw(random: &mut Random, profile: &Profile) -> Experiment {
    let octave = random.below(LARGEST.ilog2().into());
    let size = (1_u64 << octave) + random.below(1 << octave);
    let messages = 3 + random.below(38) as u32;
    let gap = profile.range(Bytes(size)).map_or(0, |range| range.gap.at(Bytes(size)).0);
    let delay = Picos(u64::try_from(gap).unwrap_or(0) / 4 * random.below(17));
    experiment(messages, delay, size as u32)
}

fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let at = (share * values.len() as f64) as usize;
    values.get(at.min(values.len().saturating_sub(1))).copied()
}

/// The runs on one link.
#[derive(Default)]
struct Series {
    documents: Vec<Document>,
    errors: Vec<f64>,
}

/// Which interval of a number.
type Pick = fn(&Number) -> Option<[f64; 2]>;

impl Series {
    fn cells(mut self, name: &str, history: usize) -> Vec<String> {
        let next: Pick = |number| number.next.or(number.interval);
        let own: Pick = |number| number.interval;
        let pairs = |keys: &[&str], pick: Pick| {
            keys.iter().map(|key| percent(self.held(&[key], pick))).collect::<Vec<_>>().join(", ")
        };
        let (usual, moved) = self.ranges();
        let mut seconds: Vec<f64> = self.documents.iter().map(|one| one.seconds).collect();
        let mut messages: Vec<f64> = self.documents.iter().map(|one| one.messages as f64).collect();
        let some_next = self.parameters().any(|number| number.next.is_some());
        let mark = if some_next { "" } else { " (no next interval)" };
        let mut cells = vec![
            format!("{name}, history of {history}"),
            self.documents.len().to_string(),
            usual,
            moved,
            self.parameters().filter(|number| number.value < 0.0).count().to_string(),
            pairs(&["half_rtt_s", "gap_per_byte_s"], next),
            pairs(&["send_overhead_s", "recv_overhead_s", "gap_s", "latency_s"], next),
            percent(self.held(&PARAMETERS, next)) + mark,
            percent(self.held(&PARAMETERS, own)),
        ];
        let mut error = |share| quantile(&mut self.errors, share).map(|error| 100.0 * error);
        cells.push(format!("{}, {}", percent(error(0.5)), percent(error(0.95))));
        let middle = |values: &mut [f64]| quantile(values, 0.5).unwrap_or(f64::NAN);
        cells.push(format!("{:.2}", middle(&mut seconds)));
        cells.push(format!("{:.0}", middle(&mut messages)));
        cells
    }

    fn parameters(&self) -> impl Iterator<Item = Number> {
        let ranges = self.documents.iter().flat_map(|document| &document.ranges);
        ranges.flat_map(|range| PARAMETERS.iter().filter_map(|key| range.parameter(key)))
    }

    /// The usual number of ranges and its share, and by which factor each
    /// boundary moves among the runs that have it.
    fn ranges(&self) -> (String, String) {
        let mut counts = BTreeMap::new();
        for document in &self.documents {
            *counts.entry(document.ranges.len()).or_insert(0) += 1;
        }
        let usual = counts.iter().max_by_key(|(_, runs)| **runs);
        let Some((&usual, &runs)) = usual else { return ("-".to_owned(), "-".to_owned()) };
        let share = 100.0 * f64::from(runs) / self.documents.len() as f64;
        let alike = || self.documents.iter().filter(|one| one.ranges.len() == usual);
        let moved: Vec<String> = (1..usual)
            .map(|index| {
                let firsts = || alike().map(|document| document.ranges[index].first);
                let (low, high) = (firsts().min().unwrap_or(1), firsts().max().unwrap_or(1));
                format!("{:.2} ({low} to {high})", high as f64 / low as f64)
            })
            .collect();
        let moved = if moved.is_empty() { "-".to_owned() } else { moved.join(", ") };
        (format!("{share:.0}% ({usual})"), moved)
    }

    /// Share of ordered pairs of runs, in percent, in which an interval of one
    /// holds the value of the other, over the first and the last range.
    fn held(&self, keys: &[&str], pick: Pick) -> Option<f64> {
        let (mut inside, mut all) = (0_u32, 0_u32);
        let ends: [fn(&Document) -> Option<&Range>; 2] =
            [|document| document.ranges.first(), |document| document.ranges.last()];
        for (which, one) in self.documents.iter().enumerate() {
            for (whose, other) in self.documents.iter().enumerate() {
                if which == whose {
                    continue;
                }
                for (key, end) in keys.iter().flat_map(|key| ends.map(|end| (key, end))) {
                    let of = |document| end(document).and_then(|range| range.parameter(key));
                    let (Some(ours), Some(theirs)) = (of(one), of(other)) else { continue };
                    let Some(interval) = pick(&ours) else { continue };
                    all += 1;
                    inside += u32::from(holds(interval, theirs.value));
                }
            }
        }
        (all > 0).then(|| 100.0 * f64::from(inside) / f64::from(all))
    }
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}%"))
}
