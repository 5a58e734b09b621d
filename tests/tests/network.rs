//! Networks between ranks, as a user runs them.

use std::fmt::Write as _;
use std::fs;

use loggap_core::model::LogGops;
use loggap_core::random::Random;
use loggap_core::units::PerByte;
use loggap_tests::command::{Run, assert_refused, loggap, loggap_after, refused, simulated};
use loggap_tests::engine;
use loggap_tests::folder::Folder;
use loggap_tests::program::Program;
use loggap_tests::random_program::{Shape, of_picos, parameters, program};
use loggap_tests::seeds;
use loggap_tests::shadow::{self, Receive, Settings};
use serde_json::Value;

/// L, o, g and G of the tests, in ps.
const PARAMETERS: [&str; 8] = ["-L", "2500", "-o", "1500", "-g", "1000", "-G", "0.25"];
const LATENCY: u64 = 2_500_000;
const OVERHEAD: u64 = 1_500_000;
const PER_BYTE: u64 = 250;
/// Sixteen hosts at least, of every kind.
const TOPOLOGIES: &str = "star tree:4 tree:8:4 tree:5:3 fat-tree:4 fat-tree:6 fat-tree:4:2 \
    fat-tree:6:2 fat-tree:8:2.5 torus:4x4 torus:3x3x2 dragonfly:4:2:2 rail:4:2:2 rail:2:4";

/// A schedule of 16 ranks in which those sends happen, all at once, as a file.
fn schedule(folder: &Folder, sends: &[(u32, u32, u64)]) -> String {
    let mut text = String::from("num_ranks 16\n");
    for rank in 0..16 {
        let mut label = 0..;
        writeln!(text, "rank {rank} {{").unwrap();
        for &(from, to, size) in sends {
            if from == rank {
                writeln!(text, "l{}: send {size}b to {to} tag {from}", label.next().unwrap())
                    .unwrap();
            }
            if to == rank {
                writeln!(text, "l{}: recv {size}b from {from} tag {from}", label.next().unwrap())
                    .unwrap();
            }
        }
        text.push_str("}\n");
    }
    folder.written("schedule.goal", text)
}

fn makespan(path: &str, arguments: &[&str]) -> u64 {
    let arguments = [&[path], &PARAMETERS[..], arguments].concat();
    simulated(&arguments)["makespan_ps"].as_u64().unwrap()
}

#[test]
fn links_of_many_flows_that_begin_at_once_carry_what_they_can() {
    const SENDERS: u32 = 50_000;
    const RECEIVERS: u32 = 10;
    let mut text = format!("num_ranks {}\n", SENDERS + RECEIVERS);
    for rank in 0..SENDERS {
        let to = SENDERS + rank % RECEIVERS;
        writeln!(text, "rank {rank} {{\ns: send 1000001b to {to} tag 1\n}}").unwrap();
    }
    for receiver in 0..RECEIVERS {
        writeln!(text, "rank {} {{", SENDERS + receiver).unwrap();
        for from in (receiver..SENDERS).step_by(RECEIVERS as usize) {
            writeln!(text, "r{from}: recv 1000001b from {from} tag 1").unwrap();
        }
        writeln!(text, "}}").unwrap();
    }
    let folder = Folder::new();
    let path = folder.written("incast.goal", text);
    // The uplinks of the leaf of senders carry as much as the receivers take.
    let report = simulated(&[
        &path,
        "--topology",
        &format!("tree:{SENDERS}:{}", SENDERS / RECEIVERS),
        "-L",
        "0",
        "-o",
        "0",
        "-g",
        "0",
        "-G",
        "1",
        "-S",
        "100M",
    ]);
    let most = u64::from(SENDERS / RECEIVERS) * 1_000_000_000;
    assert_eq!(report["makespan_ps"], most);
}

