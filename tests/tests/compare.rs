//! `loggap compare` and `loggap show`: profiles from their files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use loggap::machine::clock::HostClock;
use loggap_core::measure::serve;
use loggap_core::units::{PerByte, Picos};
use loggap_core::wire::Bounds;
use loggap_tests::command::{Run as _, loggap, machine};
use loggap_tests::folder::Folder;
use loggap_tests::relay::{Jitter, Mishaps, Range, Relay, Wire};
use loggap_tests::seeds;
use serde_json::Value;

/// A short measurement over a Unix socket, and what it printed.
fn measured(folder: &Folder, name: &str) -> (String, String) {
    let path = folder.path(name);
    let _machine = machine();
    // Blocking ends share processors with other programs.
    let fixed = ["measure", "--transport", "unix", "--block", "-s", "1:4K:x4"];
    let fixed = [&fixed[..], &["--max-time", "0.8", "-o"]].concat();
    let printed = loggap().args(fixed).arg(&path).succeeds().stdout;
    (path, printed)
}

/// Multiplies all times in `value`.
fn slow_down(value: &mut Value, factor: f64) {
    match value {
        Value::Object(entries) => entries.iter_mut().for_each(|(key, value)| {
            let is_time = key.ends_with("_s") || key.contains("_s_");
            match value.as_f64().filter(|_| is_time) {
                Some(time) => *value = (time * factor).into(),
                None => slow_down(value, factor),
            }
        }),
        Value::Array(values) => values.iter_mut().for_each(|value| slow_down(value, factor)),
        _ => {}
    }
}

/// The profile at `path` of a link that is `factor` times as slow.
fn slower(folder: &Folder, name: &str, path: &str, factor: f64) -> String {
    let mut profile: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    for part in ["ranges", "sizes"] {
        slow_down(&mut profile[part], factor);
    }
    profile["started_unix_s"] = (profile["started_unix_s"].as_u64().unwrap() + 60).into();
    folder.written(name, profile.to_string())
}

#[test]
fn a_profile_is_shown_as_it_was_printed() {
    let folder = Folder::new();
    let (path, printed) = measured(&folder, "a.json");
    assert_eq!(loggap().args(["show", &path]).succeeds().stdout, printed);
    let csv = loggap().args(["show", &path, "--csv"]).succeeds().stdout;
    assert!(csv.starts_with("size_bytes,") && csv.lines().count() > 5, "{csv}");
    loggap().args(["show", &path, "--plot", &folder.path("a.svg")]).succeeds();
    assert!(folder.read("a.svg").contains("<svg"));
}

#[test]
fn several_profiles_are_rows_and_one_picture() {
    let folder = Folder::new();
    let (first, _) = measured(&folder, "a.json");
    let second = slower(&folder, "b.json", &first, 9.0);
    let both = ["show", &first, &second];
    let plot = folder.path("both.svg");
    let text = loggap().args(both).args(["--linear", "--plot", &plot]).succeeds().stdout;
    assert!(text.trim_start().starts_with("#profile"), "{text}");
    let names: Vec<&str> =
        text.lines().skip(1).filter_map(|row| row.split_whitespace().next()).collect();
    assert!(names.contains(&"a") && names.contains(&"b"), "{text}");
    let picture = folder.read("both.svg");
    for part in ["a: gap", "b: g + (s-1)G", "b: o_s", "\n4000\n"] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    let document = loggap().args(both).arg("-J").succeeds().json();
    assert_eq!(document["profiles"].as_array().unwrap().len(), 2, "{document}");
    let message = loggap().args(both).arg("--csv").ends(2).stderr;
    assert!(message.contains("--csv takes one profile"), "{message}");
    // One profile on linear axes; two files of one name are told apart.
    loggap().args(["show", &first, "--linear", "--plot", &plot]).succeeds();
    assert!(folder.read("both.svg").contains("a: gap"));
    let twice = loggap().args(["show", &first, &first]).succeeds().stdout;
    assert!(twice.contains("/a.json"), "{twice}");
    loggap().args(["show", &first, "--linear"]).ends(2);
    loggap().arg("show").ends(2);
}

