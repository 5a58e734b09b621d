//! `loggap fit`: files of samples from anywhere.

use std::fmt::Write;
use std::process::Stdio;
use std::time::Duration;

use loggap_tests::command::{Run, finish, loggap, loggap_process, send, start};
use loggap_tests::folder::Folder;
use nix::sys::signal::Signal;
use serde_json::Value;

/// Two protocols: 2 µs and 100 ps a byte below 4 KiB, 5 µs and 300 ps from
/// there on; a wobble of 20 ns.
fn two_protocols() -> String {
    let mut text = String::from("size_bytes,value_s\n");
    for exponent in 0..17 {
        for step in [0, 1] {
            let size: u64 = (1 << exponent) + (step << exponent) / 2;
            let (gap, slope) = if size < 4_096 { (2_000_000, 100) } else { (5_000_000, 300) };
            for sample in 0..9_u64 {
                let picos = gap + slope * (size - 1) + sample * 5_000 - 20_000;
                writeln!(text, "{size},{picos}e-12").unwrap();
            }
        }
    }
    text
}

fn file(folder: &Folder, content: &str) -> String {
    let path = folder.path("samples.csv");
    std::fs::write(&path, content).unwrap();
    path
}

fn fit(content: &str) -> Value {
    let folder = Folder::new();
    loggap().arg("fit").arg(file(&folder, content)).arg("-J").succeeds().json()
}

fn near(value: &Value, truth: f64) -> bool {
    (value.as_f64().unwrap() - truth).abs() <= 0.01 * truth
}

#[test]
fn gaps_alone_give_both_protocols_and_the_change_between_them() {
    let document = fit(&two_protocols());
    let ranges = document["ranges"].as_array().unwrap();
    assert_eq!(ranges.len(), 2, "{document}");
    assert!(near(&ranges[0]["gap_s"], 2e-6) && near(&ranges[0]["gap_per_byte_s"], 100e-12));
    assert!(near(&ranges[1]["gap_s"], 5e-6) && near(&ranges[1]["gap_per_byte_s"], 300e-12));
    assert!(ranges[0].get("latency_s").is_none(), "what was not measured is left out");
    let change = &document["changes"][0];
    let bound = |key: &str| change[key].as_u64().unwrap();
    assert!((3_072..=4_096).contains(&bound("at_bytes")), "{change}");
    assert!(bound("lo_bytes") <= 4_096 && 4_096 <= bound("hi_bytes"), "{change}");
}

fn ranges(document: &Value) -> &[Value] {
    document["ranges"].as_array().unwrap()
}

#[test]
fn looking_ahead_finds_the_same_change() {
    let folder = Folder::new();
    let samples = file(&folder, &two_protocols());
    let run = |options: &[&str]| {
        let arguments = ["--detector", "lookahead", "-J"];
        loggap().arg("fit").arg(&samples).args(arguments).args(options).succeeds().json()
    };
    let document = run(&[]);
    assert_eq!(document["detector"], "lookahead");
    assert_eq!(document["ranges"], fit(&two_protocols())["ranges"]);
    assert_eq!(run(&["--pfact", "3", "--lookahead", "4"])["ranges"], document["ranges"]);
    // No step is a thousand times as far from the line as the wobble.
    assert!(run(&["--pfact", "1000"])["changes"].as_array().unwrap().is_empty());
    for (options, named) in [
        (&["--lookahead", "3"][..], "--detector lookahead"),
        (&["--detector", "lookahead", "--lookahead", "2"], "3..=8"),
        (&["--detector", "lookahead", "--pfact", "1"], "above 1"),
        (&["--detector", "guess"], "guess"),
    ] {
        let talk = loggap().arg("fit").arg(&samples).args(options).ends(2).stderr;
        assert!(talk.contains(named), "{options:?}: {talk}");
    }
}

