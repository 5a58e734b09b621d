//! The critical path explains every picosecond on a network whose links are shared.

use std::fmt::Write as _;
use std::path::PathBuf;

use loggap::simulation::Placement;
use loggap::timeline::causes::{Causes, Quantity};
use loggap::timeline::explain::{Explanation, explain};
use loggap_core::random::Random;
use loggap_core::sim::Parameters;
use loggap_core::sim::network::Fabric as _;
use loggap_core::units::{PerByte, Picos};
use loggap_tests::command::{Run, loggap, simulated};
use loggap_tests::engine;
use loggap_tests::folder::Folder;
use loggap_tests::random_program::{Shape, longer, parameters, program, spread};
use loggap_tests::seeds;
use loggap_tests::shadow::{self, Settings};
use serde_json::Value;

/// Of programs of few ranks, whose messages meet.
const TOPOLOGIES: [&str; 7] =
    ["star", "tree:2:2", "tree:4:3", "fat-tree:4:2", "torus:3x3", "dragonfly:3:2:2", "rail:2:2:2"];

/// Each event begins at the latest of its causes.
fn check_events(causes: &Causes, of: &str) {
    for event in &causes.events()[1..] {
        let last = causes.of(event).iter().map(|cause| causes.instant(*cause)).max();
        assert_eq!(last, Some(event.time), "{of}: {event:?}");
    }
}

/// The terms add up to the makespan, and so do what links cost and the steps.
fn check_sum(explanation: &Explanation, makespan: u64, of: &str) {
    let terms = &explanation.terms;
    assert_eq!(terms.total().0, makespan, "{of}: {terms:?}");
    let mut now = 0;
    for step in &explanation.steps {
        // A processor works on what is arriving.
        assert!(step.start.0 <= now && step.start <= step.end, "{of}: {step:?} at {now}");
        now = step.end.0;
    }
    assert_eq!(now, makespan, "{of}");
}

fn links_cost(explanation: &Explanation) -> u64 {
    explanation.links.iter().map(|link| link.term.time.0).sum()
}

#[test]
fn the_terms_add_up_to_the_makespan_on_every_topology() {
    let noise = |rank: usize, time: u64, length: u64| {
        if (time / 1_000 + rank as u64).is_multiple_of(4) { length / 3 } else { 0 }
    };
    let (mut shared, mut ordered, mut early, mut complete) = (0, 0, 0, 0);
    for seed in seeds(0..1_500) {
        let mut random = Random::new(seed);
        let shape = if seed % 2 == 0 { Shape::PLAIN } else { Shape::WILD };
        let program = program(&mut random, &shape);
        let mut set = parameters(&mut random);
        if seed % 11 == 0 {
            set.gap_per_byte = PerByte::ZERO;
        } else if seed % 4 != 0 {
            // Flows that take long enough to meet.
            set.gap_per_byte = PerByte::from_picos(1 + random.below(100_000)).unwrap();
        }
        let settings = Settings::of_seed(seed, set);
        let noisy: Option<shadow::Noise<'_>> = if seed % 7 == 0 { Some(&noise) } else { None };
        for topology in TOPOLOGIES {
            let mut plan = engine::network(topology);
            let ranks = u32::try_from(program.ranks.len()).unwrap();
            let hosts = plan.topology(ranks, 1).unwrap().hosts();
            // Several ranks on a host, too.
            let few = hosts.min(1 + u32::try_from(random.below(12)).unwrap());
            if seed % 3 == 1 || hosts < ranks {
                let hosts = (0..ranks).map(|_| u32::try_from(random.below(few.into())).unwrap());
                plan.placement = Placement::Hosts(PathBuf::new(), hosts.collect());
            }
            let of = format!("seed {seed} on {topology}");
            let (outcome, causes) = engine::causes_on_network(&program, &settings, noisy, &plan);
            check_events(&causes, &of);
            let explanation = explain(&causes, &Parameters::one(set));
            let explanation = explanation.unwrap_or_else(|error| panic!("{of}: {error}"));
            check_sum(&explanation, outcome.makespan(), &of);
            let term = |quantity| explanation.terms.of(&[quantity]);
            let sharing = term(Quantity::Sharing).time;
            assert_eq!(links_cost(&explanation), sharing.0, "{of}");
            shared += usize::from(sharing > Picos::ZERO);
            ordered += usize::from(term(Quantity::Order).time > Picos::ZERO);
            early += usize::from(term(Quantity::EarlyBytes).count > 0);
            complete += usize::from(outcome.complete());
        }
    }
    assert!(complete > 1_000, "{complete} programs came to their end");
    assert!(shared > 250 && ordered > 10 && early > 125, "{shared} {ordered} {early}");
}

