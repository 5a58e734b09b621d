//! Clients of every transport are taken one after another; those who wait
//! are told their position, those who are too many are refused.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code; the lints only know functions marked #[test]"
)]

use std::net::UdpSocket;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use loggap::link::{AnyLink, Endpoint, LinkError, LinkSettings, Transport, Waiting, connect};
use loggap::listen::{ListenError, Listener};
use loggap::lobby::Lobby;
use loggap_core::measure::Link;
use loggap_core::wire::{Bounds, FRAME_LEN, Hello, Message, Refusal, Versions};
use tempfile::TempDir;

const SETTINGS: LinkSettings =
    LinkSettings { waiting: Waiting::Block, limit: Duration::from_secs(5) };
const LONG: Duration = Duration::from_secs(5);

fn listener(transport: Transport, folder: &TempDir) -> Listener {
    let endpoint = if transport.is_internet() {
        Endpoint::Internet { host: "127.0.0.1".into(), port: 0 }
    } else {
        Endpoint::Path(folder.path().join("socket"))
    };
    Listener::bind(transport, &endpoint, SETTINGS).unwrap()
}

fn hello() -> [u8; FRAME_LEN] {
    let mut frame = [0; FRAME_LEN];
    let hello = Hello { versions: Versions::OURS, capabilities: 0, bounds: Bounds::default() };
    Message::Hello(hello).emit(&mut frame);
    frame
}

/// A client that has said hello.
fn client(transport: Transport, endpoint: &Endpoint) -> AnyLink {
    let mut link = connect(transport, endpoint, SETTINGS).unwrap();
    link.send(&hello()).unwrap();
    link
}

fn frame(link: &mut AnyLink) -> Result<Message, LinkError> {
    let mut bytes = [0; FRAME_LEN];
    for _ in 0..1_000_000 {
        if link.poll_receive(&mut bytes)?.is_some() {
            return Ok(Message::parse(&bytes).unwrap());
        }
    }
    panic!("nothing came");
}

fn position(link: &mut AnyLink) -> u32 {
    match frame(link).unwrap() {
        Message::Queue { position } => position,
        other => panic!("{other:?}"),
    }
}

#[test]
fn clients_are_served_in_their_order_and_know_their_position() {
    for transport in Transport::LOCAL {
        let folder = TempDir::new().unwrap();
        let listener = listener(transport, &folder);
        let endpoint = listener.endpoint().clone();
        let mut lobby = Lobby::open(listener, 4).unwrap();
        let mut first = client(transport, &endpoint);
        let mut served = lobby.next(LONG).unwrap().expect("the first is served");
        let mut second = client(transport, &endpoint);
        assert_eq!(position(&mut second), 1, "{transport}");
        let mut third = client(transport, &endpoint);
        assert_eq!(position(&mut third), 2, "{transport}");
        // The first one's greeting has waited for the one who serves.
        assert!(matches!(frame(&mut served), Ok(Message::Hello(_))), "{transport}");
        served.send(b"served").unwrap();
        let mut answer = [0; 6];
        while first.poll_receive(&mut answer).unwrap().is_none() {}
        assert_eq!(&answer, b"served");
        drop(served);
        let mut served = lobby.next(LONG).unwrap().expect("the second is served");
        assert!(matches!(frame(&mut served), Ok(Message::Hello(_))), "{transport}");
        // The third is told again when somebody else comes, then moves up.
        while position(&mut third) != 1 {}
    }
}

#[test]
fn a_client_that_leaves_the_queue_makes_room() {
    for transport in [Transport::Tcp, Transport::Unix, Transport::Shm] {
        let folder = TempDir::new().unwrap();
        let listener = listener(transport, &folder);
        let endpoint = listener.endpoint().clone();
        let mut lobby = Lobby::open(listener, 4).unwrap();
        let _first = client(transport, &endpoint);
        let _served = lobby.next(LONG).unwrap().expect("the first is served");
        let mut second = client(transport, &endpoint);
        assert_eq!(position(&mut second), 1);
        let mut third = client(transport, &endpoint);
        assert_eq!(position(&mut third), 2);
        drop(second);
        assert_eq!(position(&mut third), 1, "{transport}");
    }
}

#[test]
fn clients_beyond_the_capacity_are_refused() {
    for transport in Transport::LOCAL {
        let folder = TempDir::new().unwrap();
        let listener = listener(transport, &folder);
        let endpoint = listener.endpoint().clone();
        let mut lobby = Lobby::open(listener, 1).unwrap();
        let _first = client(transport, &endpoint);
        let _served = lobby.next(LONG).unwrap().expect("the first is served");
        let mut second = client(transport, &endpoint);
        assert_eq!(position(&mut second), 1);
        let mut third = client(transport, &endpoint);
        let answer = frame(&mut third).unwrap();
        assert_eq!(answer, Message::Refuse(Refusal::Busy { waiting: 1 }), "{transport}");
    }
}

