//! Every link, over real sockets and real memory: messages arrive whole, a
//! peer that goes away is noticed, a peer that stops reading is given up.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code; the lints only know functions marked #[test]"
)]

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use loggap::link::{
    AnyLink, Endpoint, LinkError, LinkSettings, ShmLink, TcpLink, Transport, UdpLink, UnixLink,
    Waiting, connect, receive_buffer,
};
use loggap_core::measure::Link;

/// From nothing over every power of two and its neighbours to a message that
/// no socket buffer and no ring takes whole.
fn sizes() -> Vec<usize> {
    let near_powers = (0..=16).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]);
    near_powers.chain([100_000, 524_288, 524_289, 2_097_152, 5_000_001]).collect()
}

fn pattern(size: usize, seed: usize) -> Vec<u8> {
    (0..size).map(|at| u8::try_from((at * 7 + at / 251 + seed * 13) % 256).unwrap()).collect()
}

fn settings(waiting: Waiting) -> LinkSettings {
    LinkSettings { waiting, limit: Duration::from_secs(10), ..LinkSettings::default() }
}

fn receive<L: Link>(link: &mut L, buffer: &mut [u8]) -> Result<usize, L::Error> {
    loop {
        if let Some(length) = link.poll_receive(buffer)? {
            return Ok(length);
        }
    }
}

/// Three messages of each size there, the sum of them back.
fn carries_messages_of_every_size_both_ways<L>((mut near, mut far): (L, L))
where
    L: Link<Error = LinkError> + Send + 'static,
{
    let echo = thread::spawn(move || {
        for size in sizes() {
            let mut sum = vec![0_u8; size];
            for seed in 0..3 {
                let mut message = vec![0; size];
                assert_eq!(receive(&mut far, &mut message).unwrap(), size);
                assert!(message == pattern(size, seed), "{size} bytes changed on the way");
                for (total, byte) in sum.iter_mut().zip(&message) {
                    *total = total.wrapping_add(*byte);
                }
            }
            far.send(&sum).unwrap();
        }
        far
    });
    for size in sizes() {
        let messages = [pattern(size, 0), pattern(size, 1), pattern(size, 2)];
        for message in &messages {
            near.send(message).unwrap();
        }
        let mut back = vec![0; size];
        assert_eq!(receive(&mut near, &mut back).unwrap(), size);
        let right = back.iter().enumerate().all(|(at, byte)| {
            *byte == messages.iter().fold(0_u8, |sum, message| sum.wrapping_add(message[at]))
        });
        assert!(right, "{size} bytes changed on the way back");
    }
    let far = echo.join().unwrap();
    notices_that_the_peer_is_gone((near, far));
}

/// What was sent before the peer left still arrives; then comes the error.
fn notices_that_the_peer_is_gone<L: Link<Error = LinkError>>((mut near, mut far): (L, L)) {
    far.send(b"last words").unwrap();
    drop(far);
    let mut buffer = [0; 10];
    receive(&mut near, &mut buffer).unwrap();
    assert_eq!(&buffer, b"last words");
    let error = receive(&mut near, &mut buffer).unwrap_err();
    assert!(matches!(error, LinkError::Closed { .. }), "{error}");
}

