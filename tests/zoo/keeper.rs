//! Makes a link, measures it and takes it away again.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use loggap::link::Waiting;
use loggap::machine::clock::HostClock;
use loggap::machine::placement;
use loggap_core::measure::{Clock, Disturbance, serve};
use loggap_core::model::{Estimate, SizeLine};
use loggap_core::units::{Bytes, SignedPicos};
use loggap_core::wire::Bounds;
use loggap_tests::cable::{Cable, End, INTERFACE, Kind, SERVER};
use loggap_tests::cleanup::Process;
use loggap_tests::command::{Ended, loggap_process};
use loggap_tests::document::{Boundary, Document, Number};
use loggap_tests::plain::{Plain, Reference};
use loggap_tests::relay::{Relay, Wire};

use crate::catalogue::{Entry, Neighbour, Place, Value};
use crate::measured::kinds::Link;
use crate::measured::{Noise, Setup};

/// What came of a link, or why this machine has none such.
pub(crate) type Outcome = Result<Found, String>;

/// What `loggap` found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) gap_per_byte: Option<Number>,
    pub(crate) half_rtt: Option<Number>,
    pub(crate) changes: Vec<Boundary>,
    pub(crate) ranges: usize,
    pub(crate) seconds: f64,
    pub(crate) messages: u64,
    pub(crate) exit: i32,
    /// The last line on standard error.
    pub(crate) said: String,
    /// What says that the machine had no time, whatever was found.
    pub(crate) disturbances: Vec<String>,
    /// What plain loops found before and after.
    pub(crate) references: Vec<Reference>,
}

/// Longest life of a relay.
const RELAY: Duration = Duration::from_secs(40);

pub(crate) fn measure(entry: &Entry, seed: u64) -> Outcome {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let one =
        matches!(entry.place, Place::Loopback { cpus: [first, second], .. } if first == second);
    let virtual_time = matches!(entry.place, Place::Virtual(..));
    if entry.waiting == Waiting::Poll && processors < 2 && !one && !virtual_time {
        return Err("polling at both ends needs two processors".to_owned());
    }
    match &entry.place {
        Place::Cable(kind) => on_cable(entry, kind, seed),
        Place::Relay(wire) => Ok(through_relay(entry, wire, seed)),
        Place::Virtual(link, noise) => Ok(on_virtual_time(entry, link, *noise, seed)),
        Place::Loopback { cpus, neighbour } => Ok(on_loopback(entry, *cpus, *neighbour, seed)),
    }
}

/// Options that all runs take.
fn arguments(entry: &Entry, seed: u64) -> Vec<String> {
    let mut arguments = vec!["measure".to_owned(), "-J".to_owned()];
    arguments.extend(["--transport".to_owned(), entry.transport.to_owned()]);
    arguments.extend(["--seed".to_owned(), seed.to_string()]);
    arguments.extend(entry.options.iter().map(|&option| option.to_owned()));
    if entry.waiting == Waiting::Block {
        arguments.push("--block".to_owned());
    }
    arguments
}

fn plain(entry: &Entry, cpus: [usize; 2]) -> Plain {
    let sizes = match (entry.truth.gap_per_byte, entry.transport) {
        (Value::Known(_) | Value::Unjudged(_), _) => None,
        (Value::Reference, "tcp") => Some([16_384, 65_536]),
        // Two and eight whole fragments: a burst of them fits into a socket's memory.
        (Value::Reference, "udp") => Some([2_960, 11_840]),
        (Value::Reference, _) => Some([200, 1_400]),
    };
    Plain { transport: entry.transport, waiting: entry.waiting, cpus, sizes }
}

/// The plain loops' result; none where they lost a message.
fn reference(entry: &Entry, cpus: [usize; 2], cable: Option<&Cable>) -> Option<Reference> {
    plain(entry, cpus).run(cable).map_err(|error| eprint!("(reference: {error}) ")).ok()
}

fn on_cable(entry: &Entry, kind: &Kind, seed: u64) -> Outcome {
    const CPUS: [usize; 2] = [0, 1];
    let several = thread::available_parallelism().map_or(1, usize::from) > 1;
    let cpus = if several { CPUS } else { [0, 0] };
    let cable = Cable::plug(kind)?;
    let before = reference(entry, cpus, Some(&cable));
    let cpu = cpus[1].to_string();
    let mut serving = vec!["--cpu", cpu.as_str()];
    if entry.waiting == Waiting::Block {
        serving.push("--block");
    }
    let (server, endpoint) = cable.serve(entry.transport, &serving)?;
    let mut command = cable.loggap(End::Client);
    command.args(arguments(entry, seed)).args(["--cpu", &cpus[0].to_string()]);
    match entry.transport {
        "eth" => command.args(["--interface", INTERFACE, "--peer", SERVER]),
        _ => command.arg(endpoint),
    };
    let output = Process::start(&mut command).finish();
    drop(server);
    let after = reference(entry, cpus, Some(&cable));
    Ok(found(entry, &output, [before, after]))
}

