//! Slopes and tolerated latencies on a network, found by further runs: against closed
//! forms, and against those without a network where it makes no difference.

use std::fmt::Write as _;

use loggap_tests::command::{refused, simulated};
use loggap_tests::folder::Folder;
use serde_json::Value;

/// L, o, g and G of the tests, in ns.
const PARAMETERS: [&str; 8] = ["-L", "1000", "-o", "200", "-g", "150", "-G", "0.25"];

/// The slope of a parameter, and the values between which it holds, in s.
#[derive(Debug)]
struct Slope {
    parameter: String,
    slope: u64,
    low: f64,
    high: f64,
}

/// What `--sensitivity` finds.
#[derive(Debug)]
struct Found {
    slopes: Vec<Slope>,
    /// By how many percent the makespan may grow, and L by how many seconds then.
    tolerances: Vec<(f64, Option<f64>)>,
    makespan: f64,
}

fn sensitivity(arguments: &[&str]) -> Found {
    let document = simulated(&[arguments, &["--sensitivity"]].concat());
    let slope = |found: &Value| Slope {
        parameter: found["parameter"].as_str().unwrap().to_owned(),
        slope: found["slope"].as_u64().unwrap(),
        low: found["low"].as_f64().unwrap(),
        high: found["high"].as_f64().unwrap_or(f64::INFINITY),
    };
    let network = arguments.contains(&"--topology");
    assert_eq!(document["sensitivity_method"], if network { "differences" } else { "causes" });
    let tolerance = |found: &Value| {
        assert!(!network || found["order_stays"] == false);
        (found["growth_percent"].as_f64().unwrap(), found["latency_s"].as_f64())
    };
    Found {
        slopes: document["sensitivity"].as_array().unwrap().iter().map(slope).collect(),
        tolerances: document["latency_tolerance"]
            .as_array()
            .unwrap()
            .iter()
            .map(tolerance)
            .collect(),
        makespan: document["makespan_s"].as_f64().unwrap(),
    }
}

/// `blocks`, a rank each, as a schedule in a file.
fn schedule(folder: &Folder, blocks: &[&str]) -> String {
    let mut text = format!("num_ranks {}\n", blocks.len());
    for (rank, block) in blocks.iter().enumerate() {
        writeln!(text, "rank {rank} {{\n{block}\n}}").unwrap();
    }
    folder.written("schedule.goal", text)
}

/// The same with each switch so wide that messages do not meet, and without.
fn on_a_star_and_flat(folder: &Folder, blocks: &[&str], latency: &str) -> [Found; 2] {
    let path = schedule(folder, blocks);
    let more = ["-L", latency, "--topology", "star"];
    let arguments = [&[&*path][..], &PARAMETERS[2..], &more].concat();
    [sensitivity(&arguments), sensitivity(&arguments[..arguments.len() - 2])]
}

#[test]
fn slopes_are_those_of_closed_forms() {
    let folder = Folder::new();
    let broadcast = ["--pattern", "binomialtreebcast", "--ranks", "16", "-s", "8"];
    let flat = sensitivity(&broadcast);
    let star = sensitivity(&[&broadcast[..], &["--topology", "star"]].concat());
    for (flat, star) in flat.slopes.iter().zip(&star.slopes) {
        assert_eq!((&flat.parameter, flat.slope), (&star.parameter, star.slope));
        assert!(star.low < star.high && star.high.is_finite(), "{star:?}");
    }
    // Eight pairs share an uplink of two links: 2o + L + 4·w·G.
    let block = |rank: u32| match rank {
        0..8 => format!("s: send 65536b to {}", rank + 8),
        _ => format!("r: recv 65536b from {}", rank - 8),
    };
    let blocks: Vec<String> = (0..16).map(block).collect();
    let blocks: Vec<&str> = blocks.iter().map(String::as_str).collect();
    let path = schedule(&folder, &blocks);
    let tapered = [&[&*path][..], &PARAMETERS, &["--topology", "tree:8:4"]].concat();
    let found = sensitivity(&tapered);
    let counts: Vec<u64> = found.slopes.iter().map(|slope| slope.slope).collect();
    assert_eq!(counts, [1, 2, 0, 4 * 65_535, 0]);
    // L alone makes the makespan grow, one to one.
    for (percent, latency) in found.tolerances {
        let growth = percent / 100.0 * found.makespan;
        assert!((latency.unwrap() / growth - 1.0).abs() < 2e-3, "{latency:?} {growth}");
    }
}

#[test]
fn a_slope_ends_before_a_bend_however_long_the_makespan() {
    let folder = Folder::new();
    // The message decides from L = 1050 ns on, in a makespan of 100 ms.
    let receiver = "c: calc 1250\nr: recv 8b from 0\nd: calc 100000000\nr requires c\nd requires r";
    let [star, flat] = on_a_star_and_flat(&folder, &["s: send 8b to 1", receiver], "1000");
    let latency = &star.slopes[0];
    assert_eq!((latency.slope, flat.slopes[0].slope), (0, 0));
    assert!(latency.high > 1000.5e-9 && latency.high <= 1050e-9, "{latency:?}");
    let [star, _] = on_a_star_and_flat(&folder, &["s: send 8b to 1", receiver], "1100");
    assert_eq!(star.slopes[0].slope, 1, "{:?}", star.slopes[0]);
}

