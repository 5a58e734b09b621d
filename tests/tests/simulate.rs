//! `loggap simulate` as a user runs it.

use std::fmt::Write as _;
use std::fs;

use loggap_tests::cases::Case;
use loggap_tests::command::{Run, assert_refused, loggap, refused, simulated};
use loggap_tests::folder::Folder;
use serde_json::Value;

fn simulated_file(path: &str, arguments: &[&str]) -> Value {
    simulated(&[&[path], arguments].concat())
}

fn makespan(arguments: &[&str]) -> u64 {
    simulated(arguments)["makespan_ps"].as_u64().unwrap()
}

#[test]
fn the_broadcast_over_a_million_ranks_takes_110_microseconds() {
    let json = simulated(&["--pattern", "binomialtreebcast", "--ranks", "1M", "-s", "1"]);
    assert_eq!(json["makespan_ps"].as_u64(), Some(110_000_000));
    assert_eq!(json["makespan_s"].as_f64(), Some(110e-6));
    assert_eq!(json["ops"].as_u64(), Some(2_097_150));
    assert_eq!(json["events"].as_u64(), Some(3_145_725));
    assert!(json["memory_bytes"].as_u64().unwrap() < 90 * 2_097_150 * 2);
}

#[test]
fn text_binary_standard_input_and_pattern_give_the_same() {
    let folder = Folder::new();
    for pattern in ["dissemination", "linear_alltoall", "allreduce_ring", "nwaydissemination"] {
        let pattern = ["--pattern", pattern, "--ranks", "23", "-s", "70K", "--nway", "2"];
        let expected = simulated(&[&pattern[..], &["--finish"]].concat())["finish_ps"].clone();
        for name in ["a.goal", "a.bin", "a.lgs"] {
            let path = folder.path(name);
            let generate = ["goal", "generate"];
            loggap().args(generate).args(pattern).arg("-o").arg(&path).assert().success();
            assert_eq!(simulated_file(&path, &["--finish"])["finish_ps"], expected, "{name}");
            let piped = loggap()
                .args(["simulate", "-", "--finish", "-J"])
                .write_stdin(fs::read(&path).unwrap())
                .succeeds()
                .json();
            assert_eq!(piped["finish_ps"], expected, "{name} from standard input");
        }
    }
}

#[test]
fn patterns_that_are_computed_give_what_they_give_when_they_are_stored() {
    for pattern in ["binomialtreereduce", "chained_dissem", "linear_alltoall", "pipelinedring"] {
        let pattern = ["--pattern", pattern, "--ranks", "37", "-s", "1000", "--segment", "300"];
        let noise = ["--noise-periodic", "20000:700", "--finish"];
        let computed = simulated(&[&pattern[..], &noise].concat());
        // Counters need every operation.
        let stored = simulated(&[&pattern[..], &noise, &["--counters"]].concat());
        for key in ["ranks", "ops", "events", "makespan_ps", "last_rank", "finish_ps"] {
            assert_eq!(computed[key], stored[key], "{pattern:?} {key}");
        }
        assert_ne!(computed["memory_bytes"], stored["memory_bytes"]);
    }
}

#[test]
fn schedules_with_several_processors_and_interfaces_are_read_twice_and_run() {
    let folder = Folder::new();
    let text = "num_ranks 1\nrank 0 {\na: calc 100\nb: calc 70 cpu 1\nc: calc 5 cpu 2\n\
                c requires b\n}\n";
    let path = folder.written("cpus.goal", text);
    assert_eq!(simulated_file(&path, &[])["makespan_ps"].as_u64(), Some(100_000));
}

#[test]
fn parameters_come_from_options_presets_and_profiles() {
    let pair = ["--pattern", "gather", "--ranks", "2", "-s", "1001"];
    let of = |more: &[&str]| makespan(&[&pair[..], more].concat());
    // L + 2o + (s - 1)G.
    assert_eq!(of(&[]), 2_500_000 + 2 * 1_500_000 + 6_000_000);
    let own = ["-L", "1000.5", "-o", "200", "-g", "0", "-G", "0.02", "-O", "0.001"];
    assert_eq!(of(&own), 1_000_500 + 400_000 + 20_000);
    assert_eq!(of(&["--preset", "loggopsim"]), of(&[]));
    // A receiver is held for the longer of O and G.
    assert_eq!(of(&["-O", "8"]), 2_500_000 + 2 * 1_500_000 + 8_000_000);
    let folder = Folder::new();
    let range = |first: u64, last: u64, latency: &str| {
        format!(
            r#"{{"first_bytes":{first},"last_bytes":{last},"gap_s":1e-6,"gap_per_byte_s":1e-9,
                "latency_s":{latency},"send_overhead_s":2e-6,"recv_overhead_s":4e-6}}"#
        )
    };
    let profile = format!(
        r#"{{"schema_version":1,"ranges":[{},{}],
            "changes":[{{"at_bytes":1000,"lo_bytes":900,"hi_bytes":1001}}]}}"#,
        range(1, 999, "5e-6"),
        range(1_000, 9_999, "7e-6")
    );
    let path = folder.written("p.json", profile);
    // The larger size has the second range's latency; both ends have their own o.
    assert_eq!(of(&["--profile", &path]), 7_000_000 + 6_000_000 + 1_000_000);
    let bare = r#"{"schema_version":1,"ranges":[{"first_bytes":1,"last_bytes":9,"gap_s":1e-6}]}"#;
    let path = folder.written("bare.json", bare);
    assert_refused(&[&pair[..], &["--profile", &path]].concat(), 2, "from 1 to 9 B");
}

#[test]
fn overheads_of_the_two_ends_are_told_apart() {
    let gather = ["--pattern", "gather", "--ranks", "8", "-s", "51"];
    let of = |more: &[&str]| makespan(&[&gather[..], more].concat());
    // o_s + L + 7 (o_r + 50 max(O_r, G)).
    let apart = ["--send-overhead", "1000", "--recv-overhead", "2000"];
    assert_eq!(of(&apart), 1_000_000 + 2_500_000 + 7 * (2_000_000 + 300_000));
    assert_eq!(of(&["--recv-overhead-per-byte", "7"]), 4_000_000 + 7 * (1_500_000 + 350_000));
    let same = ["--send-overhead", "1500", "--recv-overhead", "1500", "--explain"];
    assert_eq!(of(&same), of(&[]));
    assert_eq!(of(&[&apart[..], &["--counters"]].concat()), of(&apart));
    // The processor is not held by the bytes.
    let overlap = of(&[&apart[..], &["--receive", "overlap"]].concat());
    assert_eq!(overlap, 1_000_000 + 2_500_000 + 7 * 2_000_000);
    let found = simulated(&[&gather[..], &apart, &["--sensitivity"]].concat());
    let found = found["sensitivity"].as_array().unwrap();
    let symbols: Vec<_> = found.iter().map(|at| at["parameter"].as_str().unwrap()).collect();
    assert_eq!(symbols, ["L", "o_s", "o_r", "g", "G", "O_s", "O_r"]);
    let slopes: Vec<_> = found.iter().map(|at| at["slope"].as_u64().unwrap()).collect();
    assert_eq!(slopes, [1, 1, 7, 0, 350, 0, 0]);
    assert_refused(
        &[&gather[..], &apart, &["--preset", "loggopsim"]].concat(),
        2,
        "--send-overhead",
    );
}

#[test]
fn the_switches_change_how_messages_are_received_and_sent() {
    let gather = ["--pattern", "gather", "--ranks", "8", "-s", "51"];
    let of = |more: &[&str]| makespan(&[&gather[..], more].concat());
    // The processor is free while the interface takes the bytes; then o is
    // what spaces the messages.
    assert_eq!(of(&[]), 16_600_000);
    assert_eq!(of(&["--receive", "overlap"]), 14_500_000);
    let pair = ["--pattern", "gather", "--ranks", "2", "-s", "100", "-S", "10"];
    let whole = 2_500_000 + 3_000_000 + 99 * 6_000;
    assert_eq!(makespan(&pair), whole);
    let handshake = [&pair[..], &["--rendezvous", "handshake"]].concat();
    assert_eq!(makespan(&handshake), whole + 4 * 1_500_000 + 2 * 2_500_000);
}

