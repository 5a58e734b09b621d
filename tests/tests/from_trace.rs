//! Traces as schedules, as a user runs it, on the trace of a program of two ranks (`traced`).

use std::fs;
use std::path::Path;

use loggap_tests::command::{Run, loggap};
use serde_json::Value;

const TRACED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traced");

fn document(arguments: &[&str]) -> Value {
    loggap().args(arguments).succeeds().json()
}

#[test]
fn a_trace_is_simulated_with_and_without_a_file_between() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("app.lgs");
    let file = file.to_str().unwrap();
    let report = document(&["goal", "from-trace", TRACED, "-o", file, "-J"]);
    let number = |key: &str| report[key].as_u64().unwrap();
    assert_eq!((number("schema_version"), number("ranks"), number("unmatched")), (1, 2, 0));
    assert_eq!(report["refused"].as_array().unwrap().len(), 0, "{report}");
    let converted = report["converted"].as_array().unwrap();
    let irecv = converted.iter().find(|line| line["call"] == "Irecv").unwrap();
    assert!(irecv["calls"] == 4 && irecv["share"].as_f64().unwrap() < 1.0);
    assert_eq!(report["approximated"][0]["reason"], "a barrier of the new communicator");
    let checked = document(&["goal", "check", file, "-J"]);
    assert_eq!((&checked["errors"], &checked["warnings"]), (&0.into(), &0.into()), "{checked}");
    let simulated = |source: &[&str]| {
        document(&[&["simulate"], source, &["--preset", "ompi-ib-sdr", "-J"]].concat())
    };
    let (direct, between) = (simulated(&["--trace", TRACED]), simulated(&[file]));
    assert_eq!(direct["makespan_ps"], between["makespan_ps"]);
    // A faster network leaves what the slower rank computed; a faster processor does not.
    let free = ["-L", "0", "-o", "0", "-g", "0", "-G", "0"];
    let compute = |more: &[&str]| {
        let arguments = [&["simulate", "--trace", TRACED][..], &free, more, &["-J"]].concat();
        document(&arguments)["makespan_s"].as_f64().unwrap()
    };
    let (plain, fast) = (compute(&[]), compute(&["--cpu-speed", "2"]));
    assert!(plain > 0.0 && (plain / fast - 2.0).abs() < 0.01, "{plain} {fast}");
    // Reductions take the time of their bytes; what tracing took is no computation.
    assert!(compute(&["--combine", "1000"]) > 1.001 * plain);
    assert!(compute(&["--trace-overhead", "1000"]) < 0.999 * plain);
    // The last factor of a file counts for all further ranks.
    let speeds = tempfile::NamedTempFile::new().unwrap();
    let given = |text: &str| {
        fs::write(&speeds, text).unwrap();
        speeds.path().to_str().unwrap().to_owned()
    };
    let alike = compute(&["--cpu-speed", &given("# all alike\n2\n")]);
    assert!((alike / fast - 1.0).abs() < 1e-9, "{alike} {fast}");
    let slower = compute(&["--cpu-speed", &given("2 0.5 # the second rank\n")]);
    assert!(slower > 1.9 * plain, "{slower} {plain}");
    let said = |speed: &str| {
        loggap().args(["simulate", "--trace", TRACED, "--cpu-speed", speed]).ends(2).stderr
    };
    assert!(said("0").contains("--cpu-speed 0: expected a factor above 0"), "{}", said("0"));
    assert!(said(&given("2\nfast\n")).contains("':2: expected a factor above 0"));
}

