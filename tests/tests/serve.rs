//! `loggap serve`: clients near and far, well and ill behaved.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use loggap_core::wire::{Message, Refusal, Versions};
use loggap_tests::command::{Run, binary, loggap, machine};
use loggap_tests::server::{Server, frame, hello, read};

#[test]
fn a_client_of_every_transport_is_served() {
    let _machine = machine();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    for arguments in [
        &["--transport", "tcp", "--bind", "127.0.0.1", "-p", "0"][..],
        &["--transport", "udp", "--bind", "127.0.0.1", "-p", "0"],
        &["--transport", "unix", "--bind", &path(&socket)],
        &["--transport", "shm", "--bind", &path(&socket)],
    ] {
        let server = Server::start(&[arguments, &["--once"]].concat());
        server.measure().assert().success();
        let line = server.next_line();
        assert!(line.starts_with("served "), "{line}");
        assert_eq!(server.exit_code(), Some(0), "{arguments:?}");
        assert!(!socket.exists(), "the socket is removed");
    }
}

#[test]
fn a_client_reaches_every_address_over_both_families() {
    let _machine = machine();
    let server = Server::start(&["-p", "0"]);
    let port = server.endpoint.rsplit(':').next().unwrap().to_owned();
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        if host == "[::1]" && TcpListener::bind("[::1]:0").is_err() {
            continue; // a machine without IPv6
        }
        let arguments = ["measure", host, "-p", &port, "--max-time", "5", "--launches", "1"];
        let document = loggap().args(arguments).args(["-s", "1,64", "-J"]).succeeds().json();
        assert_eq!(document["responder"]["link"]["interface"], "lo", "{host}");
        let line = server.next_line();
        assert!(line.starts_with("served ") && !line.contains("ffff"), "{line}");
    }
}

#[test]
fn who_comes_second_waits_and_is_told_so() {
    let _machine = machine();
    let server = Server::tcp(&[]);
    let mut first = server.connect_and_say_hello();
    let leaving = thread::spawn(move || {
        thread::sleep(Duration::from_millis(600));
        first.write_all(&frame(&Message::Bye)).unwrap();
    });
    let output = server.measure().succeeds();
    leaving.join().unwrap();
    let talk = &output.stderr;
    assert!(talk.contains("waiting: position 1 in the responder's queue"), "{talk}");
    assert!(server.next_line().starts_with("served ") && server.next_line().starts_with("served "));
}

#[test]
fn whoever_does_not_speak_the_protocol_is_refused_and_the_next_is_served() {
    let _machine = machine();
    let server = Server::tcp(&[]);
    let mut stranger = server.connect();
    // More than a frame, so that the server has to close on unread bytes.
    stranger.write_all(&[b'x'; 4_096]).unwrap();
    let mut answer = Vec::new();
    let _reset_after_the_answer = stranger.read_to_end(&mut answer);
    assert!(server.next_line().starts_with("refused "));
    let quitter = server.connect_and_say_hello();
    drop(quitter);
    assert!(server.next_line().starts_with("failed "));
    server.measure().assert().success();
    assert!(server.next_line().starts_with("served "));
}

#[test]
fn once_fails_with_the_session() {
    let server = Server::tcp(&["--once"]);
    drop(server.connect_and_say_hello());
    assert_eq!(server.exit_code(), Some(1));
}

#[test]
fn another_version_is_named_on_both_sides() {
    let server = Server::tcp(&[]);
    let mut client = server.connect();
    let versions = Versions { lowest: 77, highest: 78 };
    client.write_all(&hello(versions, 0)).unwrap();
    let refusal = match read(&mut client) {
        Message::Refuse(refusal @ Refusal::Version { .. }) => refusal,
        other => panic!("{other:?}"),
    };
    let line = server.next_line();
    assert!(line.contains("protocol versions differ") && line.contains("78"), "{line}");

    // The other way round: a responder that speaks another version.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let responder = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(matches!(read(&mut stream), Message::Hello(_)));
        stream.write_all(&frame(&Message::Refuse(refusal))).unwrap();
        let _until_it_leaves = stream.read(&mut [0]);
    });
    let output = loggap().args(["measure", &address]).ends(1);
    responder.join().unwrap();
    let talk = &output.stderr;
    assert!(talk.contains("install the same loggap on both sides"), "{talk}");
}

#[test]
fn a_responder_that_never_answers_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let talk = loggap().args(["measure", &address]).ends(1).stderr;
    assert!(talk.contains("silent") && talk.contains("loggap serve"), "{talk}");
}