#[test]
fn eq_6_as_printed_stands_beside_the_corrected_detector() {
    let folder = Folder::new();
    // One outlier of 2 us at 64 B: the corrected detector passes over it.
    let samples: String = two_protocols()
        .lines()
        .map(|line| match line.strip_prefix("64,") {
            Some(value) => format!("64,{}\n", value.parse::<f64>().unwrap_or(0.0) + 2e-6),
            None => format!("{line}\n"),
        })
        .collect();
    let samples = file(&folder, &samples);
    let fit = ["fit", &samples, "--detector", "lookahead"];
    let document = loggap().args(fit).args(["--literal", "-J"]).succeeds().json();
    let literal = &document["literal"];
    assert_eq!((&literal["pfact"], &literal["lookahead"]), (&2.0.into(), &5.into()), "{literal}");
    let printed = literal["ranges"].as_array().unwrap();
    assert!(printed.iter().any(|range| range["last_bytes"] == 48), "{literal}");
    assert!(printed.iter().any(|range| range["last_bytes"] == 3_072), "{literal}");
    assert_eq!(ranges(&document).len(), 2, "{document}");
    // The outlier counts for the deviation of its range, not for that of the other.
    let lsq: Vec<f64> =
        ranges(&document).iter().map(|range| range["gap_lsq_s2"].as_f64().unwrap()).collect();
    assert!(lsq[0] > 1e-14 && lsq[1] < 1e-20, "{lsq:?}");
    let text = loggap().args(fit).args(["--literal", "--lookahead", "3"]).succeeds().stdout;
    assert!(text.contains("\n# Eq. 6 as printed (pfact 2, 3 sizes ahead): "), "{text}");
    assert!(text.contains("; with corrections: 1 change\n") && text.contains("lsq[us2]"), "{text}");
    let csv = loggap().args(fit).args(["--literal", "--csv"]).succeeds();
    assert!(!csv.stdout.contains('#') && csv.stderr.contains("Eq. 6"), "{}", csv.stderr);
    let without = loggap().args(fit).arg("-J").succeeds().json();
    assert!(without.get("literal").is_none());
    let message = loggap().args(["fit", &samples, "--literal"]).ends(2).stderr;
    assert!(message.contains("--detector lookahead"), "{message}");
}

#[test]
fn the_order_of_lines_moves_no_value() {
    let text = two_protocols();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1..].reverse();
    let (forwards, backwards) = (fit(&text), fit(&lines.join("\n")));
    assert_eq!(forwards["changes"], backwards["changes"]);
    // Of the intervals it does: lines stand in the order of measuring.
    for (one, other) in ranges(&forwards).iter().zip(ranges(&backwards)) {
        for key in ["first_bytes", "last_bytes", "gap_s", "gap_per_byte_s"] {
            assert_eq!(one[key], other[key], "{key}");
        }
    }
    assert_eq!(ranges(&forwards).len(), ranges(&backwards).len());
}

#[test]
fn a_picture_and_a_table_are_drawn() {
    let folder = Folder::new();
    let picture = folder.path("p.svg");
    let samples = file(&folder, &two_protocols());
    let table = loggap().arg("fit").arg(samples).arg("--plot").arg(&picture).succeeds().stdout;
    assert!(table.contains("# change of protocol at 4 KiB"), "{table}");
    assert!(std::fs::read_to_string(picture).unwrap().contains("change of protocol at 4 KiB"));
}

#[test]
fn ctrl_c_ends_it_and_leaves_no_half_picture() {
    let folder = Folder::new();
    let mut child = start(
        loggap_process()
            .args(["fit", "/dev/stdin", "--plot"])
            .arg(folder.path("p.svg"))
            .stdin(Stdio::piped()),
    );
    let mut samples = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut samples, b"size_bytes,value_s\n").unwrap();
    let begun = || folder.count() == 1;
    while !begun() {
        std::thread::sleep(Duration::from_millis(5));
    }
    // From opening the file to listening for signals it is a moment.
    std::thread::sleep(Duration::from_millis(300));
    send(Signal::SIGINT, child.id());
    assert_eq!(finish(child).code, Some(130));
    assert_eq!(folder.count(), 0);
    drop(samples);
}

