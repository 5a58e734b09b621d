//! Clients of every transport are taken one after another; those who wait
//! are told their position, those who are too many are refused.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code; the lints only know functions marked #[test]"
)]

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use loggap::link::{
    AnyLink, Endpoint, LinkError, LinkSettings, Transport, VerbsSettings, Waiting, connect,
};
use loggap::serve::listener::{AllowedAddresses, ListenError, Listener};
use loggap::serve::queue::{ClientQueue, Event};
use loggap_core::wire::{Bounds, FRAME_LEN, Hello, Message, Refusal, Versions};
use tempfile::TempDir;

const SETTINGS: LinkSettings = LinkSettings {
    waiting: Waiting::Block,
    limit: Duration::from_secs(5),
    verbs: VerbsSettings::DEFAULT,
};
const LONG: Duration = Duration::from_secs(5);

fn listener(transport: Transport, folder: &TempDir) -> Listener {
    let endpoint = if transport.is_internet() {
        Endpoint::Internet { host: "127.0.0.1".into(), port: 0 }
    } else {
        Endpoint::Path(folder.path().join("socket"))
    };
    Listener::bind(transport, &endpoint, SETTINGS).unwrap()
}

/// A queue of so many clients at most, where it is found, and the folder that
/// may hold its socket.
fn opened(transport: Transport, most: usize) -> (TempDir, Endpoint, ClientQueue) {
    let folder = TempDir::new().unwrap();
    let listener = listener(transport, &folder);
    let endpoint = listener.endpoint().clone();
    (folder, endpoint, ClientQueue::open(listener, most).unwrap())
}

/// The next client; what else happens is passed over.
fn next(queue: &mut ClientQueue) -> Option<AnyLink> {
    for _ in 0..100 {
        match queue.next(LONG).unwrap() {
            Some(Event::Client(link)) => return Some(link),
            None => return None,
            Some(_) => {}
        }
    }
    None
}

fn hello(nonce: u64) -> [u8; FRAME_LEN] {
    let (versions, bounds) = (Versions::OURS, Bounds::default());
    bytes(&Message::Hello(Hello { versions, capabilities: 0, bounds, nonce }))
}

fn bytes(message: &Message) -> [u8; FRAME_LEN] {
    let mut frame = [0; FRAME_LEN];
    message.emit(&mut frame);
    frame
}

/// A client that has said hello, on datagrams with the nonce it was sent.
fn client(transport: Transport, endpoint: &Endpoint) -> AnyLink {
    let mut link = connect(transport, endpoint, SETTINGS).unwrap();
    link.send(&hello(0)).unwrap();
    if !link.properties().reliable {
        let Message::Challenge { nonce } = frame(&mut link).unwrap() else { panic!() };
        link.send(&hello(nonce)).unwrap();
    }
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
        let (_folder, endpoint, mut queue) = opened(transport, 4);
        let mut first = client(transport, &endpoint);
        let mut served = next(&mut queue).expect("the first is served");
        let mut second = client(transport, &endpoint);
        assert_eq!(position(&mut second), 1, "{transport}");
        let mut third = client(transport, &endpoint);
        assert_eq!(position(&mut third), 2, "{transport}");
        // The first one's hello has waited for the one who serves.
        assert!(matches!(frame(&mut served), Ok(Message::Hello(_))), "{transport}");
        served.send(b"served").unwrap();
        let mut answer = [0; 6];
        while first.poll_receive(&mut answer).unwrap().is_none() {}
        assert_eq!(&answer, b"served");
        drop(served);
        let mut served = next(&mut queue).expect("the second is served");
        assert!(matches!(frame(&mut served), Ok(Message::Hello(_))), "{transport}");
        // The third is told again when somebody else comes, then moves up.
        while position(&mut third) != 1 {}
    }
}