#[test]
fn a_message_alone_takes_what_flat_gives_on_every_topology() {
    let folder = Folder::new();
    for (from, to, size) in [(0, 1, 65_536), (2, 13, 1_000_001), (15, 0, 1), (3, 3, 4_096)] {
        let path = schedule(&folder, &[(from, to, size)]);
        for settings in [
            &["-S", "1G"][..],
            &["-S", "1G", "-O", "0.75"],
            &["-S", "1G", "--receive", "overlap"],
            &["-S", "1G", "--receive", "overlap", "-O", "0.75"],
            &["-S", "0"],
            &["-S", "0", "--rendezvous", "handshake"],
        ] {
            let flat = makespan(&path, settings);
            for topology in TOPOLOGIES.split_whitespace() {
                let arguments = [settings, &["--topology", topology]].concat();
                let there = makespan(&path, &arguments);
                assert_eq!(there, flat, "{from} to {to}, {size} B, {settings:?} on {topology}");
            }
        }
    }
}

#[test]
fn eight_messages_over_a_taper_of_four_take_four_times_as_long() {
    let folder = Folder::new();
    let sends: Vec<_> = (0..8).map(|rank| (rank, rank + 8, 1_000_001)).collect();
    let path = schedule(&folder, &sends);
    let alone = LATENCY + 2 * OVERHEAD;
    let bytes = 1_000_000 * PER_BYTE;
    for receive in ["hold", "overlap"] {
        let on = |topology: &str| {
            let network = ["--receive", receive, "-S", "1G", "--topology", topology];
            makespan(&path, &network)
        };
        assert_eq!(on("tree:8:4"), alone + 4 * bytes);
        assert_eq!(on("tree:8:1"), alone + bytes);
        assert_eq!(on("star"), alone + bytes);
    }
    // The other way round the pairs share leaves.
    let near: Vec<_> = (0..8).map(|pair| (2 * pair, 2 * pair + 1, 1_000_001)).collect();
    let path = schedule(&folder, &near);
    let on =
        |more: &[&str]| makespan(&path, &[&["-S", "1G", "--topology", "tree:8:4"], more].concat());
    assert_eq!(on(&[]), alone + bytes);
    assert_eq!(on(&["--placement", "round-robin"]), alone + 4 * bytes);
    let places =
        folder.written("places", "0 8 1 9 2 10 3 11 # pairs apart\n4 12 5 13\n6 14 7 15\n");
    assert_eq!(on(&["--placement", &places]), alone + 4 * bytes);
    assert_eq!(on(&["--link-capacity", "4", "--placement", "round-robin"]), alone + bytes);
    let random = |seed: &str| on(&["--placement", "random", "--seed", seed]);
    assert_eq!(random("5"), random("5"));
}

#[test]
fn an_incast_queues_on_its_last_link_and_then_at_its_processor() {
    let folder = Folder::new();
    let sends: Vec<_> = (1..16).map(|rank| (rank, 0, 100_001)).collect();
    let path = schedule(&folder, &sends);
    let expected = LATENCY + OVERHEAD + 15 * 100_000 * PER_BYTE + 15 * OVERHEAD;
    for topology in ["star", "tree:16", "fat-tree:4", "rail:1:16"] {
        assert_eq!(makespan(&path, &["-S", "1G", "--topology", topology]), expected);
    }
    assert_eq!(makespan(&path, &["-S", "1G"]), expected, "as flat");
}