fn through_relay(entry: &Entry, wire: &Wire, seed: u64) -> Found {
    let over = Arc::new(AtomicBool::new(false));
    let relay = Relay::new(wire.clone()).until(RELAY, Arc::clone(&over));
    let (address, punctuality) = (relay.address().to_string(), relay.punctuality());
    let output = thread::scope(|scope| {
        scope.spawn(|| answer(relay));
        let mut command = loggap_process();
        command.args(arguments(entry, seed)).args(["--cpu", "0"]).arg(address);
        let output = Process::start(&mut command).finish();
        over.store(true, Ordering::Relaxed);
        output
    });
    let mut found = found(entry, &output, [None, None]);
    found.disturbances.extend(punctuality.complaint());
    found
}

/// Serves one session after the other.
fn answer(mut relay: Relay) {
    // Where it is not allowed the relay runs where it may.
    let _ = placement::pin(1);
    Relay::sleep_exactly();
    let clock = HostClock::calibrated();
    let mut buffer = vec![0; 1 << 16];
    // A session ends with the initiator's goodbye or fails; the last fails as the relay stops.
    while !relay.is_over() {
        let _ended = serve(&clock, &mut relay, &mut buffer, Bounds::default());
    }
}

fn on_loopback(entry: &Entry, cpus: [usize; 2], neighbour: Neighbour, seed: u64) -> Found {
    let before = reference(entry, cpus, None);
    let over = AtomicBool::new(false);
    let output = thread::scope(|scope| {
        let over = &over;
        match neighbour {
            Neighbour::Nobody => {}
            Neighbour::Percent(percent) => {
                scope.spawn(move || disturb(cpus[1], percent, over));
            }
            Neighbour::Loops(loops) => {
                for index in 0..loops {
                    scope.spawn(move || disturb(cpus[index % 2], 100, over));
                }
            }
        }
        let mut command = loggap_process();
        let [ours, theirs] = cpus;
        command.args(arguments(entry, seed)).args(["--cpu", &format!("{ours},{theirs}")]);
        let output = Process::start(&mut command).finish();
        over.store(true, Ordering::Relaxed);
        output
    });
    let after = reference(entry, cpus, None);
    found(entry, &output, [before, after])
}

/// Takes so many percent of a processor, in periods of 10 ms.
fn disturb(cpu: usize, percent: u32, over: &AtomicBool) {
    const PERIOD: Duration = Duration::from_millis(10);
    placement::pin(cpu).expect("a processor that loggap is pinned to");
    let clock = HostClock::monotonic_raw();
    let busy = PERIOD * percent / 100;
    while !over.load(Ordering::Relaxed) {
        let began = clock.now();
        let passed = || Duration::from_nanos(clock.duration(clock.now() - began).0 / 1_000);
        while passed() < busy {
            spin_loop();
        }
        thread::sleep(PERIOD - busy);
    }
}

/// What a run printed, or that it printed nothing.
fn found(entry: &Entry, output: &Ended, references: [Option<Reference>; 2]) -> Found {
    let said = output.stderr.lines().last().unwrap_or_default().to_owned();
    let exit = output.code.unwrap_or(-1);
    let references = references.into_iter().flatten().collect();
    let Some(document) = Document::parse(output.stdout.as_bytes()) else {
        return Found { exit, said, references, ..Found::default() };
    };
    let at = document.range(entry.truth.at).or(document.ranges.last());
    Found {
        gap_per_byte: at.and_then(|range| range.parameter("gap_per_byte_s")),
        half_rtt: document.ranges.first().and_then(|range| range.parameter("half_rtt_s")),
        ranges: document.ranges.len(),
        changes: document.changes,
        seconds: document.seconds,
        messages: document.messages,
        disturbances: document.disturbances,
        exit,
        said,
        references,
    }
}

fn on_virtual_time(entry: &Entry, link: &Link, noise: Noise, seed: u64) -> Found {
    let noise = Noise { calls: Disturbance { seed, ..noise.calls }, ..noise };
    let measured = Setup::of_the_command(&link.truths, link.bend, noise).measure();
    let profile = &measured.assessment.profile;
    let range = profile.range(Bytes(entry.truth.at)).or(profile.ranges.last());
    let boundary = |change: &loggap_core::model::Change| Boundary {
        at: change.at.0 as f64,
        interval: [change.low.0 as f64, change.high.0 as f64],
    };
    let time = |estimate: &Estimate<SignedPicos>| Number {
        value: estimate.value.seconds(),
        interval: Some([estimate.low.seconds(), estimate.high.seconds()]),
        next: None,
    };
    let slope = |line: &SizeLine| Number {
        value: line.per_byte.value.seconds(),
        interval: Some([line.per_byte.low.seconds(), line.per_byte.high.seconds()]),
        next: None,
    };
    let first = profile.ranges.first().and_then(|range| range.half_rtt);
    Found {
        gap_per_byte: range.map(|range| slope(&range.gap)),
        half_rtt: first.map(|line| time(&line.at_one)),
        changes: profile.changes.iter().filter(|change| change.splits).map(boundary).collect(),
        ranges: profile.ranges.len(),
        seconds: measured.seconds,
        messages: measured.messages,
        ..Found::default()
    }
}