#[test]
fn nobody_comes_is_no_error() {
    let folder = TempDir::new().unwrap();
    let mut lobby = Lobby::open(listener(Transport::Tcp, &folder), 1).unwrap();
    for _ in 0..3 {
        assert!(lobby.next(Duration::from_millis(10)).unwrap().is_none());
    }
}

#[test]
fn a_port_or_path_that_is_taken_is_named() {
    for transport in Transport::LOCAL {
        let folder = TempDir::new().unwrap();
        let first = listener(transport, &folder);
        let error = Listener::bind(transport, first.endpoint(), SETTINGS).unwrap_err();
        assert!(matches!(error, ListenError::Taken { .. }), "{transport}: {error}");
        assert!(error.to_string().contains(&first.endpoint().to_string()), "{error}");
    }
}

#[test]
fn a_socket_left_behind_is_replaced_and_a_file_is_not() {
    let folder = TempDir::new().unwrap();
    let path: PathBuf = folder.path().join("socket");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(listener(Transport::Unix, &folder));
    assert!(!path.exists(), "the socket is removed when its listener ends");
    std::fs::write(&path, "data").unwrap();
    let error =
        Listener::bind(Transport::Shm, &Endpoint::Path(path.clone()), SETTINGS).unwrap_err();
    assert!(error.to_string().contains("not a socket"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"data");
}

#[test]
fn every_address_of_the_machine_reaches_the_default_endpoint() {
    let any = Endpoint::Internet { host: "::".into(), port: 0 };
    for transport in [Transport::Tcp, Transport::Udp] {
        let listener = Listener::bind(transport, &any, SETTINGS).unwrap();
        let Endpoint::Internet { port, .. } = *listener.endpoint() else { panic!("no port") };
        let mut lobby = Lobby::open(listener, 4).unwrap();
        for host in ["127.0.0.1", "::1"] {
            let mut near = client(transport, &Endpoint::Internet { host: host.into(), port });
            let mut far = lobby.next(LONG).unwrap().expect("a client");
            assert!(matches!(frame(&mut far), Ok(Message::Hello(_))), "{transport} {host}");
            let mut bye = [0; FRAME_LEN];
            Message::Bye.emit(&mut bye);
            far.send(&bye).unwrap();
            // It may have been told to wait until the one before was dropped.
            while frame(&mut near).unwrap() != Message::Bye {}
        }
    }
}

#[test]
fn answers_come_from_the_address_that_was_written_to() {
    for every in ["0.0.0.0", "::"] {
        let any = Endpoint::Internet { host: every.into(), port: 0 };
        let listener = Listener::bind(Transport::Udp, &any, SETTINGS).unwrap();
        let Endpoint::Internet { port, .. } = *listener.endpoint() else { panic!("no port") };
        let mut lobby = Lobby::open(listener, 4).unwrap();
        // Routing would answer from 127.0.0.1, which this client does not hear.
        let mut near =
            client(Transport::Udp, &Endpoint::Internet { host: "127.0.0.2".into(), port });
        let mut far = lobby.next(LONG).unwrap().expect("a client");
        far.send(&hello()).unwrap();
        assert!(matches!(frame(&mut near), Ok(Message::Hello(_))), "{every}");
    }
}

#[test]
fn datagrams_that_greet_nobody_are_no_clients() {
    let folder = TempDir::new().unwrap();
    let listener = listener(Transport::Udp, &folder);
    let endpoint = listener.endpoint().clone();
    let mut lobby = Lobby::open(listener, 4).unwrap();
    let noise = UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in [0, 1, FRAME_LEN, 9_000] {
        noise.send_to(&vec![0xce; length], endpoint.to_string()).unwrap();
    }
    assert!(lobby.next(Duration::from_millis(100)).unwrap().is_none());
    // A greeting that is repeated before the first was answered is one client.
    let twice = UdpSocket::bind("127.0.0.1:0").unwrap();
    twice.send_to(&hello(), endpoint.to_string()).unwrap();
    twice.send_to(&hello(), endpoint.to_string()).unwrap();
    assert!(lobby.next(LONG).unwrap().is_some());
    assert!(lobby.next(Duration::from_millis(100)).unwrap().is_none());
}

#[test]
fn a_lobby_that_is_dropped_lets_its_port_go() {
    let folder = TempDir::new().unwrap();
    let listener = listener(Transport::Tcp, &folder);
    let endpoint = listener.endpoint().clone();
    drop(Lobby::open(listener, 1).unwrap());
    let freed = (0..200).any(|_| {
        thread::sleep(Duration::from_millis(10));
        Listener::bind(Transport::Tcp, &endpoint, SETTINGS).is_ok()
    });
    assert!(freed);
}