/// Nobody receives: sends fill whatever there is between, then fail.
fn gives_up_on_a_peer_that_takes_nothing<L: Link<Error = LinkError>>((mut near, _far): (L, L)) {
    let message = vec![1; 1 << 20];
    for _ in 0..1_000 {
        match near.send(&message) {
            Ok(()) => {}
            Err(LinkError::Stuck { .. }) => return,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("a gigabyte went nowhere");
}

fn tcp(address: &str, settings: LinkSettings) -> (TcpLink, TcpLink) {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let near = TcpLink::connect(listener.local_addr().unwrap(), settings).unwrap();
    let far = TcpLink::from_stream(listener.accept().unwrap().0, settings).unwrap();
    (near, far)
}

fn shm(settings: LinkSettings) -> (ShmLink, ShmLink) {
    let (near, far) = UnixStream::pair().unwrap();
    let created = ShmLink::create(near, "far end".into(), settings).unwrap();
    (created, ShmLink::join(far, "near end".into(), settings).unwrap())
}

fn udp(address: &str, settings: LinkSettings) -> (UdpLink, UdpLink) {
    let near = UdpSocket::bind((address, 0)).unwrap();
    let far = UdpSocket::bind((address, 0)).unwrap();
    near.connect(far.local_addr().unwrap()).unwrap();
    far.connect(near.local_addr().unwrap()).unwrap();
    let end = |socket| UdpLink::from_socket(socket, None, settings).unwrap();
    (end(near), end(far))
}

/// What arrives within two seconds, `None` when nothing does.
fn receive_in_time<L: Link<Error = LinkError>>(link: &mut L, buffer: &mut [u8]) -> Option<usize> {
    for _ in 0..2_000 {
        if let Some(length) = link.poll_receive(buffer).unwrap() {
            return Some(length);
        }
        thread::sleep(Duration::from_millis(1));
    }
    None
}

fn short() -> LinkSettings {
    LinkSettings { limit: Duration::from_millis(200), ..LinkSettings::default() }
}

#[test]
fn tcp_over_ipv4_carries_messages() {
    carries_messages_of_every_size_both_ways(tcp("127.0.0.1", settings(Waiting::Poll)));
}

#[test]
fn tcp_over_ipv6_carries_messages_when_blocking() {
    carries_messages_of_every_size_both_ways(tcp("::1", settings(Waiting::Block)));
}

#[test]
fn unix_sockets_carry_messages() {
    carries_messages_of_every_size_both_ways(UnixLink::pair(settings(Waiting::Poll)).unwrap());
}

#[test]
fn unix_sockets_carry_messages_when_blocking() {
    carries_messages_of_every_size_both_ways(UnixLink::pair(settings(Waiting::Block)).unwrap());
}

#[test]
fn shared_memory_carries_messages() {
    carries_messages_of_every_size_both_ways(shm(settings(Waiting::Poll)));
}

#[test]
fn shared_memory_carries_messages_when_yielding() {
    carries_messages_of_every_size_both_ways(shm(settings(Waiting::Block)));
}

#[test]
fn a_stuck_peer_costs_the_time_limit_and_no_more() {
    gives_up_on_a_peer_that_takes_nothing(tcp("127.0.0.1", short()));
    gives_up_on_a_peer_that_takes_nothing(UnixLink::pair(short()).unwrap());
    gives_up_on_a_peer_that_takes_nothing(shm(short()));
}

#[test]
fn nobody_listening_is_refused_with_the_remedy() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = TcpLink::connect(address, short()).unwrap_err().to_string();
    assert!(error.contains(&address.to_string()) && error.contains("loggap serve"), "{error}");
    let error = UnixLink::connect("/nonexistent/socket".as_ref(), short()).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/socket") && error.contains("loggap serve"), "{error}");
}

#[test]
fn nagle_is_off_on_both_ends() {
    let (near, far) = tcp("127.0.0.1", short());
    assert!(near.stream().nodelay().unwrap() && far.stream().nodelay().unwrap());
}

#[test]
fn an_oversized_message_is_refused_by_the_one_who_has_no_room() {
    let (mut near, mut far) = shm(short());
    near.send(&[1; 65]).unwrap();
    let error = far.poll_receive(&mut [0; 64]).unwrap_err().to_string();
    assert!(error.contains("65 bytes") && error.contains("at most 64"), "{error}");
}

#[test]
fn a_listener_of_something_else_is_not_taken_for_shared_memory() {
    let (near, far) = UnixStream::pair().unwrap();
    std::io::Write::write_all(&mut &near, b"HTTP/1.1 400 Bad").unwrap();
    let error = ShmLink::join(far, "web server".into(), short()).unwrap_err();
    assert!(matches!(error, LinkError::Broken { .. }), "{error}");
    let (_silent, far) = UnixStream::pair().unwrap();
    let error = ShmLink::join(far, "silent".into(), short()).unwrap_err();
    assert!(matches!(error, LinkError::Connect { .. }), "{error}");
}

#[test]
fn a_closed_stream_stays_closed() {
    let (mut near, far) = tcp("127.0.0.1", short());
    drop(far);
    for _ in 0..3 {
        assert!(matches!(receive(&mut near, &mut [0]), Err(LinkError::Closed { .. })));
    }
    let _connected: &TcpStream = near.stream();
}

#[test]
fn datagrams_keep_their_boundaries() {
    for (address, waiting) in [("127.0.0.1", Waiting::Poll), ("::1", Waiting::Block)] {
        let (mut near, mut far) = udp(address, settings(waiting));
        let mut buffer = vec![0; 65_507];
        for size in sizes().into_iter().filter(|size| *size <= 65_507).chain([65_507]) {
            near.send(&pattern(size, 1)).unwrap();
            near.send(&pattern(size / 2, 2)).unwrap();
            for (length, seed) in [(size, 1), (size / 2, 2)] {
                assert_eq!(receive_in_time(&mut far, &mut buffer), Some(length));
                assert!(
                    buffer[..length] == pattern(length, seed),
                    "{size} bytes changed on the way"
                );
            }
        }
    }
}

#[test]
fn a_datagram_too_long_to_send_is_named_and_one_too_long_to_take_is_dropped() {
    let (mut near, mut far) = udp("127.0.0.1", short());
    let error = near.send(&vec![0; 65_508]).unwrap_err();
    assert!(matches!(error, LinkError::TooLong { length: 65_508, longest: 65_507 }), "{error}");
    near.send(&[0; 9]).unwrap();
    near.send(&[7; 8]).unwrap();
    assert_eq!(receive_in_time(&mut far, &mut [0; 8]), Some(8));
}

#[test]
fn datagrams_beyond_the_receive_buffer_are_lost_and_the_link_goes_on() {
    let (mut near, mut far) = udp("127.0.0.1", short());
    let message = vec![1; 60_000];
    let capacity = usize::try_from(receive_buffer(far.socket()).unwrap().0).unwrap();
    let sent = capacity / message.len() + 10;
    for _ in 0..sent {
        near.send(&message).unwrap();
    }
    let arrived = far.drain().unwrap();
    assert!(0 < arrived && arrived < sent, "{arrived} of {sent}");
    near.send(b"after the loss").unwrap();
    assert_eq!(receive_in_time(&mut far, &mut [0; 64]), Some(14));
}

#[test]
fn discarded_datagrams_do_not_leak_into_the_next_round() {
    let (mut near, mut far) = udp("127.0.0.1", short());
    for late in 0..20 {
        near.send(&[late]).unwrap();
    }
    far.discard().unwrap();
    near.send(b"next").unwrap();
    let mut buffer = [0; 4];
    assert_eq!(receive_in_time(&mut far, &mut buffer), Some(4));
    assert_eq!(&buffer, b"next");
}

#[test]
fn a_host_that_refuses_datagrams_is_a_closed_peer() {
    let (mut near, far) = udp("127.0.0.1", short());
    drop(far);
    // One refusal is a lost message; those that go on for a second are the end.
    let error = loop {
        if let Err(error) = near.send(b"anyone?").and_then(|()| near.poll_receive(&mut [0; 8])) {
            break error;
        }
        thread::sleep(Duration::from_millis(50));
    };
    assert!(matches!(error, LinkError::Closed { .. }), "{error}");
}

#[test]
fn datagrams_that_nobody_answers_name_what_to_start() {
    let refusing = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    for address in [refusing, silent.local_addr().unwrap()] {
        let mut link = UdpLink::connect(address, settings(Waiting::Block)).unwrap();
        link.send(b"anyone?").unwrap();
        let error = receive(&mut link, &mut [0; 8]).unwrap_err().to_string();
        let port = address.port();
        let expected = format!(
            "nobody answers at {address}: start `loggap serve --transport udp -p {port}` there"
        );
        assert_eq!(error, expected);
    }
}

#[test]
fn connecting_by_name_tries_every_address() {
    // `localhost` may name ::1 first, where this listener is not.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let endpoint = Endpoint::parse(Transport::Tcp, "localhost", port).unwrap();
    let mut link = connect(Transport::Tcp, &endpoint, short()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let mut far = AnyLink::Tcp(TcpLink::from_stream(accepted, short()).unwrap());
    far.send(b"hello").unwrap();
    let mut buffer = [0; 5];
    assert_eq!(receive(&mut &mut *link, &mut buffer).unwrap(), 5);
    assert_eq!(link.transport(), Transport::Tcp);
    assert!(link.peer().ends_with(&port.to_string()), "{}", link.peer());
}
