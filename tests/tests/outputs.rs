//! Files that commands write: never over what they read, never two into one, and
//! never in place of the report.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use loggap_tests::command::{Ended, Run, binary, loggap, loggap_process, machine, skipped};
use loggap_tests::folder::Folder;
use serde_json::Value;

/// Two ranks that each send before they receive.
const EXCHANGE: &str = "num_ranks 2\n\
    rank 0 {\na: send 100b to 1\nb: recv 100b from 1\nb requires a\n}\n\
    rank 1 {\na: send 100b to 0\nb: recv 100b from 0\nb requires a\n}\n";

const PROFILE: &str = r#"{"schema_version":1,"ranges":[{"first_bytes":1,"last_bytes":4194304,
    "latency_s":2e-6,"send_overhead_s":3e-7,"send_overhead_per_byte_s":0,"recv_overhead_s":3e-7,
    "recv_overhead_per_byte_s":0,"gap_s":4e-7,"gap_per_byte_s":1e-10}]}"#;

/// A folder with files to read.
fn folder() -> Folder {
    let folder = Folder::new();
    let file = |name: &str, content: &str| fs::write(folder.path(name), content).unwrap();
    file("b.goal", EXCHANGE);
    file("p.json", PROFILE);
    file("nodes.txt", "0 0 1 1\n");
    file("net.dot", "graph { H0 -- S; H1 -- S; H2 -- S; H3 -- S }");
    file("noise.txt", "# Runtime [ns]: 1000000\n1000 2000\n");
    file("samples.csv", "size_bytes,value_s\n1,1e-6\n2,1e-6\n4,1e-6\n8,1e-6\n");
    symlink("b.goal", folder.path("link.goal")).unwrap();
    fs::create_dir(folder.path("sub")).unwrap();
    folder
}

/// Exit code, standard output and standard error of a command in `folder`.
fn ran(folder: &Folder, command: &str) -> (i32, String, String) {
    let words = command.split_whitespace();
    let Ended { code, stdout, stderr } = loggap().current_dir(folder.root()).args(words).ended();
    (code.unwrap(), stdout, stderr)
}

/// Names and contents of a folder's files.
fn contents(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder.root()).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.path().is_file());
    let mut found: Vec<_> = files
        .map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap()))
        .collect();
    found.sort();
    found
}

#[test]
fn what_is_read_is_not_written_over_and_no_two_results_go_to_one_file() {
    let folder = folder();
    let before = contents(&folder);
    let all = "simulate --pattern all-to-all --ranks 4 -s 1K";
    for (command, first, second) in [
        ("simulate b.goal --sweep L=1us:2us:2 --sweep-csv b.goal", "--sweep-csv", "FILE"),
        ("simulate b.goal --sweep L=1us:2us:2 --sweep-csv link.goal", "--sweep-csv", "FILE"),
        (
            "simulate link.goal --sweep L=1us:2us:2 --sweep-plot sub/../b.goal",
            "--sweep-plot",
            "FILE",
        ),
        ("simulate b.goal --timeline b.goal --timeline-form svg", "--timeline", "FILE"),
        (
            "simulate b.goal --profile p.json --sweep L=1us:2us:2 --sweep-csv p.json",
            "--sweep-csv",
            "--profile",
        ),
        ("best bcast --ranks 4 -s 8 --profile p.json --rules p.json", "--rules", "--profile"),
        ("best bcast --ranks 4 -s 8 --profile p.json --plot ./p.json", "--plot", "--profile"),
        (
            "best bcast --ranks 4 -s 8 --profile p.json --rules new --plot ./new",
            "--rules",
            "--plot",
        ),
        (
            "{A} --nodes nodes.txt --level 1:p.json --sweep S=1:2:2 --sweep-csv nodes.txt",
            "--sweep-csv",
            "--nodes",
        ),
        ("{A} --level 2:p.json --sweep S=1:2:2 --sweep-csv p.json", "--sweep-csv", "--level"),
        ("{A} --topology net.dot --network-plot net.dot", "--network-plot", "--topology"),
        (
            "{A} --topology star --placement nodes.txt --network-plot nodes.txt",
            "--network-plot",
            "--placement",
        ),
        ("{A} --noise noise.txt --timeline noise.txt --timeline-form svg", "--timeline", "--noise"),
        ("{A} --sweep L=1us:2us:2 --sweep-csv x --sweep-plot x", "--sweep-csv", "--sweep-plot"),
        (
            "{A} --topology star --timeline x.svg --network-plot sub/../x.svg",
            "--timeline",
            "--network-plot",
        ),
        ("study overlap b.goal --plot b.goal", "--plot", "FILE"),
        ("fit samples.csv --plot samples.csv", "--plot", "SAMPLES.csv"),
        ("goal decompile b.goal -o link.goal", "-o", "FILE"),
        ("goal compile b.goal -o ./b.goal", "-o", "FILE"),
        ("measure --max-time 1 -o x --samples x", "-o", "--samples"),
    ] {
        let command = command.replace("{A}", all);
        let (code, out, told) = ran(&folder, &command);
        assert_eq!((code, &*out), (2, ""), "{command}: {told}");
        assert!(told.contains(first) && told.contains(second), "{command}: {told}");
        assert_eq!(contents(&folder), before, "{command}");
    }
}