/// A broadcast of 8 B over 16 ranks is four rounds: two within blocks of four
/// ranks, two between them.
#[test]
fn near_ranks_have_parameters_of_their_own() {
    const NEAR: &str = "4:L=100,o=100,g=100,G=1";
    let broadcast = ["--pattern", "binomialtreebcast", "--ranks", "16", "-s", "8"];
    let with = |more: &[&str]| simulated(&[&broadcast[..], more].concat());
    let (near, far) = (100 + 100 + 107, 1_500 + 2_500 + 1_542);
    let blocks = with(&["--level", NEAR]);
    assert_eq!(blocks["makespan_ps"], (2 * near + 2 * far) * 1_000);
    assert_eq!(blocks["engine"], "windows");
    assert_eq!(blocks["network"]["kind"], "levels");
    assert_eq!(blocks["network"]["levels"][0]["block"], 4);
    // A larger level comes after the smaller ones, in whatever order they are given.
    let nested = with(&["--level", "16:L=200,o=200,g=200,G=2", "--level", NEAR]);
    let rack = 200 + 200 + 214;
    assert_eq!(nested["makespan_ps"], (2 * near + 2 * rack) * 1_000);

    // With ranks dealt out to four nodes, the first two rounds are between nodes.
    let folder = Folder::new();
    let nodes: Vec<_> = (0..16).map(|rank| (rank % 4).to_string()).collect();
    let nodes = folder.written("nodes", nodes.join(" "));
    let dealt = ["--level", "1:L=100,o=100,g=100,G=1", "--nodes", &nodes];
    let dealt = with(&dealt);
    assert_eq!(dealt["makespan_ps"], (2 * near + 2 * far) * 1_000);
    let first = |run: &Value| run["finish_ps"][1].as_u64().unwrap();
    let finish = |level: &[&str]| with(&[level, &["--finish"]].concat());
    assert!(first(&finish(&["--level", NEAR])) < far * 1_000);
    let all = ["--level", "1:L=100,o=100,g=100,G=1", "--nodes", &nodes];
    assert!(first(&finish(&all)) >= far * 1_000);

    // Slopes: each parameter stands on the path once a round of its level.
    let slopes = with(&["--level", NEAR, "--sensitivity"]);
    let latencies: Vec<_> = slopes["sensitivity"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|slope| slope["parameter"] == "L")
        .map(|slope| [&slope["level"], &slope["slope"]].map(|number| number.as_u64().unwrap()))
        .collect();
    assert_eq!(latencies, [[0, 2], [1, 2]]);
}

#[test]
fn levels_that_are_none_are_refused_in_words() {
    let folder = Folder::new();
    let short = folder.written("nodes", "0 0 1");
    let refused = |more: &[&str]| {
        refused(&[&["--pattern", "gather", "--ranks", "4", "-s", "8"], more].concat())
    };
    let near = "4:L=1,o=1,g=1,G=1";
    for (options, words) in [
        (&["--level", "8"][..], "expected RANKS:WHAT"),
        (&["--level", "0:ompi-ib-sdr"], "'0' is no number of ranks"),
        (&["--level", "4:L=1,o=1,g=1"], "G is missing"),
        (&["--level", "4:L=1,o=1,L=2,g=1,G=1"], "'L=2' is none of"),
        (&["--level", "4:L=1,o=x,g=1,G=1"], "'o=x'"),
        (&["--level", "4:missing.json"], "'missing.json'"),
        (&["--level", near, "--level", "6:ompi-ib-sdr"], "6 is no multiple of the level of 4"),
        (&["--level", near, "--level", near], "--level 4: is given twice"),
        (&["--level", near, "--nodes", &short], "nodes for 3 of 4 ranks"),
        (&["--nodes", &short], "--level"),
        (&["--network", "levels"], "needs --level"),
        (&["--level", near, "--network", "flat"], "--network levels only"),
        (&["--level", near, "--topology", "star"], "cannot be used with"),
    ] {
        let (code, error) = refused(options);
        assert_eq!(code, 2, "{options:?}");
        assert!(error.contains(words), "{options:?}: {error}");
    }
}

#[test]
fn noise_lengthens_runs_and_is_decided_by_the_seed() {
    let run = ["--pattern", "dissemination", "--ranks", "64"];
    let of = |more: &[&str]| makespan(&[&run[..], more].concat());
    let quiet = of(&[]);
    let periodic = ["--noise-periodic", "20000:1000"];
    let noisy = of(&periodic);
    assert!(noisy > quiet, "{noisy}");
    assert_eq!(noisy, of(&periodic));
    let seeds: Vec<u64> = ["1", "2", "3"]
        .iter()
        .map(|seed| of(&[&periodic[..], &["--seed", seed]].concat()))
        .collect();
    assert!(seeds.iter().any(|&other| other != noisy), "{seeds:?}");
    // With one phase for all, whoever is hit is hit together.
    assert!(of(&[&periodic[..], &["--noise-cosched"]].concat()) <= noisy);
    let folder = Folder::new();
    let file = folder.written("n.txt", "# Trace length [ns]: 20000\n19000 1000\n");
    assert_eq!(of(&["--noise", &file]), noisy);
    assert!(of(&["--noise-exponential", "5000:500"]) > quiet);
    let broken = folder.written("b.txt", "12 x\n");
    assert_refused(&[&run[..], &["--noise", &broken]].concat(), 2, "b.txt: line 1, column 4");
    assert_refused(&[&run[..], &["--noise-periodic", "5:9"]].concat(), 2, "shorter than PERIOD");
}

#[test]
fn the_explanation_adds_up_to_the_makespan() {
    let folder = Folder::new();
    let case = Case::all().into_iter().find(|case| case.name.as_deref() == Some("overlap-big-G"));
    let text = case.unwrap().goal.unwrap();
    let path = folder.written("x.goal", text);
    for json in [
        simulated_file(&path, &["--explain"]),
        simulated_file(&path, &["--explain", "--rendezvous", "handshake", "-S", "1"]),
        simulated(&["--pattern", "allreduce_ring", "--ranks", "9", "-s", "70000", "--explain"]),
        simulated(&["--pattern", "binomialtreebcast", "--ranks", "1000", "--explain"]),
    ] {
        let makespan = json["makespan_ps"].as_u64().unwrap();
        let terms = json["explanation"]["terms"].as_object().unwrap();
        let sum: u64 = terms.values().map(|term| term["time_ps"].as_u64().unwrap()).sum();
        assert_eq!(sum, makespan);
        let steps = json["explanation"]["steps"].as_array().unwrap();
        assert_eq!(steps.last().unwrap()["end_ps"].as_u64(), Some(makespan));
    }
    let text = loggap()
        .args(["simulate", "--explain", "--pattern", "gather", "--ranks", "8", "-s", "51"])
        .succeeds()
        .stdout;
    assert!(text.contains("12000            8  overheads (o)"), "{text}");
}

/// The rows of the table of sensitivities, each with its words, below its two head lines.
fn sensitivity_rows(arguments: &[&str]) -> Vec<Vec<String>> {
    let text = loggap().arg("simulate").args(arguments).arg("--sensitivity").succeeds().stdout;
    let (_, table) = text.split_once("# slope = d(makespan)/d(parameter), valid in").unwrap();
    let (table, _) = table.split_once("# L may grow").unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    table.lines().skip(2).map(words).collect()
}

#[test]
fn the_table_of_sensitivities_has_units_and_shares_of_the_makespan() {
    let pattern = ["--pattern", "binomialtreebcast", "--ranks", "64", "-s", "8"];
    let rows = sensitivity_rows(&pattern);
    // 6 L of 33252 ns, 42 B at 6 ns/B.
    assert_eq!(rows[0], ["L", "0", "6", "2500", "0", "-", "ns", "45.11"]);
    assert_eq!(rows[3][..4], ["G", "0", "42", "6"]);
    assert_eq!(rows[3][6..], ["ns/B", "0.76"]);
    let json = simulated(&[&pattern[..], &["--sensitivity"]].concat());
    let share = json["sensitivity"][0]["makespan_share"].as_f64().unwrap();
    assert!((share - 15_000.0 / 33_252.0).abs() < 1e-12, "{share}");
    // The order of events is not known with two processors: from runs, between values tried.
    let folder = Folder::new();
    let two = "num_ranks 2\nrank 0 {\nsend 8b to 1\ncalc 5 cpu 1\n}\nrank 1 {\nrecv 8b from 0\n}\n";
    let two = folder.written("two.goal", two);
    let rows = sensitivity_rows(&[&*two]);
    assert_eq!(rows[0], ["L", "0", "1", "2500", "0", "5000", "ns", "45.11"]);
}

