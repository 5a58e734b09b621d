//! `loggap trace` as a user runs it, on the trace of a program of two ranks (`traced`).

use std::fs;
use std::path::Path;

use loggap_core::trace::{BlockHeader, Encoder, FileHeader, MAX_PART, Part};
use loggap_tests::command::{Run, loggap};
use serde_json::Value;

/// Trace of `host-mpi/tests/traced/f90.f90`, recorded with Open MPI.
const TRACED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traced");

/// Standard output of a command that succeeds.
fn shown(arguments: &[&str]) -> String {
    loggap().arg("trace").args(arguments).ends(0).stdout
}

#[test]
fn info_is_a_table_and_a_document() {
    let document: Value = serde_json::from_str(&shown(&["info", TRACED, "-J"])).unwrap();
    let number = |key: &str| document[key].as_u64().unwrap();
    assert_eq!((number("ranks"), number("messages"), number("unmatched")), (2, 6, 0));
    assert_eq!((number("schema_version"), number("unfinished")), (1, 0));
    // Twice 10, 7 and 5 integers.
    assert_eq!(number("bytes_sent"), 2 * 4 * (10 + 7 + 5));
    assert_eq!(document["calls_by_name"]["Irecv"]["calls"], 4);
    let ranks = document["by_rank"].as_array().unwrap();
    let calls: u64 = ranks.iter().map(|rank| rank["calls"].as_u64().unwrap()).sum();
    assert_eq!(calls, number("calls"));
    let seconds = |value: &Value, key: &str| value[key].as_f64().unwrap();
    for rank in ranks {
        let all = seconds(rank, "mpi_s") + seconds(rank, "compute_s") + seconds(rank, "flush_s");
        assert!((all - seconds(rank, "span_s")).abs() < 1e-9, "{rank}");
    }
    let text = shown(&["info", TRACED, "--limit", "3"]);
    assert!(text.contains("2 ranks, ") && text.contains("6 messages of 176 B"), "{text}");
    let calls = text.lines().skip_while(|line| !line.starts_with("#call ")).skip(1);
    assert_eq!(calls.take_while(|line| !line.starts_with('#')).count(), 3, "{text}");
    let algorithm = text.lines().find(|line| line.starts_with("allreduce ")).unwrap();
    assert!(algorithm.ends_with(" recursive_doubling"), "{text}");
}

/// Rank 0 of two, which did nothing.
#[test]
fn messages_with_one_end_exit_with_3() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["trace.json", "1.trace"] {
        fs::copy(Path::new(TRACED).join(name), folder.path().join(name)).unwrap();
    }
    let header = FileHeader::parse(&fs::read(Path::new(TRACED).join("0.trace")).unwrap()).unwrap();
    let (mut encoder, mut parts) = (Encoder::new(0), Vec::new());
    for part in [Part::Name("Finalize"), Part::Call { name: 0, enter: 5, leave: 6 }] {
        let mut bytes = [0; MAX_PART];
        let length = encoder.put(&part, &mut bytes).unwrap();
        parts.extend_from_slice(&bytes[..length]);
    }
    let block = BlockHeader::of(0, 0, &parts).emit();
    let file = [&header.emit()[..], &block, &parts].concat();
    fs::write(folder.path().join("0.trace"), file).unwrap();
    let report = loggap().args(["trace", "check", "-J"]).arg(folder.path()).ends(3).json();
    // What rank 1 sent; a posted receive that took nothing has no sender.
    assert_eq!(report["incomplete"].as_array().unwrap().len(), 0, "{report}");
    assert!(report["unmatched"].as_u64().unwrap() >= 3, "{report}");
    assert_eq!(report["findings"][0]["kind"], "unmatched", "{report}");
}

