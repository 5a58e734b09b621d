//! Bad luck and bad company: datagrams that get lost, peers that stall, lie
//! or vanish, disks that fill up, readers that leave.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use loggap_core::random::Random;
use loggap_core::wire::{FRAME_LEN, Message, Versions};
use loggap_tests::command::{Run, binary, finish, loggap, loggap_process, machine, send, start};
use loggap_tests::folder::Folder;
use loggap_tests::lossy::{Loss, Lossy};
use loggap_tests::server::{Server, frame, hello};
use nix::sys::signal::Signal;
use serde_json::Value;

/// A short measurement of two sizes.
const SHORT: [&str; 5] = ["measure", "-s", "1,64", "--max-time", "1"];

fn udp_server() -> Server {
    Server::start(&["--transport", "udp", "--block", "--bind", "127.0.0.1", "-p", "0"])
}

#[test]
fn datagrams_lost_for_good_are_counted_and_cost_only_their_round() {
    let _machine = machine();
    let server = udp_server();
    let lossy = Lossy::to(server.endpoint.parse().unwrap(), Loss::Every(41));
    let document = loggap()
        .args(["measure", "--transport", "udp", &lossy.address().to_string()])
        // Sleeping ends leave processors to those who carry the datagrams.
        .args(["-s", "1,64,1K", "--max-time", "2", "--block", "-J"])
        .succeeds()
        .json();
    let (sent, lost) = (document["messages_sent"].as_u64(), document["messages_lost"].as_u64());
    // One in 41 at least; what else was under way may be lost with it.
    assert!(lost > Some(0) && lost < sent.map(|sent| sent / 4), "{lost:?} of {sent:?}");
    assert!(document["ranges"][0]["gap_s"].is_f64(), "{document}");
    assert!(document["wall_s"].as_f64() < Some(10.0), "{document}");
}

