//! What each link costs.
//!
//! `round_trip`: one message of 64 bytes there and back, to a thread that
//! echoes on another core. `send`: one message of 64 bytes after another, to
//! a thread that empties the link as fast as it can. `read`: one reading of
//! each clock.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "benchmarks end when an assumption is wrong"
)]

use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::thread;

use criterion::{Criterion, criterion_group, criterion_main};
use loggap::link::{AnyLink, LinkError, LinkSettings, ShmLink, TcpLink, UdpLink, UnixLink};
use loggap::machine::clock::HostClock;
use loggap::machine::placement::{Placement, Topology, allowed, pin};
use loggap_core::measure::{Clock, Link};

fn shm() -> (ShmLink, ShmLink) {
    let (near, far) = UnixStream::pair().unwrap();
    let near = ShmLink::create(near, "far".into(), LinkSettings::default()).unwrap();
    (near, ShmLink::join(far, "near".into(), LinkSettings::default()).unwrap())
}

fn pairs() -> [(AnyLink, AnyLink); 4] {
    let settings = LinkSettings::default();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpLink::connect(listener.local_addr().unwrap(), settings).unwrap();
    let far = TcpLink::from_stream(listener.accept().unwrap().0, settings).unwrap();
    let tcp = (AnyLink::Tcp(near), AnyLink::Tcp(far));
    let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    near.connect(far.local_addr().unwrap()).unwrap();
    far.connect(near.local_addr().unwrap()).unwrap();
    let [near, far] =
        [near, far].map(|socket| UdpLink::from_socket(socket, None, settings).unwrap());
    let udp = (AnyLink::Udp(near), AnyLink::Udp(far));
    let (near, far) = UnixLink::pair(settings).unwrap();
    let unix = (AnyLink::Unix(near), AnyLink::Unix(far));
    let (near, far) = shm();
    [tcp, udp, unix, (AnyLink::Shm(near), AnyLink::Shm(far))]
}

fn receive(link: &mut dyn Link<Error = LinkError>, buffer: &mut [u8]) -> Result<(), LinkError> {
    while link.poll_receive(buffer)?.is_none() {}
    Ok(())
}

/// Pins this thread and says where both ends belong.
fn placement() -> Placement {
    // A pinned thread is allowed where it is pinned: ask only once.
    static CHOSEN: OnceLock<Placement> = OnceLock::new();
    let choose = || {
        let allowed = allowed();
        Placement::choose(&allowed, &Topology::of(&allowed)).unwrap()
    };
    let placement = *CHOSEN.get_or_init(choose);
    pin(placement.initiator).unwrap();
    placement
}

fn round_trips(criterion: &mut Criterion) {
    let placement = placement();
    let mut group = criterion.benchmark_group("round_trip");
    for (mut near, mut far) in pairs() {
        let name = near.transport().name();
        let echo = thread::spawn(move || {
            pin(placement.responder).unwrap();
            let mut message = [0; 64];
            // A message that begins with 1 is the last.
            while receive(&mut *far, &mut message).is_ok() && message[0] == 0 {
                far.send(&message).unwrap();
            }
        });
        let mut message = [0; 64];
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                near.send(&message).unwrap();
                receive(&mut *near, &mut message).unwrap();
            });
        });
        message[0] = 1;
        near.send(&message).unwrap();
        echo.join().unwrap();
    }
    group.finish();
}

/// One message a call into a socket or a ring that somebody empties: the
/// call itself, with what the receiving thread makes the sender wait.
fn sends(criterion: &mut Criterion) {
    let placement = placement();
    let mut group = criterion.benchmark_group("send");
    for (mut near, mut far) in pairs() {
        let name = near.transport().name();
        let drain = thread::spawn(move || {
            pin(placement.responder).unwrap();
            let mut message = [0; 64];
            while receive(&mut *far, &mut message).is_ok() && message[0] == 0 {}
        });
        group.bench_function(name, |bencher| bencher.iter(|| near.send(&[0; 64]).unwrap()));
        // Datagrams may be lost: repeat until the other end has gone.
        while near.send(&[1; 64]).is_ok() && !drain.is_finished() {}
        drain.join().unwrap();
    }
    group.finish();
}

/// What a reading of each clock costs.
fn clocks(criterion: &mut Criterion) {
    for clock in [HostClock::calibrated(), HostClock::monotonic_raw()] {
        criterion.bench_function(&format!("read/{}", clock.source().name()), |bencher| {
            bencher.iter(|| clock.now());
        });
    }
}

criterion_group!(benches, clocks, sends, round_trips);
criterion_main!(benches);
