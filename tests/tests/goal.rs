//! `loggap goal` as a user runs it, and the readers against a plain one.

use std::fs;
use std::path::Path;

use loggap::schedule::{Extent, Form, ScheduleFile, WriteError, write};
use loggap_core::goal::{ANY_TAG, Op, OpKind};
use loggap_core::units::Picos;
use loggap_tests::cases::Case;
use loggap_tests::command::{Run, loggap};
use loggap_tests::folder::Folder;
use loggap_tests::program::{Edge, Program, RankProgram};
use serde_json::Value;

/// The texts of the reference's cases.
fn texts() -> Vec<String> {
    let mut texts: Vec<String> = Case::all().into_iter().filter_map(|case| case.goal).collect();
    texts.sort();
    texts.dedup();
    texts
}

/// GOAL text by splitting at blanks: enough for what generators write.
fn plainly(text: &str) -> Program {
    let mut program = Program::default();
    let mut labels: Vec<&str> = vec![];
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["num_ranks", _] | ["}"] | [] => {}
            ["rank", _, "{"] => {
                program.ranks.push(RankProgram::default());
                labels.clear();
            }
            [op, how @ ("requires" | "irequires"), on] => {
                let find = |name| labels.iter().position(|label| *label == name).unwrap() as u32;
                let edge = Edge { op: find(op), on: find(on), start: how == "irequires" };
                program.ranks.last_mut().unwrap().edges.push(edge);
            }
            [label, ref op @ ..] => {
                labels.push(label.strip_suffix(':').unwrap());
                program.ranks.last_mut().unwrap().ops.push(plain_op(op));
            }
        }
    }
    program
}

fn plain_op(words: &[&str]) -> Op {
    let after = |word: &str| {
        let place = words.iter().position(|other| *other == word)?;
        Some(if words[place + 1] == "-1" { ANY_TAG } else { words[place + 1].parse().unwrap() })
    };
    // The wildcards are all ones.
    let peer = |word| after(word).unwrap() as u32;
    let size = || words[1].strip_suffix('b').unwrap().parse().unwrap();
    let tag = after("tag").unwrap_or(0);
    let kind = match words[0] {
        "send" => OpKind::Send { peer: peer("to"), size: size(), tag },
        "recv" => OpKind::Receive { peer: peer("from"), size: size(), tag },
        _ => OpKind::Calc { duration: Picos::from_nanos(words[1].parse().unwrap()).unwrap() },
    };
    let unit = |word| after(word).unwrap_or(0) as u16;
    Op { kind, cpu: unit("cpu"), nic: unit("nic") }
}

/// The order of dependencies that LogGOPSim's binary format keeps.
fn grouped(mut program: Program) -> Program {
    for rank in &mut program.ranks {
        rank.edges.sort_by_key(|edge| (edge.on, edge.start));
    }
    program
}

/// Through a file of `form` and back.
fn through(form: Form, text: &str) -> Program {
    let source = ScheduleFile::from_bytes("text", text.into()).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    let extent: Extent = source.extent();
    let written = write(&mut file, form, &extent, |writer| {
        source.feed(writer).map_err(|error| WriteError::Schedule(error.to_string()))
    });
    written.unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    let back = ScheduleFile::open(Path::new(&path)).unwrap();
    assert_eq!(back.form(), form);
    assert_eq!(back.extent(), extent);
    let mut program = Program::default();
    back.feed(&mut program).unwrap();
    program
}

#[test]
fn every_text_of_the_reference_reads_as_a_plain_reader_reads_it() {
    let texts = texts();
    assert!(texts.len() > 80);
    for text in texts {
        assert_eq!(Program::of_text(&text), plainly(&text), "{text}");
    }
}

#[test]
fn every_form_of_file_holds_every_schedule_of_the_reference() {
    for text in texts() {
        let program = Program::of_text(&text);
        assert_eq!(through(Form::Text, &text), program);
        assert_eq!(through(Form::Native, &text), program);
        assert_eq!(through(Form::Reference, &text), grouped(program));
    }
}

