//! RDMA verbs on a device, both ends in this process: what a session costs
//! beside the provider's own calls, and that messages arrive whole outside of
//! one. Run by `tests/verbs/count`, on a machine of soft-RoCE.

#![cfg(feature = "verbs")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "test code; the lints only know functions marked #[test]"
)]

#[allow(unsafe_code, reason = "an allocator that counts is an allocator")]
#[path = "../../tests/src/counting.rs"]
mod counting;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hint::spin_loop;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use loggap::link::{DeviceName, LinkError, LinkSettings, Operation, VerbsLink, VerbsSettings};
use loggap::machine::clock::HostClock;
use loggap_core::measure::{
    Buffers, Clock, Experiment, Initiator, Link, Outcome, Quantity, SessionOptions, serve,
};
use loggap_core::units::Picos;
use loggap_core::wire::Bounds;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, getsockopt, recv, socket, sockopt,
};
use nix::unistd::gettid;

use counting::CALLS;

/// Rounds that are counted, of each size.
const ROUNDS: usize = 40;
/// Within its request and beyond, of one packet and of several.
const SIZES: [u32; 4] = [2, 64, 4_000, 20_000];
/// Numbers of system calls on x86-64.
const WRITE: u64 = 1;
const RECVFROM: u64 = 45;
/// Where the kernel counts system calls by thread.
const EVENT: &str = "/sys/kernel/tracing/events/raw_syscalls/sys_enter";

/// Two ends of a connection.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

/// Two ends of a link over the first device.
fn pair(operation: Operation, inline: Option<u32>) -> (VerbsLink, VerbsLink) {
    let verbs = VerbsSettings { operation: Some(operation), inline, ..VerbsSettings::DEFAULT };
    joined(verbs, connection())
}

/// An offer, or an answer; `host-linux/src/link/verbs/offer.rs` says where what is.
type ConnectionData = [u8; 1_024];

/// Two ends of a link, between which an offer (false) and its answer (true) are
/// changed.
fn meddled(
    verbs: VerbsSettings,
    mut change: impl FnMut(&mut ConnectionData, bool) + Send + 'static,
) -> (VerbsLink, VerbsLink) {
    let ((near, mut client), (mut server, far)) = (connection(), connection());
    thread::spawn(move || {
        for is_answer in [false, true] {
            let mut ends = [&mut client, &mut server];
            if is_answer {
                ends.reverse();
            }
            let [from, to] = ends;
            let mut data = [0; 1_024];
            from.read_exact(&mut data).unwrap();
            change(&mut data, is_answer);
            to.write_all(&data).unwrap();
        }
        // Open until an end leaves.
        let _left = client.read(&mut [0]);
    });
    joined(verbs, (near, far))
}

fn joined(verbs: VerbsSettings, (near, far): (TcpStream, TcpStream)) -> (VerbsLink, VerbsLink) {
    let settings =
        LinkSettings { verbs, limit: Duration::from_secs(10), ..LinkSettings::default() };
    let answer = thread::spawn(move || {
        let settings = LinkSettings { verbs: VerbsSettings::DEFAULT, ..settings };
        VerbsLink::answer_over(far, "near".into(), settings).unwrap()
    });
    let near = VerbsLink::connect_over(near, "far".into(), settings).unwrap();
    (near, answer.join().unwrap())
}

/// Counts of system calls by thread and number.
type Calls = BTreeMap<(u64, u64), u64>;

