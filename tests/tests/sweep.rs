//! `loggap simulate --sweep` as a user runs it.

use std::fs;

use loggap_tests::command::{Ended, Run, assert_refused, interrupted, loggap, refused, simulated};
use loggap_tests::folder::Folder;
use serde_json::Value;

fn points(document: &Value) -> Vec<Value> {
    document["sweep"]["points"].as_array().unwrap().clone()
}

/// Nanoseconds of a value in seconds, as an option takes them.
fn nanos(value: &Value) -> String {
    format!("{:.9}", value.as_f64().unwrap() * 1e9)
}

/// A pipeline of four ranks with calculations, each rank sending two sizes.
const PIPELINE: &str = "num_ranks 4\n\
    rank 0 {\na: send 5000b to 1\nc: calc 900\nb: send 8b to 2\nc requires a\nb requires c\n}\n\
    rank 1 {\nr: recv 5000b from 0\ns: send 4000b to 3\ns requires r\n}\n\
    rank 2 {\nr: recv 8b from 0\ns: send 70b to 3\ns requires r\n}\n\
    rank 3 {\na: recv 4000b from 1\nb: recv 70b from 2\nc: calc 5000\nc requires b\n}\n";

/// The sweeps that are compared: the option that a run alone has in place of
/// each, and the key of its values.
const SWEEPS: [(&str, &str, &str); 9] = [
    ("L=0.1us:30us:6", "-L", "latency_s"),
    ("o=1:4000:5:log", "-o", "overhead_s"),
    ("o_s=10ns:4us:4", "--send-overhead", "send_overhead_s"),
    ("o_r=10:4000.5:4", "--recv-overhead", "recv_overhead_s"),
    ("g=0:9us:6", "-g", "gap_s"),
    ("G=10ps/B:7ns/B:5:log", "-G", "gap_per_byte_s"),
    ("O=0:3:4", "-O", "overhead_per_byte_s"),
    ("O_r=0.5:3:3", "--recv-overhead-per-byte", "recv_overhead_per_byte_s"),
    ("S=0:8K:5", "-S", "eager_limit_bytes"),
];

/// Every point of every sweep of `schedule` takes what a run alone takes that
/// has its value as an option.
fn compare(schedule: &[&str]) {
    for (sweep, option, key) in SWEEPS {
        let document = simulated(&[schedule, &["--sweep", sweep]].concat());
        let swept = points(&document);
        assert!(swept.len() >= 3, "{document}");
        for point in swept {
            let value = &point[key];
            let value = if option == "-S" { value.to_string() } else { nanos(value) };
            let alone = simulated(&[schedule, &[option, &value]].concat());
            assert_eq!(
                point["makespan_ps"], alone["makespan_ps"],
                "{schedule:?}, {sweep}, {value}"
            );
            assert_eq!(point["makespan_s"], alone["makespan_s"]);
        }
    }
}

#[test]
fn a_computed_pattern_is_at_every_point_as_if_run_alone() {
    let ring = ["--pattern", "dissemination", "--ranks", "13", "-s", "4K"];
    assert_eq!(simulated(&ring)["engine"], "computed");
    compare(&ring);
}

#[test]
fn a_stored_schedule_is_at_every_point_as_if_run_alone() {
    let folder = Folder::new();
    let path = folder.written("pipeline.goal", PIPELINE);
    assert_eq!(simulated(&[&path])["engine"], "windows");
    compare(&[&path]);
    // Event by event: above S, and with a receiver that is not held.
    let above = [&*path, "--receive", "overlap", "-S", "100"];
    assert_eq!(simulated(&above)["engine"], "sequential");
    for (sweep, option, key) in [SWEEPS[0], SWEEPS[5]] {
        for point in points(&simulated(&[&above[..], &["--sweep", sweep]].concat())) {
            let alone = simulated(&[&above[..], &[option, &nanos(&point[key])]].concat());
            assert_eq!(point["makespan_ps"], alone["makespan_ps"], "{sweep}");
        }
    }
}