/// Rule 4 of `docs/networks.md`: the first message is there at 5,100 ns, the processor has
/// worked on it since 4,100, and the others, which are there as well, follow.
#[test]
fn messages_that_arrive_together_are_handled_from_before_their_last_byte_on() {
    let send = |rank: u32| format!("rank {rank} {{\ns: send 1001b to 0 tag {rank}\n}}\n");
    let receive = |from: u32| format!("r{from}: recv 1001b from {from} tag {from}\n");
    let [sends, receives] = [&send as &dyn Fn(u32) -> String, &receive]
        .map(|line| (1..4).map(line).collect::<String>());
    let program = Program::of_text(&format!("num_ranks 4\nrank 0 {{\n{receives}}}\n{sends}"));
    let set = of_picos([2_000_000, 100_000, 50_000, 1_000, 2_000]);
    // Of what begins before 4,150 ns and would end after that.
    let detour = |_: usize, start: u64, length: u64| {
        if (start..start + length).contains(&4_150_000) { 700_000 } else { 0 }
    };
    let plan = engine::network("star");
    for receive in [Receive::Hold, Receive::Overlap] {
        let settings = Settings { receive, ..Settings::new(set) };
        let run = |noise: Option<shadow::Noise<'_>>| {
            let (outcome, _) = engine::causes_on_network(&program, &settings, noise, &plan);
            assert!(outcome.complete());
            outcome.makespan()
        };
        // 6,200 and 8,300 before.
        assert_eq!(run(None), 10_400_000, "{receive:?}");
        assert_eq!(run(Some(&detour)), 11_100_000, "{receive:?}");
    }
}

#[test]
fn several_interfaces_are_several_links_and_hosts_may_be_shared() {
    let folder = Folder::new();
    let path = folder.path("two.goal");
    let text = "num_ranks 2\nrank 0 {\na: send 100001b to 1 tag 1 cpu 0 nic 0\n\
                b: send 100001b to 1 tag 2 cpu 1 nic 1\n}\nrank 1 {\n\
                a: recv 100001b from 0 tag 1 cpu 0 nic 0\n\
                b: recv 100001b from 0 tag 2 cpu 1 nic 1\n}\n";
    fs::write(&path, text).unwrap();
    let flat = makespan(&path, &["-S", "1G"]);
    assert_eq!(flat, LATENCY + 2 * OVERHEAD + 100_000 * PER_BYTE);
    assert_eq!(makespan(&path, &["-S", "1G", "--topology", "star"]), flat);
    let places = folder.written("places", "0 0");
    let shared = ["-S", "1G", "--topology", "star", "--placement", &places];
    assert_eq!(makespan(&path, &shared), flat);
}

/// A random program, and settings of all kinds, with this time for each byte.
fn random(seed: u64, shape: &Shape, gap_per_byte: PerByte) -> (Program, Settings) {
    let mut random = Random::new(seed);
    let program = program(&mut random, shape);
    let parameters = LogGops { gap_per_byte, ..parameters(&mut random) };
    (program, Settings::of_seed(seed, parameters))
}

#[test]
fn random_programs_whose_bytes_take_no_time_run_as_without_a_network() {
    for seed in 0..500 {
        let shape = if seed % 2 == 0 { Shape::PLAIN } else { Shape::WILD };
        let (program, settings) = random(seed, &shape, PerByte::ZERO);
        let flat = engine::run(&program, &settings, None);
        let there = engine::on_network(&program, &settings, "tree:2:2");
        assert_eq!(there, flat, "seed {seed}");
    }
}

#[test]
fn random_programs_come_to_their_end_on_a_network_where_they_do_without() {
    let mut complete = 0;
    for seed in seeds(0..500) {
        let per_byte = PerByte::from_picos(1 + seed % 7 * 1_000_000).unwrap();
        let (program, settings) = random(seed, &Shape::PLAIN, per_byte);
        let flat = engine::run(&program, &settings, None);
        for topology in ["star", "tree:2:8", "torus:8x8"] {
            let there = engine::on_network(&program, &settings, topology);
            assert_eq!(there.complete(), flat.complete(), "seed {seed} on {topology}");
            assert_eq!(there.events, flat.events, "seed {seed} on {topology}");
        }
        complete += u32::from(flat.complete());
        // Of other programs the order decides; they only have to end.
        let (program, settings) = random(seed, &Shape::WILD, per_byte);
        let _ends = engine::on_network(&program, &settings, "tree:2:8");
    }
    assert!(complete > 25, "{complete} programs came to their end");
}