#[test]
fn where_nobody_answers_the_command_to_start_is_named() {
    let address = |socket: UdpSocket| socket.local_addr().unwrap().to_string();
    let closed = address(UdpSocket::bind("127.0.0.1:0").unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let refused = listener.local_addr().unwrap().to_string();
    drop(listener);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent_address = silent.local_addr().unwrap().to_string();
    let port = |address: &str| address.rsplit(':').next().unwrap().to_owned();
    let udp = |address| format!("`loggap serve --transport udp -p {}`", port(address));
    let tcp = format!("`loggap serve -p {}`", port(&refused));
    let path = "/nonexistent/socket";
    for (transport, peer, start) in [
        ("udp", closed.as_str(), udp(&closed)),
        ("udp", &silent_address, udp(&silent_address)),
        ("tcp", &refused, tcp),
        ("unix", path, format!("`loggap serve --transport unix --bind {path}`")),
        ("shm", path, format!("`loggap serve --transport shm --bind {path}`")),
    ] {
        let talk = loggap().args(["measure", "--transport", transport, peer]).ends(1).stderr;
        let named = format!("nobody answers at {peer}");
        assert!(talk.contains(&named) && talk.contains(&start), "{transport}: {talk}");
    }
}

#[test]
fn a_lack_of_descriptors_is_said_once_and_survived() {
    let _machine = machine();
    let mut command = Command::new("sh");
    let limited = "ulimit -n 32; exec \"$0\" serve --bind 127.0.0.1 -p 0 --queue 1000";
    command.args(["-c", limited]).arg(binary()).stderr(Stdio::piped());
    let server = Server::run(command);
    // More connections than the server has descriptors for.
    let crowd: Vec<_> = (0..64).map(|_| server.connect()).collect();
    thread::sleep(Duration::from_millis(800));
    drop(crowd);
    server.measure().assert().success();
    let talk = server.killed();
    assert_eq!(talk.matches("takes no connection").count(), 1, "{talk}");
}

#[test]
fn clients_of_other_networks_are_turned_away_and_counted() {
    for transport in ["tcp", "udp"] {
        let arguments = ["--transport", transport, "--bind", "127.0.0.1", "-p", "0"];
        let allowed = ["--allow", "10.0.0.0/8", "--allow", "192.0.2.7"];
        let server = Server::start(&[&arguments[..], &allowed].concat());
        let _refused = server.measure().ends(1);
        let line = server.next_line();
        assert!(line.starts_with("refused 127.0.0.1:") && line.contains("--allow"), "{line}");
    }
    let talk = loggap().args(["serve", "--allow", "10.0.0.0/33"]).ends(2).stderr;
    assert!(talk.contains("10.0.0.0/33"), "{talk}");
    let unix = ["serve", "--transport", "unix", "--allow", "10.0.0.0/8"];
    loggap().args(unix).assert().code(2);
}

#[test]
fn a_log_that_cannot_be_written_does_not_end_the_service() {
    let _machine = machine();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = listener.local_addr().unwrap();
    drop(listener);
    let mut server = Command::new(binary())
        .args(["serve", "--bind", "127.0.0.1", "-p", &endpoint.port().to_string()])
        .stdout(std::fs::File::options().write(true).open("/dev/full").unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..100 {
        if TcpStream::connect(endpoint).is_ok() {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    for _ in 0..2 {
        let arguments = ["measure", &endpoint.to_string(), "-s", "1,64", "--max-time", "0.5"];
        loggap().args(arguments).assert().success();
    }
    assert!(server.try_wait().unwrap().is_none(), "it still serves");
    server.kill().unwrap();
    let talk = String::from_utf8(server.wait_with_output().unwrap().stderr).unwrap();
    assert_eq!(talk.matches("lines are lost").count(), 1, "{talk}");
}

#[test]
fn a_link_local_address_without_its_interface_is_refused_with_the_form() {
    for arguments in [["measure", "fe80::1"], ["serve", "--bind=fe80::1"]] {
        let talk = loggap().args(arguments).ends(2).stderr;
        assert!(talk.contains("fe80::1%eth0"), "{talk}");
    }
}

#[test]
fn a_port_that_is_taken_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let arguments = ["serve", "--bind", "127.0.0.1", "-p", &port];
    let talk = loggap().args(arguments).ends(1).stderr;
    assert!(talk.contains("is taken") && talk.contains(&port), "{talk}");
}

#[test]
fn wrong_places_are_named_and_exit_with_two() {
    for (arguments, named) in [
        (&["--bind", "host:port:more]"][..], "host:port:more]"),
        (&["--transport", "unix", "-p", "5"], "has no ports"),
        (&["--bind", "127.0.0.1:many"], "127.0.0.1:many"),
        (&["--bind", "127.0.0.1:80", "-p", "81"], "leave -p out"),
        (&["--transport", "unix", "--bind", "/nonexistent/socket"], "create the folder"),
        (&["--transport", "shm", "--bind", "/dev/null"], "not a socket"),
        (&["--max-message", "1"], "--max-message"),
        (&["--cpu", "8191"], "processor 8191"),
    ] {
        let talk = loggap().arg("serve").args(arguments).ends(2).stderr;
        assert!(talk.contains(named), "{arguments:?}: {talk}");
    }
}

#[test]
fn ctrl_c_ends_it_idle_or_busy() {
    let idle = Server::tcp(&[]);
    idle.interrupt();
    assert_eq!(idle.exit_code(), Some(130));
    let busy = Server::tcp(&[]);
    let client = busy.connect();
    thread::sleep(Duration::from_millis(300));
    busy.interrupt();
    assert_eq!(busy.exit_code(), Some(130));
    drop(client);
}