#[test]
fn several_sweeps_make_a_grid_whatever_the_number_of_threads() {
    let grid = ["--pattern", "binomialtreebcast", "--ranks", "64", "-s", "8"];
    let grid = [&grid[..], &["--sweep", "L=1us:3us:3", "--sweep", "g=1us:2us:2"]].concat();
    let document = simulated(&grid);
    let parameters = &document["sweep"]["parameters"];
    assert_eq!(parameters[0]["parameter"], "L");
    assert_eq!((&parameters[1]["key"], &parameters[1]["points"]), (&"gap_s".into(), &2.into()));
    let found = points(&document);
    let values: Vec<(f64, f64)> = found
        .iter()
        .map(|point| {
            let value = |key: &str| point[key].as_f64().unwrap() * 1e6;
            (value("latency_s").round(), value("gap_s").round())
        })
        .collect();
    assert_eq!(values, [(1., 1.), (1., 2.), (2., 1.), (2., 2.), (3., 1.), (3., 2.)]);
    for threads in ["1", "2", "5"] {
        assert_eq!(points(&simulated(&[&grid[..], &["--threads", threads]].concat())), found);
    }
    let alone = simulated(&[&grid[..6], &["-L", "2000", "-g", "2000"]].concat());
    assert_eq!(found[3]["makespan_ps"], alone["makespan_ps"]);
}

#[test]
fn points_that_share_a_run_are_those_that_run_alone() {
    for pattern in ["binomialtreebcast", "dissemination", "gather"] {
        let pattern = ["--pattern", pattern, "--ranks", "50", "-s", "8"];
        let swept = |threads| {
            let sweep = ["--sweep", "L=0.1us:9us:40", "--threads", threads];
            points(&simulated(&[&pattern[..], &sweep].concat()))
        };
        // Too few points for eight threads to take eight each.
        let alone = swept("8");
        assert_eq!(swept("1"), alone, "{pattern:?}");
        assert_eq!(swept("2"), alone, "{pattern:?}");
    }
}

/// Two ranges; the second has twice the latency.
fn profile(latency: f64) -> String {
    let range = |first: u32, last: u32, latency: f64| {
        format!(
            r#"{{"first_bytes":{first},"last_bytes":{last},"latency_s":{latency:e},
            "send_overhead_s":1e-6,"send_overhead_per_byte_s":1e-10,"recv_overhead_s":2e-6,
            "recv_overhead_per_byte_s":0,"gap_s":3e-6,"gap_per_byte_s":1e-9}}"#
        )
    };
    format!(
        r#"{{"schema_version":1,"ranges":[{},{}]}}"#,
        range(1, 1_000, latency),
        range(1_001, 65_536, 2.0 * latency)
    )
}

#[test]
fn ranges_of_a_profile_are_swept_by_factors() {
    let folder = Folder::new();
    let goal = folder.written("pipeline.goal", PIPELINE);
    let given = folder.written("given.json", profile(2e-6));
    let document = simulated(&[&goal, "--profile", &given, "--sweep", "L=0.5x:1.5x:3"]);
    let found = points(&document);
    for (point, latency) in found.iter().zip([1e-6, 2e-6, 3e-6]) {
        let scaled = folder.written("scaled.json", profile(latency));
        let alone = simulated(&[&goal, "--profile", &scaled]);
        assert_eq!(point["makespan_ps"], alone["makespan_ps"], "{latency}");
    }
    assert_eq!(found[1]["latency_factor"], 1.0);
    assert_eq!(document["sweep"]["parameters"][0]["factors"], true);
    assert_refused(
        &[&goal, "--profile", &given, "--sweep", "L=1us:2us:3"],
        2,
        "2 ranges of message sizes",
    );
    // Both overheads by the same factor; as a value it would be one for both.
    simulated(&[&goal, "--profile", &given, "--sweep", "o=0.5x:2x:3"]);
    let apart = ["--send-overhead", "10", "--recv-overhead", "20"];
    assert_refused(
        &[&[&*goal], &apart[..], &["--sweep", "o=1:2:2"]].concat(),
        2,
        "sweep o_s or o_r",
    );
}