#[test]
fn a_network_that_is_cut_ends_the_run_in_time() {
    let server = udp_server();
    let folder = Folder::new();
    let lossy = Lossy::to(server.endpoint.parse().unwrap(), Loss::AllAfter(2_000));
    let started = Instant::now();
    let output = loggap()
        .args(["measure", "--transport", "udp", &lossy.address().to_string(), "--max-time", "9"])
        .args(["-J", "--samples"])
        .arg(folder.path("s.csv"))
        .arg("-o")
        .arg(folder.path("p.json"))
        .ends(1);
    let talk = &output.stderr;
    assert!(talk.contains("silent"), "{talk}");
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    let document = output.json();
    assert!(document["incomplete"].as_str().unwrap().contains("silent"), "{document}");
    let written = fs::read(folder.path("p.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), document);
    let samples = folder.read("s.csv");
    assert!(samples.lines().count() > 100, "{samples}");
}

#[test]
fn a_client_that_stalls_holds_the_others_up_for_a_bounded_time() {
    let server = Server::tcp(&[]);
    let stalled = server.connect_and_say_hello();
    let talk = server.measure().succeeds().stderr;
    assert!(talk.contains("position 1"), "{talk}");
    let line = server.next_line();
    assert!(line.starts_with("failed ") && line.contains("silent for 10"), "{line}");
    drop(stalled);
}

#[test]
fn a_client_that_is_stopped_is_let_go_after_ten_seconds() {
    let servers = [Server::tcp(&[]), udp_server()];
    let clients = servers.each_ref().map(|server| {
        let endless = ["--max-time", "60", "--rel-err", "0.0001%", "--block"];
        let mut client = loggap_process();
        client.args(["measure", "--transport", &server.transport, &server.endpoint]).args(endless);
        start(&mut client)
    });
    sleep(Duration::from_secs(1));
    clients.iter().for_each(|client| send(Signal::SIGSTOP, client.id()));
    let stopped = Instant::now();
    for server in &servers {
        let line = server.next_line();
        let took = stopped.elapsed().as_secs_f64();
        assert!(line.starts_with("failed ") && line.contains("silent for 10"), "{line}");
        assert!((9.0..13.0).contains(&took), "{}: {took} s", server.transport);
    }
    for mut client in clients {
        client.kill().unwrap();
        let _status = client.wait().unwrap();
    }
}

/// A seeded sequence of bytes that look like a session, and of bytes that do
/// not.
fn nonsense(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut next = || random.draw();
    let mut bytes = Vec::new();
    for _ in 0..1 + next() % 6 {
        match next() % 4 {
            0 => bytes.extend(hello(Versions::OURS, 0)),
            1 => bytes.extend(frame(&Message::Sync { token: next() as u32 })),
            2 => {
                // A frame with a few wrong bytes, lengths and counts included.
                let mut wrong = frame(&Message::Ready { sequence: next() as u32 });
                for _ in 0..3 {
                    wrong[next() as usize % FRAME_LEN] = next() as u8;
                }
                bytes.extend(wrong);
            }
            _ => bytes.extend((0..next() % 2_000).map(|_| next() as u8)),
        }
    }
    bytes
}

/// The most memory that a process has had, in bytes.
fn peak_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1_024
}

#[test]
fn no_bytes_of_any_client_bring_the_responder_down() {
    let folder = Folder::new();
    let path = folder.path("socket");
    let socket = &path;
    let servers =
        [Server::tcp(&[]), udp_server(), Server::start(&["--transport", "unix", "--bind", socket])];
    for server in &servers {
        for seed in 1..60 {
            let bytes = nonsense(seed);
            // It may be refused, and closed, before everything is written.
            let _refused = match server.transport.as_str() {
                "tcp" => server.connect().write_all(&bytes),
                "unix" => UnixStream::connect(&path).and_then(|mut to| to.write_all(&bytes)),
                _ => UdpSocket::bind("127.0.0.1:0").and_then(|from| {
                    bytes
                        .chunks(FRAME_LEN)
                        .try_for_each(|piece| from.send_to(piece, &server.endpoint).map(|_| ()))
                }),
            };
        }
        let least = 2 * (8 << 20); // its buffers, by --max-message
        let peak = peak_memory(server.id());
        assert!(peak < least + (32 << 20), "{} took {peak} B", server.transport);
    }
    let _machine = machine();
    for server in &servers {
        server.measure().assert().success();
    }
}

#[test]
fn a_limit_on_file_sizes_leaves_no_half_profile() {
    let _machine = machine();
    let folder = Folder::new();
    let profile = folder.path("p.json");
    let output = Command::new("sh")
        .args(["-c", r#"ulimit -f 1 && exec "$0" "$@""#])
        .arg(binary())
        .args(SHORT)
        .args(["-o", &profile])
        .ends(1);
    let talk = &output.stderr;
    assert!(talk.contains("p.json") && talk.contains("ulimit -f"), "{talk}");
    assert!(output.stdout.contains("#first[B]"));
    assert_eq!(folder.count(), 0);
}

#[test]
fn a_reader_that_leaves_is_no_failure_and_costs_no_file() {
    let _machine = machine();
    let folder = Folder::new();
    let profile = folder.path("p.json");
    let mut child = start(loggap_process().args(SHORT).args(["-o", &profile]));
    drop(child.stdout.take());
    let output = finish(child);
    let talk = &output.stderr;
    assert!(output.code == Some(0) && !talk.contains("error"), "{talk}");
    let document: Value = serde_json::from_slice(&fs::read(&profile).unwrap()).unwrap();
    assert_eq!(document["transport"], "tcp");
}

#[test]
fn a_server_goes_on_when_nobody_reads_what_it_says() {
    let _machine = machine();
    let mut server = loggap_process()
        .args(["serve", "--bind", "127.0.0.1", "-p", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    drop(output);
    let endpoint = line.split_whitespace().last().unwrap();
    for _ in 0..2 {
        loggap().args(SHORT).arg(endpoint).assert().success();
    }
    assert!(server.try_wait().unwrap().is_none(), "it still serves");
    send(Signal::SIGINT, server.id());
    assert_eq!(finish(server).code, Some(130));
}
