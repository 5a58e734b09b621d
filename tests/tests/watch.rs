//! Watching links that change.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use loggap::machine::clock::HostClock;
use loggap_core::measure::serve;
use loggap_core::units::{PerByte, Picos};
use loggap_core::wire::Bounds;
use loggap_tests::cable::{Cable, End, INTERFACE, Kind, Offload, Shape, Shaper};
use loggap_tests::cleanup::run;
use loggap_tests::command::{
    Ended, Run, finish, loggap, loggap_process, machine, send, skipped, start,
};
use loggap_tests::folder::Folder;
use loggap_tests::relay::{Jitter, Mishaps, Range, Relay, Wire};
use loggap_tests::server::Server;
use nix::sys::signal::Signal;
use serde_json::Value;

/// A wire of this latency and gap in microseconds, and of 10 MB/s.
fn wire(latency_us: u64, gap_us: u64) -> Wire {
    let range = Range {
        first: 1,
        gap: Picos::from_micros(gap_us).unwrap(),
        gap_per_byte: PerByte::from_picos(100_000).unwrap(),
    };
    Wire {
        latency: Picos::from_micros(latency_us).unwrap(),
        ranges: vec![range],
        jitter: Jitter::None,
        mishaps: Mishaps::default(),
    }
}

/// Connections before the first interval: one that measures the rate.
const AHEAD: usize = 1;

/// What `loggap watch` with these arguments says of a wire that is another one from `interval` on.
fn watched(before: Wire, interval: usize, after: Wire, arguments: &[&str]) -> Ended {
    // Built by the first call, which takes longer than the relay lasts.
    let mut command = loggap();
    let over = Arc::new(AtomicBool::new(false));
    let mut relay = Relay::new(before).until(Duration::from_secs(60), Arc::clone(&over));
    let address = relay.address().to_string();
    let responder = thread::spawn(move || {
        Relay::sleep_exactly();
        let mut buffer = vec![0; 65_536];
        let mut after = Some(after);
        for session in 0.. {
            if session >= AHEAD + interval
                && let Some(wire) = after.take()
            {
                relay.set_wire(wire);
            }
            if serve(&HostClock::calibrated(), &mut relay, &mut buffer, Bounds::default()).is_err()
            {
                return;
            }
        }
    });
    let fixed = ["watch", "--transport", "udp", &address, "--interval", "0.15", "--budget", "5%"];
    let ended = command.args(fixed).args(arguments).ended();
    over.store(true, Ordering::Relaxed);
    responder.join().unwrap();
    ended
}

/// The document of each interval.
fn intervals(ended: &Ended) -> Vec<Value> {
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Intervals with an event, and the event.
fn events<'v>(intervals: &'v [Value]) -> Vec<(usize, &'v Value)> {
    let of = |(at, interval): (usize, &'v Value)| {
        let events = interval["events"].as_array().unwrap();
        events.iter().map(move |event| (at, event)).collect::<Vec<_>>()
    };
    intervals.iter().enumerate().flat_map(of).collect()
}

#[test]
fn a_doubled_gap_is_told_by_the_second_interval_and_nothing_before() {
    const CUT: usize = 28;
    let _machine = machine();
    let ended = watched(wire(1_000, 200), CUT, wire(1_000, 450), &["--for", "6", "-J"]).exited(0);
    let intervals = intervals(&ended);
    let (first, last) = (&intervals[0], intervals.last().unwrap());
    assert!(intervals.len() > CUT + 2, "{}", intervals.len());
    assert_eq!((&first["state"], &first["half_rtt_size_bytes"]), (&"learning".into(), &8.into()));
    assert_eq!(intervals[CUT - 1]["state"], "watching");
    let value = |interval: &Value, key: &str| interval[key].as_f64().unwrap();
    let gap = |gap_us: f64| gap_us * 1e-6 + value(first, "gap_size_bytes") * 1e-7;
    assert!((value(first, "gap_s") / gap(200.0) - 1.0).abs() < 0.1, "{first}");
    assert!((value(last, "gap_s") / gap(450.0) - 1.0).abs() < 0.1, "{last}");
    let events = events(&intervals);
    let [(at, step), ..] = events[..] else { panic!("{}", ended.stderr) };
    assert!((CUT..=CUT + 1).contains(&at) && events.len() == 1, "{events:?}");
    assert_eq!((&step["kind"], &step["parameter"]), (&"step".into(), &"gap".into()));
    assert!((value(step, "after_s") / gap(450.0) - 1.0).abs() < 0.2, "{step}");
    assert!(ended.stderr.contains(": a halved bandwidth is told within "), "{}", ended.stderr);
    assert!(ended.stderr.contains("1 event, the responder answers"), "{}", ended.stderr);
}

