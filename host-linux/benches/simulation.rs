//! How fast schedules are simulated, and in how much memory: one row for
//! each schedule and way to run it, each in a process of its own.
//!
//! A row is: its name; ranks; events; millions of events per second, as the
//! median, the lowest and the highest of the repetitions, after one that does
//! not count; seconds to put the schedule into memory (of a text, from the
//! file on) and to run it (of a text, from the file to the makespan), as
//! medians; bytes for each operation, of the whole process at its peak and
//! of the memory that was lent; repetitions.
//!
//! Only rows are run whose names begin with one of the arguments.
//!
//! `cargo bench -p loggap --bench simulation [-- ROW...]`

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark prints its table and fails where it stands"
)]

use std::io::BufWriter;
use std::path::Path;
use std::process::Command;

use loggap::machine::clock::HostClock;
use loggap::schedule::{ScheduleFile, WriteError, write_text};
use loggap::simulation::windows::{self, Resources};
use loggap::simulation::{Alone, Job, Limit, OwnedMemory, Source, bytes_needed, run_pattern};
use loggap_core::goal::pattern::{Options, Pattern, generate, scratch_words};
use loggap_core::goal::{Edge, Op, OpKind, Sink};
use loggap_core::measure::Clock;
use loggap_core::model::Preset;
use loggap_core::random::Random;
use loggap_core::sim::implicit::{PatternProgram, ProgramFinished};
use loggap_core::sim::mail::Block;
use loggap_core::sim::windows::Away;
use loggap_core::sim::{
    self, BuildError, Builder, Engine, NoNoise, Parameters, Receive, Rendezvous, Settings, Silent,
    Survey,
};
use loggap_core::units::Picos;

/// Repetitions that count, unless they take longer than [`ENOUGH`].
const REPETITIONS: usize = 9;
/// Seconds after which no further repetition begins, from the third on.
const ENOUGH: f64 = 15.0;

/// How a row comes to its result.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Way {
    /// Stored, then run event by event.
    Engine,
    /// Stored, then run in windows on so many threads.
    Windows(usize),
    /// Computed as it runs.
    Computed,
    /// From GOAL text in a file to the makespan, in windows on one thread.
    Text,
}

/// A line of the table.
struct Row {
    name: String,
    way: Way,
    pattern: Pattern,
    ranks: u32,
    size: u64,
    /// Whether a calculation of random length stands before each send.
    compute: bool,
    rendezvous: Rendezvous,
}

impl Row {
    fn new(name: &str, way: Way, pattern: Pattern, ranks: u32) -> Self {
        let way_name = match way {
            Way::Engine => "engine".to_owned(),
            Way::Windows(threads) => format!("windows-{threads}"),
            Way::Computed => "computed".to_owned(),
            Way::Text => "text".to_owned(),
        };
        Self {
            name: format!("{name}/{way_name}"),
            way,
            pattern,
            ranks,
            size: 1,
            compute: false,
            rendezvous: Rendezvous::Instant,
        }
    }
}

/// The table.
fn rows() -> Vec<Row> {
    use Pattern::{AllToAll, BinomialBroadcast, Dissemination, RingAllreduce};
    let mut rows = Vec::new();
    for way in [Way::Engine, Way::Windows(1), Way::Windows(2), Way::Windows(4)] {
        let row = |name, pattern, ranks| Row::new(name, way, pattern, ranks);
        // A chunk is 1 MB, above the eager limit.
        let ring = |name| Row { size: 1_024_000_000, ..row(name, RingAllreduce, 1 << 10) };
        let compute = row("dissemination-64Ki-compute", Dissemination, 1 << 16);
        rows.extend([
            row("broadcast-1Mi", BinomialBroadcast, 1 << 20),
            row("dissemination-64Ki", Dissemination, 1 << 16),
            Row { compute: true, ..compute },
            row("dissemination-1Mi", Dissemination, 1 << 20),
            row("all-to-all-1Ki", AllToAll, 1 << 10),
            row("all-to-all-4Ki", AllToAll, 1 << 12),
        ]);
        if way == Way::Engine {
            rows.push(ring("ring-1Ki-1MB"));
        }
        rows.push(Row { rendezvous: Rendezvous::Handshake, ..ring("ring-1Ki-1MB-handshake") });
    }
    let computed = |name, pattern, ranks| Row::new(name, Way::Computed, pattern, ranks);
    rows.extend([
        computed("broadcast-1Mi", BinomialBroadcast, 1 << 20),
        computed("dissemination-1Mi", Dissemination, 1 << 20),
        computed("broadcast-16Mi", BinomialBroadcast, 1 << 24),
        computed("dissemination-16Mi", Dissemination, 1 << 24),
        Row::new("broadcast-1Mi", Way::Text, BinomialBroadcast, 1 << 20),
    ]);
    rows
}