/// What a shell did in a folder, with the program as `$0`.
fn shell(folder: &Folder, script: &str) -> Ended {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(binary()).current_dir(folder.root()).ended()
}

#[test]
fn a_result_is_written_where_a_descriptor_leads_behind_what_stands_there() {
    let folder = folder();
    for descriptor in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let script = format!(
            r#"{{ echo before; "$0" goal decompile b.goal -o {descriptor}; echo after; }} > f"#
        );
        let output = shell(&folder, &script);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        let text = folder.read("f");
        assert!(text.starts_with("before\n") && text.ends_with("after\n"), "{text}");
        assert!(text.contains("num_ranks 2"), "{text}");
    }
}

#[test]
fn a_profile_on_standard_output_is_all_that_it_holds() {
    let _machine = machine();
    let folder = folder();
    for form in ["-o -", "-o /dev/stdout", "-J -o -"] {
        let script = format!(r#""$0" measure --transport unix -s 8 --max-time .3 {form} > f"#);
        let output = shell(&folder, &script);
        let document = fs::read(folder.path("f")).unwrap();
        let document: Value = serde_json::from_slice(&document).unwrap();
        assert_eq!(document["transport"], "unix", "{form}");
        let report = &output.stderr;
        assert!(report.contains("unix"), "{form}: {report}");
        assert!(!folder.has("-"));
    }
}

#[test]
fn a_file_that_is_mounted_is_written_in_place() {
    let folder = folder();
    fs::write(folder.path("mounted"), "old").unwrap();
    fs::write(folder.path("point"), "").unwrap();
    let script = r#"exec unshare --map-root-user --mount sh -c 'mount --bind mounted point && exec "$0" goal decompile b.goal -o point' "$0""#;
    let output = shell(&folder, script);
    let told = &output.stderr;
    if told.contains("unshare") || told.contains("mount:") {
        return skipped("a file that is mounted", told);
    }
    assert!(output.code == Some(0), "{told}");
    let text = folder.read("mounted");
    assert!(text.contains("num_ranks 2"), "{text}");
}

#[test]
fn each_file_that_cannot_be_written_is_told() {
    let _machine = machine();
    let folder = folder();
    let full = |name: &str| symlink("/dev/full", folder.path(name)).unwrap();
    full("full.json");
    full("full.csv");
    let command = "measure -s 1,64 --max-time 0.5 -o full.json --samples full.csv";
    let (code, out, told) = ran(&folder, command);
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("full.json") && told.contains("full.csv"), "{told}");
    assert!(out.contains("#first[B]"), "{out}");
}