/// Where no message loses anything, each count is by how much the makespan grows with its
/// parameter, bytes that are handled while they arrive included.
#[test]
fn each_count_is_by_how_much_the_makespan_grows_where_nothing_is_lost() {
    let mut counted = [0; 5];
    for seed in seeds(0..2_000) {
        let mut random = Random::new(seed);
        let mut program = program(&mut random, &Shape::PLAIN);
        let set = spread(&mut random, &mut program, 1 << 26);
        let settings = |set| Settings::of_seed(seed, set);
        let plan = engine::network("star");
        let (outcome, causes) = engine::causes_on_network(&program, &settings(set), None, &plan);
        let lost = |event| causes.transfer(event).took > causes.transfer(event).alone;
        if !outcome.complete() || causes.events().iter().any(lost) {
            continue;
        }
        let makespan = |set| {
            let outcome = engine::on_network(&program, &settings(set), "star");
            i128::from(outcome.makespan())
        };
        let terms = explain(&causes, &Parameters::one(set)).unwrap().terms;
        let mut counts = engine::PARAMETERS.map(|parameter| i128::from(terms.of(parameter).count));
        counts[3] -= i128::from(terms.of(&[Quantity::EarlyBytes]).count);
        for ((sum, longer), count) in counted.iter_mut().zip(longer(set)).zip(counts) {
            assert_eq!(count, makespan(longer) - makespan(set), "seed {seed}: {terms:?}");
            *sum += count;
        }
    }
    assert!(counted.iter().all(|&sum| sum > 100), "{counted:?}");
}

/// L, o, g and G of the tests, in ns.
const PARAMETERS: [&str; 8] = ["-L", "2500", "-o", "1500", "-g", "1000", "-G", "0.25"];

/// A schedule of 16 ranks, each with its lines.
fn schedule(folder: &Folder, lines: impl Fn(u32) -> String) -> String {
    let mut text = String::from("num_ranks 16\n");
    for rank in 0..16 {
        writeln!(text, "rank {rank} {{\n{}\n}}", lines(rank)).unwrap();
    }
    folder.written("schedule.goal", text)
}

/// The time of a term, in ps, and its count.
fn term(terms: &Value, name: &str) -> (i64, i64) {
    let found = if name.is_empty() { terms } else { &terms[name] };
    let of = |key: &str| found[key].as_i64().unwrap();
    (of("time_ps"), of("count"))
}

