//! Measuring through a network of known parameters.

use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use loggap::drive::{Memory, Observer, Run, RunOptions, default_sweep};
use loggap::link::{LinkSettings, UdpLink};
use loggap::machine::clock::HostClock;
use loggap::terminal::{Console, Interrupt};
use loggap_core::measure::{
    Buffers, Ending, Experiment, Initiator, Outcome, PlanOptions, Quantity, ServeError, Served,
    SessionOptions, serve,
};
use loggap_core::model::{Change, Parameter, SizeLine};
use loggap_core::units::{Bytes, PerByte, Picos};
use loggap_core::wire::Bounds;
use loggap_tests::relay::{Jitter, Mishaps, Punctuality, Range, Relay, Wire};
use loggap_tests::timing::{Attempt, go_first, interruptions, undisturbed};

/// Messages in a train.
const TRAIN: u32 = 10;

fn micros(micros: u64) -> Picos {
    Picos::from_micros(micros).unwrap()
}

/// 600 us of latency; from 4 KiB on another protocol. What the ends do
/// themselves takes microseconds, also where they are slow.
fn wire() -> Wire {
    let range = |first, gap, picos| Range {
        first,
        gap: micros(gap),
        gap_per_byte: PerByte::from_picos(picos).unwrap(),
    };
    let ranges = vec![range(1, 120, 20_000), range(4_096, 300, 50_000)];
    let (jitter, mishaps) = (Jitter::None, Mishaps::default());
    Wire { latency: micros(600), ranges, jitter, mishaps }
}

/// A responder at the far end of a wire.
struct Network {
    address: SocketAddr,
    responder: JoinHandle<Result<(Served, Ending), ServeError<io::Error>>>,
    punctuality: Arc<Punctuality>,
}

impl Network {
    fn start(wire: Wire) -> Self {
        let mut relay = Relay::new(wire);
        let (address, punctuality) = (relay.address(), relay.punctuality());
        let responder = thread::spawn(move || {
            Relay::sleep_exactly();
            let mut buffer = vec![0; 65_536];
            serve(&HostClock::calibrated(), &mut relay, &mut buffer, Bounds::default())
        });
        Self { address, responder, punctuality }
    }

    fn link(&self) -> UdpLink {
        UdpLink::connect(self.address, LinkSettings::default()).unwrap()
    }
}

/// A busy machine is late; that is no loss.
fn patient() -> SessionOptions {
    SessionOptions { shortest_reply: micros(200_000), ..SessionOptions::default() }
}

fn median(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    values[values.len() / 2] as f64
}

/// How often the initiator may be interrupted in a second.
const INTERRUPTIONS_A_SECOND: f64 = 10.0;

/// Share of the rounds that a measurement may leave out as disturbed.
const LEFT_OUT_PERCENT: u64 = 5;

/// What is wrong with a measurement, and whether it left out many rounds.
struct Found {
    problems: Vec<String>,
    left_out: Option<String>,
}

/// What came of measuring `network`, with the evidence of whether the machine
/// disturbed it: both ends keep a processor busy, and who else takes one makes
/// the relay late or interrupts the initiator.
fn judged(measure: fn(&Network) -> Found) -> Attempt<()> {
    let network = Network::start(wire());
    let (began, before) = (Instant::now(), interruptions());
    let Found { problems, left_out } = measure(&network);
    let interrupted = (interruptions() - before) as f64 / began.elapsed().as_secs_f64();
    network.responder.join().unwrap().unwrap();
    let interrupted = (interrupted > INTERRUPTIONS_A_SECOND)
        .then(|| format!("the initiator was interrupted {interrupted:.0} times a second"));
    let disturbed: Vec<_> =
        network.punctuality.complaint().into_iter().chain(interrupted).chain(left_out).collect();
    match (&problems[..], &disturbed[..]) {
        ([], _) => Attempt::Right(()),
        (_, []) => Attempt::Wrong(format!("{problems:#?}")),
        _ => Attempt::Disturbed(format!("{disturbed:?}: {problems:?}")),
    }
}

/// What is wrong with a measured value, unless it is within five percent.
fn apart(what: &str, measured: f64, truth: f64) -> Option<String> {
    let error = measured / truth - 1.0;
    let problem = || format!("{what} is {measured}, true {truth}: off by {:.1} %", error * 100.0);
    (error.abs() > 0.05).then(problem)
}

#[test]
fn the_relay_delays_by_what_it_was_told() {
    go_first();
    undisturbed("a relay in time", || judged(delays_as_told));
}