#[test]
fn an_assertion_that_fails_for_long_ends_with_3() {
    let _machine = machine();
    let asserted = ["--assert", "half_rtt<1.6ms@64", "--hold", "400ms", "--for", "10"];
    let ended = watched(wire(1_000, 200), 4, wire(2_000, 200), &asserted).exited(3);
    assert!(ended.stdout.starts_with("# half_rtt of 64 B, gap of "), "{}", ended.stdout);
    let lines = ended.stdout.lines().filter(|line| line.contains("learning")).count();
    assert!((5..=20).contains(&lines), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("# fails: half_rtt<1.6ms@64\n"), "{}", ended.stdout);
    assert!(ended.stderr.contains("fails for 400ms: half_rtt<1.6ms@64"), "{}", ended.stderr);
}

#[test]
fn a_restarted_responder_is_lost_and_back() {
    let _machine = machine();
    let folder = Folder::new();
    let metrics = folder.path("loggap.prom");
    let server = Server::tcp(&[]);
    let endpoint = server.endpoint.clone();
    let port = endpoint.rsplit(':').next().unwrap();
    let mut watch = loggap_process();
    watch.args(["watch", &endpoint, "--interval", "0.1", "-J", "--openmetrics", &metrics]);
    let watch = start(&mut watch);
    thread::sleep(Duration::from_secs(1));
    drop(server);
    thread::sleep(Duration::from_millis(600));
    let _server = Server::start(&["--bind", "127.0.0.1", "-p", port]);
    thread::sleep(Duration::from_millis(1_500));
    send(Signal::SIGINT, watch.id());
    let ended = finish(watch).exited(130);
    let intervals = intervals(&ended);
    let all = events(&intervals).into_iter();
    let of_peer = all.filter_map(|(at, event)| Some((at, event["kind"].as_str()?)));
    let of_peer: Vec<_> = of_peer.filter(|(_, kind)| ["lost", "back"].contains(kind)).collect();
    let [(lost, "lost"), (back, "back")] = of_peer[..] else { panic!("{of_peer:?} {ended:?}") };
    assert_eq!(
        (&intervals[lost]["state"], &intervals[lost]["gap_s"]),
        (&"lost".into(), &Value::Null)
    );
    assert!(lost < back && intervals[back]["gap_s"].is_f64(), "{}", intervals[back]);
    let written = fs::read_to_string(&metrics).unwrap();
    for part in ["loggap_up{transport=", "loggap_gap_seconds{", ",kind=\"lost\"} 1\n"] {
        assert!(written.contains(part), "{written}");
    }
    assert_eq!(fs::read_dir(std::path::Path::new(&metrics).parent().unwrap()).unwrap().count(), 1);
}

/// At intervals of 0.2 s, with the messages that the default budget allows in 5 s. A link that changes
/// before it is cut, as where a hypervisor moves processors, is watched again.
#[test]
fn a_gigabit_cut_to_a_half_is_told_by_the_second_interval() {
    let _machine = machine();
    for _ in 0..3 {
        let Some((cut, intervals)) = cut_to_a_half() else { return };
        let time = |interval: &Value| interval["time_unix_s"].as_f64().unwrap();
        let mut told =
            events(&intervals).into_iter().filter(|(_, event)| event["parameter"] == "gap");
        let (at, step) = told.next().expect("a step");
        if time(&intervals[at]) <= cut {
            continue;
        }
        let after = intervals[..=at].iter().filter(|interval| time(interval) > cut).count();
        assert!((1..=2).contains(&after), "after {after}: {step}");
        let ratio = step["after_s"].as_f64().unwrap() / step["before_s"].as_f64().unwrap();
        assert!((ratio / 2.0 - 1.0).abs() < 0.2, "{step}");
        return;
    }
    skipped("a cut of the bandwidth", "the link changed by itself, three times");
}