#[test]
fn the_tangent_touches_the_curve_and_is_it_where_that_is_proved() {
    let folder = Folder::new();
    let goal = folder.written("pipeline.goal", PIPELINE);
    let pattern = ["--pattern", "binomialtreebcast", "--ranks", "64", "-s", "1K"];
    let mut on_the_line = 0;
    for schedule in [&[&*goal][..], &pattern] {
        // The values that are given are among those swept.
        for (sweep, symbol, key) in [
            ("L=500:8500:17", "L", "latency_s"),
            ("o=500:2500:9", "o", "overhead_s"),
            ("o_s=500:2500:9", "o_s", "send_overhead_s"),
            ("g=0:4000:17", "g", "gap_s"),
            ("G=0:12:25", "G", "gap_per_byte_s"),
        ] {
            let document = simulated(&[schedule, &["--sweep", sweep, "--sensitivity"]].concat());
            let sensitivity = document["sensitivity"].as_array().unwrap();
            let of = sensitivity.iter().find(|of| of["parameter"] == symbol).unwrap();
            let number = |of: &Value| of.as_f64().unwrap();
            let (value, low) = (number(&of["value"]), number(&of["low"]));
            let high = of["high"].as_f64().unwrap_or(f64::INFINITY);
            let (slope, makespan) = (number(&of["slope"]), number(&document["makespan_ps"]));
            let mut touched = false;
            for point in points(&document) {
                let at = number(&point[key]);
                let line = makespan + slope * (at - value) * 1e12;
                let off = number(&point["makespan_ps"]) - line;
                if at > low && at < high {
                    assert!(off.abs() < 1.0, "{schedule:?}, {sweep}: {off} ps at {at}");
                    on_the_line += 1;
                }
                touched |= (at - value).abs() < 1e-15 && off.abs() < 1.0;
            }
            assert!(touched, "{schedule:?}, {sweep}");
        }
    }
    assert!(on_the_line > 30, "{on_the_line}");
}

#[test]
fn a_table_a_csv_and_a_picture_have_the_points() {
    let folder = Folder::new();
    let (csv, plot) = (folder.path("l.csv"), folder.path("l.svg"));
    let files = ["--sweep-csv", &csv, "--sweep-plot", &plot];
    let pattern = ["simulate", "--pattern", "binomialtreebcast", "--ranks", "2", "-s", "8"];
    let sweep = ["--sweep", "L=1us:3us:3", "--sensitivity"];
    let output = loggap().args(pattern).args(sweep).args(files).succeeds();
    // 2o + L + 7G.
    assert_eq!(
        fs::read_to_string(&csv).unwrap(),
        "latency_s,makespan_s,makespan_ps\n0.000001,0.000004042,4042000\n\
         0.000002,0.000005042,5042000\n0.000003,0.000006042,6042000\n"
    );
    let text = &output.stdout;
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.contains(&vec!["#", "L[ns]", "makespan[ns]", "slope"]), "{text}");
    assert!(rows.contains(&vec!["2000", "5042", "1"]), "{text}");
    let picture = fs::read_to_string(&plot).unwrap();
    for part in ["L [us]", "makespan [us]", "as given: slope 1", "binomialtreebcast over L"] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    assert_eq!(picture.matches("<circle").count(), 3);

    let grid = ["--sweep", "g=1us:3us:3", "--sweep", "o=0:100:4"];
    loggap().args(pattern).args(grid).args(files).assert().success();
    let picture = fs::read_to_string(&plot).unwrap();
    assert!(picture.contains("o = 33.333 ns"), "{picture}");
    assert_eq!(picture.matches("<circle").count(), 12);
    assert_eq!(fs::read_to_string(&csv).unwrap().lines().count(), 13);

    let many = ["--sweep", "L=1us:100us:1000:log"];
    let text = loggap().args(pattern).args(many).args(files).succeeds().stdout;
    assert!(text.contains("40 of 1000 points; all: -J or --sweep-csv FILE"), "{text}");
    assert_eq!(fs::read_to_string(&csv).unwrap().lines().count(), 1_001);
    let values: Vec<&str> = text.lines().filter(|line| line.contains("100000")).collect();
    assert_eq!(values.len(), 1, "both ends are in the table: {text}");
}

#[test]
fn noise_has_the_same_phases_at_every_point() {
    let noise = ["--noise-periodic", "10000:900", "--seed", "5"];
    let pattern = ["--pattern", "dissemination", "--ranks", "64", "-s", "8"];
    let document = simulated(&[&pattern[..], &noise, &["--sweep", "L=2000:3000:3"]].concat());
    assert_eq!(points(&document)[1]["makespan_ps"], document["makespan_ps"]);
    assert_ne!(simulated(&pattern)["makespan_ps"], document["makespan_ps"]);
}