/// The README's question: each point of the sweep is the run with that latency, within its draws.
#[test]
fn a_trace_is_asked_for_twice_the_latency_on_more_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let profile = |latency: &str| {
        let path = folder.path().join(latency);
        let text = format!(
            r#"{{"schema_version":1,"ranges":[{{"first_bytes":1,"last_bytes":1000000,
            "latency_s":{latency}e-6,"latency_s_lo":1e-6,"latency_s_hi":{latency}.5e-6,
            "send_overhead_s":1e-6,"send_overhead_per_byte_s":0,"recv_overhead_s":1e-6,
            "recv_overhead_per_byte_s":0,"gap_s":1e-6,"gap_per_byte_s":1e-9}}]}}"#
        );
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let picture = folder.path().join("latency.svg");
    let picture = picture.to_str().unwrap();
    let [one, two] = ["2", "4"].map(profile);
    let simulated = |profile: &str, more: &[&str]| {
        let all = ["simulate", "--trace", TRACED, "--extrapolate", "128", "--profile", profile];
        document(&[&all[..], more, &["-J"]].concat())
    };
    let more = ["--sweep", "L=1x:2x:3", "--monte-carlo", "40", "--sweep-plot", picture];
    let asked = simulated(&one, &more);
    let number = |at: usize, key: &str| asked["sweep"]["points"][at][key].as_u64().unwrap();
    assert_eq!(
        (asked["ranks"].as_u64(), number(0, "makespan_ps")),
        (Some(256), { simulated(&one, &[])["makespan_ps"].as_u64().unwrap() })
    );
    let twice = simulated(&two, &[])["makespan_ps"].as_u64().unwrap();
    assert_eq!(number(2, "makespan_ps"), twice);
    assert!(number(2, "p05_ps") < twice && twice < number(2, "p95_ps"), "{asked}");
    assert!(number(0, "makespan_ps") < twice);
    assert!(fs::read_to_string(picture).unwrap().contains("</svg>"));
}