#[test]
fn the_report_says_how_many_hosts_have_a_rank() {
    let folder = Folder::new();
    let placement = folder.written("hosts.txt", "0 0 5 5 7 7 7 7\n");
    let placement = ["--ranks", "8", "--placement", &placement];
    for (options, hosts, used) in [
        (&["--ranks", "50"][..], 56, 50),
        (&["--ranks", "50", "--placement", "round-robin"], 56, 50),
        (&["--ranks", "56"], 56, 56),
        (&placement, 8, 3),
    ] {
        let run = ["--pattern", "dissemination", "-s", "8", "--topology", "tree:8:4"];
        let run = [&run[..], options].concat();
        let network = &simulated(&run)["network"];
        assert_eq!((&network["hosts_used"], &network["hosts"]), (&used.into(), &hosts.into()));
        let text = loggap().arg("simulate").args(&run).succeeds().stdout;
        let said = format!("tree:8:4: {used} of {hosts} hosts used, ");
        assert_eq!(text.contains(&said), used < hosts, "{text}");
    }
}

#[test]
fn the_report_names_busy_links_and_draws_them() {
    let folder = Folder::new();
    let sends: Vec<_> = (0..8).map(|rank| (rank, rank + 8, 1_000_001)).collect();
    let path = schedule(&folder, &sends);
    let plot = folder.path("busy.svg");
    let arguments = [
        &[&*path, "-S", "1G", "--network", "flows", "--topology", "tree:8:4"],
        &["--network-plot", &plot][..],
        &PARAMETERS,
    ];
    let report = simulated(&arguments.concat());
    let network = &report["network"];
    assert_eq!(report["engine"], "sequential");
    assert!(report["engine_reason"].as_str().unwrap().contains("share links"));
    assert_eq!(network["kind"], "flows");
    assert_eq!((&network["hosts"], &network["links"]), (&16.into(), &36.into()));
    let busiest = network["busiest_links"].as_array().unwrap();
    assert_eq!(busiest[0]["link"], "leaf 0 out");
    assert_eq!(busiest[1]["link"], "leaf 1 in");
    let share = busiest[0]["utilization"].as_f64().unwrap();
    let whole = report["makespan_ps"].as_f64().unwrap();
    assert!((share - 1e9 / whole).abs() < 1e-9, "{share}");
    let steps: Vec<f64> = busiest[0]["utilization_over_time"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step.as_f64().unwrap())
        .collect();
    assert!(steps.iter().all(|share| (0.0..1.001).contains(share)), "{steps:?}");
    let step = network["step_s"].as_f64().unwrap() * 1e12;
    let sum: f64 = steps.iter().map(|share| share * step).sum();
    assert!((sum - 1e9).abs() < 1e3, "{sum} ps of a whole link");
    let svg = fs::read_to_string(&plot).unwrap();
    assert!(svg.contains("leaf 0 out") && svg.trim_end().ends_with("</svg>"));
    let text = loggap().arg("simulate").args(arguments.concat()).succeeds().stdout;
    assert!(text.contains("tree:8:4: 16 hosts, 36 links") && text.contains("leaf 0 out"), "{text}");
}