#[test]
fn on_a_network_the_slopes_of_a_sweep_are_said_to_be_differences() {
    let sweep = ["simulate", "--pattern", "bcast", "--ranks", "8", "--sensitivity", "--sweep"];
    let told = |more: &[&str]| loggap().args(sweep).arg("L=1us:3us:3").args(more).succeeds().stdout;
    let differences = "slope: of the given parameters by differences of runs";
    let (flat, star) = (told(&[]), told(&["--topology", "star"]));
    assert!(star.contains(differences) && !star.contains("proved"), "{star}");
    assert!(flat.contains("slope: where it is proved") && !flat.contains(differences), "{flat}");
}

#[test]
fn sensitivities_are_counts_with_the_interval_in_which_they_hold() {
    let run = ["--pattern", "binomialtreebcast", "--ranks", "64", "-s", "8", "--sensitivity"];
    let json = simulated(&run);
    let found = json["sensitivity"].as_array().unwrap();
    let slopes: Vec<_> = found.iter().map(|at| at["slope"].as_u64().unwrap()).collect();
    assert_eq!(slopes, [6, 12, 0, 42, 0]);
    let keys = ["first_bytes", "level"].map(|key| found[0][key].as_u64());
    assert_eq!(keys, [Some(0), Some(0)]);
    assert_eq!(found[0]["parameter"], "L");
    // However long messages travel, the last to get one is the same.
    assert!(found[0]["low"].as_f64() == Some(0.0) && found[0]["high"].is_null());
    // The sender is slower than its interface while o > g + 7 G.
    let low = found[1]["low"].as_f64().unwrap();
    assert!((low - 1.042e-6).abs() < 1e-11, "{low}");
    // 1, 5 and 10% of 33252 ns, over 6 messages.
    let grown = json["latency_tolerance"].as_array().unwrap();
    for (at, latency) in grown.iter().zip([55.42e-9, 277.1e-9, 554.2e-9]) {
        assert!((at["latency_s"].as_f64().unwrap() - latency).abs() < 1e-13, "{at}");
        assert_eq!(at["order_stays"], true);
        assert!(at["exceeded_at_s"].is_null(), "{at}");
    }
    assert_eq!(json["sensitivity_method"], "causes");
    // On a network nothing is proved, whatever the taper.
    let json = simulated(&[&run[..], &["--topology", "star"]].concat());
    assert_eq!(json["sensitivity_method"], "differences");
    for at in json["latency_tolerance"].as_array().unwrap() {
        assert_eq!(at["order_stays"], false);
        assert!(at["exceeded_at_s"].as_f64() > at["latency_s"].as_f64(), "{at}");
    }
    assert_refused(&[&run[..], &["--noise-periodic", "1000:10"]].concat(), 2, "--sensitivity");
}

/// Where the order of events is not proved to stay, runs find the tolerated latency: with
/// it the makespan has grown by no more than the percent, and with little more by more.
#[test]
fn a_tolerated_latency_is_that_of_runs_with_it() {
    let mut found_by_runs = 0;
    for (pattern, ranks, bytes) in [
        ("allreduce_recdoub", "12", "2K"),
        ("allreduce_recdoub", "20", "512"),
        ("gather", "16", "1K"),
        ("binomialtreereduce", "23", "4K"),
    ] {
        let run = ["--pattern", pattern, "--ranks", ranks, "-s", bytes];
        let document = simulated(&[&run[..], &["--sensitivity"]].concat());
        let makespan = document["makespan_ps"].as_u64().unwrap();
        for tolerance in document["latency_tolerance"].as_array().unwrap() {
            let percent = tolerance["growth_percent"].as_u64().unwrap();
            let is_longer = |growth: &Value| {
                let latency = format!("{:.3}", 2_500.0 + growth.as_f64().unwrap() * 1e9);
                let then = simulated(&[&run[..], &["-L", &latency]].concat());
                then["makespan_ps"].as_u64().unwrap() * 100 > makespan * (100 + percent)
            };
            assert!(!is_longer(&tolerance["latency_s"]), "{pattern}: {tolerance}");
            if tolerance["order_stays"] == true {
                assert!(tolerance["exceeded_at_s"].is_null(), "{pattern}: {tolerance}");
                continue;
            }
            found_by_runs += 1;
            assert!(is_longer(&tolerance["exceeded_at_s"]), "{pattern}: {tolerance}");
        }
    }
    assert!(found_by_runs >= 2, "{found_by_runs}");
}

/// The latencies of all levels and ranges of sizes grow together.
#[test]
fn a_tolerated_latency_is_that_of_every_level() {
    let run = ["--pattern", "allreduce_recdoub", "--ranks", "20", "-s", "512"];
    let costs = |far: f64, near: f64| {
        let near = format!("4:L={near:.3},o=300,g=400,G=1");
        [format!("{far:.3}"), near]
    };
    let with = |[far, near]: &[String; 2]| {
        let options = ["-L", far, "-o", "900", "-g", "700", "-G", "3", "--level", near];
        [&run[..], &options].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let simulated = |arguments: &[String], more: &[&str]| {
        let arguments = arguments.iter().map(String::as_str).chain(more.iter().copied());
        simulated(&arguments.collect::<Vec<_>>())
    };
    let document = simulated(&with(&costs(3_000.0, 1_000.0)), &["--sensitivity"]);
    let makespan = document["makespan_ps"].as_u64().unwrap();
    let mut found_by_runs = 0;
    for tolerance in document["latency_tolerance"].as_array().unwrap() {
        let percent = tolerance["growth_percent"].as_u64().unwrap();
        let is_longer = |growth: &Value, picos: f64| {
            let growth = growth.as_f64().unwrap() * 1e9 + picos / 1e3;
            let then = simulated(&with(&costs(3_000.0 + growth, 1_000.0 + growth)), &[]);
            then["makespan_ps"].as_u64().unwrap() * 100 > makespan * (100 + percent)
        };
        assert!(!is_longer(&tolerance["latency_s"], 0.0), "{tolerance}");
        if tolerance["order_stays"] == true {
            assert!(is_longer(&tolerance["latency_s"], 2.0), "{tolerance}");
        } else {
            assert!(is_longer(&tolerance["exceeded_at_s"], 0.0), "{tolerance}");
            found_by_runs += 1;
        }
    }
    assert!(found_by_runs >= 1, "{document}");
}

#[test]
fn the_report_says_how_many_threads_and_partitions_there_were() {
    let run = ["simulate", "--pattern", "dissemination", "--ranks", "2K", "--counters"];
    let text = loggap().args(run).args(["--threads", "2"]).succeeds().stdout;
    assert!(text.contains("in windows, on 2 threads, ranks in 16 partitions"), "{text}");
}

#[test]
fn counters_tell_what_each_rank_did() {
    let json = simulated(&["--pattern", "gather", "--ranks", "8", "-s", "51", "--counters"]);
    let root = &json["counters"][0];
    let keys = [
        "messages_received",
        "receiving_ps",
        "idle_ps",
        "messages_waited_ps",
        "max_posted",
        "max_unexpected",
    ];
    // Messages wait for 0, 1, ... 6 times 1800 ns.
    let expected = [7, 12_600_000, 4_000_000, 37_800_000, 7, 0];
    assert_eq!(keys.map(|key| root[key].as_u64()), expected.map(Some));
    assert_eq!(json["counters"][7]["bytes_sent"].as_u64(), Some(51));
    let folder = Folder::new();
    let late = "num_ranks 2\nrank 0 {\nc: calc 9000 cpu 1\nr: recv 5b from 1\nq: recv 5b from 1\n\
                r requires c\nq requires c\n}\nrank 1 {\nsend 5b to 0\nsend 5b to 0\n}\n";
    for rendezvous in ["instant", "handshake"] {
        let path = folder.written("late.goal", late);
        let options = ["--counters", "-S", "1", "--rendezvous", rendezvous];
        let json = simulated_file(&path, &options);
        let root =
            ["messages_unexpected", "max_unexpected"].map(|key| json["counters"][0][key].as_u64());
        assert_eq!(root, [2, 2].map(Some), "{rendezvous}");
    }
}

#[test]
fn timelines_are_pictures_traces_and_the_references_text() {
    let folder = Folder::new();
    let draw = |name: &str, more: &[&str]| {
        let path = folder.path(name);
        let run = ["simulate", "--pattern", "dissemination", "--ranks", "8", "-s", "100"];
        let noise = ["--noise-periodic", "9000:500"];
        let command = &mut loggap();
        command.args(run).args(noise).arg("--timeline").arg(&path).args(more).assert().success();
        fs::read_to_string(path).unwrap()
    };
    let svg = draw("t.svg", &[]);
    assert!(svg.starts_with("<svg") || svg.starts_with("<?xml"), "{}", &svg[..60]);
    assert_eq!(tags(&svg), Vec::<String>::new(), "elements that are not closed");
    assert!((0..8).all(|rank| svg.contains(&format!(">\nrank {rank}\n</text>"))));
    let trace: Value = serde_json::from_str(&draw("t.json", &[])).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let count = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    assert_eq!((count("s"), count("f")), (24, 24));
    let viz = draw("t.viz", &[]);
    assert_eq!(viz.lines().filter(|line| line.starts_with("transmission ")).count(), 24);
    assert_eq!(draw("t.out", &["--timeline-form", "viz"]), viz);
    let few = draw("few.viz", &["--timeline-ranks", "2:3", "--timeline-window", "0:5000"]);
    let sent: Vec<&str> = few.lines().filter(|line| line.starts_with("transmission ")).collect();
    // Of the first round: to 2, from 2, from 3.
    assert_eq!(sent.len(), 3, "{few}");
    let path = folder.path("nothing.svg");
    for (nothing, expected, words) in [
        (["--timeline-ranks", "8:9"], 2, "begins with rank 8, and there are 8"),
        (["--timeline-window", "1000000000:1000000001"], 1, "begins at 1000000000 ns"),
    ] {
        let run = ["--pattern", "bcast", "--ranks", "8", "--timeline", &path];
        let (code, text) = refused(&[&run[..], &nothing].concat());
        assert!(
            code == expected && text.contains(words) && !folder.has("nothing.svg"),
            "{code} {text}"
        );
    }
}

/// Elements that are open at the end, or closed out of order.
fn tags(svg: &str) -> Vec<String> {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let inside = tag.split('>').next().unwrap();
        let name: String = inside.chars().take_while(|c| !c.is_whitespace()).collect();
        if let Some(closed) = name.strip_prefix('/') {
            if open.last().map(String::as_str) != Some(closed) {
                open.push(format!("/{closed}"));
                return open;
            }
            open.pop();
        } else if !inside.ends_with('/') && !name.starts_with(['?', '!']) {
            open.push(name);
        }
    }
    open
}