#[test]
fn the_papers_machines_and_profiles_are_bars_side_by_side() {
    let folder = Folder::new();
    let (first, _) = measured(&folder, "a.json");
    let bars = folder.path("bars.svg");
    let show = ["show", &first, "--preset", "paragon,meiko,myrinet", "--bars", &bars];
    let text = loggap().args(show).succeeds().stdout;
    assert!(text.contains("paragon") && text.lines().count() >= 5, "{text}");
    let picture = folder.read("bars.svg");
    for part in ["LogP parameters at 1 B", "\na\n", "\nmeiko\n", "L 11.1 us", "g 13.6 us"] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    // The presets of short messages end at 16 B.
    loggap().args(show).args(["-s", "64"]).succeeds();
    assert!(folder.read("bars.svg").contains("\nno o_s, o_r, L, g\n"));
    loggap().args(["show", &first, "-s", "64"]).ends(2);
    let message = loggap().args(["show", "--preset", "paragn"]).ends(2).stderr;
    assert!(message.contains("did you mean 'paragon'?"), "{message}");
}

#[test]
fn a_link_nine_times_as_slow_is_told_with_exit_code_3() {
    let folder = Folder::new();
    let (before, _) = measured(&folder, "a.json");
    let after = slower(&folder, "slower.json", &before, 9.0);
    let ended = loggap().args(["compare", &before, &after, "-J"]).ended();
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&found["schema_version"], &found["verdict"]), (&1.into(), &"slower".into()));
    let parameters = found["parameters"].as_array().unwrap();
    assert!(parameters.iter().any(|row| row["parameter"] == "half_rtt"), "{found}");
    for row in parameters.iter().chain(found["sizes"].as_array().unwrap()) {
        let [low, ratio, high] =
            ["ratio_lo", "ratio", "ratio_hi"].map(|key| row[key].as_f64().unwrap());
        assert!((ratio / 9.0 - 1.0).abs() < 0.01 && low < ratio && ratio < high, "{row}");
    }
    assert_eq!(found["environment"], Value::Array(Vec::new()));
    let faster = loggap().args(["compare", &after, &before]).succeeds().stdout;
    assert!(faster.starts_with("# faster: ") && faster.contains("-89%"), "{faster}");
    let half_more = slower(&folder, "half.json", &before, 1.5);
    loggap().args(["compare", &before, &half_more, "--threshold", "90%"]).succeeds();
    let report = folder.path("report.xml");
    let annotated = ["compare", &before, &after, "--junit", &report];
    let ended = loggap().args(annotated).env("GITHUB_ACTIONS", "true").ended();
    assert!(
        ended.stderr.contains("::error title=loggap::slower: RTT/2 of 1:4K"),
        "{}",
        ended.stderr
    );
    let report = folder.read("report.xml");
    assert!(report.contains(r#"testsuite name="loggap compare""#), "{report}");
    assert!(report.contains("<failure "), "{report}");
    let several = ["compare", &before, "--", &after, &slower(&folder, "b.json", &after, 1.01)];
    assert_eq!(loggap().args(several).ended().code, Some(3));
}

#[test]
fn a_run_is_judged_by_limits_and_by_an_earlier_one() {
    let folder = Folder::new();
    let (usual, _) = measured(&folder, "a.json");
    let fast = slower(&folder, "fast.json", &usual, 1.0 / 9.0);
    let report = folder.path("report.xml");
    let fixed = ["measure", "--transport", "unix", "--block", "-s", "1:4K:x4"];
    let fixed = [&fixed[..], &["--max-time", "0.6", "-J"]].concat();
    let judged = |options: &[&str]| {
        let _machine = machine();
        loggap().args(&fixed).args(options).env("GITHUB_ACTIONS", "true").ended()
    };
    // Two more runs confirm a failure; up to two others replace runs that are unlike the rest.
    let is_confirmed =
        |stderr: &str| (2..=4).contains(&stderr.matches("measuring again, since ").count());
    let limits = ["--assert", "half_rtt<1s@1K", "--assert", "gap>1s@4"];
    let ended = judged(&[&limits[..], &["--baseline", &fast, "--junit", &report]].concat());
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(is_confirmed(&ended.stderr), "{}", ended.stderr);
    let annotation = "::error title=loggap::fails: gap>1s@4, is ";
    assert!(ended.stderr.contains(annotation), "{}", ended.stderr);
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(found["baseline"]["verdict"], "slower", "{found}");
    let verdicts = [&found["assertions"][0]["verdict"], &found["assertions"][1]["verdict"]];
    assert_eq!(verdicts, ["holds", "fails"]);
    assert!(found["assertions"][0]["value_s_hi"].as_f64().unwrap() < 1.0);
    assert!(found["sizes"].as_array().unwrap().len() > 3);
    let report = folder.read("report.xml");
    assert!(report.contains(r#"name="gap&gt;1s@4""#) && report.contains("<failure "), "{report}");
    assert!(report.contains(r#"name="half_rtt of "#), "{report}");
    let ended = judged(&["--assert", "half_rtt<1s@1K"]);
    assert_eq!((ended.code, ended.stderr.contains("again")), (Some(0), false), "{}", ended.stderr);
    // Each alone.
    for options in [["--assert", "gap>1s@4"], ["--baseline", &fast]] {
        let ended = judged(&options);
        assert_eq!(ended.code, Some(3), "{options:?}: {}", ended.stderr);
        assert!(is_confirmed(&ended.stderr), "{options:?}: {}", ended.stderr);
    }
}

#[test]
fn what_cannot_be_judged_is_refused_before_anything_is_measured() {
    let folder = Folder::new();
    let (usual, _) = measured(&folder, "a.json");
    let over_udp = folder.read("a.json").replace(r#""transport": "unix""#, r#""transport": "udp""#);
    let over_udp = folder.written("udp.json", over_udp);
    for (options, told) in [
        (&["--assert", "half_rtt<20us"][..], "such as half_rtt<20us@1K"),
        (&["--assert", "rtt<20us@8"], "'rtt' is no quantity"),
        (
            &["--assert", "half_rtt<20us@1M"],
            "sizes from 1 B to 64 KiB are measured; others with -s",
        ),
        (&["--threshold", "3%"], "--baseline"),
        (&["--baseline", "/nonexistent.json"], "/nonexistent.json"),
        (&["--baseline", &usual, "--method", "plogp"], "--method prtt, this run is with plogp"),
        (&["--baseline", &over_udp], "--transport udp, this run is with unix"),
        (&["--junit", &folder.path("a.xml")], "--junit needs --assert or --baseline"),
    ] {
        let ended = loggap().args(["measure", "--transport", "unix"]).args(options).ended();
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{options:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{options:?}: {}", ended.stderr);
    }
}

/// Profile of a run over a wire with this latency in microseconds.
fn over_wire(folder: &Folder, name: &str, latency_us: u64) -> String {
    let range = Range {
        first: 1,
        gap: Picos::from_micros(100).unwrap(),
        gap_per_byte: PerByte::from_picos(20_000).unwrap(),
    };
    let wire = Wire {
        latency: Picos::from_micros(latency_us).unwrap(),
        ranges: vec![range],
        jitter: Jitter::None,
        mishaps: Mishaps::default(),
    };
    let over = Arc::new(AtomicBool::new(false));
    let mut relay = Relay::new(wire).until(Duration::from_secs(20), Arc::clone(&over));
    let (address, path) = (relay.address().to_string(), folder.path(name));
    let responder = thread::spawn(move || {
        Relay::sleep_exactly();
        let mut buffer = vec![0; 65_536];
        // A session each launch.
        while serve(&HostClock::calibrated(), &mut relay, &mut buffer, Bounds::default()).is_ok() {}
    });
    let fixed = ["measure", "--transport", "udp", "-s", "1:1K:x4", "--launches", "3"];
    let limits = ["--max-time", "1.2", "-o", &path];
    loggap().args(fixed).args(limits).arg(&address).succeeds();
    over.store(true, Ordering::Relaxed);
    responder.join().unwrap();
    let mut profile: Value = serde_json::from_str(&folder.read(name)).unwrap();
    profile["started_unix_s"] = (profile["started_unix_s"].as_u64().unwrap() + latency_us).into();
    folder.written(name, profile.to_string())
}

/// Of links slowed by a tenth nearly all are told, by 30% all, and of equal ones none: 100 pairs
/// with `--long`.
#[test]
fn a_wire_slowed_by_a_tenth_is_told() {
    let folder = Folder::new();
    let (mut told, mut mistaken, mut pairs) = (0, 0, 0);
    let _machine = machine();
    for pair in seeds(0..if std::env::var_os("LOGGAP_LONG").is_some() { 100 } else { 8 }) {
        let name = |which| format!("{which}{pair}.json");
        let usual = over_wire(&folder, &name("a"), 2_000);
        let same = over_wire(&folder, &name("b"), 2_000);
        let slower = over_wire(&folder, &name("c"), 2_200);
        let code = |after: &str| loggap().args(["compare", &usual, after]).ended().code;
        told += u32::from(code(&slower) == Some(3));
        let much_slower = self::slower(&folder, &name("d"), &same, 1.3);
        assert_eq!(code(&much_slower), Some(3), "pair {pair}");
        mistaken += u32::from(code(&same) == Some(3));
        pairs += 1;
    }
    println!("of {pairs} pairs {told} told, {mistaken} mistaken");
    assert!(told * 100 >= pairs * 95 && mistaken * 50 <= pairs, "{told} {mistaken} of {pairs}");
}

#[test]
fn what_runs_cannot_tell_is_said_with_what_they_do() {
    let folder = Folder::new();
    let (before, _) = measured(&folder, "a.json");
    let after = slower(&folder, "b.json", &before, 1.0001);
    let fixed = ["compare", &before, &after];
    let narrow = loggap().args(fixed).succeeds().stdout;
    assert!(narrow.starts_with("# cannot tell 5%: "), "{narrow}");
    assert!(narrow.contains("sizes compared") && narrow.contains("+0.0%"), "{narrow}");
    assert_eq!(loggap().args(fixed).arg("--strict").ended().code, Some(4));
    let every_size = loggap().args(fixed).arg("-v").succeeds().stdout;
    assert!(every_size.lines().count() > narrow.lines().count() + 5, "{every_size}");
    let mut profile: Value = serde_json::from_str(&folder.read("b.json")).unwrap();
    profile["host"]["hostname"] = "node8".into();
    profile["host"]["governor"] = "powersave".into();
    let elsewhere = folder.written("elsewhere.json", profile.to_string());
    let ended = loggap().args(["compare", &before, &elsewhere]).ended();
    assert!(ended.stderr.contains("was measured on") && ended.stderr.contains("node8"));
    assert!(ended.stdout.contains("# host.governor: "), "{}", ended.stdout);
}

#[test]
fn what_cannot_be_compared_is_refused_with_its_reason() {
    let folder = Folder::new();
    let (path, _) = measured(&folder, "a.json");
    let mut profile: Value = serde_json::from_str(&folder.read("a.json")).unwrap();
    profile["transport"] = "tcp".into();
    let tcp = folder.written("tcp.json", profile.to_string());
    profile["verdict"] = "unusable".into();
    profile["reason"] = "processors are busy".into();
    profile["transport"] = "unix".into();
    let unusable = folder.written("unusable.json", profile.to_string());
    for (arguments, code, told) in [
        (&[&*path][..], 2, "name two profiles"),
        (&[&path, &path, &path], 2, "name two profiles, not 3"),
        (&[&path, &path], 2, "are the same run"),
        (&[&path, &tcp], 2, "transport unix"),
        (&[&path, &unusable], 4, "processors are busy; measure again"),
        (&[&path, "/nonexistent.json"], 2, "/nonexistent.json"),
    ] {
        let ended = loggap().arg("compare").args(arguments).ended();
        assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{arguments:?}");
    }
}

#[test]
fn a_measurement_that_fails_replaces_the_report_of_an_earlier_run() {
    let folder = Folder::new();
    let report = folder.path("report.xml");
    fs::write(&report, "all is well").unwrap();
    let measure = ["measure", "127.0.0.1:1", "--assert", "half_rtt<1s@8", "--junit", &report];
    let said = loggap().args(measure).ends(1).stderr;
    let xml = fs::read_to_string(&report).unwrap();
    assert!(xml.contains("<failure") && xml.contains("127.0.0.1:1"), "{xml}");
    assert!(said.contains("127.0.0.1:1"), "{said}");
}