/// Puts a calculation before every send that waits for a receive.
struct Computing<'s, S> {
    sink: &'s mut S,
    random: Random,
    /// The rank's operations as the sink knows them.
    ops: Vec<(u32, Op)>,
}

impl<S: Sink> Sink for Computing<'_, S> {
    type Error = S::Error;

    fn ranks(&mut self, ranks: u32) -> Result<(), S::Error> {
        self.sink.ranks(ranks)
    }

    fn begin_rank(&mut self, rank: u32) -> Result<(), S::Error> {
        self.ops.clear();
        self.sink.begin_rank(rank)
    }

    fn op(&mut self, op: Op) -> Result<u32, S::Error> {
        let index = u32::try_from(self.ops.len()).unwrap();
        self.ops.push((self.sink.op(op)?, op));
        Ok(index)
    }

    fn edge(&mut self, edge: Edge) -> Result<(), S::Error> {
        let [(op, what), (on, _)] = [self.ops[edge.op as usize], self.ops[edge.on as usize]];
        if edge.start || !matches!(what.kind, OpKind::Send { .. }) {
            return self.sink.edge(Edge { op, on, ..edge });
        }
        let duration = Picos(self.random.below(10_000_000));
        let calc = self.sink.op(Op { kind: OpKind::Calc { duration }, cpu: 0, nic: 0 })?;
        self.sink.requires(calc, on)?;
        self.sink.requires(op, calc)
    }

    fn end_rank(&mut self) -> Result<(), S::Error> {
        self.sink.end_rank()
    }
}

impl Row {
    fn options(&self) -> Options {
        Options::new(self.ranks, self.size)
    }

    fn settings(&self) -> Settings {
        Settings { receive: Receive::Hold, rendezvous: self.rendezvous }
    }

    /// Plays the schedule into `sink`.
    fn play<S: Sink<Error = BuildError>>(&self, sink: &mut S) {
        let options = self.options();
        let mut words = vec![0; scratch_words(self.pattern, &options).unwrap()];
        if self.compute {
            let mut sink = Computing { sink, random: Random::new(1), ops: Vec::new() };
            generate(self.pattern, &options, &mut words, &mut sink).unwrap();
        } else {
            generate(self.pattern, &options, &mut words, sink).unwrap();
        }
    }

    /// Runs once; a text is at `path`.
    fn once(&self, path: &Path) -> Repetition {
        let clock = HostClock::monotonic_raw();
        let begun = clock.now();
        let seconds = |from: u64, to: u64| clock.duration(to - from).seconds();
        let ran = match self.way {
            Way::Engine => self.engine(clock),
            Way::Windows(threads) => self.windows(clock, threads),
            Way::Computed => self.computed(clock),
            Way::Text => text(clock, path),
        };
        let from = if self.way == Way::Text { begun } else { ran.loaded };
        Repetition { load: seconds(begun, ran.loaded), run: seconds(from, ran.done), ran }
    }

    fn survey(&self) -> Survey {
        let mut survey = Survey::default();
        self.play(&mut survey);
        survey
    }

    fn engine(&self, clock: HostClock) -> Ran {
        let survey = self.survey();
        let needs = survey.requirements(self.settings()).unwrap();
        let mut memory = OwnedMemory::new(&needs).unwrap();
        let mut builder = Builder::new(memory.lend(), needs).unwrap();
        self.play(&mut builder);
        let schedule = builder.finish().unwrap();
        let loaded = clock.now();
        let mut engine = Engine::new(schedule, parameters(), self.settings());
        let events = engine.run().unwrap().events;
        let done = clock.now();
        engine.unfinished(|left| panic!("{left}"));
        Ran { loaded, done, events, ops: survey.ops(), lent: needs.bytes() }
    }

    fn windows(&self, clock: HostClock, threads: usize) -> Ran {
        let survey = self.survey();
        let shift = windows::partition_shift(self.ranks, threads);
        let settings = self.settings();
        let needs = sim::windows::Requirements::of(
            &survey,
            &parameters(),
            settings,
            (shift, Block::ALL),
            Away::FEW,
        )
        .unwrap();
        let mut memory = windows::WindowMemory::new(&needs).unwrap();
        let builder = sim::windows::Builder::new(memory.lend(), needs, parameters());
        let mut builder = builder.unwrap();
        self.play(&mut builder);
        let schedule = builder.finish().unwrap();
        let loaded = clock.now();
        let ended = windows::run(schedule, NoNoise, |_| Silent, &resources(threads), &mut |_| {})
            .unwrap()
            .unwrap();
        let done = clock.now();
        ended.unfinished(|left| panic!("{left}"));
        let lent = needs.bytes() + ended.mail_bytes();
        Ran { loaded, done, events: ended.finished().events, ops: survey.ops(), lent }
    }