#[test]
fn a_name_that_ends_like_another_format_is_refused_before_any_work() {
    let folder = folder();
    let before = contents(&folder);
    let all = "simulate --pattern all-to-all --ranks 4 -s 1K";
    for (command, written) in [
        ("{A} --topology star --network-plot x.png", ".svg"),
        ("{A} --sweep L=1us:2us:2 --sweep-plot x.PDF", ".svg"),
        ("{A} --sweep L=1us:2us:2 --sweep-csv x.json", ".csv"),
        ("{A} --timeline x.png", ".svg, .json and .viz"),
        ("goal decompile b.goal -o x.bin", ".goal or .txt"),
        ("goal generate --pattern gather --ranks 4 -o x.png", ".goal, .txt, .bin and .lgs"),
        ("goal compile b.goal -o x.svg", ".goal, .txt, .bin and .lgs"),
        ("study overlap b.goal --plot x.jpg", ".svg"),
        ("best bcast --ranks 4 -s 8 --profile p.json --plot x.pdf", ".svg"),
        ("fit samples.csv --plot x.csv", ".svg"),
        ("noise --duration 10ms -o x.json", ".txt"),
        ("measure --max-time 1 -o x.csv", ".json"),
        ("measure --max-time 1 --samples x.json", ".csv"),
    ] {
        let command = command.replace("{A}", all);
        let (code, out, told) = ran(&folder, &command);
        assert_eq!((code, &*out), (2, ""), "{command}: {told}");
        assert!(told.contains("'x.") && told.contains(written), "{command}: {told}");
        assert_eq!(contents(&folder), before, "{command}");
    }
    // Other endings, and none, say nothing of what is in a file.
    for command in [
        "goal decompile b.goal -o x.txt",
        "goal generate --pattern gather --ranks 4 -o x",
        "goal generate --pattern gather --ranks 4 -o x.old --form text",
        "simulate b.goal --sweep L=1us:2us:2 --sweep-csv points.2",
    ] {
        assert_eq!(ran(&folder, command).0, 0, "{command}");
    }
}

#[test]
fn devices_may_be_named_repeatedly_and_names_are_no_files() {
    let folder = folder();
    let (code, _, told) = ran(
        &folder,
        "simulate b.goal --sweep L=1us:2us:2 --sweep-csv /dev/null --sweep-plot /dev/null",
    );
    assert_eq!(code, 0, "{told}");
    // A topology's name is no file, whatever is called so.
    let star = "simulate --pattern all-to-all --ranks 4 -s 1K".to_owned()
        + " --topology star --network-plot star";
    for _again in 0..2 {
        assert_eq!(ran(&folder, &star).0, 0);
    }
}

#[test]
fn a_point_that_stops_does_not_take_the_sweep_along() {
    let folder = folder();
    let command = "simulate b.goal --sweep S=50:200:4 --rendezvous handshake";
    let files = " --sweep-csv s.csv --sweep-plot s.svg";
    let (code, out, told) = ran(&folder, &(command.to_owned() + files));
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("1 of 4 points") && told.contains("S = 50 B"), "{told}");
    assert!(out.contains("makespan  "), "{out}");
    let rows: Vec<&str> = out.lines().skip_while(|line| !line.starts_with("# makespan")).collect();
    assert_eq!(rows.len(), 6, "{out}");
    assert!(rows[2].ends_with(" -") && !rows[3].ends_with(" -"), "{out}");
    let csv = folder.read("s.csv");
    let csv: Vec<&str> = csv.lines().collect();
    assert_eq!((csv.len(), csv[1]), (5, "50,,"), "{csv:?}");
    let svg = folder.read("s.svg");
    assert_eq!(svg.matches("<circle").count(), 3);
    let (code, out, _) = ran(&folder, &(command.to_owned() + " -J"));
    assert_eq!(code, 1);
    let found: Value = serde_json::from_str(&out).unwrap();
    let points = found["sweep"]["points"].as_array().unwrap();
    assert!(points[0]["makespan_ps"].is_null() && points[0]["makespan_s"].is_null(), "{found}");
    assert!(points[0]["error"].as_str().unwrap().contains("cannot come to its end"), "{found}");
    let alone = ran(&folder, "simulate b.goal --rendezvous handshake -S 100 -J").1;
    let alone: Value = serde_json::from_str(&alone).unwrap();
    assert_eq!(points[1]["makespan_ps"], alone["makespan_ps"]);
    assert!(points[1].get("error").is_none());
}