#[test]
fn a_computed_pattern_on_a_network_is_reported_as_the_stored_one_is() {
    let folder = Folder::new();
    let graph = folder.path("pair.dot");
    let mut text = String::from("graph {\n A -- B [capacity=3]\n");
    for host in 0..24 {
        writeln!(text, " H{host} -- {}", if host % 3 == 0 { "A" } else { "B" }).unwrap();
    }
    fs::write(&graph, text + "}\n").unwrap();
    for (pattern, size, topology) in [
        ("ring-allreduce", "64K", "star"),
        ("all-to-all", "9999", "fat-tree:6:3"),
        ("binomial-broadcast", "1M", "torus:5x5"),
        ("recursive-doubling", "3K", "dragonfly:3:3:3"),
        ("pipelined-broadcast", "7K", "tree:5:2"),
        ("dissemination", "100K", &graph),
    ] {
        let plot = folder.path("busy.svg");
        let arguments = [
            &["--pattern", pattern, "--ranks", "24", "-s", size, "-S", "1G", "--finish"][..],
            &["--topology", topology, "--placement", "random", "--seed", "5"],
            &["--network-plot", &plot],
            &PARAMETERS,
        ]
        .concat();
        let computed = simulated(&arguments);
        assert_eq!(computed["engine"], "computed");
        let drawn = fs::read(&plot).unwrap();
        // Counters are told of events of stored operations.
        let stored = simulated(&[&arguments[..], &["--counters"]].concat());
        assert_eq!(stored["engine"], "sequential");
        for field in ["makespan_ps", "last_rank", "events", "ops", "finish_ps", "network"] {
            assert!(!computed[field].is_null(), "{field}");
            assert_eq!(computed[field], stored[field], "{pattern} on {topology}: {field}");
        }
        assert!(drawn == fs::read(&plot).unwrap(), "{pattern} on {topology}: the plot");
    }
    let arguments = ["--pattern", "ring-allreduce", "--ranks", "24", "--topology", "star"];
    let text = loggap().arg("simulate").args(arguments).succeeds().stdout;
    assert!(
        text.contains("event by event, computed from the pattern: messages share links: how fast"),
        "{text}"
    );
    let reason = simulated(&arguments)["engine_reason"].as_str().map(str::to_owned);
    assert!(reason.is_some_and(|reason| text.contains(&reason)), "{text}");
    // Flat nothing goes event by event.
    assert_eq!(simulated(&arguments[..4]).get("engine_reason"), None);
}

/// The same tapered tree as `tree:8:4`, as a graph; and routes that are given.
#[test]
fn a_file_is_a_topology() {
    let folder = Folder::new();
    let mut text = String::from("graph {\n A -- C -- B [capacity=2]\n");
    for host in 0..16 {
        writeln!(text, " H{host} -- {}", if host < 8 { "A" } else { "B" }).unwrap();
    }
    let tree = folder.written("tree.dot", text + "}\n");
    let pattern = ["--pattern", "linear_alltoall", "--ranks", "16", "-s", "4K"];
    let on = |more: &[&str]| simulated(&[&pattern[..], &PARAMETERS, more].concat());
    for placement in ["block", "round-robin"] {
        let [file, named] = [&*tree, "tree:8:4"]
            .map(|topology| on(&["--topology", topology, "--placement", placement]));
        assert_eq!(file["makespan_ps"], named["makespan_ps"], "{placement}");
        assert_eq!(file["network"]["hosts"], 16);
    }
    let busiest = &on(&["--topology", &tree])["network"]["busiest_links"][0]["link"];
    assert!(
        ["A to C", "C to A", "B to C", "C to B"].contains(&busiest.as_str().unwrap()),
        "{busiest}"
    );

    // Given routes send everything over one of two cores.
    let given = folder.path("given.dot");
    let mut text = String::from(
        "digraph {\n A -> C [comment=\"*\"]; B -> C [comment=\"*\"]; A -> D [comment=\"\"]; D -> B\n",
    );
    let hosts = |range: std::ops::Range<u32>| {
        range.map(|host| format!("H{host}")).collect::<Vec<_>>().join(",")
    };
    writeln!(text, " C -> A [comment=\"{}\"]; C -> B [comment=\"{}\"]", hosts(0..8), hosts(8..16))
        .unwrap();
    for host in 0..16 {
        let switch = if host < 8 { "A" } else { "B" };
        writeln!(text, " H{host} -> {switch}; {switch} -> H{host} [comment=\"H{host}\"]").unwrap();
    }
    fs::write(&given, text + "}\n").unwrap();
    let sends: Vec<_> = (0..8).map(|rank| (rank, rank + 8, 1_000_001)).collect();
    let path = schedule(&folder, &sends);
    let alone = LATENCY + 2 * OVERHEAD;
    let options = ["-S", "1G", "--topology", &given];
    assert_eq!(makespan(&path, &options), alone + 8 * 1_000_000 * PER_BYTE);
    let wider = [&options[..], &["--link-capacity", "8"]].concat();
    assert_eq!(makespan(&path, &wider), alone + 1_000_000 * PER_BYTE);

    for (name, text, words) in [
        ("none.dot", "digraph { a -> }", "none.dot: line 1: expected a node"),
        ("few.gv", "graph { H0 -- S; H1 -- S }", "2 hosts for 16 ranks"),
    ] {
        let file = folder.path(name);
        fs::write(&file, text).unwrap();
        let topology = ["--topology", &file];
        assert_refused(&[&pattern[..], &topology].concat(), 2, words);
    }
    assert_refused(
        &[&pattern[..], &["--topology", "missing.dot"]].concat(),
        2,
        "missing.dot: No such file",
    );
}

