//! `loggap lat` and `loggap bw`: the columns and flags of perftest, on TCP and
//! shared memory.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a wrong assumption should end the test"
)]

use loggap_tests::command::{loggap, machine};
use loggap_tests::server::Server;
use serde_json::Value;

fn stdout(arguments: &[&str]) -> String {
    let output = loggap().args(arguments).assert().success().get_output().clone();
    String::from_utf8(output.stdout).unwrap()
}

fn document(arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(arguments)).unwrap()
}

/// Numbers of the lines that are no remarks.
fn rows(text: &str) -> Vec<Vec<f64>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect()).collect()
}

#[test]
fn latency_has_perftests_columns_in_order() {
    let _machine = machine();
    for transport in ["tcp", "shm"] {
        let text = stdout(&["lat", "--transport", transport, "-s", "2,4K", "-n", "300", "-F"]);
        assert!(text.contains("# values: half of a round trip"), "{text}");
        assert!(text.contains(
            "t_min[usec]  t_max[usec]  t_typical[usec]  t_avg[usec]  t_stdev[usec]  99%[usec]  99.9%[usec]"
        ), "{text}");
        let rows = rows(&text);
        assert_eq!(rows.len(), 2, "{text}");
        for (row, size) in rows.iter().zip([2.0, 4_096.0]) {
            let [bytes, values, min, max, typical, mean, _, p99, p999] = row[..] else {
                panic!("{row:?}")
            };
            assert!((bytes - size).abs() < 0.1 && (values - 300.0).abs() < 0.1, "{row:?}");
            assert!(min > 0.0 && min <= typical && typical <= p99 && p99 <= p999, "{row:?}");
            assert!(p999 <= max && min <= mean && mean <= max, "{row:?}");
        }
    }
}

#[test]
fn latency_of_a_time_and_of_round_trips_is_said_in_json() {
    let _machine = machine();
    let halves = document(&["lat", "-D", "0.3", "-J"]);
    assert_eq!(halves["quantity"], "half of a round trip");
    let result = &halves["results"][0];
    assert!(result["iterations"].as_u64().unwrap() >= 64, "{result}");
    assert!(result["median_s"].as_f64().unwrap() > 0.0, "{result}");
    let whole = document(&["lat", "--rtt", "-n", "100", "-J"]);
    assert_eq!(whole["quantity"], "round trip");
    assert_eq!(
        (&whole["results"][0]["iterations"], &whole["connections"]),
        (&100.into(), &1.into())
    );
}

#[test]
fn bandwidth_message_rate_and_peak_belong_together() {
    let _machine = machine();
    for transport in ["tcp", "shm"] {
        let text = stdout(&["bw", "--transport", transport, "-s", "1K", "-n", "2000"]);
        assert!(text.contains("# values: one way, gap between messages of a burst"), "{text}");
        let [bytes, messages, peak, average, rate] = rows(&text)[0][..] else { panic!("{text}") };
        assert!((bytes - 1_024.0).abs() < 0.1 && (messages - 2_000.0).abs() < 0.1, "{text}");
        assert!(peak >= average && average > 0.0, "{text}");
        // MB of 2^20 bytes, millions of messages.
        let from_rate = rate * 1e6 * 1_024.0 / 1_048_576.0;
        assert!((from_rate - average).abs() < average * 0.01 + 0.002, "{text}");
    }
}

#[test]
fn queue_pairs_are_measured_together_at_a_responder_for_as_many() {
    let _machine = machine();
    let server = Server::tcp(&["--clients", "3"]);
    let (_, port) = server.endpoint.rsplit_once(':').unwrap();
    let common = ["127.0.0.1", "-p", port, "-s", "1K", "-n", "1000", "--block", "-J"];
    let three = document(&[&["bw", "-q", "3"][..], &common].concat());
    assert_eq!(three["connections"], 3);
    assert_eq!(three["quantity"], "all messages of 3 connections by the time they take");
    let result = &three["results"][0];
    assert_eq!(result["messages"], 3_000);
    let (rate, gap) = (&result["messages_per_s"], &result["gap_s"]);
    assert!((rate.as_f64().unwrap() * gap.as_f64().unwrap() - 1.0).abs() < 1e-9, "{result}");
    let mut lines = [server.next_line(), server.next_line(), server.next_line()];
    lines.sort();
    for line in &lines {
        // Warm-up, and five bursts of 200 messages, each answered once.
        assert!(line.contains(" rounds 25 received 1020 replied 25"), "{lines:?}");
    }
    // One more than it serves.
    let output =
        loggap().args(["bw", "-q", "4"]).args(common).assert().code(1).get_output().clone();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(talk.contains("`loggap serve --clients N`"), "{talk}");
}

#[test]
fn both_directions_count_each_message_and_its_answer() {
    let _machine = machine();
    let text = stdout(&["bw", "-b", "-s", "4K", "-n", "1000", "--transport", "shm"]);
    assert!(text.contains("by the time they take, both directions"), "{text}");
    assert!((rows(&text)[0][1] - 2_000.0).abs() < 0.1, "{text}");
    let both = document(&["bw", "-b", "-q", "2", "-s", "64K", "-n", "100", "--block", "-J"]);
    assert_eq!(
        both["quantity"],
        "all messages of 2 connections by the time they take, both directions"
    );
    // Two connections, two directions, five bursts of 20.
    assert_eq!(both["results"][0]["messages"], 400);
    let refused = loggap().args(["bw", "-b", "-s", "1M"]).assert().code(2).get_output().clone();
    let talk = String::from_utf8(refused.stderr).unwrap();
    assert!(
        talk.contains("-b takes messages of up to 65536 bytes over tcp, not 1048576"),
        "{talk}"
    );
}

#[test]
fn bandwidth_of_a_time_ends_when_it_is_over() {
    let _machine = machine();
    for further in [&[][..], &["-q", "2"], &["-b"]] {
        let began = std::time::Instant::now();
        let arguments = [&["bw", "-s", "1K", "-D", "0.5", "--block", "-J"], further].concat();
        let result = document(&arguments)["results"][0].clone();
        assert!(result["messages"].as_u64().unwrap() >= 1_000, "{further:?}: {result}");
        let took = began.elapsed().as_secs_f64();
        assert!((0.5..30.0).contains(&took), "{further:?}: {took} s");
    }
}

#[test]
fn flags_of_perftest_without_a_meaning_are_refused_by_name() {
    for (arguments, said) in [
        (&["lat", "-H"][..], "-H (--report-histogram) of perftest is not taken: `loggap measure"),
        (&["bw", "node7", "-c", "UC"], "-c (--connection) of perftest is not taken: --op says"),
        (&["lat", "-q", "2"], "`loggap bw -q N` takes several queue pairs"),
        (&["bw", "--out_json"], "-J prints one JSON document"),
    ] {
        let output = loggap().args(arguments).assert().code(2).get_output().clone();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(talk.contains(said), "{arguments:?}: {talk}");
    }
}

#[test]
fn a_build_without_verbs_says_what_to_build() {
    let refused =
        loggap().args(["lat", "--transport", "verbs"]).assert().code(5).get_output().clone();
    let talk = String::from_utf8(refused.stderr).unwrap();
    let expected = "built without RDMA verbs; build it with `cargo build --release -p loggap --features verbs`";
    assert!(talk.contains(expected), "{talk}");
}