/// Eight pairs over an uplink of two links take four times w·G: three of these are lost there.
#[test]
fn what_a_taper_costs_is_said_with_its_link() {
    let folder = Folder::new();
    let path = schedule(&folder, |rank| match rank {
        0..8 => format!("s: send 65536b to {}", rank + 8),
        _ => format!("r: recv 65536b from {}", rank - 8),
    });
    let on = [&[&*path][..], &PARAMETERS, &["-S", "1M", "--topology", "tree:8:4", "--explain"]];
    let on = on.concat();
    let document = simulated(&on);
    let terms = &document["explanation"]["terms"];
    let alone = 65_535 * 250;
    assert_eq!(term(terms, "latency"), (2_500_000, 1));
    assert_eq!(term(terms, "overhead"), (3_000_000, 2));
    assert_eq!(term(terms, "gap_bytes"), (alone, 65_535));
    assert_eq!(term(terms, "sharing"), (3 * alone, 1));
    assert_eq!(term(terms, "order"), (0, 0));
    let links = terms["sharing_by_link"].as_array().unwrap();
    assert_eq!(links.len(), 1);
    // Out of the one leaf and into the other are as narrow.
    let link = links[0]["link"].as_str().unwrap();
    assert!(link == "leaf 0 out" || link == "leaf 1 in", "{link}");
    assert_eq!(links[0]["time_ps"].as_i64(), Some(3 * alone));
    let steps = document["explanation"]["steps"].as_array().unwrap();
    assert_eq!(steps[0]["kind"], "transfer");
    assert_eq!(steps[0]["lost_ps"].as_i64(), Some(3 * alone));
    assert_eq!(steps[0]["link"], link);
    let text = loggap().arg("simulate").args(&on).succeeds().stdout;
    assert!(text.contains("       49151.25            1  messages that shared links\n"), "{text}");
    assert!(text.contains(&format!("       49151.25            1  {link}\n")), "{text}");
    assert!(text.contains(": transfer of 65536 B to rank "), "{text}");
    assert!(text.contains(&format!(", 49151.25 ns lost, most on {link}\n")), "{text}");
    // Wide enough, nothing is lost.
    let wide = simulated(&[&on[..], &["--link-capacity", "4"]].concat());
    let terms = &wide["explanation"]["terms"];
    assert_eq!(term(terms, "sharing"), (0, 0));
    assert_eq!(terms["sharing_by_link"].as_array().unwrap().len(), 0);
    // Without a network there are no such terms.
    let flat = simulated(&[&[&*path], &PARAMETERS[..], &["--explain"]].concat());
    assert!(flat["explanation"]["terms"].get("sharing").is_none());
}

/// Three messages share a link out of a leaf; when one is through and then another, the first
/// one still shares the link into its host, and then none.
#[test]
fn links_are_told_apart_when_they_hold_a_message_one_after_the_other() {
    let folder = Folder::new();
    let path = schedule(&folder, |rank| match rank {
        0 => "s: send 10001b to 8".to_owned(),
        1 => "s: send 1001b to 9".to_owned(),
        2 => "s: send 1001b to 10".to_owned(),
        11 => "s: send 8001b to 8".to_owned(),
        8 => "a: recv 10001b from 0\nb: recv 8001b from 11".to_owned(),
        9 => "r: recv 1001b from 1".to_owned(),
        10 => "r: recv 1001b from 2".to_owned(),
        _ => String::new(),
    });
    // The other message has been handled by the time this one comes.
    let quick = ["-L", "2500", "-o", "100", "-g", "100", "-G", "0.25"];
    let on = [&[&*path][..], &quick, &["--topology", "tree:8:8", "--explain"]].concat();
    let document = simulated(&on);
    let terms = &document["explanation"]["terms"];
    // In units of a byte's time: until 3000 a third of leaf 0's link each, so that rank 8's
    // link gives the other flow two thirds: 1000 and 2000 bytes. Then half of rank 8's link
    // each: the other 6000 bytes take until 15,000, by when 7000 are through, and the rest
    // until 18,000.
    let byte = 250;
    assert_eq!(term(terms, "gap_bytes"), (10_000 * byte, 10_000));
    assert_eq!(term(terms, "sharing"), (8_000 * byte, 1));
    let links = terms["sharing_by_link"].as_array().unwrap().iter();
    let links: Vec<_> = links.map(|link| (link["link"].as_str(), term(link, ""))).collect();
    assert_eq!(links.len(), 2, "{links:?}");
    assert_eq!(links[0], (Some("host 8 in"), (6_000 * byte, 1)));
    assert!(matches!(links[1].0, Some("leaf 0 out" | "leaf 1 in")), "{links:?}");
    assert_eq!(links[1].1, (2_000 * byte, 1));
}

