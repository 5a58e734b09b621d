//! `loggap best`: winners, draws, rules, and what is refused.

use std::fs;

use loggap_tests::command::{Run, interrupted, loggap, simulated};
use loggap_tests::folder::Folder;
use serde_json::Value;

fn output(arguments: &[&str]) -> String {
    loggap().arg("best").args(arguments).succeeds().stdout
}

/// Algorithms that send the same messages between two ranks.
#[test]
fn what_is_no_faster_is_a_tie_in_table_map_and_document() {
    let folder = Folder::new();
    let profile = folder.profile("profile.json", 20.0);
    let run = ["gather", "--ranks", "2", "-s", "1K", "--profile", &profile];
    let text = output(&run);
    assert!(text.contains("basic_linear=binomial"), "{text}");
    assert!(text.contains("= a tie: less than 0.05% apart"), "{text}");
    assert!(text.lines().any(|line| line.split_whitespace().eq(["#", "2", "="])), "{text}");
    let cell = &document(&run)["cells"][0];
    assert_eq!(cell["tied_with"], serde_json::json!(["binomial"]));
    assert_eq!(cell["draws_won"], 0);
    let apart = document(&["gather", "--ranks", "64", "-s", "8", "--preset", "odin"]);
    assert_eq!(apart["cells"][0]["tied_with"], serde_json::json!([]));
    let svg = folder.path("map.svg");
    output(&[&run[..], &["--plot", &svg]].concat());
    assert!(fs::read_to_string(svg).unwrap().contains("tie with binomial"));
    let rules = folder.path("gather.rules");
    output(&[&run[..], &["--rules", &rules]].concat());
    assert!(fs::read_to_string(rules).unwrap().contains("less than 0.05% apart tie"));
}

fn document(arguments: &[&str]) -> Value {
    serde_json::from_str(&output(&[arguments, &["-J"]].concat())).unwrap()
}

#[test]
fn winners_change_with_size_and_are_the_least_of_all_candidates() {
    let found = document(&["bcast", "--ranks", "4:64", "-s", "8:1M:x8", "--preset", "ompi-ib-sdr"]);
    assert_eq!(found["schema_version"], 1);
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 5 * 6);
    let mut winners = Vec::new();
    for cell in cells {
        let candidates = cell["candidates"].as_array().unwrap();
        let bound = |of: &Value| of["time_s"].as_f64().or(of["at_least_s"].as_f64()).unwrap();
        let best = cell["winner"]["time_s"].as_f64().unwrap();
        assert!(candidates.iter().all(|other| best <= bound(other)), "{cell}");
        let margin = bound(&cell["runner_up"]) / best - 1.0;
        assert!((margin - cell["margin"].as_f64().unwrap()).abs() < 1e-9, "{cell}");
        // A preset has no intervals.
        assert!(cell["told_apart"].is_null() && cell["draws_won"].is_null(), "{cell}");
        winners.push(cell["winner"]["algorithm"].as_str().unwrap().to_owned());
    }
    winners.sort();
    winners.dedup();
    assert!(winners.len() > 1, "{winners:?}");
}

#[test]
fn intervals_decide_what_is_told_apart_and_the_seed_what_is_drawn() {
    let folder = Folder::new();
    let ask = |percent: f64, more: &[&str]| {
        let path = folder.profile("profile.json", percent);
        let fixed = ["bcast", "--ranks", "8:32", "-s", "8:256K:x4", "--profile"];
        document(&[&fixed[..], &[&*path, "--draws", "40"], more].concat())
    };
    let apart = |found: &Value| {
        let cells = found["cells"].as_array().unwrap().clone();
        let apart = cells.iter().filter(|cell| cell["told_apart"] == true).count();
        for cell in cells {
            let (won, apart) = (cell["draws_won"].as_u64().unwrap(), cell["told_apart"] == true);
            assert_eq!(won >= 38, apart, "{cell}");
            assert!(!apart || cell["not_told_from"].as_array().unwrap().is_empty(), "{cell}");
        }
        apart
    };
    let (narrow, wide) = (ask(0.1, &[]), ask(80.0, &[]));
    assert!(apart(&narrow) > apart(&wide), "{} {}", apart(&narrow), apart(&wide));
    assert_eq!(wide, ask(80.0, &["--threads", "1"]));
    assert_ne!(wide["cells"], ask(80.0, &["--seed", "1"])["cells"]);
    let none = ask(0.0, &[]);
    assert_eq!(none["draws"], 0);
    assert!(none["cells"][0]["told_apart"].is_null());
}