/// Every point on a tapered tree and with near ranks is what a run of its own says.
#[test]
fn networks_and_levels_are_swept() {
    let pattern = ["--pattern", "linear_alltoall", "--ranks", "12", "-s", "2K"];
    let tree = ["--topology", "tree:4:4"];
    let near = ["--level", "4:L=100,o=100,g=100,G=0.1"];
    for (network, sweep, options) in [
        (&tree[..], "G=0.5:6:4", ["-G", "0.5", "6"]),
        (&near[..], "L=1x:3x:3", ["-L", "2500", "7500"]),
    ] {
        let document = simulated(&[&pattern[..], network, &["--sweep", sweep]].concat());
        let points = document["sweep"]["points"].as_array().unwrap();
        let [option, first, last] = options;
        let alone = simulated(&[&pattern[..], network, &[option, first]].concat());
        assert_eq!(points[0]["makespan_ps"], alone["makespan_ps"], "{sweep}");
        let grown = points.last().unwrap();
        if network == tree {
            let alone = simulated(&[&pattern[..], network, &[option, last]].concat());
            assert_eq!(grown["makespan_ps"], alone["makespan_ps"], "{sweep}");
        } else {
            let both = ["--level", "4:L=300,o=100,g=100,G=0.1", option, last];
            let alone = simulated(&[&pattern[..], &both].concat());
            assert_eq!(grown["makespan_ps"], alone["makespan_ps"], "{sweep}");
        }
    }
}

#[test]
fn what_cannot_be_swept_or_described_is_refused_by_name() {
    let ring = ["--pattern", "dissemination", "--ranks", "4"];
    let latency = ["--sweep", "L=1us:2us:3"];
    let with = |more: &[&str]| refused(&[&ring[..], more].concat());
    for (more, expected) in [
        (&["--timeline", "a.svg"][..], "--timeline"),
        (&["--explain"], "--explain"),
        (&["--counters"], "--counters"),
        (&["--finish"], "--finish"),
        (&["--level", "2:L=1,o=1,g=1,G=1"], "L has a value for each of 2 levels"),
        (&["--network-plot", "a.svg"], "--network-plot"),
        (&["--monte-carlo", "5"], "--monte-carlo"),
        (&["--sweep", "L=3us:4us:2"], "the sweeps of L and L change the same parameter"),
        (&["--sweep", "g=1:2:400000"], "more than 1000000 points"),
        (&["--sweep", "O=0.5x:2x:3"], "O is 0, which no factor changes"),
        (
            &["--sweep", "g=1:2:2", "--sweep", "o=1:2:2", "--sweep-plot", "a.svg"],
            "--sweep-plot draws one or two sweeps, and there are 3",
        ),
        (&["--sweep-csv", "/nonexistent/a.csv"], "create its folder"),
    ] {
        let (code, message) = with(&[&latency[..], more].concat());
        let expected_code = if expected == "create its folder" { 1 } else { 2 };
        assert!(code == expected_code && message.contains(expected), "{more:?}: {message}");
    }
    for (sweep, expected) in
        [("L", "expected PARAM=FROM:TO:POINTS"), ("L=1:2:4294967295", "more than 1000000 points")]
    {
        let (code, message) = with(&["--sweep", sweep]);
        assert!(code == 2 && message.contains(expected), "{sweep}: {message}");
    }
    for file in ["--sweep-csv", "--sweep-plot"] {
        let (code, message) = with(&[file, "a"]);
        assert!(code == 2 && message.contains("--sweep"), "{message}");
    }
    let noisy = ["--noise-periodic", "10000:900", "--sensitivity"];
    assert_eq!(with(&[&latency[..], &noisy].concat()).0, 2);
}

#[test]
fn a_schedule_that_cannot_end_and_memory_that_does_not_suffice_leave_no_file() {
    let folder = Folder::new();
    let lonely = "num_ranks 2\nrank 0 {\nr: recv 1b from 1\n}\nrank 1 {\n}\n";
    let path = folder.written("lonely.goal", lonely);
    let csv = folder.path("a.csv");
    let files = ["--sweep", "L=1us:2us:3", "--sweep-csv", &csv];
    assert_refused(&[&[&*path], &files[..]].concat(), 1, "cannot come to its end");
    let pattern = ["--pattern", "dissemination", "--ranks", "1K", "--max-memory", "1K"];
    assert_eq!(refused(&[&pattern[..], &files].concat()).0, 1);
    assert_eq!(folder.count(), 1);
}

/// What a simulation leaves that gets Ctrl-C while further runs are under way.
fn interrupted_simulation(arguments: &[&str]) -> Ended {
    let arguments = [&["simulate"], arguments].concat();
    interrupted(&arguments, |output| !output.stdout.is_empty())
}