/// At the instant at which a link is shared no longer another one is, as long as half of
/// it: the rate stays and the link changes.
#[test]
fn a_link_that_holds_a_message_as_the_last_one_did_is_another_link() {
    let folder = Folder::new();
    // Rank 1's message is through after 500 ns.
    let path = schedule(&folder, |rank| match rank {
        0 => "s: send 10001b to 8".to_owned(),
        1 => "s: send 1001b to 9".to_owned(),
        11 => "c: calc 500\ns: send 9001b to 8\ns requires c".to_owned(),
        8 => "a: recv 10001b from 0\nb: recv 9001b from 11".to_owned(),
        9 => "r: recv 1001b from 1".to_owned(),
        _ => String::new(),
    });
    let quick = ["-L", "2500", "-o", "100", "-g", "100", "-G", "0.25"];
    let on = [&[&*path][..], &quick, &["--topology", "tree:8:8", "--explain"]].concat();
    let terms = &simulated(&on)["explanation"]["terms"];
    assert_eq!(term(terms, "sharing"), (10_000 * 250, 1));
    let links = terms["sharing_by_link"].as_array().unwrap();
    assert_eq!(links.len(), 2, "{links:?}");
    assert_eq!(links[0]["link"], "host 8 in");
    assert_eq!([term(&links[0], ""), term(&links[1], "")], [(9_000 * 250, 1), (1_000 * 250, 1)]);
}

/// With parameters of several ranges of sizes, overheads of each end, and what else there is,
/// the numbers of the document add up, of all sets together and set by set.
#[test]
fn the_documents_terms_add_up() {
    let (mut early, mut shared) = (0, 0);
    for more in [
        &["-s", "9000", "--preset", "ompi-ib-sdr"][..],
        &["-s", "9000", "--receive", "overlap", "-O", "9", "-S", "1M"],
        &["-s", "900", "--receive", "overlap", "-O", "2", "-g", "10000", "-L", "0"],
        &["-s", "9000", "--rendezvous", "handshake", "-S", "100"],
        &["-s", "9000", "--recv-overhead", "90", "--recv-overhead-per-byte", "8"],
        &["-s", "9000", "-G", "0", "-O", "1"],
        &["-s", "1"],
        &["-s", "9000", "--noise-periodic", "10000:900", "--placement", "round-robin"],
    ] {
        for topology in ["tree:4:4", "torus:4x4"] {
            let pattern = ["--pattern", "all-to-all", "--ranks", "16", "--explain"];
            let on = [&pattern[..], &["--topology", topology], more].concat();
            let document = simulated(&on);
            let explanation = &document["explanation"];
            let terms = &explanation["terms"];
            let sum = |found: &Value, names: &[&str]| -> i64 {
                names.iter().map(|name| term(found, name).0).sum()
            };
            let others = sum(terms, &["calc", "noise", "sharing", "order"]);
            let all = ["latency", "overhead", "overhead_bytes", "gap", "gap_bytes"];
            let makespan = document["makespan_ps"].as_i64().unwrap();
            assert_eq!(sum(terms, &all) + others, makespan, "{on:?}: {terms}");
            let of_set = |set| {
                let ends = ["send_overhead", "receive_overhead", "latency", "gap", "gap_bytes"];
                sum(set, &ends) + sum(set, &["send_overhead_bytes", "receive_overhead_bytes"])
            };
            let sets = explanation["sets"].as_array().unwrap().iter();
            assert_eq!(sets.map(of_set).sum::<i64>() + others, makespan, "{on:?}");
            shared += usize::from(term(terms, "sharing").0 > 0);
            let steps = explanation["steps"].as_array().unwrap();
            let is_early =
                |steps: &[Value]| steps[1]["start_ps"].as_u64() < steps[0]["end_ps"].as_u64();
            early += usize::from(steps.windows(2).any(is_early));
        }
    }
    assert!(shared > 4 && early > 1, "{shared} {early}");
}