#[test]
fn a_flat_run_says_from_which_taper_on_links_would_decide() {
    let arguments = ["--pattern", "all-to-all", "--ranks", "64", "-s", "100000", "-S", "1G"];
    let report = simulated(&arguments);
    let network = &report["network"];
    assert_eq!(network["kind"], "flat");
    let taper = network["decisive_taper"]["taper"].as_f64().unwrap();
    let leaf = network["decisive_taper"]["leaf_ranks"].as_u64().unwrap();
    assert_eq!(leaf, 8, "most of what is sent crosses the smallest leaves");
    let flat = report["makespan_ps"].as_u64().unwrap();
    let on = |taper: f64| {
        let topology = format!("tree:{leaf}:{taper}");
        let flows = [&arguments[..], &["--topology", &topology]].concat();
        simulated(&flows)["makespan_ps"].as_u64().unwrap()
    };
    assert!(on(taper * 1.05) > flat);
    let text = loggap().arg("simulate").args(arguments).succeeds();
    let text = &text.stdout;
    assert!(
        text.contains("with --topology star") && text.contains("compare --topology tree:8:"),
        "{text}"
    );
    // Like is compared with like where receivers are not held for G, or for O in any case.
    let held = "receivers were busy for (s - 1)G";
    assert!(text.contains(held), "{text}");
    for alike in [&["--receive", "overlap"][..], &["-O", "6"]] {
        let text = loggap().arg("simulate").args(arguments).args(alike).succeeds().stdout;
        assert!(text.contains("take longer than this makespan") && !text.contains(held), "{text}");
    }
    // Sixteen links join the leaves, and all carry as much.
    let shared = [&arguments[..], &["--topology", "tree:8:4"]].concat();
    let text = loggap().arg("simulate").args(shared).succeeds().stdout;
    assert!(text.contains("and 11 more like the last"), "{text}");
    // Neighbours never leave their leaf.
    let folder = Folder::new();
    let path = schedule(&folder, &[(0, 1, 9_000), (14, 15, 9_000)]);
    let report = simulated(&[&*path]);
    assert_eq!(report["network"]["decisive_taper"], Value::Null);
}

/// What crosses does so in one direction, all at once, while nobody is held for G, and
/// takes so long that o and L are less than a hundredth of it.
#[test]
fn the_taper_that_decides_is_met_to_a_hundredth() {
    let folder = Folder::new();
    let sends: Vec<_> = (0..4).map(|rank| (rank, rank + 8, 10_000_001)).collect();
    let path = schedule(&folder, &sends);
    let overlap = [&*path, "-S", "1G", "--receive", "overlap"];
    let run = |more: &[&str]| simulated(&[&overlap[..], &PARAMETERS, more].concat());
    let report = run(&[]);
    let flat = report["makespan_ps"].as_u64().unwrap();
    let taper = report["network"]["decisive_taper"]["taper"].as_f64().unwrap();
    assert_eq!(report["network"]["decisive_taper"]["leaf_ranks"], 8);
    let on = |taper: f64| {
        let topology = format!("tree:8:{taper}");
        run(&["--topology", &topology])["makespan_ps"].as_u64().unwrap()
    };
    assert!(on(taper * 1.01) > flat, "{taper}");
    assert_eq!(on(taper * 0.99), flat, "{taper}");
}