#[test]
fn a_trace_is_studied_as_a_schedule_and_on_more_ranks() {
    let overlap = document(&["study", "overlap", "--trace", TRACED, "--summary", "-J"]);
    let file = tempfile::Builder::new().suffix(".goal").tempfile().unwrap();
    let path = file.path().to_str().unwrap();
    document(&["goal", "from-trace", TRACED, "-o", path, "-J"]);
    let between = document(&["study", "overlap", path, "--summary", "-J"]);
    assert!(overlap["makespan"]["full_ps"].as_u64().unwrap() > 0, "{overlap}");
    assert_eq!(overlap["makespan"], between["makespan"]);
    let study = ["study", "noise", "--noise-periodic", "100us:50us", "--trace", TRACED];
    let noise = document(&[&study[..], &["--ranks", "2,64", "-J"]].concat());
    let rows = noise["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["pattern"]), (2, &"trace".into()), "{noise}");
    let number = |at: usize, key: &str| rows[at][key].as_f64().unwrap();
    // Half of the time is lost; nothing else than collectives holds copies up.
    assert!(number(0, "slowdown") > 1.2 && number(1, "quiet_s") >= number(0, "quiet_s"), "{noise}");
    let told = loggap().args(study).args(["--ranks", "2", "--draws", "1"]).ends(0).stderr;
    assert!(told.contains("contains the noise of their machine"), "{told}");
    let odd = loggap().args(study).args(["--ranks", "3"]).ends(2).stderr;
    assert!(odd.contains("3 is no multiple of the 2 ranks"), "{odd}");
}

#[test]
fn every_other_algorithm_of_a_program_is_tried_and_the_fastest_together() {
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("algorithms.svg");
    let link = ["-L", "100us", "-o", "1us", "-g", "1us", "-G", "1"];
    let study = ["study", "algorithms", "--trace", TRACED, "--extrapolate", "8"];
    let plot = ["--plot", svg.to_str().unwrap(), "-J"];
    let found = document(&[&study[..], &link, &plot].concat());
    let copies = ["simulate", "--trace", TRACED, "--extrapolate", "8", "-J"];
    let makespan = |more: &[&str]| {
        document(&[&copies[..], &link, more].concat())["makespan_ps"].as_u64().unwrap()
    };
    let present = makespan(&[]);
    assert_eq!((&found["makespan_ps"], &found["ranks"]), (&present.into(), &16.into()));
    let choices = found["choices"].as_array().unwrap();
    let named = |name: &str| choices.iter().find(|choice| choice["algorithms"] == name).unwrap();
    for name in ["allreduce=ring", "allreduce=recursive_doubling", "gather=binomial"] {
        let (choice, alone) = (named(name), makespan(&["--algorithms", name]));
        assert_eq!(choice["makespan_ps"], alone, "{name}");
        let change = alone as f64 / present as f64 - 1.0;
        assert!((choice["change"].as_f64().unwrap() - change).abs() < 1e-9, "{choice}");
    }
    assert!(fs::read_to_string(svg).unwrap().contains("allreduce=ring: +"));
    // A slow choice to start from is mended, and several at once.
    let slow = ["--algorithms", "allreduce=ring,bcast=scatter_allgather"];
    let mended = document(&[&study[..], &link, &slow, &["-J"]].concat());
    let together = &mended["together"];
    let name = together["algorithms"].as_str().unwrap();
    assert!(name.contains("allreduce=") && name.contains("bcast="), "{together}");
    let both = [&slow[..], &["--algorithms", name]].concat();
    assert_eq!(together["makespan_ps"], makespan(&both));
    assert!(together["change"].as_f64().unwrap() < -0.01, "{together}");
    let compat = loggap().args(&study[..4]).args(["--compat", "schedgen"]).ends(2).stderr;
    assert!(compat.contains("--compat has algorithms of its own"), "{compat}");
}

#[test]
fn algorithms_are_chosen_by_name_and_what_is_wrong_is_said() {
    let messages = |algorithm: &str| {
        let arguments = ["goal", "from-trace", TRACED, "-J", "--algorithms", algorithm];
        document(&arguments)["messages"].as_u64().unwrap()
    };
    // Between two ranks, an exchange is 2 messages, and a ring of two rounds 4.
    assert_eq!(messages("known") + 2, messages("allreduce=ring"));
    let said =
        |arguments: &[&str]| loggap().args(["goal", "from-trace"]).args(arguments).ends(2).stderr;
    let wrong = said(&[TRACED, "--algorithms", "allreduce=bruck"]);
    assert!(wrong.contains("basic_linear, recursive_doubling"), "{wrong}");
    assert!(said(&["run.otf2"]).contains("OTF2"));
    assert!(said(&["dumpi-2026.bin"]).contains("DUMPI"));
    assert!(said(&["absent"]).contains("cannot read"));
    let output = loggap().args(["simulate", "--cpu-speed", "2", "x.goal"]).ends(2).stderr;
    assert!(output.contains("--cpu-speed is for --trace DIR"), "{output}");
}

/// liballprof's texts: the file of rank 0 names the others.
#[test]
fn texts_of_liballprof_are_found_by_that_of_rank_0() {
    let folder = tempfile::tempdir().unwrap();
    let path = |rank: u32| folder.path().join(format!("pmpi-trace-rank-{rank}.txt"));
    for rank in 0..4u32 {
        let (next, before) = ((rank + 1) % 4, (rank + 3) % 4);
        let send = format!("MPI_Send:2000:1:8:11,1,1:{next}:5:7,{rank},4:2010\n");
        let receive = format!("MPI_Recv:1010:1:8:11,1,1:{before}:5:7,{rank},4:64:1990\n");
        let lines = if rank == 0 {
            format!(
                "MPI_Init:-:1:2:1990\n{send}{}",
                receive.replace("1010", "2020").replace("1990", "2030")
            )
        } else {
            format!("MPI_Init:-:1:2:1010\n{receive}{send}")
        };
        let end = if rank == 0 { 2030 } else { 2010 };
        fs::write(path(rank), format!("{lines}MPI_Finalize:{end}:-\n")).unwrap();
    }
    let first = path(0);
    let first = first.to_str().unwrap();
    let options = ["-L", "5000", "-o", "1000", "-g", "0", "-G", "0", "-J"];
    let simulated = document(&[&["simulate", "--trace", first][..], &options].concat());
    // Each rank computes 10 µs before its send, and a message takes 7 µs.
    assert_eq!(simulated["makespan_ps"].as_u64().unwrap(), 4 * 17_000_000);
    fs::write(path(2), "MPI_Send:10:1:8:11:1:5:7,2,4:11\n").unwrap();
    let wrong = loggap().args(["goal", "from-trace", first]).ends(2).stderr;
    assert!(wrong.contains("pmpi-trace-rank-2.txt':1:17: id,size,extent"), "{wrong}");
    let report = document(&["goal", "from-trace", first, "--lenient", "-J"]);
    let refused = report["refused"].as_array().unwrap().iter().map(|line| &line["call"]);
    // The line, and what should have come behind it.
    assert_eq!(refused.collect::<Vec<_>>(), ["(cut)", "(unreadable)", "(message)"], "{report}");
    // What was sent to it and received from it is left out.
    assert_eq!((&report["unmatched"], &report["messages"]), (&0.into(), &2.into()));
    // The line may be whole, and nobody takes its message.
    fs::write(path(2), "MPI_Send:10:1:8:11,1,1:3:9:7,2,4:11\nMPI_Finalize:20:-\n").unwrap();
    let alone = loggap().args(["goal", "from-trace", first, "-J"]).ends(1);
    let report = alone.json();
    assert_eq!(report["unmatched"].as_u64(), Some(3), "{report}");
    assert!(alone.stderr.contains("3 messages are not received, or not sent"), "{}", alone.stderr);
    loggap().args(["goal", "from-trace", first, "-J", "--lenient"]).ends(0);
    let stuck = loggap().args(["simulate", "--trace", first]).ends(1).stderr;
    assert!(stuck.contains("'loggap trace check' shows messages without a partner, and --lenient"));
}

/// A line of three ranks, each of which sends to the next, is one of more.
#[test]
fn noise_slows_a_traced_program_down_on_larger_grids() {
    let folder = tempfile::tempdir().unwrap();
    let path = |rank: i32| folder.path().join(format!("line-{rank}.txt"));
    for rank in 0..3 {
        let message = |call: &str, peer: i32, at: u32| match peer {
            0..3 => format!("MPI_{call}:{at}:1:8:11,1,1:{peer}:5:7,{rank},3:64:{}\n", at + 10),
            _ => String::new(),
        };
        let [receive, send] = [message("Recv", rank - 1, 1_010), message("Send", rank + 1, 2_020)];
        let send = send.replace(":64:", ":");
        let lines = format!("MPI_Init:-:1:2:10\n{receive}{send}MPI_Finalize:3030:-\n");
        fs::write(path(rank), lines).unwrap();
    }
    let first = path(0);
    let trace = ["--trace", first.to_str().unwrap()];
    let study = ["study", "noise", "--noise-periodic", "100us:50us", "--draws", "2"];
    let noise = document(&[&study[..], &trace, &["--grid", "8,3:64", "-J"]].concat());
    let rows = noise["rows"].as_array().unwrap();
    for (row, ranks) in rows.iter().zip([8, 64]) {
        let grid = ranks.to_string();
        let alone = document(&[&["simulate"], &trace[..], &["--grid", &grid, "-J"]].concat());
        assert_eq!((&row["ranks"], &row["pattern"]), (&ranks.into(), &"trace".into()), "{noise}");
        assert_eq!(row["quiet_ps"], alone["makespan_ps"], "{noise}");
        assert!(row["slowdown"].as_f64().unwrap() > 1.2, "{noise}");
    }
    assert_eq!(rows.len(), 2);
    let said = |more: &[&str]| loggap().args(study).args(more).ends(2).stderr;
    assert!(said(&["--grid", "8"]).contains("--trace <DIR>"));
    let both = said(&[&trace[..], &["--grid", "8", "--ranks", "8"]].concat());
    assert!(both.contains("cannot be used with '--ranks"), "{both}");
    let copies = said(&[&trace[..], &["--grid", "8", "--extrapolate", "2"]].concat());
    assert!(copies.contains("--grid cannot be used with --extrapolate"), "{copies}");
}

#[test]
fn merged_schedules_run_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (small, large, both) = (path("small.goal"), path("large.lgs"), path("both.lgs"));
    for (file, ranks) in [(&small, "4"), (&large, "16")] {
        let pattern = ["goal", "generate", "--pattern", "dissemination", "-s", "8", "--ranks"];
        loggap().args(pattern).args([ranks, "-o", file]).ends(0);
    }
    let map = path("map.txt");
    fs::write(&map, "0,5,10,15\n1:4,6:9,11:14,16:19\n").unwrap();
    for more in [&[][..], &["--map", &map]] {
        loggap().args(["goal", "merge", &small, &large, "-o", &both]).args(more).ends(0);
        let makespan = |file: &str| document(&["simulate", file, "--finish", "-J"]);
        let [one, other, merged] = [&small, &large, &both].map(|file| makespan(file));
        assert_eq!(merged["ranks"], 20);
        assert_eq!(merged["makespan_ps"], other["makespan_ps"]);
        let place = if more.is_empty() { 0 } else { 15 };
        assert_eq!(merged["finish_ps"][place], one["finish_ps"][0]);
    }
}