#[test]
fn ctrl_c_leaves_the_points_that_were_run() {
    let folder = Folder::new();
    let ring = ["--pattern", "dissemination", "--ranks", "2K", "-s", "8"];
    let goal = folder.generated("ring.goal", &ring);
    let goal = &*goal;
    // Computed together, in windows, event by event, and on a network.
    for schedule in [
        &ring[..],
        &[goal],
        &[goal, "--receive", "overlap", "-S", "4"],
        &["--pattern", "dissemination", "--ranks", "512", "--topology", "star"],
    ] {
        let csv = folder.path("points.csv");
        let plot = folder.path("points.svg");
        let sweep = ["--sweep", "L=1000:300000:299001", "-J"];
        let files = ["--sweep-csv", &csv, "--sweep-plot", &plot];
        let arguments = [&["simulate"], schedule, &sweep, &files].concat();
        let output = interrupted(&arguments, |output| {
            !output.stdout.is_empty() && !points(&output.json()).is_empty()
        });
        let document = output.json();
        let found = points(&document);
        assert!(!found.is_empty() && found.len() < 299_001, "{schedule:?}: {}", found.len());
        let why = format!("interrupted after {} of 299001 points", found.len());
        assert_eq!(document["incomplete"], why);
        assert!(found.iter().all(|point| point["makespan_ps"].is_u64()), "{schedule:?}");
        for point in [&found[0], &found[found.len() - 1]] {
            let latency = nanos(&point["latency_s"]);
            let alone = simulated(&[schedule, &["-L", &latency]].concat());
            assert_eq!(point["makespan_ps"], alone["makespan_ps"], "{schedule:?}");
        }
        let csv = fs::read_to_string(csv).unwrap();
        let rows: Vec<&str> = csv.lines().collect();
        assert_eq!(rows.len(), found.len() + 2);
        assert_eq!(rows[rows.len() - 1], format!("# incomplete: {why}"));
        assert!(fs::read_to_string(plot).unwrap().contains("(incomplete)"));
    }
    assert_eq!(folder.count(), 3);
}

#[test]
fn a_table_shows_a_grid_with_all_ends() {
    let grid = ["simulate", "--pattern", "bcast", "--ranks", "8", "--sweep", "L=1:20:20"];
    let text = loggap().args(grid).args(["--sweep", "g=1:4:4"]).succeeds().stdout;
    let table = text.split_once("80 points, of which 40 are shown\n").unwrap().1;
    let rows: Vec<Vec<f64>> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
        .collect();
    let latencies = [1., 3., 5., 7., 9., 11., 13., 15., 17., 20.];
    let expected = latencies.iter().flat_map(|&latency| [1., 2., 3., 4.].map(|gap| [latency, gap]));
    let found: Vec<[f64; 2]> = rows.iter().map(|row| [row[0], row[1]]).collect();
    assert_eq!(found, expected.collect::<Vec<_>>());
}

#[test]
fn ctrl_c_while_sensitivities_are_found_leaves_the_run_as_given() {
    let run = ["--pattern", "all-to-all", "--ranks", "128", "-s", "16K"];
    let run = [&run[..], &["--topology", "tree:8:4"]].concat();
    let output = interrupted_simulation(&[&run[..], &["--sensitivity", "-J"]].concat());
    let document = output.json();
    assert_eq!(document["makespan_ps"], simulated(&run)["makespan_ps"]);
    assert_eq!(document["incomplete"], "interrupted before the sensitivities were found");
    assert!(document.get("sensitivity").is_none(), "{document}");
}

#[test]
fn ctrl_c_leaves_the_distribution_of_the_draws_that_were_made() {
    let folder = Folder::new();
    let given = profile(2e-6).replace(
        "\"latency_s\":2e-6",
        "\"latency_s\":2e-6,\"latency_s_lo\":1e-6,\"latency_s_hi\":3e-6",
    );
    let given = folder.written("given.json", &given);
    let ring = ["--pattern", "dissemination", "--ranks", "2K", "-s", "8", "--profile", &given];
    let output = interrupted_simulation(&[&ring[..], &["--monte-carlo", "1000000"]].concat());
    let text = &output.stdout;
    assert!(
        text.contains("# makespan of ") && text.contains("# INCOMPLETE: interrupted"),
        "{text}"
    );
    assert!(text.contains(" of 1000000 draws"), "{text}");
}
