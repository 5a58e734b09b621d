//! The critical path explains every picosecond.

use loggap::timeline::causes::{Causes, Event, Kind, MessageCosts, Quantity, Via};
use loggap::timeline::explain::explain;
use loggap_core::model::LogGops;
use loggap_core::random::Random;
use loggap_core::sim::Parameters;
use loggap_core::units::Picos;
use loggap_tests::command::{Run, loggap, simulated};
use loggap_tests::engine;
use loggap_tests::program::Program;
use loggap_tests::random_program::{
    Shape, longer, of_picos, parameters, program, receive_overheads, spread,
};
use loggap_tests::seeds;
use loggap_tests::shadow::{self, Receive, Rendezvous, Settings};
use serde_json::Value;

/// What an event is, whatever its number.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Described {
    time: Picos,
    rank: u32,
    op: u32,
    kind: u8,
    peer: u32,
    amount: u64,
    noise: Picos,
    costs: [u64; 8],
}

impl Described {
    fn new(causes: &Causes, event: &Event) -> Self {
        let Event { time, rank, op, peer, amount, noise, .. } = *event;
        let kind = match event.kind {
            Kind::Start => 0,
            Kind::Calc => 1,
            Kind::Send => 2,
            Kind::Post => 3,
            Kind::Take => 4,
            Kind::Handle => 5,
            Kind::Resume { .. } => 6,
            Kind::Latest => 7,
            Kind::End => 8,
        };
        let MessageCosts { size, overhead, overhead_bytes, gap, gap_bytes, latency, .. } =
            causes.costs(event);
        let MessageCosts { receive_overhead, receive_overhead_bytes, .. } = causes.costs(event);
        let times = [overhead, overhead_bytes, receive_overhead, receive_overhead_bytes];
        let [[a, b, c, d], [e, f, g, _]] =
            [times, [gap, gap_bytes, latency, Picos(0)]].map(|times| times.map(|time| time.0));
        let costs = [size, a, b, c, d, e, f, g];
        Self { time, rank, op, kind, peer, amount, noise, costs }
    }
}

/// An event, what made it ready, where its sender goes on, and what it waited for.
type DescribedEvent = (Described, [Described; 3], Vec<(Described, Via)>);

/// All events in an order of their own: the drivers number them as they simulate them.
fn described(causes: &Causes) -> Vec<DescribedEvent> {
    let of = |id| Described::new(causes, &causes.event(id));
    let describe = |event: &Event| {
        let [cpu, out] = match event.kind {
            Kind::Resume { cpu, out } => [cpu, out],
            _ => [0; 2],
        };
        let mut waited: Vec<_> =
            causes.of(event).iter().map(|cause| (of(cause.from), cause.via)).collect();
        waited.sort_unstable();
        (Described::new(causes, event), [event.creator, cpu, out].map(of), waited)
    };
    let mut all: Vec<_> = causes.events().iter().map(describe).collect();
    all.sort_unstable();
    all
}

#[test]
fn the_terms_add_up_to_the_makespan_and_the_steps_join() {
    let (mut complete, mut in_windows, mut several_sets) = (0, 0, 0);
    for seed in 0..6_000 {
        let mut random = Random::new(seed);
        let shape = if seed % 2 == 0 { Shape::PLAIN } else { Shape::WILD };
        let program = program(&mut random, &shape);
        let mut settings = Settings::of_seed(seed, parameters(&mut random));
        if seed % 4 < 2 {
            settings.receive_overheads = receive_overheads(&mut random);
            settings.add_levels(&mut random, parameters);
        }
        let sets = engine::sets(&settings);
        let parameters = sets.parameters().unwrap();
        let noise = |rank: usize, time: u64, length: u64| {
            if (time / 1_000 + rank as u64).is_multiple_of(4) { length / 3 } else { 0 }
        };
        let noisy: Option<shadow::Noise<'_>> = if seed % 7 == 0 { Some(&noise) } else { None };
        let outcome = shadow::run(&program, &settings, noisy);
        let mut recorded = engine::timeline(&program, &settings, noisy);
        let mut expected = outcome.timeline.clone();
        for timeline in [&mut recorded, &mut expected] {
            timeline.calcs.sort_unstable_by_key(|calc| (calc.start, calc.rank, calc.op));
            timeline
                .messages
                .sort_unstable_by_key(|m| (m.sent, m.from.rank, m.to.rank, m.op, m.message_kind));
        }
        assert_eq!(recorded, expected, "seed {seed}: what the engine's observers saw");
        let causes = engine::causes(&program, &settings, noisy);
        for event in &causes.events()[1..] {
            let last = causes.of(event).iter().map(|cause| causes.instant(*cause)).max();
            assert_eq!(last, Some(event.time), "seed {seed}: {event:?}");
        }
        let explanation = explain(&causes, &parameters);
        let explanation = explanation.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        complete += usize::from(outcome.complete());
        assert_eq!(explanation.terms.total().0, outcome.makespan(), "seed {seed}");
        if let Ok(windows) = engine::causes_in_windows(&program, &settings, noisy) {
            assert_eq!(described(&windows), described(&causes), "seed {seed}: in windows");
            let there = explain(&windows, &parameters);
            assert_eq!(there.as_ref(), Ok(&explanation), "seed {seed}: in windows");
            in_windows += 1;
            several_sets += usize::from(sets.protocols.len() > 1);
        }
        let mut now = 0;
        for step in &explanation.steps {
            assert_eq!(step.start.0, now, "seed {seed}: {step:?}");
            now = step.end.0;
        }
        assert_eq!(now, outcome.makespan(), "seed {seed}");
    }
    assert!(complete > 1_000, "{complete} programs came to their end");
    assert!(in_windows > 1_000, "{in_windows} programs ran in windows, too");
    assert!(several_sets > 300, "{several_sets} of these with several sets");
}