#[test]
fn a_latency_is_tolerated_as_on_a_network_without_limits() {
    let folder = Folder::new();
    let slack = "r: recv 8b from 0\nc: calc 1000000\nd: calc 10\nd requires r\nd requires c";
    let mut ends = [String::new(), String::new()];
    for turn in 0..200 {
        for (end, text) in ends.iter_mut().enumerate() {
            let (one, other) = if end == 0 { ("send", "recv") } else { ("recv", "send") };
            writeln!(text, "a{turn}: {one} 8b to {}", 1 - end).unwrap();
            writeln!(text, "b{turn}: {other} 8b to {}\nb{turn} requires a{turn}", 1 - end).unwrap();
            if turn > 0 {
                writeln!(text, "a{turn} requires b{}", turn - 1).unwrap();
            }
        }
    }
    let ends =
        ends.map(|text| {
            text.lines()
                .map(|line| {
                    if line.contains("recv") { line.replace(" to ", " from ") } else { line.into() }
                })
                .collect::<Vec<String>>()
                .join("\n")
        });
    let ping_pong = [ends[0].as_str(), ends[1].as_str()];
    for blocks in [&["s: send 8b to 1", slack][..], &ping_pong] {
        let [star, flat] = on_a_star_and_flat(&folder, blocks, "1000");
        assert_eq!(star.slopes[0].slope, flat.slopes[0].slope);
        for ((percent, star), (_, flat)) in star.tolerances.iter().zip(&flat.tolerances) {
            let (star, flat) = (star.unwrap(), flat.unwrap());
            assert!((star / flat - 1.0).abs() < 2e-3, "{percent}%: {star} {flat}");
        }
    }
    // Nothing is sent, so that nothing depends on L.
    let [star, _] = on_a_star_and_flat(&folder, &["c: calc 5", "c: calc 100"], "1000");
    assert!(star.tolerances.iter().all(|(_, latency)| latency.is_none()), "{star:?}");
}

/// Which of two messages is first changes between L of 1000 and 1000.1 ns, and the
/// makespan falls.
#[test]
fn where_the_makespan_falls_nothing_is_known() {
    let folder = Folder::new();
    let blocks = [
        "s: send 1b to 3",
        "c: calc 1200\ns: send 1b to 2\ns requires c",
        "a: recv 1b from 3\nb: recv 1b from 1\ns: send 1b to 4\ns requires b",
        "r: recv 1b from 0\ns: send 1b to 2\ns requires r",
        "r: recv 1b from 2\nc: calc 5000\nc requires r",
    ];
    let [star, flat] = on_a_star_and_flat(&folder, &blocks, "999.5");
    let (star, flat) = (&star.slopes[0], &flat.slopes[0]);
    assert_eq!((star.slope, flat.slope), (2, 2));
    assert!(star.high <= 1000e-9 && star.low < 999e-9, "{star:?}");
}

/// Messages of one byte are carried by no link, so that no end is rounded, however
/// many there are.
#[test]
fn a_slope_beside_many_messages_of_a_byte_is_as_exact_as_without_them() {
    let folder = Folder::new();
    let receiver =
        "c: calc 1250\nr: recv 64b from 0\nd: calc 100000000\nr requires c\nd requires r";
    let (mut many, mut received) = (String::new(), String::new());
    for turn in 0..20_000 {
        writeln!(many, "b{turn}: send 1b to 3").unwrap();
        writeln!(received, "b{turn}: recv 1b from 2").unwrap();
    }
    let blocks = ["s: send 64b to 1", receiver, &many, &received];
    let path = schedule(&folder, &blocks);
    let arguments = [&[&*path][..], &PARAMETERS, &["--topology", "star"]].concat();
    let found = sensitivity(&arguments);
    let slopes: Vec<u64> = found.slopes.iter().map(|slope| slope.slope).collect();
    assert_eq!(slopes, [0, 1, 0, 0, 63]);
    // The message of 64 bytes decides from L = 1034.25 ns on.
    let latency = &found.slopes[0];
    assert!(latency.high > 1000e-9 && latency.high <= 1034.25e-9, "{latency:?}");
}

/// What comes first at rank 2 is rank 1's message until L exceeds 1.5 µs − 2o; then the
/// receive of any source takes rank 0's, and the other one waits for ever.
#[test]
fn a_value_at_which_the_schedule_deadlocks_ends_what_is_known_and_loses_nothing() {
    let folder = Folder::new();
    let blocks = [
        "c: calc 1500\ns: send 8b to 2\ns requires c",
        "r: recv 8b from 3\ns: send 8b to 2\ns requires r",
        "a: recv 8b from -1 tag -1\nb: recv 8b from 0\nb requires a",
        "s: send 8b to 1",
    ];
    let path = schedule(&folder, &blocks);
    let arguments = [&[&*path][..], &PARAMETERS, &["--topology", "star"]].concat();
    let found = sensitivity(&arguments);
    let latency = &found.slopes[0];
    assert!(latency.high > 1000e-9 && latency.high < 1100.1e-9, "{latency:?}");
    for (_, tolerated) in found.tolerances {
        assert!(tolerated.unwrap() <= 100e-9, "{tolerated:?}");
    }
    let (code, text) = refused(&[&arguments[..], &["--sweep", "L=1us:2us:3"]].concat());
    assert_eq!(code, 1);
    assert!(text.contains("2 of 3 points"), "{text}");
}

/// Where G and O are 0 there is nothing to go by, and slopes are known all the same.
#[test]
fn what_bytes_cost_is_known_where_they_cost_nothing() {
    let bytes = ["--pattern", "binomial-broadcast", "--ranks", "4", "-s", "1001", "-G", "0"];
    let found = sensitivity(&[&bytes[..], &["--topology", "star"]].concat());
    let slope = |name: &str| found.slopes.iter().find(|slope| slope.parameter == name).unwrap();
    let gap = slope("G");
    assert!(gap.slope >= 1_000 && gap.high > 0.0, "{gap:?}");
    assert!(slope("O").slope >= 1_000, "{found:?}");
}