#[test]
fn a_network_of_which_all_ranks_are_below_one_switch_is_told() {
    let told = |topology: &str, more: &[&str]| {
        let ranks = ["simulate", "--pattern", "all-to-all", "--ranks", "64", "--topology"];
        loggap().args(ranks).arg(topology).args(more).succeeds().stderr
    };
    for topology in ["tree:128:4", "tree:64:4", "fat-tree:128", "dragonfly:2:2:64", "rail:64:2"] {
        let told = told(topology, &[]);
        assert!(told.contains("all 64 ranks are below one switch"), "{topology}: {told}");
    }
    for topology in ["star", "tree:32:4", "torus:8x8", "fat-tree:16", "rail:8:8"] {
        assert_eq!(told(topology, &[]), "", "{topology}");
    }
    // Hosts of several switches.
    assert_eq!(told("fat-tree:128", &["--placement", "round-robin"]), "");
    let folder = Folder::new();
    for (factor, together) in [(1, true), (0, true), (64, false)] {
        let hosts: Vec<String> = (0..64).map(|rank| (rank * factor).to_string()).collect();
        let path = folder.written("hosts", hosts.join("\n"));
        let told = told("fat-tree:128", &["--placement", &path]);
        assert_eq!(told.contains("below one switch"), together, "{factor}: {told}");
    }
}

#[test]
fn more_messages_under_way_than_expected_only_take_another_run() {
    let arguments = ["--pattern", "all-to-all", "--ranks", "100", "-s", "20000", "-S", "1G"];
    let steep = [&arguments[..], &["--topology", "tree:50:50"]].concat();
    let report = simulated(&steep);
    // Half of the messages leave each half, over one link of a host.
    let bytes = 50 * 50 * 19_999 * 6_000u64;
    let makespan = report["makespan_ps"].as_u64().unwrap();
    assert!(makespan >= bytes && makespan < bytes + bytes / 50, "{makespan} against {bytes}");
    assert_eq!(report["unmatched_total"], 0);
    assert_eq!(simulated(&steep)["makespan_ps"], report["makespan_ps"]);
}

#[test]
fn a_later_message_of_a_shorter_latency_does_not_overtake_one_that_holds_it() {
    let folder = Folder::new();
    let range = |first: u64, last: u64, latency: f64| {
        serde_json::json!({
            "first_bytes": first, "last_bytes": last, "latency_s": latency,
            "gap_s": 50e-9, "gap_per_byte_s": 1e-9,
            "send_overhead_s": 100e-9, "send_overhead_per_byte_s": 0,
            "recv_overhead_s": 100e-9, "recv_overhead_per_byte_s": 0
        })
    };
    let profile = serde_json::json!({
        "schema_version": 1,
        "ranges": [range(1, 999, 1e-6), range(1_000, 99_999, 1.5e-6)],
        "changes": [{"at_bytes": 1_000, "lo_bytes": 900, "hi_bytes": 1_001}]
    });
    let (program, parameters) = (folder.path("program.goal"), folder.path("p.json"));
    fs::write(&parameters, profile.to_string()).unwrap();
    // The large message is slowed by that of rank 2; whichever is first takes the
    // receive before the long calculation.
    let text = "num_ranks 3\nrank 0 {\nl1: send 10001b to 1 tag 5\nl2: send 1b to 1 tag 5\n}\n\
                rank 1 {\nl1: recv 10001b from 0 tag 5\nl2: recv 1b from 0 tag 5\n\
                l3: recv 10001b from 2 tag 9\nc1: calc 1000000\nc2: calc 5000\n\
                c1 requires l1\nc2 requires l2\n}\n\
                rank 2 {\nl1: send 10001b to 1 tag 9\n}\n";
    fs::write(&program, text).unwrap();
    let (program, parameters) = (&*program, &*parameters);
    let report =
        simulated(&[program, "--profile", parameters, "-S", "60000", "--topology", "star"]);
    let makespan = report["makespan_ps"].as_u64().unwrap();
    // Both large ones share the link of rank 1 for 20 us, and its latency is 1.5 us.
    assert!(makespan >= 20_000_000 + 1_500_000 + 1_000_000_000 + 5_000_000, "{makespan}");
}