/// Time of the cut in seconds since 1970, and the intervals before and after; `None` if it is skipped.
fn cut_to_a_half() -> Option<(f64, Vec<Value>)> {
    let shape =
        Shape { shaper: Shaper::Tbf, rate: 1_000_000_000, burst: 32_000, ends: &[End::Client] };
    let kind = Kind { mtu: 1_500, offload: Offload::On, shape: Some(shape) };
    let cable = match Cable::plug(&kind) {
        Ok(cable) => cable,
        Err(reason) => {
            skipped("a cut of the bandwidth", &reason);
            return None;
        }
    };
    let (_server, endpoint) = cable.serve("tcp", &[]).unwrap();
    let mut watch = cable.loggap(End::Client);
    watch.args(["watch", &endpoint, "--interval", "0.2", "--budget", "2.5%", "-J"]);
    let watch = start(&mut watch);
    thread::sleep(Duration::from_millis(6_500));
    let cut = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let half =
        format!("qdisc replace dev {INTERFACE} root tbf rate 500mbit burst 32000 latency 800ms");
    let mut tc = Command::new("tc");
    run(tc.args(["-n", cable.name(End::Client)]).args(half.split(' ')), &half).unwrap();
    thread::sleep(Duration::from_millis(1_200));
    send(Signal::SIGINT, watch.id());
    Some((cut, intervals(&finish(watch).exited(130))))
}

/// Status line and body of the answer to a request for `path`.
fn get(port: u16, path: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let (status, _) = head.split_once("\r\n").unwrap();
    Some((status.to_owned(), body.to_owned()))
}

#[test]
fn metrics_are_served_while_a_client_dawdles_and_one_port_serves_one_watch() {
    let _machine = machine();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let number = port.to_string();
    let watch = ["watch", "--transport", "unix", "--interval", "0.2", "--openmetrics", &number];
    let running = start(loggap_process().args(watch).args(["--for", "30"]));
    let up = || get(port, "/metrics").filter(|(_, body)| body.contains("loggap_up{"));
    let until = Instant::now() + Duration::from_secs(20);
    while up().is_none_or(|(_, body)| !body.contains("} 1\n")) {
        assert!(Instant::now() < until, "no interval is shown");
        thread::sleep(Duration::from_millis(50));
    }
    let mut dawdling = TcpStream::connect(("127.0.0.1", port)).unwrap();
    dawdling.write_all(b"GET /met").unwrap();
    let (status, body) = get(port, "/metrics").unwrap();
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(body.contains("loggap_half_rtt_seconds{") && body.ends_with("# EOF\n"), "{body}");
    assert_eq!(get(port, "/").unwrap().0, "HTTP/1.1 404 Not Found");
    let second = loggap().args(watch).ends(1).stderr;
    assert!(second.contains(&format!("--openmetrics 127.0.0.1:{number}")), "{second}");
    send(Signal::SIGINT, running.id());
    let ended = finish(running).exited(130);
    assert!(ended.stdout.contains("learning"), "{ended:?}");
}

#[test]
fn both_ends_may_run_here() {
    let _machine = machine();
    let fixed = ["watch", "--transport", "unix", "--interval", "0.2", "--for", "1"];
    let ended = loggap().args(fixed).succeeds();
    assert!(ended.stdout.lines().count() > 2, "{}", ended.stdout);
    assert!(ended.stdout.lines().last().unwrap().ends_with("  0  learning"), "{}", ended.stdout);
}

#[test]
fn what_cannot_be_watched_is_refused() {
    for (arguments, code, words) in [
        (&["node7", "--budget", "0"][..], 2, "a percentage"),
        (&["node7", "--interval", "5x"], 2, "a time"),
        (&["node7", "--assert", "half_rtt<20us"], 2, "half_rtt<20us@1K"),
        (&["node7", "--assert", "send_overhead<1us@8"], 2, "half_rtt and gap are watched"),
        (&["node7", "--assert", "gap<1us@8", "--assert", "gap<2us@9"], 2, "at one size"),
        (&["node7", "--openmetrics", "a.svg"], 2, ".prom"),
        (&["node7", "--openmetrics", "99999"], 2, "a port is 1 to 65535"),
        (&["127.0.0.1:1"], 1, "127.0.0.1:1"),
    ] {
        let ended = loggap().arg("watch").args(arguments).ended();
        assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{arguments:?}: {}", ended.stderr);
    }
}