/// Algorithms that `loggap simulate --pattern` has as well: of which collective, the
/// pattern, its options, and what its size is a multiple of.
#[derive(Clone, Copy)]
struct Known {
    collective: &'static str,
    algorithm: &'static str,
    pattern: &'static str,
    options: &'static [&'static str],
    /// Whether its size is that of the blocks of all ranks.
    all_blocks: bool,
    /// Whether it is the same for powers of two of ranks only.
    powers_of_two: bool,
}

const fn known(collective: &'static str, algorithm: &'static str, pattern: &'static str) -> Known {
    let options = &[];
    Known { collective, algorithm, pattern, options, all_blocks: false, powers_of_two: false }
}

/// Of one block of all ranks Schedgen 2 has the bytes of all.
const fn allgather(algorithm: &'static str, options: &'static [&'static str]) -> Known {
    Known { options, all_blocks: true, ..known("allgather", algorithm, "allgather") }
}

const KNOWN: [Known; 13] = [
    known("bcast", "basic_linear", "outcast"),
    known("bcast", "pipeline", "pipelined-broadcast-blocking"),
    known("bcast", "binary_tree", "binary-broadcast"),
    known("bcast", "binomial", "binomial-broadcast"),
    known("gather", "basic_linear", "linear-gather"),
    known("scatter", "basic_linear", "linear-scatter"),
    known("alltoall", "linear", "all-to-all"),
    known("barrier", "linear", "linear-barrier"),
    known("barrier", "bruck", "dissemination"),
    known("allreduce", "ring", "ring-allreduce"),
    Known { powers_of_two: true, ..known("allreduce", "rabenseifner", "recursive-doubling") },
    allgather("ring", &["--algorithm", "ring"]),
    allgather("recursive_doubling", &["--algorithm", "recdoub"]),
];

/// Each algorithm that `loggap simulate` offers, too, takes the same there.
#[test]
fn candidates_take_as_long_as_loggap_simulate_says() {
    let costs = ["-L", "2500", "-o", "700", "-g", "900", "-G", "1.5", "-O", "0.3", "-S", "64M"];
    let seconds = |time: &Value| time.as_f64();
    let mut compared = [0; KNOWN.len()];
    // A multiple of 4, 8 and 13 blocks, of 4 B or 52 B.
    for (ranks, size) in [(4u64, 1_664u64), (8, 8_320), (13, 1_664), (16, 20_800)] {
        let (of_ranks, bytes) = (ranks.to_string(), size.to_string());
        for (known, compared) in KNOWN.iter().zip(&mut compared) {
            if known.powers_of_two && !ranks.is_power_of_two() {
                continue;
            }
            let barrier = known.collective == "barrier";
            let sized: &[&str] = if barrier { &[] } else { &["-s", &bytes] };
            let commutes: &[&str] =
                if known.algorithm == "ring" { &["--assume-commutative"] } else { &[] };
            let asked = [known.collective, "--ranks", &of_ranks];
            let found = document(&[&asked[..], sized, &costs, commutes].concat());
            let all = found["cells"][0]["candidates"].as_array().unwrap();
            let found = all.iter().find(|found| found["algorithm"] == known.algorithm);
            // Not offered, or too slow to be simulated.
            let Some(time) = found.and_then(|found| seconds(&found["time_s"])) else { continue };
            let segment = found.unwrap()["segment_bytes"].to_string();
            let in_segments = segment != "0";
            if in_segments && known.algorithm == "binary_tree" {
                continue;
            }
            let bytes = (size * if known.all_blocks { ranks } else { 1 }).to_string();
            let bytes = if barrier { "1" } else { &bytes };
            let segment: &[&str] = if in_segments { &["--segment", &segment] } else { &[] };
            let run = ["--pattern", known.pattern, "--ranks", &of_ranks, "-s", bytes];
            let run = simulated(&[&run[..], &costs, known.options, segment].concat());
            assert_eq!(seconds(&run["makespan_s"]), Some(time), "{run} {found:?}");
            *compared += 1;
        }
    }
    assert!(compared.iter().all(|&compared| compared >= 1), "{compared:?}");
    assert!(compared.iter().sum::<u32>() > 40, "{compared:?}");
}

/// Words of a file of rules without comments, as numbers.
fn numbers(path: &str) -> Vec<u64> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains("--mca coll_tuned_use_dynamic_rules 1"), "{text}");
    assert!(text.contains("--rules-probe"), "{text}");
    let words = text.lines().flat_map(|line| line.split('#').next().unwrap().split_whitespace());
    words.map(|word| word.parse().unwrap()).collect()
}