#[test]
fn a_client_that_leaves_the_queue_makes_room() {
    for transport in [Transport::Tcp, Transport::Unix, Transport::Shm] {
        let (_folder, endpoint, mut queue) = opened(transport, 4);
        let _first = client(transport, &endpoint);
        let _served = next(&mut queue).expect("the first is served");
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
        let (_folder, endpoint, mut queue) = opened(transport, 1);
        let _first = client(transport, &endpoint);
        let _served = next(&mut queue).expect("the first is served");
        let mut second = client(transport, &endpoint);
        assert_eq!(position(&mut second), 1);
        let mut third = client(transport, &endpoint);
        let answer = frame(&mut third).unwrap();
        assert_eq!(answer, Message::Refuse(Refusal::Busy { waiting: 1 }), "{transport}");
    }
}

#[test]
fn of_many_who_come_at_once_those_beyond_the_queue_are_told_and_no_other_is_sent_away() {
    let (_folder, endpoint, mut queue) = opened(Transport::Tcp, 2);
    assert!(queue.next(Duration::from_millis(10)).unwrap().is_none(), "asked for a client");
    let mut clients: Vec<_> =
        (0..8).map(|_| TcpStream::connect(endpoint.to_string()).unwrap()).collect();
    thread::sleep(Duration::from_millis(200));
    for client in &mut clients {
        client.write_all(&hello(0)).unwrap();
    }
    let _served = next(&mut queue).expect("one is served");
    let mut answers = [0; 3];
    for client in &mut clients {
        client.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut frame = [0; FRAME_LEN];
        let answer = client.read_exact(&mut frame).map(|()| Message::parse(&frame).unwrap());
        answers[match answer {
            Ok(Message::Refuse(Refusal::Busy { .. })) => 0,
            Ok(Message::Queue { .. }) => 1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 2,
            other => panic!("{other:?}"),
        }] += 1;
    }
    assert_eq!(answers, [5, 2, 1], "refused, waiting, served");
}

#[test]
fn nobody_comes_is_no_error() {
    let folder = TempDir::new().unwrap();
    let mut queue = ClientQueue::open(listener(Transport::Tcp, &folder), 1).unwrap();
    for _ in 0..3 {
        assert!(queue.next(Duration::from_millis(10)).unwrap().is_none());
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
        let mut queue = ClientQueue::open(listener, 4).unwrap();
        for host in ["127.0.0.1", "::1"] {
            let mut near = client(transport, &Endpoint::Internet { host: host.into(), port });
            let mut far = next(&mut queue).expect("a client");
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
        let mut queue = ClientQueue::open(listener, 4).unwrap();
        // Routing would answer from 127.0.0.1, which this client does not hear.
        let mut near =
            client(Transport::Udp, &Endpoint::Internet { host: "127.0.0.2".into(), port });
        let mut far = next(&mut queue).expect("a client");
        far.send(&bytes(&Message::Bye)).unwrap();
        assert_eq!(frame(&mut near).unwrap(), Message::Bye, "{every}");
    }
}

#[test]
fn datagrams_that_greet_nobody_are_no_clients() {
    let (_folder, endpoint, mut queue) = opened(Transport::Udp, 4);
    let noise = UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in [0, 1, FRAME_LEN, 9_000] {
        noise.send_to(&vec![0xce; length], endpoint.to_string()).unwrap();
    }
    assert!(queue.next(Duration::from_millis(100)).unwrap().is_none());
    // A hello with its nonce that is repeated is one client.
    let (twice, nonce) = challenged(&endpoint);
    twice.send(&hello(nonce)).unwrap();
    twice.send(&hello(nonce)).unwrap();
    assert!(next(&mut queue).is_some());
    assert!(queue.next(Duration::from_millis(100)).unwrap().is_none());
}

/// A socket that was sent a nonce.
fn challenged(endpoint: &Endpoint) -> (UdpSocket, u64) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(endpoint.to_string()).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    socket.send(&hello(0)).unwrap();
    let mut answer = [0; 1_000];
    let length = socket.recv(&mut answer).unwrap();
    let Ok(Message::Challenge { nonce }) = Message::parse(&answer[..length]) else { panic!() };
    (socket, nonce)
}