#[test]
fn what_cannot_be_a_network_is_refused_with_what_to_do() {
    let folder = Folder::new();
    let places = folder.path("places");
    let pattern = ["--pattern", "dissemination", "--ranks", "20", "-s", "8"];
    let on = |more: &[&str]| refused(&[&pattern, more].concat());
    for (arguments, code, words) in [
        (&["--topology", "mesh"][..], 2, "expected star"),
        (&["--topology", "tree:8:0"], 2, "above 0"),
        (&["--topology", "fat-tree:4"], 2, "16 hosts for 20 ranks"),
        (&["--topology", "torus:100000x100000"], 2, "2^31"),
        (&["--topology", "tree:8:2", "--link-capacity", "nan"], 2, "above 0"),
        (&["--topology", "star", "--link-capacity", "2"], 2, "'star' has none"),
        (&["--network", "flows"], 2, "needs --topology"),
        (&["--network", "flat", "--topology", "star"], 2, "leave one out"),
        (&["--placement", "random"], 2, "--topology"),
        (&["--topology", "star", "--placement", "/nowhere/at/all"], 2, "/nowhere/at/all"),
        (&["--topology", "torus:2x61000000"], 2, "bytes of memory"),
        (&["--topology", "torus:4000x4000", "--max-memory", "1M"], 1, "--max-memory"),
    ] {
        let (found, text) = on(arguments);
        assert!(found == code && text.contains(words), "{arguments:?}: {found} {text}");
    }
    for (content, words) in [
        ("0 1 two", "line 1: 'two'"),
        ("0 1 2", "hosts for 3 of 20 ranks"),
        ("0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 20", "rank 19 is on host 20 of 20"),
    ] {
        fs::write(&places, content).unwrap();
        let (code, text) = on(&["--topology", "star", "--placement", &places]);
        assert!(code == 2 && text.contains(words), "{content}: {code} {text}");
    }
}

/// Whether there is room is asked before any of it is taken, also for what is to be
/// listed of each rank.
#[test]
fn a_computed_pattern_on_a_network_that_is_too_large_is_refused() {
    let arguments = ["simulate", "--pattern", "binomialtreebcast", "--ranks", "1000000000"];
    let mut command = loggap_after("ulimit -v 4000000");
    let text = command.args(arguments).args(["--topology", "star", "--finish"]).ends(2).stderr;
    assert!(text.contains("bytes of memory"), "{text}");
}

/// Where more messages are under way than usual, points take more memory, and no more
/// than they may; what is computed is what the stored schedule gives.
#[test]
fn points_on_a_network_stay_within_the_memory() {
    let folder = Folder::new();
    let path = folder.path("all.bin");
    let path = &*path;
    let pattern = ["--pattern", "all-to-all", "--ranks", "100", "-s", "20000"];
    let generate = [&["goal", "generate"][..], &pattern, &["-o", path]].concat();
    loggap().args(generate).assert().success();
    let network = ["-S", "1G", "--topology", "tree:50:50", "--sweep", "G=1:2:2"];
    let points = |source: &[&str]| {
        let report = simulated(&[source, &network, &["--max-memory", "60M"]].concat());
        let points = report["sweep"]["points"].as_array().unwrap().clone();
        points.iter().map(|point| point["makespan_ps"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let computed = points(&pattern);
    assert_eq!(computed.len(), 2);
    assert_eq!(computed, points(&[path]));
    assert_refused(
        &[&pattern[..], &network, &["--max-memory", "2M"]].concat(),
        1,
        "and may take 2097152",
    );
}