#[test]
fn rules_and_map_are_files_and_the_probe_names_no_algorithm() {
    let folder = Folder::new();
    let (rules, map) = (folder.path("b.rules"), folder.path("b.svg"));
    let files = ["--rules", &rules, "--plot", &map];
    let fixed = ["alltoall", "--ranks", "4,8", "-s", "8:64K", "--preset", "ompi-ib-sdr"];
    let found = document(&[&fixed[..], &files].concat());
    let written = numbers(&rules);
    assert_eq!(written[..2], [1, 3]);
    // The same rows as in the document.
    let rows = found["rules"].as_array().unwrap();
    let mut expected = vec![1, 3, rows.len() as u64];
    for row in rows {
        let thresholds = row["thresholds"].as_array().unwrap();
        expected.extend([row["ranks"].as_u64().unwrap(), thresholds.len() as u64]);
        for threshold in thresholds {
            let keys = ["rule_size_bytes", "number", "fanout", "segment_bytes"];
            expected.extend(keys.map(|key| threshold[key].as_u64().unwrap()));
        }
    }
    assert_eq!(written, expected);
    let svg = fs::read_to_string(&map).unwrap();
    for text in ["message size [bytes]", "number of ranks", "pairwise", "modified_bruck", "64K"] {
        assert!(svg.contains(text), "{text}");
    }
    output(&[&fixed[..], &files, &["--rules-probe"]].concat());
    let probe = numbers(&rules);
    assert_eq!(probe.len(), expected.len());
    assert!(probe.contains(&99));
}

#[test]
fn the_table_is_no_wider_than_a_terminal_and_csv_has_a_row_for_each_cell() {
    let folder = Folder::new();
    let path = folder.profile("profile.json", 20.0);
    let fixed = ["bcast", "--ranks", "2:8:x2", "-s", "1:4M", "--draws", "10", "--profile"];
    let arguments = [&fixed[..], &[&*path]].concat();
    let text = output(&arguments);
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(text.contains("time[us]") && text.contains("won[%]"), "{text}");
    let rows = text.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(rows, 3 * 23);
    let csv = output(&[&arguments[..], &["--csv"]].concat());
    assert_eq!(csv.lines().count(), 1 + rows);
    assert!(csv.starts_with("ranks,size_bytes,winner,"), "{csv}");
}

#[test]
fn every_collective_has_an_answer() {
    for collective in ["allreduce", "allgather", "alltoall", "gather", "scatter"] {
        let found = document(&[collective, "--ranks", "2,3,6,8", "-s", "8,64K"]);
        assert_eq!(found["cells"].as_array().unwrap().len(), 8, "{collective}");
    }
    let found = document(&["barrier", "--ranks", "2:4096"]);
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 12);
    assert!(cells.iter().all(|cell| cell["size_bytes"] == 0));
}