const DEADLOCK: &str = "\
num_ranks 2
rank 0 {
  a: recv 5b from 1 tag 3
  b: send 5b to 1 tag 3
  b requires a
}
rank 1 {
  a: recv 5b from 0 tag 3
  b: send 5b to 0 tag 3
  b requires a
  c: send 1b to 0 tag 7
}
";

#[test]
fn what_cannot_come_to_its_end_is_named_by_rank_operation_peer_tag_and_line() {
    let folder = Folder::new();
    let path = folder.written("d.goal", DEADLOCK);
    let (code, text) = refused(&[&*path]);
    assert_eq!(code, 1);
    for line in [
        "line 11: rank 0 never receives the message with tag 7 from rank 1 (its operation 2)",
        "line 3: rank 0 waits for ever in operation 0 for a message from rank 1 with tag 3",
        "line 4: operation 1 of rank 0 never becomes ready",
        "error: the schedule cannot come to its end: 5 operations and messages are left",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let json = loggap().arg("simulate").arg(&path).arg("-J").ends(1).json();
    assert!(json["makespan_s"].is_null() && json["makespan_ps"].is_null());
    let kinds: Vec<_> = json["unmatched"].as_array().unwrap().iter().map(|u| &u["kind"]).collect();
    assert_eq!(kinds, ["unreceived", "waiting", "waiting", "never_ready", "never_ready"]);
    let first = &json["unmatched"][0];
    let keys = ["rank", "op", "peer", "tag", "line", "offset_bytes"];
    let offset = DEADLOCK.find("c: send").unwrap() as u64;
    assert_eq!(keys.map(|key| first[key].as_u64()), [1, 2, 0, 7, 11, offset].map(Some));

    let cycle = "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\n";
    let path = folder.written("c.goal", cycle);
    assert_refused(&[&*path], 1, "loggap goal check");
    assert_refused(&[&*path], 1, "line 3: operation 0 of rank 0 never becomes ready");
}

/// Two ranks that send these sizes to each other, each before it receives.
fn sends_first([ours, theirs]: [u32; 2]) -> String {
    format!(
        "num_ranks 2\n\
         rank 0 {{\na: send {ours}b to 1\nb: recv {theirs}b from 1\nb requires a\n}}\n\
         rank 1 {{\na: send {theirs}b to 0\nb: recv {ours}b from 0\nb requires a\n}}\n"
    )
}

#[test]
fn sends_that_block_for_want_of_a_buffer_are_named_with_the_eager_limit_that_ends_them() {
    let folder = Folder::new();
    let equal = folder.written("equal.goal", sends_first([70_000; 2]));
    // A send of 80000 B may block once the other does not.
    let unequal = folder.written("unequal.goal", sends_first([80_000, 70_000]));
    for (path, theirs, ours) in [(&equal, 70_000, 70_000), (&unequal, 70_000, 80_000)] {
        for rendezvous in ["instant", "handshake"] {
            let arguments = [path, "--rendezvous", rendezvous];
            let (code, text) = refused(&arguments);
            assert_eq!(code, 1, "{text}");
            for line in [
                format!(
                    "line 3: rank 0 blocks in operation 0, the send of {ours} B to rank 1 with tag \
                     0: above the eager limit S of 65535 B it waits for its receive"
                ),
                format!("line 8: rank 1 blocks in operation 0, the send of {theirs} B to rank 0"),
                "it ends with S = 70000 B (-S 70000)".to_owned(),
            ] {
                assert!(text.contains(&line), "{line}: {text}");
            }
            assert!(!text.contains("never receives") && !text.contains("goal check"), "{text}");

            let json = loggap().arg("simulate").args(arguments).arg("-J").ends(1).json();
            assert_eq!(json["smallest_eager_limit_bytes"], 70_000);
            let left = json["unmatched"].as_array().unwrap();
            let kinds: Vec<_> = left.iter().map(|left| &left["kind"]).collect();
            assert_eq!(kinds, ["blocked_send", "blocked_send", "never_ready", "never_ready"]);
            let keys = ["rank", "op", "peer", "tag", "line", "bytes", "eager_limit_bytes"];
            let blocked = |at: usize| keys.map(|key| left[at][key].as_u64().unwrap());
            assert_eq!(blocked(1), [0, 0, 1, 0, 3, ours, 65_535]);
            assert_eq!(blocked(0), [1, 0, 0, 0, 8, theirs, 65_535]);

            simulated(&[&arguments[..], &["-S", "70000"]].concat());
            assert_eq!(refused(&[&arguments[..], &["-S", "69999"]].concat()).0, 1);
        }
    }
}

#[test]
fn a_message_that_no_eager_limit_delivers_is_not_called_blocked() {
    let folder = Folder::new();
    let lonely =
        folder.written("l.goal", "num_ranks 2\nrank 0 {\nsend 70000b to 1\n}\nrank 1 {\n}\n");
    let (_, text) = refused(&[&*lonely]);
    assert!(text.contains("line 3: rank 1 never receives the message"), "{text}");
    assert!(!text.contains("blocks") && text.contains("'loggap goal check'"), "{text}");

    // The third message of rank 0 is received with no S.
    let both = sends_first([70_000; 2]).replacen("b: recv", "send 90000b to 1 tag 9\nb: recv", 1);
    let both = folder.written("b.goal", both);
    let run = loggap().arg("simulate").arg(both).arg("-J").ends(1);
    let json = run.json();
    let left = json["unmatched"].as_array().unwrap();
    let of = |at: usize| (left[at]["kind"].as_str().unwrap(), left[at]["bytes"].as_u64());
    assert_eq!(of(0), ("blocked_send", Some(70_000)));
    assert_eq!(of(1), ("blocked_send", Some(70_000)));
    assert_eq!(of(2), ("unreceived", None));
    assert!(json["smallest_eager_limit_bytes"].is_null());
    let text = &run.stderr;
    assert!(text.contains("no eager limit S suffices: 1 would be left"), "{text}");
}

#[test]
fn ranks_that_wait_for_each_other_are_not_sent_to_goal_check() {
    let folder = Folder::new();
    let receives_first = "num_ranks 2\n\
        rank 0 {\na: recv 5b from 1\nb: send 5b to 1\nb requires a\n}\n\
        rank 1 {\na: recv 5b from 0\nb: send 5b to 0\nb requires a\n}\n";
    let path = folder.written("r.goal", receives_first);
    let (_, text) = refused(&[&*path]);
    assert!(text.contains("ranks wait for each other"), "{text}");
    loggap().args(["goal", "check"]).arg(&path).assert().success();
}

#[test]
fn loggopsims_flags_mean_what_they_do_there_or_are_refused_by_name() {
    let folder = Folder::new();
    let schedule = "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n";
    let schedule = folder.written("p.goal", schedule);
    let (schedule, drawn) = (&*schedule, folder.path("x.viz"));
    let plain = makespan(&[schedule]);
    let theirs = ["-f", schedule, "-V", &drawn, "-n", "LogGP"];
    assert_eq!(makespan(&theirs), plain);
    assert!(fs::read_to_string(&drawn).unwrap().starts_with("numranks 2;"));
    for (arguments, named) in [
        (&[schedule, "-b"][..], "unexpected argument '-b'"),
        (&[schedule, "-V"], "--timeline <FILE>"),
        (&[schedule, "-n", "simple"], "use --network flows --topology FILE.dot"),
        (&[schedule, "-f", schedule], "-f <FILE>"),
    ] {
        assert_refused(arguments, 2, named);
    }
}

#[test]
fn sensitivities_on_several_processors_are_found_by_runs_and_the_same_in_table_and_json() {
    let folder = Folder::new();
    let text = "num_ranks 2\nrank 0 {\na: calc 100 cpu 1\nb: send 8b to 1\nb requires a\n}\n\
                rank 1 {\nrecv 8b from 0\n}\n";
    let path = folder.written("c.goal", text);
    let path = &*path;
    let json = simulated(&[path, "--sensitivity"]);
    assert_eq!(json["sensitivity_method"], "differences");
    let found = json["sensitivity"].as_array().unwrap();
    let rows = sensitivity_rows(&[path]);
    assert_eq!(rows.len(), 5);
    for ((of, row), (symbol, slope)) in
        found.iter().zip(&rows).zip([("L", 1), ("o", 2), ("g", 0), ("G", 7), ("O", 0)])
    {
        assert_eq!((&of["parameter"], &of["slope"]), (&symbol.into(), &slope.into()), "{of}");
        let bound = |key: &str| of[key].as_f64().unwrap() * 1e9;
        // Of each parameter the makespan is a line to 0 and to twice its value.
        let cell = |at: usize| row[at].parse::<f64>().unwrap();
        assert_eq!((row[0].as_str(), cell(2)), (symbol, f64::from(slope)), "{row:?}");
        assert!((cell(4) - bound("low")).abs() < 1e-6 && (cell(5) - bound("high")).abs() < 1e-6);
        assert!(bound("low") < bound("high") && bound("low") == 0.0, "{of}");
    }
    // One processor: proved.
    let single = folder.written("s.goal", text.replace(" cpu 1", ""));
    let single = simulated_file(&single, &["--sensitivity"]);
    assert_eq!(single["sensitivity_method"], "causes");
    let slopes = |json: &Value| -> Vec<Value> {
        json["sensitivity"].as_array().unwrap().iter().map(|of| of["slope"].clone()).collect()
    };
    assert_eq!(slopes(&single), slopes(&json));
}

#[test]
fn a_schedule_that_does_not_end_has_no_makespan() {
    let folder = Folder::new();
    let lonely = "num_ranks 2\nrank 0 {\nrecv 1b from 1\n}\nrank 1 {\n}\n";
    let path = folder.written("l.goal", lonely);
    let text = loggap().arg("simulate").arg(path).ends(1).stdout;
    assert!(text.starts_with("makespan               none: the schedule does not"), "{text}");
    assert!(!text.contains("0.0 million"), "{text}");
}

#[test]
fn a_long_list_of_what_is_left_is_cut_and_counted() {
    let folder = Folder::new();
    let sends = "send 1b to 0\n".repeat(5_000);
    let path = folder.written("s.goal", format!("num_ranks 1\nrank 0 {{\n{sends}}}\n"));
    let (code, text) = refused(&[&*path]);
    assert_eq!((code, text.lines().count()), (1, 101));
    assert!(text.contains("5000 operations and messages are left (4900 more"), "{text}");
}

#[test]
fn a_report_says_which_parameters_were_used() {
    let pattern = ["simulate", "--pattern", "bcast", "--ranks", "4"];
    let text = |options: &[&str]| loggap().args(pattern).args(options).succeeds().stdout;
    let used = "L = 2500 ns, o = 1500 ns, O = 0 ns/B, g = 1000 ns, G = 6 ns/B, S = 65535 B";
    let defaults =
        format!("parameters             the defaults of LogGOPSim, of no machine: {used}");
    assert!(text(&[]).contains(&defaults), "{}", text(&[]));
    let given = text(&["-L", "7"]);
    assert!(given.contains("parameters             L = 7 ns, o = 1500 ns"), "{given}");
    let report = simulated(&[&pattern[1..], &["-L", "7"]].concat());
    assert_eq!(report["parameters"]["source"], "options");
    assert_eq!(report["parameters"]["sets"][0]["latency_s"], 7e-9);
}

#[test]
fn options_of_patterns_are_refused_beside_a_file() {
    let folder = Folder::new();
    let file = folder.written("two.goal", "num_ranks 1\nrank 0 {\nl0: calc 5\n}\n");
    let file = &*file;
    for option in [["--ranks", "8"], ["-s", "64K"], ["--root", "0"], ["--repeat", "5"]] {
        let error = loggap().args(["simulate", file]).args(option).ends(2).stderr;
        assert!(error.contains("is for --pattern"), "{option:?}: {error}");
    }
    // A seed is not of the pattern alone.
    loggap().args(["simulate", file, "--seed", "3"]).succeeds();
}

#[test]
fn a_run_that_needs_more_memory_than_allowed_is_refused_before_it_starts() {
    // One that is stored, and one that is computed.
    for (pattern, allowed) in [("nwaydissemination", "100M"), ("dissemination", "2M")] {
        let run = ["--pattern", pattern, "--ranks", "65536", "--max-memory"];
        let (code, text) = refused(&[&run[..], &[allowed]].concat());
        assert_eq!(code, 1);
        let words: Vec<u64> = text.split([' ', ';']).filter_map(|word| word.parse().ok()).collect();
        let [needed, most] = words[..2] else { panic!("{text}") };
        assert!(needed > most && most >= 2 << 20, "{text}");
        simulated(&[&run[..], &[&needed.to_string()]].concat());
    }
    let observed = ["--pattern", "gather", "--ranks", "64", "--explain", "--max-memory"];
    assert_refused(&[&observed[..], &["20K"]].concat(), 1, "raise --max-memory");
    simulated(&observed[..4]);
}

#[test]
fn very_many_receives_that_wait_are_matched_in_any_order() {
    const MESSAGES: usize = 60_000;
    let folder = Folder::new();
    let schedule = |name: &str, tags: &mut dyn Iterator<Item = usize>| {
        let mut text = String::from("num_ranks 2\nrank 0 {\n");
        for tag in tags {
            writeln!(text, "send 1b to 1 tag {tag}").unwrap();
        }
        text.push_str("}\nrank 1 {\n");
        for tag in 0..MESSAGES {
            writeln!(text, "recv 1b from 0 tag {tag}").unwrap();
        }
        text.push_str("}\n");
        simulated_file(&folder.written(name, text), &[])
    };
    let in_order = schedule("in-order.goal", &mut (0..MESSAGES));
    let reversed = schedule("reversed.goal", &mut (0..MESSAGES).rev());
    assert_eq!(in_order["engine"], "windows");
    assert_eq!(reversed["engine"], "sequential");
    assert!(reversed["engine_reason"].as_str().unwrap().contains("wait at once"), "{reversed}");
    for key in ["makespan_ps", "events", "ops"] {
        assert_eq!(in_order[key], reversed[key], "{key}");
    }
}

#[test]
fn what_is_no_schedule_or_makes_no_sense_is_wrong_usage() {
    let folder = Folder::new();
    let far = folder.written("f.goal", "num_ranks 1\nrank 0 {\ncalc 5\nsend 1b to 4\n}\n");
    let torn = folder.written("t.goal", "num_ranks 1\nrank 0 {\n  a: sned 1b to 4\n}\n");
    let (far, torn) = (&*far, &*torn);
    let here = folder.root().to_str().unwrap();
    for (arguments, message) in [
        (&[][..], "give a schedule's FILE"),
        (&[far], "f.goal: line 4: operation 1 of rank 0 names rank 4, which does not exist"),
        (&[torn], "line 3, column 6"),
        (&[here], "irectory"),
        (&["/nonexistent.goal"], "No such file"),
        (&["--pattern", "gather"], "--ranks P"),
        (&["--pattern", "gather", "--ranks", "5G"], "at most 4294967295"),
        (&["--pattern", "gather", "--ranks", "4", "--root", "4"], "root 4"),
        (&["--pattern", "nonsense", "--ranks", "4"], "binomialtreebcast"),
        (&[far, "--pattern", "gather"], "cannot be used with"),
        (&[far, "-L", "1", "--preset", "loggopsim"], "cannot be used with"),
        (&[far, "--preset", "nonsense"], "loggopsim"),
        (&[far, "-L", "-1"], "-1"),
        (&[far, "--timeline", "x.dat"], "--timeline-form"),
        (&[far, "--timeline-ranks", "1"], "--timeline"),
        (&[far, "--timeline", "x.svg", "--timeline-window", "5:5"], "before it begins"),
        (&[far, "--noise-cosched"], "--noise"),
    ] {
        assert_refused(arguments, 2, message);
    }
}

#[test]
fn a_time_past_the_end_of_time_names_the_rank() {
    let folder = Folder::new();
    let calc = "calc 18000000000000000\n".repeat(2);
    let text = format!("num_ranks 2\nrank 0 {{\n}}\nrank 1 {{\n{calc}}}\n");
    let path = folder.written("o.goal", text);
    assert_refused(&[&*path], 1, "on rank 1 a time passes 2^64 ps");
}

#[test]
fn no_file_is_left_behind_when_a_timeline_cannot_be_drawn() {
    let folder = Folder::new();
    let path = folder.written("d.goal", DEADLOCK);
    let picture = folder.path("d.svg");
    let run = [&*path, "--timeline", &picture];
    assert_eq!(refused(&run).0, 1);
    assert_eq!(folder.count(), 1);
    let run = [&*path, "--timeline", "/nonexistent/d.svg"];
    assert_refused(&run, 1, "create its folder first");
    let full = ["--pattern", "gather", "--ranks", "4", "--timeline", "/dev/full"];
    assert_refused(&[&full[..], &["--timeline-form", "svg"]].concat(), 1, "No space left");
}

#[test]
fn an_empty_schedule_takes_no_time() {
    let folder = Folder::new();
    let path = folder.written("e.goal", "num_ranks 3\nrank 0 {\n}\nrank 1 {\n}\nrank 2 {\n}\n");
    let json = simulated_file(&path, &["--explain", "--counters", "--finish"]);
    assert_eq!(json["makespan_ps"].as_u64(), Some(0));
    assert_eq!(json["finish_ps"], serde_json::json!([0, 0, 0]));
}

#[test]
fn loading_and_running_are_parts_of_the_time_that_passed() {
    let folder = Folder::new();
    let path = folder.path("all.bin");
    let generate =
        ["goal", "generate", "--pattern", "linear_alltoall", "--ranks", "128", "-s", "8"];
    loggap().args(generate).arg("-o").arg(&path).assert().success();
    // In windows, and where those were tried in vain: a rendezvous needs the other engine.
    for (arguments, engine) in [(&[][..], "windows"), (&["-S", "4"][..], "sequential")] {
        let started = std::time::Instant::now();
        let document = simulated_file(&path, arguments);
        let passed = started.elapsed().as_secs_f64();
        assert_eq!(document["engine"], engine);
        let seconds = |key: &str| document[key].as_f64().unwrap();
        let (load, run) = (seconds("load_s"), seconds("run_s"));
        assert!(load > 0.0 && run > 0.0 && load + run < passed, "{load} {run} {passed}");
    }
}

/// A link with L = 2 ± 0.5 µs and without other intervals: o = 1 µs, g = 1 µs,
/// G = 1 ns/B.
const UNCERTAIN: &str = r#"{"schema_version":1,"ranges":[{"first_bytes":1,"last_bytes":65536,
    "latency_s":2e-6,"latency_s_lo":1.5e-6,"latency_s_hi":2.5e-6,"send_overhead_s":1e-6,
    "send_overhead_per_byte_s":0,"recv_overhead_s":1e-6,"recv_overhead_per_byte_s":0,
    "gap_s":1e-6,"gap_per_byte_s":1e-9}]}"#;