#[test]
fn a_trace_is_simulated_on_more_ranks_stored_and_not() {
    let free = ["--preset", "ompi-ib-sdr", "--finish", "-J"];
    let simulated =
        |more: &[&str]| document(&[&["simulate", "--trace", TRACED], more, &free].concat());
    let copies = ["--extrapolate", "300"];
    let looked_up = [&copies[..], &["--program", "streamed"]].concat();
    let streamed = simulated(&[&looked_up[..], &["--threads", "2"]].concat());
    assert_eq!(streamed["engine"], "windows");
    let in_order = simulated(&[&looked_up[..], &["--threads", "1"]].concat());
    assert_eq!(in_order["engine"], "sequential");
    // Stored unless that takes much memory, or is refused.
    let stored = simulated(&copies);
    let little = ["--extrapolate", "300", "--max-memory", "1M", "--preset", "ompi-ib-sdr"];
    let little = loggap().args(["simulate", "--trace", TRACED]).args(little).ends(0);
    assert_eq!(little.stdout.matches("extrapolated, and long;").count(), 1, "{}", little.stdout);
    assert_eq!(little.stderr, "");
    for key in ["ranks", "ops", "events", "makespan_ps", "finish_ps", "extrapolation"] {
        assert_eq!(streamed[key], stored[key], "{key}");
        assert_eq!(streamed[key], in_order[key], "{key}");
    }
    assert_eq!(streamed["ranks"], 600);
    assert_eq!((&streamed["program"], &stored["program"]), (&"streamed".into(), &"stored".into()));
    let one = simulated(&["--extrapolate", "1"]);
    let messages =
        |document: &Value| document["extrapolation"]["point_to_point_messages"].as_u64().unwrap();
    assert_eq!(messages(&streamed), 300 * messages(&one));
    assert_eq!(one["makespan_ps"], simulated(&[])["makespan_ps"], "one copy is the trace");
    let said =
        |more: &[&str]| loggap().args(["simulate", "--trace", TRACED]).args(more).ends(2).stderr;
    let streamed = loggap().args(["simulate", "--trace", TRACED, "--program", "streamed"]).ends(2);
    assert!(streamed.stderr.contains("'loggap goal from-trace' a trace"), "{}", streamed.stderr);
    let small = loggap().args(["simulate", "--trace", TRACED, "--max-memory", "1K"]).ends(1).stderr;
    assert!(small.contains("FILE.lgs with 'loggap goal from-trace'"), "{small}");
    assert!(said(&["--grid", "64"]).contains("fewer than 3 ranks"));
    assert!(said(&["--trace", TRACED]).contains("need --grid or --to-ranks"));
    assert!(said(&["--trace", TRACED, "--extrapolate", "2"]).contains("copies one trace"));
    assert!(said(&["--grid", "8x"]).contains("140x200"));
    // Messages beyond the profile are told of, whether the program is stored or not.
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("short.json");
    let text = r#"{"schema_version":1,"ranges":[{"first_bytes":1,"last_bytes":8,"latency_s":2e-6,
        "send_overhead_s":3e-7,"send_overhead_per_byte_s":0,"recv_overhead_s":3e-7,
        "recv_overhead_per_byte_s":0,"gap_s":4e-7,"gap_per_byte_s":1e-10}]}"#;
    fs::write(&profile, text).unwrap();
    let profile = profile.to_str().unwrap();
    // 30,000 copies have more than a million operations.
    for more in [&["300", "--program", "streamed"][..], &["30000"]] {
        let arguments = ["simulate", "--trace", TRACED, "--profile", profile, "--extrapolate"];
        let told = loggap().args(arguments).args(more).ends(0).stderr;
        assert!(told.contains("are extrapolated"), "{more:?}: {told}");
    }
}