/// A folder with the broadcast over nine ranks as `bcast.goal`.
fn broadcast() -> (Folder, String) {
    let folder = Folder::new();
    let path = folder.path("bcast.goal");
    let pattern = ["--pattern", "binomial-broadcast", "--ranks", "9", "-s", "1K"];
    let said = loggap().args(["goal", "generate", "-o", &path]).args(pattern).succeeds();
    assert_eq!((&*said.stdout, &*said.stderr), ("", ""));
    (folder, path)
}

#[test]
fn a_pattern_goes_to_standard_output_as_text() {
    let (_folder, path) = broadcast();
    let text = fs::read_to_string(path).unwrap();
    assert!(text.starts_with("num_ranks 9\n\nrank 0 {\nl1: send 1024b to 1 tag 0\n"), "{text}");
    let pattern = ["--pattern", "binomialtreebcast", "--ranks", "9", "-s", "1024"];
    assert_eq!(loggap().args(["goal", "generate"]).args(pattern).succeeds().stdout, text);
}

#[test]
fn compiling_and_decompiling_keep_the_schedule() {
    let (folder, goal) = broadcast();
    let path = |name: &str| folder.path(name);
    let convert = |verb: &str, from: &str, to: &str| {
        loggap().args(["goal", verb, from, "-o", to]).succeeds();
    };
    for binary in ["a.bin", "a.lgs"] {
        let (first, text) = (path(binary), path("b.goal"));
        convert("compile", &goal, &first);
        convert("decompile", &first, &text);
        let (second, again) = (path(&binary.replace('a', "c")), path("d.goal"));
        convert("compile", &text, &second);
        convert("decompile", &second, &again);
        assert_eq!(fs::read(&first).unwrap(), fs::read(&second).unwrap());
        assert_eq!(fs::read(&text).unwrap(), fs::read(&again).unwrap());
        assert_eq!(fs::read(&text).unwrap(), fs::read(&goal).unwrap());
    }
    let pattern = ["--pattern", "binomialtreebcast", "--ranks", "9", "-s", "1K"];
    let generated = folder.generated("e.bin", &pattern);
    assert_eq!(fs::read(path("a.bin")).unwrap(), fs::read(generated).unwrap());
}

#[test]
fn a_check_of_a_sound_schedule_succeeds_and_counts_unused_labels() {
    let (_folder, goal) = broadcast();
    let text = loggap().args(["goal", "check", "--strict"]).arg(&goal).succeeds().stdout;
    assert!(
        text.ends_with("9 ranks, 16 operations: 0 errors, 0 warnings; 9 of 16 labels unused\n"),
        "{text}"
    );
}

const FAULTY: &str = "\
num_ranks 2
rank 0 {
  s: send 8b to 1 tag 3
  c: calc 5
  x: calc 1
  c requires x
  x requires c
}
rank 1 {
  r: recv 9b from 0 tag 3
  q: recv 9b from 7 tag 3
}
";

#[test]
fn a_check_names_every_fault_with_its_line_and_exits_with_one() {
    let folder = Folder::new();
    let path = folder.written("faulty.goal", FAULTY);
    let text = loggap().args(["goal", "check", "--unused-labels"]).arg(&path).ends(1).stdout;
    let name = &path;
    let expected = format!(
        "error: {name}:4: rank 0, operation 1 (c): operations wait for each other: 1 -> 2 -> 1; 2 never run\n\
         error: {name}:11: rank 1, operation 1 (q): peer 7 does not exist: there are 2 ranks\n\
         warning: {name}:10: rank 1, operation 0 (r): messages from rank 0 to rank 1 with tag 3: \
         operation 0 of rank 0 sends 8 B, this receives 9 B\n\
         {name}:3: rank 0, operation 0: label s is not used\n\
         {name}:10: rank 1, operation 0: label r is not used\n\
         {name}:11: rank 1, operation 1: label q is not used\n\
         {name}: 2 ranks, 5 operations: 2 errors, 1 warning; 3 of 5 labels unused\n"
    );
    assert_eq!(text, expected);
}