/// System calls so far.
fn system_calls() -> Calls {
    let number = |line: &str, key: &str| -> Option<u64> {
        let rest = line.split_once(key)?.1.trim_start();
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let text = fs::read_to_string(format!("{EVENT}/hist")).unwrap();
    let lines = text.lines().filter(|line| line.starts_with('{'));
    let call = |line| {
        Some(((number(line, "common_pid:")?, number(line, " id:")?), number(line, "hitcount:")?))
    };
    lines.filter_map(call).collect()
}

/// What one end did during the session.
#[derive(Default)]
struct Counts {
    thread: AtomicU64,
    allocations: AtomicU64,
    posts: AtomicU64,
    microseconds: AtomicU64,
}

/// Where both ends wait for one another; without a system call, where those are
/// counted.
struct Gate(AtomicU32);

impl Gate {
    /// Waits until as many as `count` have come.
    fn wait_for(&self, count: u32) {
        self.0.fetch_add(1, Ordering::SeqCst);
        while self.0.load(Ordering::SeqCst) < count {
            spin_loop();
        }
    }

    /// The same for who is not counted: leaves the processors to the ends.
    fn sleep_for(&self, count: u32) {
        self.0.fetch_add(1, Ordering::SeqCst);
        while self.0.load(Ordering::SeqCst) < count {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Counts {
    /// Counts what `session` does between two gates.
    fn of(&self, gates: &[Gate; 4], ends: u32, session: impl FnOnce() -> u64) {
        self.thread.store(u64::try_from(gettid().as_raw()).unwrap(), Ordering::SeqCst);
        let clock = HostClock::monotonic_raw();
        gates[0].wait_for(ends + 1);
        // The first counts are taken meanwhile.
        gates[1].wait_for(ends + 1);
        let before = CALLS.get();
        let began = clock.now();
        let posts = session();
        let lasted = clock.duration(clock.now() - began);
        self.microseconds.store(lasted.0 / 1_000_000, Ordering::SeqCst);
        self.allocations.store(CALLS.get() - before, Ordering::SeqCst);
        self.posts.store(posts, Ordering::SeqCst);
        gates[2].wait_for(ends + 1);
        // And the last ones, before this thread ends.
        gates[3].wait_for(ends + 1);
    }
}

/// Gives the link back.
fn measure(
    clock: HostClock,
    near: VerbsLink,
    buffers: Buffers<'_>,
    experiments: &[Experiment],
) -> VerbsLink {
    let on_queue = |_| ControlFlow::Continue(());
    let options = SessionOptions::default();
    let mut session = Initiator::connect(clock, near, buffers, options, on_queue).unwrap();
    let (mut arrived, mut lost) = (0, 0);
    let each = |outcome| match outcome {
        Outcome::Sample(_) | Outcome::Late(_) => arrived += 1,
        Outcome::Lost(_) => lost += 1,
    };
    session.run(experiments, each).unwrap();
    let (_, near) = session.close().unwrap();
    assert_eq!(arrived + lost, experiments.len());
    // On a busy machine a datagram may come after it is given up.
    let most = if near.properties().reliable { 0 } else { experiments.len() / 10 };
    assert!(lost <= most, "{lost} rounds were lost");
    near
}

/// Rounds of every kind, of each size.
fn experiments(operation: Operation) -> Vec<Experiment> {
    /// Longer than a round trip of most sizes.
    const PAUSE: Picos = Picos(500_000_000);
    let of_size = |size| {
        let round = |quantity, messages, delay| Experiment { quantity, messages, delay, size };
        [
            [round(Quantity::RoundTrip, 1, Picos::ZERO); ROUNDS],
            [round(Quantity::Gap, 10, Picos::ZERO); ROUNDS],
            [round(Quantity::Paced, 3, PAUSE); ROUNDS],
            [round(Quantity::Receive, 1, PAUSE); ROUNDS],
        ]
    };
    let sizes = SIZES.into_iter().filter(|size| operation != Operation::Datagram || *size <= 4_000);
    sizes.flat_map(of_size).flatten().collect()
}

/// Everything between the hello and the goodbye of a session, at both ends.
fn a_session_makes_no_call_but_posts(operation: Operation, inline: Option<u32>) {
    let (near, mut far) = pair(operation, inline);
    let clock = HostClock::monotonic_raw();
    let is_read = operation == Operation::Read;
    let experiments = experiments(operation);
    let (initiator, responder) = (Counts::default(), Counts::default());
    let gates = [const { Gate(AtomicU32::new(0)) }; 4];
    let ends = if is_read { 1 } else { 2 };
    let (mut outgoing, mut incoming, mut buffer) =
        (vec![1; 65_536], vec![1; 65_536], vec![1; 65_536]);
    // Closed when nothing is counted any more.
    let mut kept = None;
    let (before, after) = thread::scope(|scope| {
        scope.spawn(|| {
            initiator.of(&gates, ends, || {
                let posted = near.posted();
                let buffers = Buffers { outgoing: &mut outgoing, incoming: &mut incoming };
                let near = kept.insert(measure(clock, near, buffers, &experiments));
                near.posted() - posted
            });
        });
        if !is_read {
            scope.spawn(|| {
                responder.of(&gates, ends, || {
                    let posted = far.posted();
                    serve(&clock, &mut far, &mut buffer, Bounds::default()).unwrap();
                    far.posted() - posted
                });
            });
        }
        gates[0].sleep_for(ends + 1);
        let before = system_calls();
        gates[1].sleep_for(ends + 1);
        gates[2].sleep_for(ends + 1);
        let after = system_calls();
        gates[3].sleep_for(ends + 1);
        (before, after)
    });
    initiator.check(&format!("{operation} initiator"), &before, &after);
    if !is_read {
        responder.check(&format!("{operation} responder"), &before, &after);
    }
}

impl Counts {
    /// Whether this end did nothing but post.
    fn check(&self, name: &str, before: &Calls, after: &Calls) {
        let thread = self.thread.load(Ordering::SeqCst);
        let more = |(key, count): (&(u64, u64), &u64)| {
            let more = count - before.get(key).copied().unwrap_or(0);
            (key.0 == thread && more > 0).then_some((key.1, more))
        };
        let calls: BTreeMap<u64, u64> = after.iter().filter_map(more).collect();
        let posts = self.posts.load(Ordering::SeqCst);
        let allocations = self.allocations.load(Ordering::SeqCst);
        println!(
            "count {name}: {posts} work requests, {allocations} calls of the allocator, system calls by number: {calls:?}"
        );
        assert_eq!(allocations, 0, "{name} calls the allocator");
        assert_eq!(calls.get(&WRITE), Some(&posts), "{name}: one write a post");
        let others = calls.keys().filter(|id| ![WRITE, RECVFROM].contains(id));
        assert_eq!(others.count(), 0, "{name} makes other system calls: {calls:?}");
        // Whether the peer lives is asked once in 262144 looks that found nothing, which
        // take 2 ms at least: while a busy host runs one end only.
        let asked = calls.get(&RECVFROM).copied().unwrap_or(0);
        let most = self.microseconds.load(Ordering::SeqCst) / 2_000;
        assert!(asked <= most, "{name} asks for the peer {asked} times, over {most}");
    }
}

#[test]
#[ignore = "needs an RDMA device and the kernel's counts of system calls: tests/verbs/count"]
fn between_hello_and_goodbye_nothing_is_called_but_the_provider() {
    let trigger = format!("{EVENT}/trigger");
    fs::write(&trigger, "hist:keys=common_pid,id:size=4096").unwrap();
    for operation in Operation::ALL {
        for inline in [Some(0), None] {
            a_session_makes_no_call_but_posts(operation, inline);
        }
    }
    fs::write(&trigger, "!hist:keys=common_pid,id:size=4096").unwrap();
}

fn receive(link: &mut VerbsLink, buffer: &mut [u8]) -> Result<usize, LinkError> {
    loop {
        if let Some(length) = link.poll_receive(buffer)? {
            return Ok(length);
        }
    }
}

#[test]
#[ignore = "needs an RDMA device: tests/verbs/count"]
fn outside_of_a_session_messages_arrive_whole() {
    let two_way = Operation::ALL.into_iter().filter(|operation| *operation != Operation::Read);
    for operation in two_way {
        for inline in [Some(0), None] {
            let (mut near, mut far) = pair(operation, inline);
            let longest = usize::try_from(near.properties().max_message.0).unwrap();
            let lengths = [1, 2, 3, 64, 65, 219, 220, 221, 1_024, 4_000, 5_000, 65_536];
            for (seed, length) in
                lengths.into_iter().filter(|length| *length <= longest).enumerate()
            {
                // The last byte is 255 in every second message.
                let byte = |at: usize| u8::try_from((at * 7 + at / 251 + seed) % 251).unwrap();
                let mut message: Vec<u8> = (0..length).map(byte).collect();
                if seed % 2 == 1 {
                    *message.last_mut().unwrap() = 255;
                }
                near.send(&message).unwrap();
                let mut arrived = vec![0; length];
                assert_eq!(receive(&mut far, &mut arrived).unwrap(), length, "{operation}");
                assert!(arrived == message, "{operation}: {length} bytes changed on the way");
                far.send(&arrived).unwrap();
                let mut back = vec![0; length];
                assert_eq!(receive(&mut near, &mut back).unwrap(), length, "{operation}");
                assert!(back == message, "{operation}: {length} bytes changed on the way back");
            }
        }
    }
}

/// How the link fails while nothing arrives.
fn error_of(link: &mut VerbsLink) -> String {
    let clock = HostClock::monotonic_raw();
    let (began, limit) = (clock.now(), clock.ticks(Picos(20_000_000_000_000)));
    loop {
        match link.poll_receive(&mut [0; 8_192]) {
            Err(error) => return error.to_string(),
            Ok(_) => assert!(clock.now() - began < limit, "no error"),
        }
    }
}

#[test]
#[ignore = "needs an RDMA device: tests/verbs/count"]
fn a_receive_that_is_too_small_ends_with_its_status() {
    let verbs = VerbsSettings {
        operation: Some(Operation::Send),
        longest_message: 8_192,
        ..VerbsSettings::DEFAULT
    };
    // Messages of up to 8192 bytes here, of up to 512 there.
    let (mut near, mut far) = meddled(verbs, |data, is_answer| {
        if !is_answer {
            data[17] ^= 0x22;
        }
    });
    near.send(&[1; 8_192]).unwrap();
    let error = error_of(&mut near);
    // Remote invalid request; soft-RoCE says remote operation error.
    assert!(error.contains("(status 9,") || error.contains("(status 11,"), "{error}");
    // Local length error; soft-RoCE says local QP operation error.
    let error = error_of(&mut far);
    assert!(error.contains("(status 1,") || error.contains("(status 2,"), "{error}");
    assert!(error.contains("longer than the place posted for it"), "{error}");
}

#[test]
#[ignore = "needs an RDMA device: tests/verbs/count"]
fn an_end_whose_queue_pair_is_in_error_says_so() {
    let verbs =
        VerbsSettings { operation: Some(Operation::WriteImmediate), ..VerbsSettings::DEFAULT };
    // A key of no memory there.
    let (mut near, mut far) = meddled(verbs, |data, is_answer| {
        if is_answer {
            data[45] ^= 0xff;
        }
    });
    near.send(&[1; 64]).unwrap();
    for (link, name) in [(&mut near, "far"), (&mut far, "near")] {
        let first = error_of(link);
        assert!(first.starts_with(name) && first.contains("remote access error"), "{first}");
        assert!(first.contains("(status 10, no vendor code)"), "{first}");
    }
    // What was posted behind it.
    let later = error_of(&mut far);
    assert!(later.contains("flushed") && later.contains("(status 5, no vendor code)"), "{later}");
    assert!(later.contains("the QP is in the error state"), "{later}");
}

#[test]
#[ignore = "needs an RDMA device: tests/verbs/count"]
fn a_byte_on_the_control_connection_ends_the_link_at_either_end() {
    for operation in [Operation::Send, Operation::Write, Operation::Datagram] {
        let (near, far) = connection();
        let (mut to_far, mut to_near) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        let verbs = VerbsSettings { operation: Some(operation), ..VerbsSettings::DEFAULT };
        let (mut near, mut far) = joined(verbs, (near, far));
        assert_eq!(near.poll_receive(&mut [0; 64]).unwrap(), None);
        to_near.write_all(&[1]).unwrap();
        to_far.write_all(&[1]).unwrap();
        for link in [&mut near, &mut far] {
            let error = error_of(link);
            assert!(error.contains("sent bytes over the control connection"), "{error}");
        }
    }
}

#[test]
#[ignore = "needs an RDMA device: tests/verbs/count"]
fn the_control_connection_asks_a_silent_peer_for_forty_seconds() {
    let (near, far) = connection();
    let controls = [near.try_clone().unwrap(), far.try_clone().unwrap()];
    let _joined = joined(VerbsSettings::DEFAULT, (near, far));
    for control in controls {
        assert!(getsockopt(&control, sockopt::KeepAlive).unwrap());
        let silence = getsockopt(&control, sockopt::TcpKeepIdle).unwrap();
        let between = getsockopt(&control, sockopt::TcpKeepInterval).unwrap();
        let questions = getsockopt(&control, sockopt::TcpKeepCount).unwrap();
        assert_eq!(silence + questions * between, 40, "seconds, as docs/verbs.md says");
    }
}

/// Types of service of the RoCE v2 packets that `watcher` has seen, a packet socket:
/// UDP to port 4791 over IPv4 without options over Ethernet.
fn types_of_service(watcher: &OwnedFd) -> BTreeSet<u8> {
    let mut seen = BTreeSet::new();
    let mut packet = [0; 2_048];
    while let Ok(length) = recv(watcher.as_raw_fd(), &mut packet, MsgFlags::MSG_DONTWAIT) {
        let is_udp = packet[12..15] == [0x08, 0x00, 0x45] && packet[23] == 17;
        if length > 42 && is_udp && packet[36..38] == 4_791_u16.to_be_bytes() {
            seen.insert(packet[15]);
        }
    }
    seen
}

#[test]
#[ignore = "needs two RDMA devices: tests/verbs/count"]
fn packets_have_the_traffic_class_that_was_asked_for() {
    for traffic_class in [0, 104] {
        let watcher =
            socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), SockProtocol::EthAll);
        let watcher = watcher.unwrap();
        let device = DeviceName::new("rxe1");
        let verbs = VerbsSettings { device, traffic_class, ..VerbsSettings::DEFAULT };
        let (mut near, mut far) = joined(verbs, connection());
        near.send(&[1; 64]).unwrap();
        assert_eq!(receive(&mut far, &mut [0; 64]).unwrap(), 64);
        assert_eq!(types_of_service(&watcher), BTreeSet::from([traffic_class]));
    }
}

#[test]
#[ignore = "needs an RDMA device: tests/verbs/count"]
fn a_datagram_of_a_stranger_who_knows_the_key_is_dropped() {
    /// Queue pair, address and key of the answering end.
    const STATION: std::ops::Range<usize> = 11..54;
    let verbs = VerbsSettings { operation: Some(Operation::Datagram), ..VerbsSettings::DEFAULT };
    let known = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&known);
    let (mut near, mut far) = meddled(verbs, move |data, is_answer| {
        if is_answer {
            told.lock().unwrap().extend_from_slice(&data[STATION]);
        }
    });
    // One who sends where `near` does.
    let (mut stranger, _other) = meddled(verbs, move |data, is_answer| {
        if is_answer {
            data[STATION].copy_from_slice(&known.lock().unwrap());
        }
    });
    // More than there are places.
    for _ in 0..300 {
        stranger.send(&[7; 64]).unwrap();
        for _ in 0..100 {
            assert_eq!(far.poll_receive(&mut [0; 64]).unwrap(), None, "a stranger's datagram");
        }
    }
    near.send(&[9; 64]).unwrap();
    let mut arrived = [0; 64];
    assert_eq!((receive(&mut far, &mut arrived).unwrap(), arrived), (64, [9; 64]));
}