    fn computed(&self, clock: HostClock) -> Ran {
        let loaded = clock.now();
        let program = PatternProgram::new(self.pattern, &self.options()).unwrap().unwrap();
        let job = Job::new(parameters(), Settings::default());
        let outcome = run_pattern(&program, &job, NoNoise, &|_| {}).unwrap().outcome;
        assert_eq!(outcome.open_ties, 0);
        let ProgramFinished { events, messages, .. } = outcome;
        let lent = bytes_needed(&program);
        Ran { loaded, done: clock.now(), events, ops: events - messages, lent }
    }
}

/// From a text to the makespan of the broadcast.
fn text(clock: HostClock, path: &Path) -> Ran {
    let source = Source::File(ScheduleFile::open(path).unwrap());
    windows::load(
        &source,
        parameters(),
        Settings::default(),
        &Limit::none(),
        windows::Split::Threads(1),
        |schedule, needs, _| {
            let loaded = clock.now();
            let ended = windows::run(schedule, NoNoise, |_| Silent, &resources(1), &mut |_| {})
                .unwrap()
                .unwrap();
            let done = clock.now();
            assert_eq!(ended.finished().makespan, Picos(110_000_000));
            let lent = needs.bytes + ended.mail_bytes();
            Ran { loaded, done, events: ended.finished().events, ops: needs.ops, lent }
        },
    )
    .unwrap()
}

const fn resources(threads: usize) -> Resources<'static> {
    Resources { threads, mail_bytes: u64::MAX, small: Resources::SMALL, processes: &Alone }
}

fn parameters() -> Parameters<'static> {
    let preset: Preset = "loggopsim".parse().unwrap();
    Parameters::per_protocol(preset.protocols).unwrap()
}

/// What a run gives.
#[derive(Clone, Copy)]
struct Ran {
    /// Readings of the clock when the schedule was in memory, and at the end.
    loaded: u64,
    done: u64,
    events: u64,
    ops: u64,
    /// Bytes that were lent.
    lent: u64,
}

/// One repetition, in seconds.
struct Repetition {
    load: f64,
    run: f64,
    ran: Ran,
}

/// The largest memory of this process so far, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
}

/// Median, least and most.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[values.len() / 2], values[0], values[values.len() - 1]]
}

#[allow(clippy::cast_precision_loss, reason = "figures of few digits")]
fn measure(row: &Row) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    if row.way == Way::Text {
        let text = |writer: &mut _| {
            generate(row.pattern, &row.options(), &mut [], writer)
                .map_err(|error| WriteError::Schedule(error.to_string()))
        };
        write_text(&mut BufWriter::new(&mut file), text).unwrap();
    }
    let clock = HostClock::monotonic_raw();
    let begun = clock.now();
    let Repetition { ran: first, .. } = row.once(file.path());
    let peak = peak();
    let mut repetitions = Vec::new();
    while repetitions.len() < REPETITIONS
        && (repetitions.len() < 3 || clock.duration(clock.now() - begun).seconds() < ENOUGH)
    {
        repetitions.push(row.once(file.path()));
    }
    let rate = |r: &Repetition| r.ran.events as f64 / r.run / 1e6;
    let [median, low, high] = spread(repetitions.iter().map(rate).collect());
    let [load, ..] = spread(repetitions.iter().map(|r| r.load).collect());
    let [run, ..] = spread(repetitions.iter().map(|r| r.run).collect());
    let per_op = |bytes: u64| bytes as f64 / first.ops as f64;
    println!(
        "{:<40} {:>8} {:>10} {median:>6.1} {low:>6.1} {high:>6.1} {load:>7.3} {run:>7.3} {:>7.1} \
         {:>7.1} {:>2}",
        row.name,
        row.ranks,
        first.events,
        per_op(peak),
        per_op(first.lent),
        repetitions.len(),
    );
}

fn main() {
    let rows = rows();
    let names: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [child, name] = &names[..]
        && child == "--alone"
    {
        measure(rows.iter().find(|row| &row.name == name).unwrap());
        return;
    }
    println!(
        "{:<40} {:>8} {:>10} {:>6} {:>6} {:>6} {:>7} {:>7} {:>7} {:>7} {:>2}",
        "#row",
        "ranks",
        "events",
        "Mev/s",
        "low",
        "high",
        "load[s]",
        "run[s]",
        "peak/op",
        "lent/op",
        "n"
    );
    let wanted = |row: &Row| names.is_empty() || names.iter().any(|n| row.name.starts_with(n));
    for row in rows.iter().filter(|row| wanted(row)) {
        let this = std::env::current_exe().unwrap();
        let status = Command::new(this).args(["--alone", &row.name]).status().unwrap();
        assert!(status.success(), "{}", row.name);
    }
}