#[test]
fn a_check_in_json_says_the_same() {
    let folder = Folder::new();
    let path = folder.written("faulty.goal", FAULTY);
    let binary = folder.path("faulty.bin");
    loggap().args(["goal", "compile"]).arg(&path).arg("-o").arg(&binary).assert().success();
    for (path, line) in [(path, Some(4)), (binary, None)] {
        let json = loggap().args(["goal", "check", "-J"]).arg(&path).ends(1).json();
        let counts = ["errors", "warnings", "ranks", "ops"].map(|key| json[key].as_u64());
        assert_eq!(counts, [2, 1, 2, 5].map(Some));
        let first = &json["findings"][0];
        assert_eq!((&first["kind"], first["line"].as_u64()), (&Value::from("cycle"), line));
        let last = &json["findings"][2];
        assert_eq!(
            [&last["from"], &last["to"], &last["tag"]],
            [0, 1, 3].map(Value::from).each_ref()
        );
        assert_eq!(json["labels"]["unused"].as_u64(), line.map(|_| 3));
    }
}

#[test]
fn a_check_warns_of_wildcards_that_take_a_collectives_message() {
    let folder = Folder::new();
    let text = "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 1000000\nsend 8b to 1 tag 3\n}\n\
                rank 1 {\nrecv 8b from 0 tag -1\nrecv 8b from 0 tag 1000000\n}\n";
    let path = folder.written("w.goal", text);
    let json = loggap().args(["goal", "check", "-J"]).arg(path).succeeds().json();
    let found = &json["findings"][0];
    assert_eq!((&json["warnings"], &found["kind"]), (&1.into(), &"takes_collective".into()));
    assert_eq!((&found["line"], &found["tag"]), (&7.into(), &1_000_000.into()));
}

#[test]
fn a_limit_shortens_the_list_and_strict_makes_warnings_count() {
    let folder = Folder::new();
    let sends = "send 8b to 0\n".repeat(3);
    let text = format!("num_ranks 1\nrank 0 {{\n{sends}{}}}\n", "recv 9b from 0\n".repeat(3));
    let path = folder.written("w.goal", text);
    loggap().args(["goal", "check"]).arg(&path).assert().success();
    loggap().args(["goal", "check", "--strict"]).arg(&path).assert().code(1);
    let path = folder.written("e.goal", "num_ranks 1\nrank 0 {\nsend 1b to 8\nsend 1b to 9\n}");
    let text = loggap().args(["goal", "check", "--limit", "1"]).arg(&path).ends(1).stdout;
    assert!(text.contains("and 1 more: --limit 0 lists all\n"), "{text}");
}

#[test]
fn statistics_count_the_schedule() {
    let (_folder, goal) = broadcast();
    let json = loggap().args(["goal", "stats", "-J"]).arg(&goal).succeeds().json();
    let keys =
        ["ranks", "ops", "sends", "receives", "calcs", "bytes_sent", "depth", "tags", "cpus"];
    assert_eq!(keys.map(|key| json[key].as_u64()), [9, 16, 8, 8, 0, 8_192, 2, 1, 1].map(Some));
    assert_eq!(json["size_histogram"][0]["first_bytes"].as_u64(), Some(1_024));
    let text = loggap().args(["goal", "stats"]).arg(&goal).succeeds().stdout;
    assert!(text.contains("1K to below 2K         8\n"), "{text}");
}