/// What a simulation with this profile says, of 64 KiB between four ranks unless `more` has
/// another size.
fn told_of_profile(profile: &str, more: &[&str]) -> [String; 2] {
    let folder = Folder::new();
    let path = folder.written("link.json", profile);
    let size = if more.contains(&"-s") { &[][..] } else { &["-s", "64K"] };
    let run = ["simulate", "--pattern", "all-to-all", "--ranks", "4"];
    let run =
        loggap().args(run).args(size).arg("--profile").arg(path).args(more).assert().success();
    let output = run.get_output();
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned())
}

#[test]
fn parameters_that_did_not_converge_are_warned_of() {
    let marks = r#""gap_per_byte_s":1e-9,"not_converged":{"latency_s":"budget_spent","send_overhead_s":"misfit"}"#;
    let bounds = UNCERTAIN.replace(r#""gap_per_byte_s":1e-9"#, marks);
    let [_, told] = told_of_profile(&bounds, &[]);
    assert!(told.starts_with("warning: ") && told.lines().count() == 1, "{told}");
    let expected = "link.json: L, o_s did not converge: bounds, not measurements\n";
    assert!(told.ends_with(expected), "{told}");
    assert_eq!(told_of_profile(UNCERTAIN, &[])[1], "");
    // So they are wherever a profile is taken.
    let folder = Folder::new();
    let path = folder.written("link.json", &bounds);
    let path = &*path;
    let level = format!("2:{path}");
    let pattern = ["--pattern", "bcast", "--ranks", "4", "-s", "8"];
    for arguments in [
        &["predict", "binomial", "--ranks", "4", "-s", "8", "--profile", path][..],
        &[&["study", "overlap"], &pattern[..], &["--profile", path]].concat(),
        &[&["simulate"], &pattern[..], &["--level", &level]].concat(),
    ] {
        let told = loggap().args(arguments).succeeds().stderr;
        assert!(told.ends_with(expected), "{arguments:?}: {told}");
    }
}

#[test]
fn the_eager_limit_of_an_mpi_profile_is_that_of_its_flags_and_the_set_shown_is_the_one_used() {
    let folder = Folder::new();
    let range = |first: u64, last: u64, gap: &str| {
        let names = ["gap_s", "half_rtt_s", "latency_s", "send_overhead_s", "recv_overhead_s"];
        let values = names.map(|name| format!(r#""{name}":{gap}"#)).join(",");
        format!(r#"{{"first_bytes":{first},"last_bytes":{last},{values},"gap_per_byte_s":1e-9}}"#)
    };
    let (small, large) = (range(1, 4095, "1e-6"), range(4096, 65536, "2e-6"));
    let profile = |transport: &str| {
        format!(
            r#"{{"schema_version":1,"transport":"{transport}","ranges":[{small},{large}],
            "changes":[{{"at_bytes":4096,"lo_bytes":4096,"hi_bytes":4096,"splits":true}}]}}"#
        )
    };
    for (transport, limit) in [("mpi", "S = 4095 B"), ("tcp", "S = 65535 B (default)")] {
        let path = folder.written("link.json", profile(transport));
        let path = &*path;
        let text = |size: &str| {
            let run = ["simulate", "--pattern", "bcast", "--ranks", "4", "-s", size];
            loggap().args(run).args(["--profile", path]).succeeds().stdout
        };
        let small = text("8");
        assert!(small.contains("L = 1000 ns") && small.contains(limit), "{small}");
        assert!(small.contains("; of messages of 8 B, set 1 of 2"), "{small}");
        let large = text("8K");
        assert!(large.contains("L = 2000 ns") && large.contains("set 2 of 2"), "{large}");
    }
}

#[test]
fn noise_is_told_with_its_share_of_the_time() {
    let run = ["simulate", "--pattern", "bcast", "--ranks", "4", "--noise-periodic", "10ms:25us"];
    let text = loggap().args(run).succeeds().stdout;
    let told = "noise of each rank     1 detour in 10000000 ns, 0.250% of the time, the longest \
                25000 ns; at random phases\n";
    assert!(text.contains(told), "{text}");
    let document = simulated(&[&run[1..], &["--noise-cosched"]].concat());
    assert_eq!(document["noise"]["detours"], 1);
    assert_eq!(document["noise"]["time_share"], 0.0025);
    assert_eq!(document["noise"]["cosched"], true);
}

#[test]
fn an_eager_limit_that_no_profile_has_is_said_to_be_the_default() {
    let [text, _] = told_of_profile(UNCERTAIN, &[]);
    assert!(text.contains("S = 65535 B (default)\n"), "{text}");
    let [text, _] = told_of_profile(UNCERTAIN, &["-S", "65535"]);
    assert!(text.contains("S = 65535 B\n"), "{text}");
}

#[test]
fn messages_larger_than_those_of_the_profile_are_warned_of() {
    let [_, told] = told_of_profile(UNCERTAIN, &["-s", "4M"]);
    let expected = "link.json: ends at 64 KiB; messages of up to 4 MiB are extrapolated\n";
    assert!(told.starts_with("warning: ") && told.ends_with(expected), "{told}");
    let endless = UNCERTAIN.replace("65536", "18446744073709551615");
    assert_eq!(told_of_profile(&endless, &["-s", "4M"])[1], "");
    // Of a file, too.
    let folder = Folder::new();
    let path = folder.written("link.json", UNCERTAIN);
    let goal = "num_ranks 2\nrank 0 {\nsend 65537b to 1\n}\nrank 1 {\nrecv 65537b from 0\n}\n";
    let goal = folder.written("s.goal", goal);
    let told = loggap().arg("simulate").arg(goal).arg("--profile").arg(path).succeeds().stderr;
    assert!(told.contains("messages of up to 65,537 B are extrapolated"), "{told}");
}

#[test]
fn a_measured_one_way_time_that_the_model_does_not_give_is_told() {
    let with_half_rtt = |per_byte: &str| {
        let line = format!(r#""half_rtt_s":4e-6,"half_rtt_per_byte_s":{per_byte},"gap_s":1e-6,"#);
        told_of_profile(&UNCERTAIN.replace(r#""gap_s":1e-6,"#, &line), &[])
    };
    // 4 us + 65,535 · 2 ns are measured; o + L + o + 65,535 · G = 69.5 us are simulated.
    let [_, told] = with_half_rtt("2e-9");
    let expected = "link.json: RTT/2 of 64 KiB is 135 us as measured and 69.5 us by the other \
                    parameters, which the simulation uses; of this range are 12 of 12 messages\n";
    assert!(told.starts_with("warning: ") && told.ends_with(expected), "{told}");
    assert_eq!(with_half_rtt("1.1e-9")[1], "");
}

/// Of sizes that are not sent nothing is told, and the handshake of the simulation counts.
#[test]
fn one_way_times_are_judged_at_the_sizes_that_are_sent() {
    let folder = Folder::new();
    let range = |bytes: [u32; 2], latency: &str, half_rtt: [&str; 2]| {
        format!(
            r#"{{"first_bytes":{},"last_bytes":{},"latency_s":{latency},"send_overhead_s":1e-7,
            "send_overhead_per_byte_s":0,"recv_overhead_s":1e-7,"recv_overhead_per_byte_s":0,"gap_s":1e-7,
            "gap_per_byte_s":0,"half_rtt_s":{},"half_rtt_per_byte_s":{}}}"#,
            bytes[0], bytes[1], half_rtt[0], half_rtt[1]
        )
    };
    // 300 ns and 700 ns for one byte; 99 B take 10 us more than they are simulated to.
    let ranges =
        [range([1, 99], "1e-7", ["3e-7", "1e-7"]), range([100, 65_536], "5e-7", ["7e-7", "0"])];
    let profile = format!(r#"{{"schema_version":1,"ranges":[{}]}}"#, ranges.join(","));
    let profile = folder.written("link.json", &profile);
    let told = |short: u32, more: &[&str]| {
        let ops = |what: &str, short: u32| format!("{what} {short}b PEER 1\n{what} 200b PEER 1\n");
        let [sends, receives] = [("send", "to"), ("recv", "from")]
            .map(|(what, peer)| ops(what, short).replace("PEER", peer));
        let receives = receives.replace("from 1", "from 0");
        let goal = format!("num_ranks 2\nrank 0 {{\n{sends}}}\nrank 1 {{\n{receives}}}\n");
        let goal = folder.written("s.goal", &goal);
        let with_profile = ["simulate", &*goal, "--profile", &*profile, "-S", "99"];
        loggap().args(with_profile).args(more).succeeds().stderr
    };
    assert_eq!(told(1, &[]), "");
    let long = told(99, &[]);
    assert!(long.contains("RTT/2 of 99 B is 10.1 us as measured and 300 ns"), "{long}");
    assert!(long.ends_with("of this range are 1 of 2 messages\n"), "{long}");
    let handshake = told(1, &["--rendezvous", "handshake"]);
    assert!(handshake.contains("RTT/2 of 200 B is 700 ns as measured and 900 ns"), "{handshake}");
}

/// The makespans of a broadcast of 8 B, with this profile.
fn monte_carlo(profile: &str, arguments: &[&str]) -> Value {
    let folder = Folder::new();
    let path = folder.written("link.json", profile);
    let broadcast = ["simulate", "--pattern", "binomialtreebcast", "-s", "8", "-J", "--profile"];
    let output = loggap().args(broadcast).arg(path).args(arguments).succeeds();
    output.json()
}

#[test]
fn the_makespan_of_one_message_is_as_uncertain_as_its_latency() {
    let document = monte_carlo(UNCERTAIN, &["--ranks", "2", "--monte-carlo", "20000"]);
    let found = &document["monte_carlo"];
    // 2o + L + 7G, of which L is normal with 0.5 µs / 1.96.
    let (middle, deviation) = (4_007_000.0, 500_000.0 / 1.959_964);
    assert_eq!(document["makespan_ps"], 4_007_000);
    assert_eq!((&found["draws"], &found["seed"]), (&20_000.into(), &0.into()));
    for (key, quantile, within) in
        [("p05_ps", -1.644_854, 0.06), ("median_ps", 0.0, 0.04), ("p95_ps", 1.644_854, 0.06)]
    {
        // Within 4 standard deviations of these quantiles.
        let off = (found[key].as_f64().unwrap() - middle) / deviation - quantile;
        assert!(off.abs() < within, "{key} is off by {off} standard deviations");
    }
    let off = (found["mean_ps"].as_f64().unwrap() - middle) / deviation;
    assert!(off.abs() < 0.03, "the mean is off by {off}");
    assert!(found["min_ps"].as_u64() < found["p05_ps"].as_u64());
    assert!(found["max_ps"].as_u64() > found["p95_ps"].as_u64());
    let seconds = found["median_s"].as_f64().unwrap();
    assert!((seconds * 1e12 - found["median_ps"].as_f64().unwrap()).abs() < 0.01);
}

#[test]
fn points_of_a_sweep_are_as_uncertain_as_what_they_multiply() {
    let both = ["--ranks", "2", "--monte-carlo", "4000", "--sweep", "L=1x:3x:3"];
    let document = monte_carlo(UNCERTAIN, &both);
    let of = |point: usize, key: &str| {
        document["sweep"]["points"][point][key].as_u64().unwrap_or_else(|| panic!("{key}"))
    };
    for key in ["p05_ps", "p95_ps"] {
        assert_eq!(of(0, key), document["monte_carlo"][key].as_u64().unwrap(), "{key}");
        // 2o + 7G is 2.007 us and certain, and L is 2 us with an interval.
        let latency = |point| of(point, key).checked_sub(2_007_000).unwrap();
        assert!(latency(1).abs_diff(2 * latency(0)) <= 2, "{key}");
        assert!(latency(2).abs_diff(3 * latency(0)) <= 3, "{key}");
    }
    assert!(of(2, "p05_ps") < of(2, "makespan_ps") && of(2, "makespan_ps") < of(2, "p95_ps"));
    // Whichever point changes nothing, and so has the draws of the run as given.
    let around = ["--ranks", "2", "--monte-carlo", "4000", "--sweep", "L=0.5x:3x:6"];
    let around = monte_carlo(UNCERTAIN, &around);
    for (point, other) in [(1, 0), (3, 1), (5, 2)] {
        assert_eq!(around["sweep"]["points"][point], document["sweep"]["points"][other]);
    }
    let folder = Folder::new();
    let [path, plot, csv] = ["link.json", "s.svg", "s.csv"].map(|name| folder.path(name));
    fs::write(&path, UNCERTAIN).unwrap();
    let run = ["simulate", "--pattern", "binomialtreebcast", "-s", "8", "--profile"];
    let files = ["--sweep-plot", &plot, "--sweep-csv", &csv];
    let shown = loggap().args(run).arg(&path).args(both).args(files).succeeds().stdout;
    let of_point = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let last = of_point(shown.lines().last().unwrap());
    assert_eq!(last.len(), 4, "{shown}");
    let csv = fs::read_to_string(csv).unwrap();
    assert!(csv.starts_with("latency_factor,makespan_s,makespan_ps,p05_s,p05_ps,p95_s,p95_ps\n"));
    assert_eq!(csv.lines().last().unwrap().rsplit(',').next(), Some(&*of(2, "p95_ps").to_string()));
    assert!(fs::read_to_string(plot).unwrap().contains("with 90% of draws"));
    let many = ["--ranks", "2", "--monte-carlo", "1000000", "--sweep", "L=1x:3x:3"];
    let told = loggap().args(run).arg(&path).args(many).ends(2).stderr;
    assert!(told.contains("1000000 draws at each of 3 points"), "{told}");
}

/// L, o_s and o_r of one message are drawn independently: variances add up. Drawn with
/// the same deviation, standard deviations would: 1.7 times as much.
#[test]
fn parameters_that_are_uncertain_together_add_up_their_variances() {
    let uncertain = UNCERTAIN
        .replace(
            r#""send_overhead_s":1e-6,"#,
            r#""send_overhead_s":1e-6,"send_overhead_s_lo":0.6e-6,"send_overhead_s_hi":1.4e-6,"#,
        )
        .replace(
            r#""recv_overhead_s":1e-6,"#,
            r#""recv_overhead_s":1e-6,"recv_overhead_s_lo":0.5e-6,"recv_overhead_s_hi":1.5e-6,"#,
        );
    let found =
        &monte_carlo(&uncertain, &["--ranks", "2", "--monte-carlo", "20000"])["monte_carlo"];
    let variance = 500_000.0f64.powi(2) + 400_000.0f64.powi(2) + 500_000.0f64.powi(2);
    let (middle, deviation) = (4_007_000.0, variance.sqrt() / 1.959_964);
    // Within 4 standard deviations of these quantiles, and of the mean, as above.
    for (key, quantile, within) in
        [("p05_ps", -1.644_854, 0.06), ("mean_ps", 0.0, 0.03), ("p95_ps", 1.644_854, 0.06)]
    {
        let off = (found[key].as_f64().unwrap() - middle) / deviation - quantile;
        assert!(off.abs() < within, "{key} is off by {off} standard deviations");
    }
}

/// Where nothing shares a link, the network changes no draw.
#[test]
fn draws_are_simulated_on_the_network() {
    let draws = |more: &[&str]| {
        let common = ["--ranks", "16", "--monte-carlo", "40", "--threads", "2"];
        monte_carlo(UNCERTAIN, &[&common, more].concat())
    };
    let (flat, star) = (draws(&[]), draws(&["--topology", "star"]));
    assert_eq!(star["network"]["kind"], "flows");
    assert_eq!(flat["monte_carlo"], star["monte_carlo"]);
    // Three messages cross at the same time: 3 · 7 B · 1 ns/B on an uplink that is
    // a millionth of a link wide.
    let narrow = draws(&["--topology", "tree:4:4", "--link-capacity", "0.000001"]);
    assert!(narrow["monte_carlo"]["min_ps"].as_u64() > star["monte_carlo"]["max_ps"].as_u64());
}

#[test]
fn a_latency_that_may_be_negative_is_drawn_above_0() {
    let wide = UNCERTAIN.replace("1.5e-6", "-2e-6").replace("2.5e-6", "6e-6");
    let document = monte_carlo(&wide, &["--ranks", "2", "--monte-carlo", "5000"]);
    let least = document["monte_carlo"]["min_ps"].as_u64().unwrap();
    assert!((2_007_000..2_050_000).contains(&least), "{least}");
}

#[test]
fn intervals_without_width_give_one_makespan_and_phases_of_noise_many() {
    let exact = UNCERTAIN.replace("1.5e-6", "2e-6").replace("2.5e-6", "2e-6");
    for way in [&["--threads", "1"][..], &["--receive", "overlap"], &["--rendezvous", "handshake"]]
    {
        let broadcast = ["--ranks", "64", "--monte-carlo", "20"];
        let document = monte_carlo(&exact, &[&broadcast, way].concat());
        for key in ["min_ps", "p05_ps", "median_ps", "p95_ps", "max_ps", "mean_ps"] {
            assert_eq!(document["monte_carlo"][key], document["makespan_ps"], "{way:?}, {key}");
        }
        let noise = ["--noise-periodic", "10000:900"];
        let document = monte_carlo(&exact, &[&broadcast, way, &noise].concat());
        assert_ne!(document["monte_carlo"]["min_ps"], document["monte_carlo"]["max_ps"]);
    }
}

#[test]
fn the_seed_alone_decides_the_draws() {
    let draws = |seed: &str, threads: &str| {
        let arguments = ["--ranks", "16", "--monte-carlo", "50", "--noise-periodic", "10000:900"];
        let document = monte_carlo(
            UNCERTAIN,
            &[&arguments[..], &["--seed", seed, "--threads", threads]].concat(),
        );
        serde_json::to_string(&document["monte_carlo"]).unwrap()
    };
    let one = draws("7", "1");
    assert_eq!(one, draws("7", "1"));
    assert_eq!(one, draws("7", "3"));
    assert_ne!(one, draws("8", "1"));
}

#[test]
fn monte_carlo_names_what_it_lacks_or_does_not_know() {
    let folder = Folder::new();
    let profile = folder.written("link.json", UNCERTAIN);
    let profile = &*profile;
    let endless = folder.written("endless.json", UNCERTAIN.replace("2.5e-6", "null"));
    for (arguments, expected) in [
        (&["--monte-carlo", "5"][..], "--profile"),
        (&["--monte-carlo", "5", "--preset", "odin"], "--profile"),
        (&["--monte-carlo", "0", "--profile", profile], "0 is not in 1..=1000000"),
        (&["--monte-carlo", "5", "--profile", profile, "--timeline", "a.svg"], "--timeline"),
        (&["--monte-carlo", "5", "--profile", profile, "--explain"], "--explain"),
        (&["--monte-carlo", "5", "--profile", profile, "--sensitivity"], "--sensitivity"),
        (&["--monte-carlo", "5", "--profile", profile, "--counters"], "--counters"),
        (&["--monte-carlo", "5", "--profile", profile, "--finish"], "--finish"),
        (&["--monte-carlo", "5", "--profile", profile, "--level", "4:odin"], "--level"),
        (&["--monte-carlo", "5", "--profile", &endless], "L has no end"),
    ] {
        let ring = ["simulate", "--pattern", "dissemination", "--ranks", "4"];
        let message = loggap().args(ring).args(arguments).ends(2).stderr;
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}