/// A trace with a host of too few processors, without the file of a rank, and of another program.
#[test]
fn what_makes_a_trace_a_bad_basis_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |to: &str, change: &dyn Fn(String) -> String| {
        let to = folder.path().join(to);
        fs::create_dir(&to).unwrap();
        for name in ["0.trace", "1.trace", "trace.json"] {
            fs::copy(Path::new(TRACED).join(name), to.join(name)).unwrap();
        }
        let text = fs::read_to_string(to.join("trace.json")).unwrap();
        let changed = change(text.clone());
        assert_ne!(changed, text);
        fs::write(to.join("trace.json"), changed).unwrap();
        to.to_str().unwrap().to_owned()
    };
    let with = |key: &'static str, value: Value| {
        move |text: String| {
            let mut all: Value = serde_json::from_str(&text).unwrap();
            all[key] = value.clone();
            all.to_string()
        }
    };
    let crowded = copy("crowded", &with("processors", serde_json::json!([1, 1])));
    let [other, more] = [["/bin/other"], ["f90"]];
    let other = copy("other", &with("command", serde_json::json!(other)));
    let own: Value =
        serde_json::from_slice(&fs::read(Path::new(TRACED).join("trace.json")).unwrap()).unwrap();
    let name = own["command"][0].as_str().unwrap();
    let longer = copy("longer", &with("command", serde_json::json!([name, more[0]])));
    for arguments in [
        &["simulate", "--trace", &crowded][..],
        &["study", "overlap", "--summary", "--trace", &crowded],
        &["study", "noise", "--noise-periodic", "1ms:1us", "--ranks", "2", "--trace", &crowded],
        &["study", "algorithms", "--extrapolate", "2", "--trace", &crowded],
        &["goal", "from-trace", &crowded, "-J"],
    ] {
        let told = loggap().args(arguments).ends(0).stderr;
        assert_eq!(told.matches("had more ranks than processors").count(), 1, "{told}");
    }
    let both = |second: &str| {
        let traces = ["simulate", "--trace", TRACED, "--trace", second, "--to-ranks", "4"];
        loggap().args(traces).ends(2).stderr
    };
    assert!(both(&other).contains("are of different programs: '"), "{}", both(&other));
    assert!(both(&longer).contains("had different arguments: '"), "{}", both(&longer));
    fs::remove_file(folder.path().join("longer/1.trace")).unwrap();
    let strict = loggap().args(["goal", "from-trace", &longer]).ends(2).stderr;
    assert!(strict.contains("1.trace': No such file"), "{strict}");
    assert!(strict.contains("--lenient leaves the rank out"), "{strict}");
    let nowhere = loggap().args(["goal", "from-trace", "/nowhere/t-0.txt"]).ends(2).stderr;
    assert!(nowhere.contains("No such file") && !nowhere.contains("--lenient"), "{nowhere}");
    let lenient = loggap().args(["goal", "from-trace", &longer, "--lenient", "-J"]).ends(0);
    assert!(lenient.stderr.contains("the rank is left out"), "{}", lenient.stderr);
    let report = lenient.json();
    assert_eq!((&report["messages"], &report["unmatched"]), (&0.into(), &0.into()), "{report}");
    let refused = report["refused"].as_array().unwrap();
    let left_out = refused.iter().find(|line| line["call"] == "(message)").unwrap();
    assert!(left_out["calls"].as_u64().unwrap() >= 6, "{report}");
}

#[test]
fn the_share_of_messages_without_the_file_of_a_rank_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["0.trace", "trace.json"] {
        fs::copy(Path::new(TRACED).join(name), folder.path().join(name)).unwrap();
    }
    for command in [&["goal", "from-trace"][..], &["simulate", "--trace"]] {
        let ended = loggap().args(command).arg(folder.path()).args(["--lenient", "-J"]).ends(0);
        let expected = "(100% of all) left out, as the trace has only one end: a makespan";
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert!(ended.stdout.contains("\"messages_left_out_share\": 1.0"), "{}", ended.stdout);
    }
}

/// One rank's file is lost, and the other one has nothing behind its header.
#[test]
fn a_trace_without_a_record_is_no_schedule_of_a_lenient_conversion_either() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(Path::new(TRACED).join("trace.json"), folder.path().join("trace.json")).unwrap();
    let header = fs::read(Path::new(TRACED).join("0.trace")).unwrap()[..32].to_vec();
    fs::write(folder.path().join("0.trace"), header).unwrap();
    for command in [&["goal", "from-trace"][..], &["simulate", "--trace"]] {
        let ended = loggap().args(command).arg(folder.path()).arg("--lenient").ends(1);
        let told = "' has no records of any rank: cannot read '";
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
}
