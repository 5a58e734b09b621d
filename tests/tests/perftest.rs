//! `loggap lat` and `loggap bw`: the columns and flags of perftest, on TCP and
//! shared memory.

use std::io::{BufRead, BufReader};
use std::thread;
use std::time::Duration;

use loggap_tests::command::{
    Run, finish, loggap, loggap_after, loggap_process, machine, send, start,
};
use loggap_tests::server::Server;
use nix::sys::signal::Signal;
use serde_json::Value;

fn stdout(arguments: &[&str]) -> String {
    loggap().args(arguments).succeeds().stdout
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
        let text = stdout(&["lat", "--transport", transport, "-s", "2,4K", "-n", "2000", "-F"]);
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
            assert!((bytes - size).abs() < 0.1 && (values - 2_000.0).abs() < 0.1, "{row:?}");
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
    assert_eq!((&halves["complete"], &halves["error"]), (&true.into(), &Value::Null));
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
fn a_round_trip_is_twice_a_half() {
    let _machine = machine();
    let median = |further: &[&str]| {
        let arguments = [&["lat", "--transport", "shm", "-n", "1000", "-J"], further].concat();
        document(&arguments)["results"][0]["median_s"].as_f64().unwrap()
    };
    // In turn, and the least of each: processors that share a core for a while make one five times as long.
    let pairs = [0; 6].map(|_| [median(&["--rtt"]), median(&[])]);
    let least = |at: usize| pairs.iter().map(|pair| pair[at]).fold(f64::INFINITY, f64::min);
    let ratio = least(0) / least(1);
    assert!((1.5..2.7).contains(&ratio), "{ratio}");
}

#[test]
fn rounds_of_the_warm_up_are_run_and_not_counted() {
    let _machine = machine();
    let server = Server::tcp(&[]);
    let (_, port) = server.endpoint.rsplit_once(':').unwrap();
    let rounds = |warmup| {
        let common = ["lat", "127.0.0.1", "-p", port, "-n", "10", "--block", "-J"];
        let counted = document(&[&common[..], &["--warmup", warmup]].concat());
        assert_eq!(counted["results"][0]["iterations"], 10);
        served(&server.next_line())[0]
    };
    let (cold, warm) = (rounds("0"), rounds("100"));
    // One more for each time that some were announced.
    assert!((11..=20).contains(&cold) && (111..=120).contains(&warm), "{cold} {warm}");
}

#[test]
fn all_messages_together_take_no_longer_than_the_command() {
    let _machine = machine();
    for further in [&[][..], &["-q", "2"], &["-b"]] {
        let arguments = [&["bw", "-s", "4K", "-n", "20000", "--block", "-J"], further].concat();
        let began = std::time::Instant::now();
        let result = document(&arguments)["results"][0].clone();
        let took = began.elapsed().as_secs_f64();
        let gaps = result["messages"].as_f64().unwrap() * result["gap_s"].as_f64().unwrap();
        assert!(gaps > 0.0 && gaps < took, "{further:?}: {gaps} of {took} s, {result}");
    }
}

#[test]
fn a_request_to_stop_is_heard_between_slow_rounds() {
    let _machine = machine();
    for further in [&[][..], &["-J"]] {
        // 500 of them take half a minute.
        let child = start(
            loggap_process()
                .args(["lat", "-s", "64M", "-n", "5000", "--warmup", "0", "--block"])
                .args(further),
        );
        thread::sleep(Duration::from_millis(2_500));
        let asked = std::time::Instant::now();
        send(Signal::SIGINT, child.id());
        let output = finish(child);
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        assert_eq!(output.code, Some(130));
        let text = &output.stdout;
        if further.is_empty() {
            assert!(text.ends_with("# stopped\n"), "{text}");
            continue;
        }
        let document: Value = serde_json::from_str(text).unwrap();
        assert_eq!((&document["complete"], &document["error"]), (&false.into(), &Value::Null));
        let counted = document["results"][0]["iterations"].as_u64().unwrap();
        assert!((1..5_000).contains(&counted), "{document}");
    }
}

#[test]
fn memory_that_cannot_be_had_is_said() {
    let talk = loggap_after("ulimit -v 1000000").args(["lat", "-s", "1G"]).ends(5).stderr;
    assert!(talk.contains("no memory for messages of 1G") && talk.contains("takes 2G"), "{talk}");
}

#[test]
fn many_more_ends_that_poll_than_processors_are_refused_at_once() {
    if thread::available_parallelism().unwrap().get() * 4 >= 128 {
        return;
    }
    let talk = loggap().args(["bw", "-q", "64"]).ends(2).stderr;
    assert!(talk.contains("128 ends that poll") && talk.contains("--block"), "{talk}");
}

#[test]
fn sizes_that_nobody_typed_end_where_datagrams_and_both_directions_do() {
    let _machine = machine();
    let said = |arguments: &[&str], code| {
        let output = loggap().args(arguments).ends(code);
        (output.stdout, output.stderr)
    };
    let (data, talk) = said(&["bw", "--transport", "udp", "-n", "64", "--block", "-J"], 0);
    assert!(talk.contains("the size is 65507 B: no datagram over this link is longer"), "{talk}");
    assert!(data.contains("\"size_bytes\": 65507"), "{data}");
    let (_, talk) = said(&["lat", "--transport", "udp", "-s", "1M"], 2);
    assert!(talk.contains("-s 1:65507") && !talk.contains("--max-message"), "{talk}");
    let (data, talk) = said(&["bw", "-b", "-a", "-n", "64", "--block"], 0);
    assert!(talk.contains("-a ends at 65536 B"), "{talk}");
    assert_eq!(data.lines().filter(|line| !line.starts_with('#')).count(), 16, "{data}");
}

#[test]
fn bandwidth_message_rate_and_peak_belong_together() {
    let _machine = machine();
    for transport in ["tcp", "shm"] {
        let text = stdout(&["bw", "--transport", transport, "-s", "1K", "-n", "2000"]);
        let said = "# values: one way, gap between messages of a burst; average: the median burst, peak: the fastest 5 in a row\n";
        assert!(text.contains(said), "{text}");
        let [bytes, messages, peak, average, rate] = rows(&text)[0][..] else { panic!("{text}") };
        assert!((bytes - 1_024.0).abs() < 0.1 && (messages - 2_000.0).abs() < 0.1, "{text}");
        assert!(peak >= average && average > 0.0, "{text}");
        // MB of 2^20 bytes, millions of messages.
        let from_rate = rate * 1e6 * 1_024.0 / 1_048_576.0;
        assert!((from_rate - average).abs() < average * 0.01 + 0.002, "{text}");
    }
}

/// Rounds, and messages received and replied, of a server's line.
fn served(line: &str) -> [u64; 3] {
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |name| words.iter().skip_while(|word| **word != name).nth(1);
    ["rounds", "received", "replied"].map(|name| after(name).unwrap().parse().unwrap())
}

#[test]
fn queue_pairs_are_measured_together_at_a_responder_for_as_many() {
    let _machine = machine();
    let server = Server::tcp(&["--clients", "3", "--block"]);
    let (_, port) = server.endpoint.rsplit_once(':').unwrap();
    let common = ["127.0.0.1", "-p", port, "-s", "1K", "-n", "5000", "--block", "-J"];
    let three = document(&[&["bw", "-q", "3"][..], &common].concat());
    assert_eq!(three["connections"], 3);
    assert_eq!(
        three["quantity"],
        "one way, gap between messages of a burst, 3 connections together"
    );
    let result = &three["results"][0];
    assert_eq!(result["messages"], 15_000);
    let (rate, gap) = (&result["messages_per_s"], &result["gap_s"]);
    assert!((rate.as_f64().unwrap() * gap.as_f64().unwrap() - 1.0).abs() < 1e-9, "{result}");
    let mut lines = [server.next_line(), server.next_line(), server.next_line()];
    lines.sort();
    // Warm-up, and 20 bursts of 250 messages, each answered once; of the first,
    // single messages, 20 of them in a second, and one for each time that some were announced.
    let served: Vec<[u64; 3]> = lines.iter().map(|line| served(line)).collect();
    let first = served.iter().position(|[rounds, ..]| *rounds > 40).unwrap();
    for (index, [rounds, received, replied]) in served.iter().copied().enumerate() {
        assert_eq!((received, replied), (rounds + 4_980, rounds), "{lines:?}");
        let expected = if index == first { 41..=80 } else { 40..=40 };
        assert!(expected.contains(&rounds), "{lines:?}");
    }
    // One more than it serves.
    let talk = loggap().args(["bw", "-q", "4"]).args(common).ends(1).stderr;
    assert!(talk.contains("`loggap serve --clients N`"), "{talk}");
}

#[test]
fn both_directions_count_each_message_and_its_answer() {
    let _machine = machine();
    let text = stdout(&["bw", "-b", "-s", "4K", "-n", "1000", "--transport", "shm"]);
    assert!(text.contains("# values: both ways, gap between messages of a burst; "), "{text}");
    assert!((rows(&text)[0][1] - 2_000.0).abs() < 0.1, "{text}");
    let both = document(&["bw", "-b", "-q", "2", "-s", "64K", "-n", "100", "--block", "-J"]);
    assert_eq!(
        both["quantity"],
        "both ways, gap between messages of a burst, 2 connections together"
    );
    // Two connections, two directions, three bursts of 34.
    assert_eq!(both["results"][0]["messages"], 408);
    assert_eq!(both["results"][0]["bursts"], 3);
    let talk = loggap().args(["bw", "-b", "-s", "1M"]).ends(2).stderr;
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
fn few_messages_in_a_burst_are_pointed_out() {
    let _machine = machine();
    let text = stdout(&["bw", "-s", "1K", "-n", "10"]);
    let row = text.lines().find(|line| !line.starts_with('#')).unwrap();
    assert_eq!(row.split_whitespace().nth(1), Some("10"), "{text}");
    assert!(text.contains("\n# warning: bursts of 10 messages are too short"), "{text}");
    let document = document(&["bw", "-s", "1K", "-n", "2000", "-J"]);
    let result = &document["results"][0];
    assert_eq!((&result["bursts"], &result["burst_messages"]), (&20.into(), &100.into()));
    assert!(result["spread"].as_f64().unwrap() >= 0.0, "{result}");
}

#[test]
fn all_sizes_fit_a_responder_as_it_is_started_by_default() {
    let _machine = machine();
    let server = Server::tcp(&[]);
    let (_, port) = server.endpoint.rsplit_once(':').unwrap();
    for verb in ["lat", "bw"] {
        let text =
            stdout(&[verb, "127.0.0.1", "-p", port, "-a", "-n", "5", "--warmup", "0", "--block"]);
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let sizes: Vec<&str> = lines.filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!((sizes.len(), sizes.first(), sizes.last()), (23, Some(&"2"), Some(&"8388608")));
    }
}

/// Waits for a row of the table, and says all lines up to it.
fn up_to_a_row(lines: &mut impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    for line in lines {
        let is_row = !line.starts_with('#');
        seen.push(line);
        if is_row {
            return seen;
        }
    }
    panic!("no row after {seen:?}")
}

#[test]
fn rows_are_there_as_soon_as_they_are_known_and_stay_when_the_peer_dies() {
    let _machine = machine();
    let server = Server::tcp(&[]);
    let (_, port) = server.endpoint.rsplit_once(':').unwrap();
    let mut child = start(loggap_process().args([
        "lat",
        "127.0.0.1",
        "-p",
        port,
        "-s",
        "2,4,8",
        "-D",
        "1",
        "--block",
    ]));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first = up_to_a_row(&mut lines);
    assert!(first.last().unwrap().starts_with("2 "), "{first:?}");
    // The test goes on for two more sizes.
    assert!(child.try_wait().unwrap().is_none());
    send(Signal::SIGKILL, server.id());
    assert_eq!(lines.filter(|line| !line.starts_with('#')).count(), 0);
    assert_eq!(finish(child).code, Some(1));
}

#[test]
fn a_document_of_a_test_that_failed_has_what_was_measured_and_why_it_ended() {
    let _machine = machine();
    for verb in ["lat", "bw"] {
        let server = Server::tcp(&[]);
        let (_, port) = server.endpoint.rsplit_once(':').unwrap();
        let child = start(loggap_process().args([
            verb,
            "127.0.0.1",
            "-p",
            port,
            "-s",
            "2,4,8,16",
            "-D",
            "1",
            "--block",
            "-J",
        ]));
        thread::sleep(Duration::from_millis(2_700));
        send(Signal::SIGKILL, server.id());
        let output = finish(child).exited(1);
        let talk = &output.stderr;
        let document = output.json();
        assert_eq!(document["complete"], false, "{document}");
        let error = document["error"].as_str().unwrap();
        assert!(talk.contains(&format!("error: {error}")), "{talk} {error}");
        let results = document["results"].as_array().unwrap();
        assert!((1..4).contains(&results.len()), "{document}");
        assert_eq!(results[0]["size_bytes"], 2);
    }
}

#[test]
fn options_of_verbs_are_refused_where_they_have_no_effect() {
    for (arguments, said) in [
        (&["lat", "--depth", "128"][..], "--depth is for RDMA verbs, and --transport is tcp"),
        (&["serve", "--transport", "verbs", "--mtu", "1024"], "--mtu of a responder has no effect"),
        (&["serve", "--mtu", "1024"], "--mtu of a responder has no effect"),
        (&["serve", "--transport", "verbs", "-Q", "1"], "--signal-every of a responder"),
    ] {
        let talk = loggap().args(arguments).ends(2).stderr;
        assert!(talk.contains(said), "{arguments:?}: {talk}");
    }
}

#[test]
fn help_has_the_options_of_verbs_apart() {
    for (verb, own) in [
        ("lat", ["--cpu", "--iters", "--rtt"]),
        ("bw", ["--cpu", "--iters", "--qp"]),
        ("measure", ["--cpu", "--peer", "--max-time"]),
        ("serve", ["--cpu", "--clients", "--max-message"]),
    ] {
        let text = stdout(&[verb, "--help"]);
        let (before, after) = text.split_once("RDMA verbs (--transport verbs):").unwrap();
        for option in own {
            let line = format!("{option} <");
            let line = if option == "--rtt" { option } else { &line };
            assert!(before.contains(line) && !after.contains(line), "{verb} {option}: {text}");
        }
        assert!(after.contains("--gid-index") && after.contains("[alias: -x]"), "{text}");
        if ["lat", "bw"].contains(&verb) {
            let words: Vec<&str> = before.split_whitespace().collect();
            assert!(words.join(" ").contains("Without HOST both ends run on this machine"));
        }
    }
}