#[test]
fn each_count_is_by_how_much_the_makespan_grows_with_its_parameter() {
    let mut counted = [0; 5];
    for seed in seeds(0..2_000) {
        let mut random = Random::new(seed);
        let mut program = program(&mut random, &Shape::PLAIN);
        let set = spread(&mut random, &mut program, 1 << 20);
        let settings = |set| Settings {
            receive: if seed % 3 == 0 { Receive::Overlap } else { Receive::Hold },
            rendezvous: if seed % 2 == 0 { Rendezvous::Handshake } else { Rendezvous::Instant },
            ..Settings::new(set)
        };
        if !shadow::run(&program, &settings(set), None).complete() {
            continue;
        }
        let makespan = |set| shadow::run(&program, &settings(set), None).makespan();
        let causes = engine::causes(&program, &settings(set), None);
        let terms = explain(&causes, &Parameters::one(set)).unwrap().terms;
        let counts = engine::PARAMETERS.map(|parameter| terms.of(parameter).count);
        for ((sum, longer), count) in counted.iter_mut().zip(longer(set)).zip(counts) {
            assert_eq!(count, makespan(longer) - makespan(set), "seed {seed}: {terms:?}");
            *sum += count;
        }
    }
    assert!(counted.iter().all(|&sum| sum > 100), "{counted:?}");
}

/// On rank 0 a calculation of processor 0 ends at the instant at which
/// processor 1 has received a message; what comes last waits for the message
/// alone, and its interface is busy with nothing that ends then.
#[test]
fn what_ends_at_the_same_instant_by_chance_is_no_cause() {
    let set = of_picos([2_000_000, 500_000, 1_000, 0, 0]);
    // The message has been received at 2 * 500 + 2000.
    let text = "num_ranks 2\nrank 0 {\nc: calc 3000\nr: recv 1b from 1 cpu 1\n\
                l: calc 700 cpu 1\nl requires r\n}\nrank 1 {\nsend 1b to 0\n}\n";
    let program = Program::of_text(text);
    let settings = |latency| Settings::new(LogGops { latency, ..set });
    let causes = engine::causes(&program, &settings(set.latency), None);
    let terms = explain(&causes, &Parameters::one(set)).unwrap().terms;
    let [latencies, overheads, ..] = engine::PARAMETERS.map(|parameter| terms.of(parameter).count);
    assert_eq!((latencies, overheads, terms.of(&[Quantity::Calc]).count), (1, 2, 1));
    let longer = shadow::run(&program, &settings(Picos(2_100_000)), None).makespan();
    assert_eq!(longer, 3_800_000);
}

/// Each term is a count times a parameter of its set, and all add up.
#[test]
fn terms_are_told_apart_by_level_and_end() {
    let pattern = ["--pattern", "binomialtreebcast", "--ranks", "16", "-s", "1K", "--explain"];
    let far = ["-L", "3000", "-o", "700", "-g", "900", "-G", "1"];
    let near = ["--level", "8:L=400,o=200,g=150,G=0.5"];
    let document = simulated(&[&pattern[..], &far, &near].concat());
    let terms = &document["explanation"]["terms"];
    let time = |term: &Value| term["time_ps"].as_u64().unwrap();
    let costs = [[400, 200, 150], [3_000, 700, 900]];
    let sets = document["explanation"]["sets"].as_array().unwrap();
    assert_eq!(sets.len(), 2);
    let mut sum = time(&terms["calc"]);
    for (set, [latency, overhead, gap]) in sets.iter().zip(costs) {
        for (name, each) in [
            ("latency", latency),
            ("send_overhead", overhead),
            ("receive_overhead", overhead),
            ("gap", gap),
        ] {
            let term = &set[name];
            assert_eq!(time(term), term["count"].as_u64().unwrap() * each * 1_000, "{name}");
            sum += time(term);
        }
        for name in ["send_overhead_bytes", "receive_overhead_bytes", "gap_bytes"] {
            sum += time(&set[name]);
        }
        assert!(set["latency"]["count"].as_u64().unwrap() > 0, "{set}");
    }
    assert_eq!(Some(sum), document["makespan_ps"].as_u64());
    assert_eq!(time(&terms["latency"]), sets.iter().map(|set| time(&set["latency"])).sum::<u64>());
    let text = |more: &[&str]| {
        loggap().arg("simulate").args(pattern).args(far).args(more).succeeds().stdout
    };
    let by_level = text(&near);
    assert!(by_level.contains("latencies (L) of level 0, from 0 B on"), "{by_level}");
    assert!(by_level.contains("latencies (L) of level 1"), "{by_level}");
    let apart = text(&["--recv-overhead", "90"]);
    assert!(apart.contains("receivers (o_r)") && apart.contains("senders (o_s)"), "{apart}");
    let one = text(&[]);
    assert!(one.contains("overheads (o)") && !one.contains("o_s"), "{one}");
}