#[test]
fn what_does_not_commute_is_safe_unless_said_otherwise() {
    let fixed = ["allreduce", "--ranks", "8", "-s", "8:1M"];
    let names = |found: &Value| {
        let cells = found["cells"].as_array().unwrap().iter();
        let candidates = cells.flat_map(|cell| cell["candidates"].as_array().unwrap().clone());
        candidates.map(|one| one["algorithm"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(!names(&document(&fixed)).contains(&"ring".to_owned()));
    let all = document(&[&fixed[..], &["--assume-commutative"]].concat());
    assert!(names(&all).contains(&"ring".to_owned()));
    assert!(output(&fixed).contains("--assume-commutative"));
}

#[test]
fn collectives_are_named_as_people_write_them() {
    for (name, expected) in [
        ("Bcast", "bcast"),
        ("broadcast", "bcast"),
        ("MPI_Alltoall", "alltoall"),
        ("all-to-all", "alltoall"),
        ("ALL_REDUCE", "allreduce"),
    ] {
        let found = document(&[name, "--ranks", "4", "-s", "8"]);
        assert_eq!(found["collective"], expected);
    }
}

#[test]
fn every_form_says_which_parameters_were_used() {
    let folder = Folder::new();
    let path = folder.profile("profile-0.json", 0.0);
    let path = &*path;
    let (rules, map) = (folder.path("b.rules"), folder.path("b.svg"));
    let files = ["--rules", &rules, "--plot", &map];
    let given = ["-L", "2us", "-o", "300", "-g", "0.4us", "-G", "80ps/B"];
    let values = "L = 2000 ns, o = 300 ns, O = 0 ns/B, g = 400 ns, G = 0.08 ns/B, S = 65535 B";
    let fixed = ["bcast", "--ranks", "4", "-s", "8"];
    for (options, expected, source) in [
        (&["--profile", path][..], path, "profile"),
        (&["--preset", "ompi-ib-sdr"], "preset ompi-ib-sdr", "preset"),
        (&given, values, "options"),
    ] {
        let arguments = [&fixed[..], options, &files].concat();
        let texts = [
            output(&arguments),
            output(&[&arguments[..], &["--csv"]].concat()),
            fs::read_to_string(&rules).unwrap(),
            fs::read_to_string(&map).unwrap(),
        ];
        for text in texts {
            // The table may have a break within a line.
            let text = text.replace("\n#  ", "");
            assert!(
                text.replace(' ', "").contains(&expected.replace(' ', "")),
                "{expected}: {text}"
            );
        }
        let found = document(&arguments);
        assert_eq!(found["parameters"]["source"], source);
        let set = &found["parameters"]["sets"][0];
        assert!(set["latency_s"].is_f64(), "{found}");
        let limit = if source == "preset" { Value::Null } else { 65_535.into() };
        assert_eq!(set["eager_limit_bytes"], limit);
    }
    let found = document(&fixed);
    assert_eq!(found["parameters"]["source"], "defaults");
    assert!(output(&fixed).contains("defaults of LogGOPSim, of no machine"));
}

#[test]
fn algorithms_are_left_out_for_few_elements_only_where_they_are() {
    let remark = "than the vector has elements";
    let small = output(&["bcast", "--ranks", "8", "-s", "8:64"]);
    assert!(small.contains("left out at 8 B to 64 B: scatter_allgather"), "{small}");
    let large = output(&["bcast", "--ranks", "8", "-s", "64K"]);
    assert!(!large.contains(remark), "{large}");
}

#[test]
fn a_profile_with_an_interval_without_an_end_has_winners_without_draws() {
    let folder = Folder::new();
    let path = folder.profile("profile-1.json", 1.0);
    let text = fs::read_to_string(&path).unwrap();
    let open = text.replace(
        "\"send_overhead_s\":3e-7,",
        "\"send_overhead_s\":3e-7,\"send_overhead_s_lo\":0,\"send_overhead_s_hi\":null,",
    );
    assert_ne!(open, text);
    fs::write(&path, open).unwrap();
    let path = &*path;
    let arguments = ["best", "bcast", "--ranks", "4", "-s", "8", "--profile", path, "-J"];
    let output = loggap().args(arguments).succeeds();
    let told = &output.stderr;
    assert!(told.contains(path) && told.contains("--draws 0"), "{told}");
    let found = output.json();
    assert_eq!(found["draws"], 0);
    let arguments = ["simulate", "--pattern", "dissemination", "--ranks", "4", "--profile", path];
    let told = loggap().args(arguments).args(["--monte-carlo", "3"]).ends(2).stderr;
    assert!(told.contains(path) && told.contains("has no end"), "{told}");
}

#[test]
fn what_cannot_be_answered_is_refused() {
    let nowhere = ["--rules", "/nonexistent/rules"];
    for (arguments, code, message) in [
        (&["reduce", "--ranks", "4"][..], 2, "there are: bcast"),
        (&["bcast"], 2, "--ranks"),
        (&["bcast", "--ranks", "1:8"], 2, "from 2"),
        (&["bcast", "--ranks", "4", "-s", "0"], 2, "from 1 B"),
        (&["barrier", "--ranks", "4", "-s", "8"], 2, "leave -s out"),
        (&["bcast", "--ranks", "2:1M", "-s", "1:1G:x1"], 2, "step"),
        (&["bcast", "--ranks", "2:512:+1", "-s", "8:1M"], 2, "larger steps"),
        (&["bcast", "--ranks", "4", "--rules-probe"], 2, "--rules"),
        (&["bcast", "--ranks", "4", "--element", "0"], 2, "--element"),
        (&["bcast", "--ranks", "4", "--profile", "/nonexistent"], 2, "/nonexistent"),
        (&["bcast", "--ranks", "4K", "-s", "8", "--max-memory", "10K"], 1, "--max-memory"),
        (
            &["bcast", "--ranks", "4", "--preset", "ompi-ib-sdr", nowhere[0], nowhere[1]],
            1,
            "folder",
        ),
        (&["bcast", "--ranks", "4", nowhere[0], nowhere[1]], 2, "--profile"),
        (
            &["bcast", "--ranks", "4", "-L", "1", "-o", "1", "-g", "1", nowhere[0], nowhere[1]],
            2,
            "all of -L, -o, -g and -G",
        ),
        (&["brodcast", "--ranks", "4"], 2, "unknown collective 'brodcast'; expected one of: bcast"),
        (&["alreduce", "--ranks", "4"], 2, "did you mean 'allreduce'? expected one of: bcast"),
        (&["reduce_scatter", "--ranks", "4"], 2, "does not know two algorithms"),
        (&["bcast", "--ranks", "abc"], 2, "'abc' is no number of ranks"),
        (&["bcast", "--ranks", "4,3"], 2, "3 ranks follow 4"),
        (&["bcast", "--ranks", "4", "--draws", "5"], 2, "--profile"),
    ] {
        let text = loggap().arg("best").args(arguments).ends(code).stderr;
        assert!(text.contains(message), "{arguments:?}: {text}");
    }
}

/// Whatever form is asked for has the cells that are complete, as a run to the end has
/// them, and says that others are missing.
#[test]
fn ctrl_c_leaves_the_cells_that_are_complete() {
    let folder = Folder::new();
    let (rules, map) = (folder.path("b.rules"), folder.path("b.svg"));
    let files = ["--rules", &rules, "--plot", &map];
    let preset = ["--preset", "ompi-ib-sdr"];
    // The first cells are done in no time, and all take much longer than the test waits.
    let ask = ["best", "bcast", "--ranks", "8:64K", "-s", "8:1M"];
    let left = |more: &[&str], is_enough: fn(&str) -> bool| {
        let arguments = [&ask[..], &preset, more].concat();
        interrupted(&arguments, |ended| is_enough(&ended.stdout)).stdout
    };
    let all = 14 * 18;
    let json = left(&[&files[..], &["-J"]].concat(), |text| text.contains("\"candidates\""));
    let found: Value = serde_json::from_str(&json).unwrap();
    let cells = found["cells"].as_array().unwrap();
    assert!(!cells.is_empty() && cells.len() < all, "{}", cells.len());
    let why = format!("interrupted after {} of {all} cells", cells.len());
    assert_eq!(found["incomplete"], why);
    let first = ["bcast", "--ranks", "8,16", "-s", "8:1M"];
    let whole = document(&[&first[..], &preset].concat());
    assert_eq!(whole.get("incomplete"), None);
    let both = cells.iter().zip(whole["cells"].as_array().unwrap()).take(18);
    assert!(both.clone().count() > 0 && both.clone().all(|(left, whole)| left == whole), "{why}");
    let written = fs::read_to_string(&rules).unwrap();
    assert!(written.contains(&format!("INCOMPLETE: {why}")), "{written}");
    assert!(fs::read_to_string(&map).unwrap().contains("fastest algorithm (incomplete)"));
    // Beside whole files there is nothing: temporary ones have got their names.
    assert_eq!(folder.count(), 2);
    let csv = left(&["--csv"], |text| text.lines().count() > 2);
    let rows: Vec<&str> = csv.lines().collect();
    let last = format!("# incomplete: interrupted after {} of {all} cells", rows.len() - 2);
    assert_eq!(rows[rows.len() - 1], last);
    let table = left(&[], |text| text.contains("\n        8 "));
    let rows = table.lines().filter(|line| !line.starts_with('#')).count();
    assert!(table.contains(&format!("# INCOMPLETE: interrupted after {rows} of {all} cells")));
}