fn delays_as_told(network: &Network) -> Found {
    let wire = wire();
    let link = network.link();
    let (mut outgoing, mut incoming) = (vec![0; 65_536], vec![0; 65_536]);
    let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
    let options = SessionOptions { shortest_reply: micros(200_000), ..SessionOptions::default() };
    let mut session = Initiator::connect(HostClock::calibrated(), link, buffers, options, |_| {
        ControlFlow::Break(())
    })
    .unwrap();
    // Alternating, so that a disturbance meets both; the first few warm up.
    let mut measure = |size| {
        let of = |quantity, messages| Experiment { quantity, messages, delay: Picos::ZERO, size };
        let pair = [of(Quantity::RoundTrip, 1), of(Quantity::Gap, TRAIN)];
        let (mut singles, mut trains) = (Vec::new(), Vec::new());
        session
            .run(&pair.repeat(15), |outcome| {
                if let Outcome::Sample(sample) = outcome {
                    let values =
                        if sample.experiment == pair[0] { &mut singles } else { &mut trains };
                    values.push(sample.elapsed.0);
                }
            })
            .unwrap();
        (median(singles.split_off(3)), median(trains.split_off(3)))
    };
    let mut problems = Vec::new();
    for (size, range) in [(1, 0), (2_000, 0), (4_095, 0), (4_096, 1), (16_000, 1)] {
        let (single, train) = measure(size);
        let per_byte =
            wire.ranges[range].gap_per_byte.times(Bytes(u64::from(size)).after_first()).unwrap();
        let round_trip = 2.0 * (wire.latency.0 + per_byte.0) as f64;
        let gap = (wire.ranges[range].gap.0 + per_byte.0) as f64;
        let measured_gap = (train - single) / f64::from(TRAIN - 1);
        // Four times a process has to be woken, which takes 10 to 20 us each on some machines.
        let woken = 60e6;
        let measured = if single > round_trip { (single - woken).max(round_trip) } else { single };
        problems.extend(apart(&format!("PRTT(1, 0, {size})"), measured, round_trip));
        problems.extend(apart(&format!("gap of {size} B"), measured_gap, gap));
    }
    session.close().unwrap();
    Found { problems, left_out: None }
}

#[test]
fn the_parameters_of_a_network_are_recovered_within_five_percent() {
    go_first();
    undisturbed("a network of known parameters", || judged(recovers_the_parameters));
}

fn recovers_the_parameters(network: &Network) -> Found {
    let wire = wire();
    let clock = HostClock::calibrated();
    let options = PlanOptions { max_time: micros(8_000_000), ..PlanOptions::default() };
    let sizes = default_sweep(1, 16_384);
    let mut memory = Memory::new(sizes.len(), &options);
    let options =
        RunOptions { plan: options, launches: 1, session: patient(), ..RunOptions::default() };
    let mut run = Run::new(&clock, options, &sizes, &mut memory).unwrap();
    let (interrupt, mut console) = (Interrupt::default(), Console::standard().unwatched());
    run.launch(network.link(), &mut Observer::new(&interrupt, &mut console, 50_000)).unwrap();
    let measured = run.finish();
    let profile = measured.assessment.unwrap().profile;
    // What is left of a busy machine's rounds is too little for a change of protocol.
    let percent = measured.left_out * 100 / measured.traffic.rounds.max(1);
    let left_out =
        (percent > LEFT_OUT_PERCENT).then(|| format!("{percent}% of the rounds were left out"));
    let at = Bytes(wire.ranges[1].first as u64);
    let mut problems = Vec::new();
    // How dear it is to send is the ends' own affair, and changes with what else they do.
    let of_the_wire =
        |change: &&Change| matches!(change.parameter, Parameter::Gap | Parameter::HalfRtt);
    match &profile.changes.iter().filter(of_the_wire).collect::<Vec<_>>()[..] {
        [change] if change.low <= at && at <= change.high => {
            problems.push(apart(
                "the first size of the second protocol",
                change.at.0 as f64,
                at.0 as f64,
            ));
        }
        changes => {
            let problems = vec![format!(
                "the change is at {at}, found {changes:?} of {:?}; {percent}% left out",
                profile.changes
            )];
            return Found { problems, left_out };
        }
    }
    for range in &wire.ranges {
        let found = profile.range(Bytes(range.first as u64)).unwrap();
        let half_rtt = found.half_rtt.unwrap();
        let per_byte = range.gap_per_byte.0 as f64;
        let latency = wire.latency.0 as f64;
        let l = found.latency.unwrap().value.0 as f64;
        let overhead = |line: Option<SizeLine>| line.unwrap().at_one.value.0 as f64;
        let o = overhead(found.send_overhead) + overhead(found.recv_overhead);
        problems.extend([
            apart("g", found.gap.at_one.value.0 as f64, range.gap.0 as f64),
            apart("G", found.gap.per_byte.value.0 as f64, per_byte),
            apart("PRTT(1, 0, 1)/2", half_rtt.at_one.value.0 as f64, latency),
            apart("PRTT(1, 0, s)/2 a byte", half_rtt.per_byte.value.0 as f64, per_byte),
            // By definition the rest of the round trip is what the ends do.
            apart("L + o_s + o_r", l + o, latency),
            (o >= 0.2 * latency).then(|| format!("o_s + o_r are {o}, most of L")),
        ]);
    }
    Found { problems: problems.into_iter().flatten().collect(), left_out }
}
