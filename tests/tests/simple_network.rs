//! LogGOPSim's network `simple`: its own results, what is defined where it stops, and
//! what the command says.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "test code; the lints only know functions marked #[test]"
)]

use std::fs;

use loggap_tests::command::{loggap, refused, simulated};
use serde_json::Value;
use tempfile::TempDir;

const STAR: &str = "digraph { H0->S [comment=\"*\"]; H1->S [comment=\"*\"]; H2->S [comment=\"*\"]; \
                    S->H0 [comment=\"H0\"]; S->H1 [comment=\"H1\"]; S->H2 [comment=\"H2\"] }";
const PARAMETERS: [&str; 10] = ["-L", "100", "-o", "0", "-g", "0", "-G", "1", "-O", "0"];

fn written(folder: &TempDir, name: &str, content: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The document of a run of `goal` on `dot`.
fn ran(goal: &str, dot: &str, more: &[&str]) -> Value {
    let folder = TempDir::new().unwrap();
    let (goal, dot) = (written(&folder, "x.goal", goal), written(&folder, "net.dot", dot));
    let network = ["--network", "simple", "--topology", &dot, "--finish"];
    simulated(&[&[&*goal], &network[..], more].concat())
}

/// When each rank is done, in ns.
fn finish(document: &Value) -> Vec<u64> {
    let finish = document["finish_ps"].as_array().unwrap().iter();
    finish
        .map(|time| time.as_u64().unwrap())
        .inspect(|time| assert_eq!(time % 1000, 0))
        .map(|time| time / 1000)
        .collect()
}

#[test]
fn finishing_times_are_those_of_loggopsim() {
    let text = include_str!("../data/loggopsim_simple.json");
    let data: Value = serde_json::from_str(text).unwrap();
    let cases = data["cases"].as_array().unwrap();
    assert!(cases.len() >= 70);
    for (number, case) in cases.iter().enumerate() {
        let parameters = ["L", "o", "g", "G", "O", "S"];
        let values = parameters.map(|name| case[name].to_string());
        let options: Vec<String> = parameters.iter().map(|name| format!("-{name}")).collect();
        let more: Vec<&str> =
            options.iter().zip(&values).flat_map(|(name, value)| [&**name, &**value]).collect();
        let topology = case["topology"].as_str().unwrap();
        let dot = data["topologies"][topology].as_str().unwrap();
        let document = ran(case["goal"].as_str().unwrap(), dot, &more);
        let expected: Vec<u64> = case["finish_ns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|time| time.as_u64().unwrap())
            .collect();
        assert_eq!(finish(&document), expected, "case {number}: {case}");
    }
}

#[test]
fn a_message_alone_is_late_by_its_bytes_beyond_o_and_l() {
    let folder = TempDir::new().unwrap();
    for (bytes, late) in [(0, 0), (1, 0), (100, 0), (101, 1), (5000, 4900), (90_000, 89_900)] {
        let apart =
            "num_ranks 2\nrank 0 {\ns: send SIZEb to 1\n}\nrank 1 {\nr: recv SIZEb from 0\n}\n";
        let own = "num_ranks 2\nrank 0 {\nc: calc 1\n}\nrank 1 {\ns: send SIZEb to 1\nr: recv SIZEb from 1\n}\n";
        for goal in [apart, own] {
            let goal = goal.replace("SIZE", &bytes.to_string());
            let flat = written(&folder, "x.goal", &goal);
            let flat = simulated(&[&[&*flat, "--finish", "-S", "1000"], &PARAMETERS[..]].concat());
            let simple = ran(&goal, STAR, &[&["-S", "1000"], &PARAMETERS[..]].concat());
            assert_eq!(finish(&simple)[1], finish(&flat)[1] + late, "{bytes}: {goal}");
        }
    }
}

#[test]
fn a_message_that_waits_for_its_receiver_has_left_the_network() {
    // Both have left at 2000, after polls in halving steps; each is handled for 999 ns.
    let incast = "num_ranks 3\nrank 0 {\na: recv 1000b from 1\nb: recv 1000b from 2\n}\n\
                  rank 1 {\ns: send 1000b to 0\n}\nrank 2 {\ns: send 1000b to 0\n}\n";
    assert_eq!(finish(&ran(incast, STAR, &PARAMETERS)), [3998, 0, 0]);
    // The receiver computes until 9000; the message is not polled after 1000, and what
    // host 2 sends to host 0 from 2000 on is alone.
    let computing = "num_ranks 3\nrank 0 {\nc: calc 9000\na: recv 1000b from 1\nb: recv 1000b from 2 tag 1\n}\n\
                     rank 1 {\ns: send 1000b to 0\n}\n\
                     rank 2 {\nc: calc 2000\ns: send 1000b to 0 tag 1\ns requires c\n}\n";
    assert_eq!(finish(&ran(computing, STAR, &PARAMETERS)), [9000 + 2 * 999, 0, 2000]);
}

#[test]
fn a_send_that_begins_when_a_message_leaves_finds_it_gone() {
    // Host 1's message has left at 1000, long before it can arrive; host 2's, from then
    // on, is alone, and through at 2000. Both arrive later, o + L after their sends.
    let goal = |start: u64| {
        format!(
            "num_ranks 3\nrank 0 {{\na: recv 1000b from 1\nb: recv 5000b from 2\n}}\n\
             rank 1 {{\ns: send 1000b to 0\n}}\nrank 2 {{\nc: calc {start}\ns: send 5000b to 0\ns requires c\n}}\n"
        )
    };
    let times = |start| {
        let parameters = ["-L", "4000", "-o", "0", "-g", "0", "-G", "0", "-O", "0"];
        finish(&ran(&goal(start), STAR, &parameters))[0]
    };
    assert_eq!(times(1000), 6000);
    // 1 ns later it finds it there until 4000, when 3500.5 of its bytes are left; 1001 more
    // are through when it is polled at 5001.
    assert_eq!(times(1001), 5001 + 2500);
}

#[test]
fn the_network_is_named_and_patterns_and_sweeps_run_on_it() {
    let folder = TempDir::new().unwrap();
    let dot = written(&folder, "net.dot", STAR);
    let pattern = ["--pattern", "all-to-all", "--ranks", "3", "-s", "1K"];
    let network = ["--network", "simple", "--topology", &dot];
    let run = |more: &[&str]| simulated(&[&pattern, &network[..], more].concat());
    let document = run(&["--sweep", "L=1000:3000:2"]);
    let expected = serde_json::json!({
        "kind": "simple", "topology": dot, "placement": "block", "hosts": 3, "hosts_used": 3,
        "links": 6
    });
    assert_eq!(document["network"], expected);
    for point in document["sweep"]["points"].as_array().unwrap() {
        let latency = format!("{:.0}", point["latency_s"].as_f64().unwrap() * 1e9);
        assert_eq!(point["makespan_ps"], run(&["-L", &latency])["makespan_ps"]);
    }
    for more in [["--receive", "overlap"], ["--rendezvous", "handshake"], ["--placement", "random"]]
    {
        assert!(run(&[&more[..], &["-S", "100", "--counters"]].concat())["makespan_ps"].is_u64());
    }
    let output = loggap().arg("simulate").args(pattern).args(network).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let line = format!("network                simple, {dot}: 3 hosts, 6 links, placed: block");
    assert!(text.contains(&line), "{text}");
}

#[test]
fn what_has_no_meaning_is_refused_by_name() {
    let folder = TempDir::new().unwrap();
    let dot = written(&folder, "net.dot", STAR);
    let wrong = |more: &[&str]| {
        let pattern = ["--pattern", "all-to-all", "--ranks", "3", "-s", "1K"];
        let (code, told) = refused(&[&pattern[..], &["--network", "simple"], more].concat());
        assert_eq!(code, 2, "{told}");
        told
    };
    let on = |more: &[&str]| wrong(&[&["--topology", &*dot], more].concat());
    assert!(wrong(&[]).contains("--network simple needs --topology FILE.dot"));
    assert!(wrong(&["--topology", "star"]).contains("needs --topology FILE.dot"));
    assert!(
        wrong(&["--level", "2:L=1,o=1,g=1,G=1"])
            .contains("--level has a meaning with --network levels")
    );
    for option in [&["--link-capacity", "2"][..], &["--network-plot", "x.svg"]] {
        assert!(on(option).contains(option[0]), "{option:?}");
    }
    assert!(on(&["--sensitivity"]).contains("--sensitivity has no meaning with --network simple"));
    assert!(on(&["--level", "2:L=1,o=1,g=1,G=1"]).contains("cannot be used with"));
    let file = |text: &str| wrong(&["--topology", &written(&folder, "bad.dot", text)]);
    let missing = file(&STAR.replace(" [comment=\"H1\"]", ""));
    assert!(missing.contains("bad.dot: line 1: the edge from S to H1 has no comment"), "{missing}");
    let wide = file(&STAR.replace("[comment=\"H1\"]", "[comment=\"H1\", capacity=2]"));
    assert!(wide.contains("line 1: a capacity has no effect"), "{wide}");
    let cycle = file(
        "digraph { H0->S; H1->S; H2->S; S->T [comment=\"*\"]; S->H0 [comment=\"H0\"]; \
         T->S [comment=\"H1\"]; T->H2 [comment=\"H2\"]; T->H1 [comment=\"H0\"] }",
    );
    assert!(cycle.contains("messages go round a cycle"), "{cycle}");
    let few = "digraph { H0->H1; H1->H0 }";
    assert!(file(few).contains("has 2 hosts"), "{}", file(few));
}

/// Rank 0 computes and then sends; the message is in the network for 1 µs, and handled
/// for 999 ns.
const AFTER_CALC: &str = "num_ranks 3\nrank 0 {\nc: calc 10000\ns: send 1000b to 1\ns requires c\n}\n\
                          rank 1 {\nr: recv 1000b from 0\n}\nrank 2 {\n}\n";

#[test]
fn noise_takes_from_processors_beside_the_network() {
    assert_eq!(finish(&ran(AFTER_CALC, STAR, &PARAMETERS)), [10_000, 11_999, 0]);
    for seed in ["1", "2", "3"] {
        let noise = ["--noise-periodic", "1000:100", "--seed", seed];
        let times = finish(&ran(AFTER_CALC, STAR, &[&PARAMETERS[..], &noise].concat()));
        // A tenth of the time is lost; o = 0, so that nothing falls on the message.
        assert!((11_000..=11_300).contains(&times[0]), "{times:?}");
        assert_eq!(times[1], times[0] + 1_999);
    }
}

#[test]
fn a_timeline_has_messages_handled_when_they_are_through() {
    let folder = TempDir::new().unwrap();
    let drawn = folder.path().join("drawn.viz");
    let to_file = ["--timeline", drawn.to_str().unwrap()];
    ran(AFTER_CALC, STAR, &[&PARAMETERS[..], &to_file].concat());
    let text = fs::read_to_string(&drawn).unwrap();
    assert!(text.contains("\nloclop 0 0 0 10000 "), "{text}");
    assert!(text.contains("\norecv 1 0 11000 11999 "), "{text}");
    assert!(text.contains("\ntransmission 0 1 10000 11000 1000 1 "), "{text}");
}

/// Drawn latencies count where o + L is longer than the bytes take, and nowhere else.
#[test]
fn draws_are_simulated_on_the_network() {
    let folder = TempDir::new().unwrap();
    let profile = "{\"schema_version\":1,\"ranges\":[{\"first_bytes\":1,\"last_bytes\":65536,\
                   \"latency_s\":2e-6,\"latency_s_lo\":1.5e-6,\"latency_s_hi\":2.5e-6,\
                   \"send_overhead_s\":1e-6,\"send_overhead_per_byte_s\":0,\"recv_overhead_s\":1e-6,\
                   \"recv_overhead_per_byte_s\":0,\"gap_s\":1e-6,\"gap_per_byte_s\":1e-9}]}";
    let profile = written(&folder, "link.json", profile);
    let drawn = |size: &str| {
        let goal = AFTER_CALC.replace("1000b", &format!("{size}b"));
        let (goal, dot) = (written(&folder, "x.goal", &goal), written(&folder, "net.dot", STAR));
        let network = ["--network", "simple", "--topology", &dot, "--profile", &profile];
        let document = simulated(&[&[&*goal, "--monte-carlo", "60"], &network[..]].concat());
        let of = |key: &str| document["monte_carlo"][key].as_u64().unwrap();
        [of("min_ps"), document["makespan_ps"].as_u64().unwrap(), of("max_ps")]
    };
    // 20 µs are longer than any o + L; handled for 1 + 19.999 µs.
    let late = 10_000_000 + 20_000_000 + 20_999_000;
    let [least, given, most] = drawn("20000");
    assert_eq!(given, late);
    // Polls are whole ns after o + L.
    assert!(late <= least && most < late + 1_000, "{least} {most}");
    let [least, given, most] = drawn("1000");
    assert_eq!(given, 10_000_000 + 3_000_000 + 1_999_000);
    assert!(least < given && given < most, "{least} {given} {most}");
}