#[test]
fn exports_have_a_line_for_each_message_and_open_in_other_programs() {
    let pairs = shown(&["export", TRACED, "--format", "pairs"]);
    let rows: Vec<Vec<&str>> =
        pairs.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let sizes: Vec<&str> = rows.iter().map(|row| row[4]).collect();
    assert_eq!(sizes, ["40", "28", "20", "40", "28", "20"]);
    for row in &rows {
        let [sent, received] = [row[5], row[7]].map(|time| time.parse::<f64>().unwrap());
        assert!(received > sent, "{row:?}");
    }
    let table = shown(&["export", TRACED, "--format", "csv"]);
    let kind = |kind| table.lines().filter(|line| line.split(',').nth(5) == Some(kind)).count();
    assert_eq!([kind("send"), kind("receive"), kind("received"), kind("done")], [6, 6, 4, 4]);
    let text = shown(&["export", TRACED]);
    assert!(text.contains("rank 1 thread 0 Sendrecv [send 0 tag 4 28 B] [receive 0 tag 4 28 B]"));
    for line in shown(&["export", TRACED, "--format", "json"]).lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        assert!(record["leave_ns"].as_i64() >= record["enter_ns"].as_i64(), "{line}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.json");
    let path = path.to_str().unwrap();
    shown(&["export", TRACED, "-o", path]);
    let events: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let events = events["traceEvents"].as_array().unwrap();
    assert_eq!(events.len(), text.lines().count());
    assert!(events.iter().all(|event| event["ph"] == "X" && event["dur"].as_f64() >= Some(0.0)));
    let other = path.replace(".json", ".xyz");
    let refused = loggap().args(["trace", "export", TRACED, "-o", &other]).ends(2).stderr;
    assert!(refused.contains("the ending .xyz tells no form"), "{refused}");
    shown(&["export", TRACED, "-o", &other, "--format", "text"]);
    assert_eq!(fs::read_to_string(other).unwrap(), text);
}

#[test]
fn a_file_in_place_of_a_directory_and_the_reverse_are_told_with_what_to_give() {
    let file = format!("{TRACED}/0.trace");
    let info = loggap().args(["trace", "info", &file]).ends(2).stderr;
    assert!(info.contains("a trace is the directory that loggap-mpi trace -o DIR wrote"), "{info}");
    let merge = loggap().args(["goal", "merge", TRACED, TRACED]).ends(2).stderr;
    assert!(merge.contains("' is a directory: ") && merge.contains("from-trace"), "{merge}");
}

#[test]
fn check_finds_what_a_lost_rank_and_a_cut_file_leave() {
    assert!(shown(&["check", TRACED]).ends_with("6 messages: 0 unmatched, 0 unfinished\n"));
    let folder = tempfile::tempdir().unwrap();
    let copy = |name: &str, length: usize| {
        let bytes = fs::read(Path::new(TRACED).join(name)).unwrap();
        let end = bytes.len().min(length);
        fs::write(folder.path().join(name), &bytes[..end]).unwrap();
        bytes.len()
    };
    copy("trace.json", usize::MAX);
    copy("1.trace", usize::MAX);
    let whole = copy("0.trace", usize::MAX);
    copy("0.trace", whole - 1);
    let ended = loggap().args(["trace", "check"]).arg(folder.path()).ends(1);
    assert!(ended.stdout.contains("rank 1 sent 1 messages with tag 4 to rank 0, which received 0"));
    assert!(ended.stdout.contains("incomplete: rank 0: its trace does not end with MPI_Finalize"));
    assert!(ended.stderr.contains("0.trace' is cut or damaged: its last"), "{}", ended.stderr);
    fs::remove_file(folder.path().join("0.trace")).unwrap();
    // What is there is shown, and what is not is named.
    let ended = loggap().args(["trace", "info"]).arg(folder.path()).ends(0);
    assert!(ended.stderr.contains("0.trace': No such file"), "{}", ended.stderr);
    assert!(ended.stderr.contains("the rank is left out"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("loggap-mpi trace -o"), "{}", ended.stderr);
    let ended = loggap().args(["trace", "check"]).arg(folder.path()).ends(1);
    assert!(ended.stdout.contains("rank 1 sent 1 messages with tag 4 to rank 0"));
    assert!(ended.stdout.contains("incomplete: rank 0: its file is lost"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("MPI_Finalize"), "{}", ended.stdout);
    fs::remove_file(folder.path().join("trace.json")).unwrap();
    let ended = loggap().args(["trace", "info"]).arg(folder.path()).ends(2);
    assert!(ended.stderr.contains("loggap-mpi trace -o DIR writes it"), "{}", ended.stderr);
}