#[test]
fn wrong_files_are_named_with_line_and_column() {
    let folder = Folder::new();
    for (content, named) in [
        ("", "line 1: the file is empty"),
        ("size,value\n1,2\n", "line 1: unknown header"),
        ("PK\x03\x04", "this is zip: 'unzip -p FILE > PLAIN' converts it"),
        ("size_bytes,value_s\n", "no sample"),
        ("size_bytes,value_s\n1,1e-6\n2,fast\n", "line 3, column 2 (value_s)"),
        ("size_bytes,value_s\n0,1e-6\n", "line 2, column 1 (size_bytes)"),
        ("size_bytes,value_s\n1,NaN\n", "line 2, column 2 (value_s)"),
        ("size_bytes,n,delay_s,prtt_s\n8,1,0\n", "line 2: 3 fields where the header has 4"),
        ("size_bytes,n,delay_s,prtt_s\n8,4,0,1e-6\n8,5,0,1e-6\n", "one size has one n"),
        ("size_bytes,n,delay_s,prtt_s\n8,1,0,1e-6\n", "nothing to assess"),
    ] {
        let path = file(&folder, content);
        let output = loggap().arg("fit").arg(&path).ends(2);
        let talk = &output.stderr;
        assert!(talk.contains(named) && talk.contains("samples.csv"), "{content:?}: {talk}");
        assert!(output.stdout.is_empty());
    }
    loggap().args(["fit", "/nonexistent.csv"]).assert().code(2);
    loggap().arg("fit").arg(folder.root()).assert().code(2);
}

/// netgauge's output for L = 5, o_s = 1.2, o_r = 1.5, g = 2 us and G = 0.8 ns/B, above 32 KiB
/// 1.6 ns/B from another begin.
fn netgauge_output() -> String {
    let mut text = String::from(
        "# size n PRTT(1,0,s) PRTT(n,0,s) PRTT(n,PRTT(1,0,s),s) L o_s o_r g G lsqu(g,G)\n# to get o\n",
    );
    for index in 0..64 {
        let size = 1 + 1024 * index;
        let more = f64::from(size - 1);
        let gap = if size < 32_768 { 2.0 + more * 0.0008 } else { 10.0 + more * 0.0016 };
        let round_trip = 2.0 * (5.0 + 1.2 + 1.5 + gap - 2.0);
        let [burst, paced] = [gap, 1.2 + round_trip].map(|each| round_trip + 9.0 * each);
        writeln!(text, "{size} 10 {round_trip:.6} {burst:.6} {paced:.6} 7.7 1.2 1.500000 2 0 nan")
            .unwrap();
    }
    text
}

#[test]
fn what_netgauge_wrote_is_fitted_and_is_a_profile() {
    let folder = Folder::new();
    let path = file(&folder, &netgauge_output());
    let documents =
        ["fit", "show"].map(|verb| loggap().args([verb, &path, "-J"]).succeeds().json());
    for document in &documents {
        let [small, large] = ranges(document) else { panic!("{document}") };
        assert!(near(&small["gap_s"], 2e-6) && near(&small["gap_per_byte_s"], 0.8e-9), "{small}");
        assert!(near(&large["gap_per_byte_s"], 1.6e-9), "{large}");
        assert!(near(&small["send_overhead_s"], 1.2e-6), "{small}");
        assert!(near(&small["recv_overhead_s"], 1.5e-6), "{small}");
        assert!(near(&small["latency_s"], 5e-6), "{small}");
    }
    let simulated = ["simulate", "--pattern", "binomialtreebcast", "--ranks", "2", "-s", "1", "-J"];
    let document = loggap().args(simulated).args(["--profile", &path]).succeeds().json();
    assert!(near(&document["makespan_s"], 5e-6 + 1.2e-6 + 1.5e-6), "{document}");
    let cut = file(&folder, &netgauge_output().replace("1025 10 ", "1025 ten "));
    for verb in ["fit", "show"] {
        let said = loggap().args([verb, &cut]).ends(2).stderr;
        assert!(said.contains("line 4: 'ten' is no whole number"), "{said}");
    }
}