#[test]
fn points_of_computed_patterns_that_are_too_long_are_told_too() {
    let folder = folder();
    let command = "simulate --pattern dissemination --ranks 8 -s 100 --sweep L=1:18000000s:3 -J";
    let (code, out, told) = ran(&folder, command);
    assert_eq!(code, 1, "{told}");
    let found: Value = serde_json::from_str(&out).unwrap();
    let points = found["sweep"]["points"].as_array().unwrap();
    assert!(points[0]["makespan_ps"].is_u64(), "{found}");
    assert!(points[2]["makespan_ps"].is_null(), "{found}");
}

#[test]
fn a_file_that_cannot_be_written_does_not_cost_the_report() {
    let folder = folder();
    let all = "--pattern all-to-all --ranks 4 -s 1K";
    for (command, part) in [
        (format!("simulate {all} --sweep L=1us:2us:2 --sweep-csv /dev/full"), "makespan  "),
        (format!("simulate {all} --sweep L=1us:2us:2 --sweep-plot /dev/full"), "makespan  "),
        (format!("simulate {all} --topology star --network-plot /dev/full"), "makespan  "),
        (format!("simulate {all} --timeline /dev/full --timeline-form svg"), "makespan  "),
        (format!("study overlap {all} --plot /dev/full"), "makespan"),
        ("best bcast --ranks 4 -s 8 --profile p.json --rules /dev/full".into(), "winner"),
        ("best bcast --ranks 4 -s 8 --profile p.json --plot /dev/full".into(), "winner"),
    ] {
        let (code, out, told) = ran(&folder, &command);
        assert_eq!(code, 1, "{command}: {told}");
        assert!(out.contains(part), "{command}: {out}");
        assert!(told.contains("/dev/full"), "{command}: {told}");
    }
    // What goes wrong with one file is not in the way of the other.
    let both = "best bcast --ranks 4 -s 8 --profile p.json --rules /dev/full --plot map.svg";
    assert_eq!(ran(&folder, both).0, 1);
    assert!(folder.has("map.svg"));
}

/// On a terminal, where both streams meet.
#[test]
fn what_went_wrong_is_told_below_the_report() {
    let folder = folder();
    let all = "simulate --pattern all-to-all --ranks 4 -s 1K --sweep L=1us:2us:2";
    for (command, code, told) in [
        (format!("{all} --sweep-csv /dev/full"), 1, 1),
        (format!("{all} --sweep-csv /dev/full --sweep-plot /dev/full"), 1, 2),
        ("best bcast --ranks 4 -s 8 --profile p.json --rules /dev/full".into(), 1, 1),
        ("simulate b.goal --rendezvous handshake -S 50".into(), 1, 5),
    ] {
        let path = folder.path("seen");
        let seen = fs::File::create(&path).unwrap();
        let status = loggap_process()
            .current_dir(folder.root())
            .args(command.split_whitespace())
            .stdout(seen.try_clone().unwrap())
            .stderr(seen)
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(code), "{command}");
        let seen = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = seen.lines().collect();
        let (report, below) = lines.split_at(lines.len() - told);
        assert!(!report.iter().any(|line| line.contains("error")), "{seen}");
        assert!(!report.is_empty() && below.last().unwrap().starts_with("error: "), "{seen}");
    }
}

#[test]
fn a_network_without_traffic_has_a_picture_that_says_so() {
    let folder = folder();
    let command = "simulate --pattern all-to-all --ranks 4 --topology star --network-plot n.svg";
    let (code, out, told) = ran(&folder, command);
    assert_eq!((code, &*told), (0, ""), "{out}");
    assert!(out.contains("makespan  "), "{out}");
    let svg = folder.read("n.svg");
    assert!(svg.contains("no link was busy"), "{svg}");
}