#[test]
fn wrong_input_exits_with_two_and_names_the_place() {
    let folder = Folder::new();
    let torn = {
        let (_other, goal) = broadcast();
        let binary = folder.path("whole.bin");
        loggap().args(["goal", "compile"]).arg(&goal).arg("-o").arg(&binary).assert().success();
        fs::read(&binary).unwrap()[..500].to_vec()
    };
    let cases: [(&str, &[u8], &str); 5] = [
        ("a.goal", b"num_ranks 1\nrank 0 {\n  a: sned 5b to 0\n}\n", "line 3, column 6 (byte 26)"),
        ("b.goal", b"", "no num_ranks"),
        ("c.bin", &torn, "the file is cut off"),
        ("d.bin", &[0x26, 9, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0], "--save-mem"),
        ("e.bin", b"\x00\x01\x02", "found \"\\x00\""),
    ];
    for (name, content, message) in cases {
        let path = folder.written(name, content);
        for verb in ["check", "stats", "decompile"] {
            let text = loggap().args(["goal", verb]).arg(&path).ends(2).stderr;
            assert!(text.contains(message) && text.contains(name), "{verb} {name}: {text}");
        }
    }
}

#[test]
fn an_output_that_cannot_be_is_refused_and_leaves_nothing_behind() {
    let (folder, goal) = broadcast();
    let compile = |target: &str, code| {
        let output = folder.path(target);
        loggap().args(["goal", "compile"]).arg(&goal).arg("-o").arg(output).ends(code).stderr
    };
    let unknown = compile("x.dat", 2);
    assert!(unknown.contains("none of .goal, .txt, .bin and .lgs"), "{unknown}");
    let nowhere = compile("no/such/folder/x.bin", 1);
    assert!(nowhere.contains("create its folder first"), "{nowhere}");

    let high = folder.written("high.goal", "num_ranks 1\nrank 0 {\ncalc 5 cpu 255\n}\n");
    let binary = folder.path("high.bin");
    let told = loggap().args(["goal", "compile"]).arg(&high).arg("-o").arg(&binary).ends(2).stderr;
    assert!(told.contains("line 3") && told.contains(".lgs"), "{told}");
    assert!(!folder.has("high.bin"));
    let names: Vec<_> =
        fs::read_dir(folder.root()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn tags_that_the_reference_cuts_off_are_told_and_more_so_where_two_become_one() {
    let folder = Folder::new();
    let binary = folder.path("x.bin");
    let told = |first: u64, second: u64| {
        let text = format!(
            "num_ranks 1\nrank 0 {{\nsend 5b to 0 tag {first}\nrecv 5b from 0 tag {second}\n}}\n"
        );
        let goal = folder.written("x.goal", text);
        loggap().args(["goal", "compile"]).arg(&goal).arg("-o").arg(&binary).succeeds().stderr
    };
    assert_eq!(told(7, u64::from(u32::MAX) - 1), "");
    let cut = told(50_000_100_007, 50_000_100_007);
    assert!(cut.contains("cut off in 2 operations"), "{cut}");
    assert!(!cut.contains("another schedule"), "{cut}");
    let confused = told(7, 7 + (1 << 32));
    assert!(confused.contains("cut off in 1 operations"), "{confused}");
    assert!(confused.contains("tags 7 and 4294967303 became the same"), "{confused}");
    let wild = told(7, u32::MAX.into());
    assert!(wild.contains("tag 4294967295 became the wildcard"), "{wild}");
}

#[test]
fn an_unknown_pattern_or_a_missing_option_is_wrong_usage() {
    for (arguments, message) in [
        (&["--pattern", "nonsense", "--ranks", "4"][..], "binomialtreebcast"),
        (&["--pattern", "gather"], "--ranks"),
        (&["--pattern", "gather", "--ranks", "4", "--root", "4"], "root 4 is not among"),
        (&["--pattern", "gather", "--ranks", "4", "--form", "bin"], "-o FILE"),
    ] {
        let text = loggap().args(["goal", "generate"]).args(arguments).ends(2).stderr;
        assert!(text.contains(message), "{arguments:?}: {text}");
    }
}
