//! `loggap compare` and `loggap show`: profiles from their files.

use std::fs;

use loggap_tests::command::{Run as _, loggap, machine};
use loggap_tests::folder::Folder;
use serde_json::Value;

/// A short measurement over a Unix socket, and what it printed.
fn measured(folder: &Folder, name: &str) -> (String, String) {
    let path = folder.path(name);
    let _machine = machine();
    let fixed = ["measure", "--transport", "unix", "-s", "1:4K:x4", "--max-time", "0.8", "-o"];
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
fn slower(folder: &Folder, path: &str, factor: f64) -> String {
    let mut profile: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    for part in ["ranges", "sizes"] {
        slow_down(&mut profile[part], factor);
    }
    folder.written("slower.json", profile.to_string())
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
fn a_link_three_times_as_slow_is_told_with_exit_code_3() {
    let folder = Folder::new();
    let (before, _) = measured(&folder, "a.json");
    let after = slower(&folder, &before, 3.0);
    let ended = loggap().args(["compare", &before, &after, "-J"]).ended();
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&found["schema_version"], &found["verdict"]), (&1.into(), &"slower".into()));
    let parameters = found["parameters"].as_array().unwrap();
    assert!(parameters.iter().any(|row| row["parameter"] == "half_rtt"), "{found}");
    for row in parameters.iter().chain(found["sizes"].as_array().unwrap()) {
        let [low, ratio, high] =
            ["ratio_lo", "ratio", "ratio_hi"].map(|key| row[key].as_f64().unwrap());
        assert!((ratio - 3.0).abs() < 0.01 && low < ratio && ratio < high, "{row}");
    }
    assert_eq!(found["environment"], Value::Array(Vec::new()));
    let faster = loggap().args(["compare", &after, &before]).succeeds().stdout;
    assert!(faster.starts_with("# faster: ") && faster.contains("-67%"), "{faster}");
    let same = loggap().args(["compare", &before, &before, "-v"]).succeeds().stdout;
    assert!(!same.contains("slower") && same.contains("+0.0%"), "{same}");
    let several = ["compare", &before, &before, "--", &after, &after];
    assert_eq!(loggap().args(several).ended().code, Some(3));
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
        (&[&path, &path, &path], 2, "BEFORE.json... -- AFTER.json"),
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