#[test]
fn a_stranger_gets_no_more_bytes_than_it_sends_and_only_for_hellos() {
    let (_folder, endpoint, mut queue) = opened(Transport::Udp, 4);
    let (_other, foreign) = challenged(&endpoint);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(endpoint.to_string()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let sync = bytes(&Message::Sync { token: 1 });
    let old = Versions { lowest: 1, highest: 1 };
    let bounds = Bounds::default();
    let old = Hello { versions: old, capabilities: 0, bounds, nonce: 0 };
    let old = bytes(&Message::Hello(old));
    let mut answer = [0; 70_000];
    let none: &[u8] = b"";
    for (sent, answers) in [
        (none, 0),
        (&b"x"[..], 0),
        (&hello(0)[..FRAME_LEN - 1], 0),
        (&sync, 0),
        (&bytes(&Message::Bye), 0),
        (&[5; 60_000], 0),
        (&hello(0), 1),
        // The nonce of another address is none of this one.
        (&hello(foreign), 1),
        (&old, 1),
    ] {
        socket.send(sent).unwrap();
        for _ in 0..answers {
            let length = socket.recv(&mut answer).unwrap();
            assert!(length <= sent.len(), "{length} bytes for {}", sent.len());
            let said = Message::parse(&answer[..length]).unwrap();
            let allowed = matches!(
                said,
                Message::Challenge { .. } | Message::Refuse(Refusal::Version { .. })
            );
            assert!(allowed, "{said:?}");
        }
        assert!(socket.recv(&mut answer).is_err(), "nothing without a new hello");
    }
    let turned_away = queue.next(LONG).unwrap();
    let Some(Event::TurnedAway(1, last)) = turned_away else { panic!("{turned_away:?}") };
    assert!(last.reason.contains("protocol versions differ"), "{last:?}");
    assert!(queue.next(Duration::from_millis(100)).unwrap().is_none());
}

#[test]
fn a_client_that_does_not_read_delays_nobody() {
    let transport = Transport::Unix;
    let (_folder, endpoint, mut queue) = opened(transport, 4);
    let _first = client(transport, &endpoint);
    let _served = next(&mut queue).expect("the first is served");
    let _never_reads = client(transport, &endpoint);
    // Each of these is told its position, and so is the one before it,
    // until its socket is full.
    #[allow(clippy::disallowed_methods, reason = "a limit of a test")]
    let began = Instant::now();
    let mut last = 2;
    for _ in 0..4_000 {
        last = position(&mut client(transport, &endpoint));
        if last == 1 {
            break;
        }
    }
    assert_eq!(last, 1, "{transport}: who does not read is dropped");
    assert!(began.elapsed() < SETTINGS.limit, "{transport}: took {:?}", began.elapsed());
}

#[test]
fn a_client_that_says_nothing_delays_nobody_and_leaves_in_time() {
    let (_folder, endpoint, mut queue) = opened(Transport::Tcp, 4);
    let silent = TcpStream::connect(endpoint.to_string()).unwrap();
    let mut slow = TcpStream::connect(endpoint.to_string()).unwrap();
    slow.write_all(&hello(0)[..100]).unwrap();
    let _client = client(Transport::Tcp, &endpoint);
    let served = next(&mut queue).expect("who has said hello");
    assert_ne!(served.peer(), silent.local_addr().unwrap().to_string());
    assert_ne!(served.peer(), slow.local_addr().unwrap().to_string());
    drop(served);
    // The rest of a hello counts whenever it comes.
    slow.write_all(&hello(0)[100..]).unwrap();
    let served = next(&mut queue).expect("whose hello is whole");
    assert_eq!(served.peer(), slow.local_addr().unwrap().to_string());
    drop(served);
    let event = queue.next(2 * LONG).unwrap();
    let Some(Event::TurnedAway(1, last)) = event else { panic!("{event:?}") };
    assert_eq!(last.peer, silent.local_addr().unwrap().to_string());
}

#[test]
fn a_client_that_says_nothing_over_shared_memory_is_not_served() {
    let (_folder, endpoint, mut queue) = opened(Transport::Shm, 4);
    let _silent = connect(Transport::Shm, &endpoint, SETTINGS).unwrap();
    assert!(queue.next(Duration::from_millis(200)).unwrap().is_none());
    let mut speaks = client(Transport::Shm, &endpoint);
    let mut served = next(&mut queue).expect("who has said hello");
    served.send(&bytes(&Message::Bye)).unwrap();
    while frame(&mut speaks).unwrap() != Message::Bye {}
    let event = queue.next(2 * LONG).unwrap();
    let Some(Event::TurnedAway(1, last)) = event else { panic!("{event:?}") };
    assert!(last.reason.contains("no hello"), "{last:?}");
}

#[test]
fn a_client_that_floods_while_it_waits_is_cut_off() {
    for transport in [Transport::Tcp, Transport::Unix, Transport::Udp] {
        let (_folder, endpoint, mut queue) = opened(transport, 4);
        let _first = client(transport, &endpoint);
        let _served = next(&mut queue).expect("the first is served");
        let mut floods = client(transport, &endpoint);
        assert_eq!(position(&mut floods), 1, "{transport}");
        for _ in 0..200 {
            let _cut_off_already = floods.send(&hello(0));
        }
        let mut behind = client(transport, &endpoint);
        // Either it is cut before the next one comes, or that one moves up.
        while position(&mut behind) != 1 {}
        let event = queue.next(LONG).unwrap();
        let Some(Event::TurnedAway(1, last)) = event else { panic!("{transport} {event:?}") };
        assert!(last.reason.contains("sent more"), "{last:?}");
    }
}

#[test]
fn clients_from_networks_that_are_not_allowed_get_no_answer() {
    let any = Endpoint::Internet { host: "::".into(), port: 0 };
    let network = |text: &str| vec![text.parse().unwrap()];
    for transport in [Transport::Tcp, Transport::Udp] {
        for (allowed, served) in [("10.0.0.0/8", false), ("127.0.0.0/8", true)] {
            let listener = Listener::bind(transport, &any, SETTINGS).unwrap();
            let listener = listener.allowing(AllowedAddresses::new(network(allowed)));
            let Endpoint::Internet { port, .. } = *listener.endpoint() else { panic!("no port") };
            let mut queue = ClientQueue::open(listener, 4).unwrap();
            let endpoint = Endpoint::Internet { host: "127.0.0.1".into(), port };
            if served {
                let _client = client(transport, &endpoint);
                assert!(next(&mut queue).is_some(), "{transport} {allowed}");
                continue;
            }
            let mut link = connect(transport, &endpoint, SETTINGS).unwrap();
            let _closed_already = link.send(&hello(0));
            let event = queue.next(LONG).unwrap();
            let Some(Event::TurnedAway(1, last)) = event else { panic!("{transport} {event:?}") };
            assert!(last.reason.contains("--allow"), "{last:?}");
            let mut answer = [0; FRAME_LEN];
            let got = (0..20).find_map(|_| link.poll_receive(&mut answer).transpose());
            match transport {
                Transport::Tcp => assert!(matches!(got, Some(Err(LinkError::Closed { .. })))),
                _ => assert!(got.is_none(), "{got:?}"),
            }
        }
    }
}

#[test]
fn a_queue_that_is_dropped_lets_its_port_go() {
    let folder = TempDir::new().unwrap();
    let listener = listener(Transport::Tcp, &folder);
    let endpoint = listener.endpoint().clone();
    drop(ClientQueue::open(listener, 1).unwrap());
    let freed = (0..200).any(|_| {
        thread::sleep(Duration::from_millis(10));
        Listener::bind(Transport::Tcp, &endpoint, SETTINGS).is_ok()
    });
    assert!(freed);
}
