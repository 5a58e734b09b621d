//! A network of known parameters between two UDP sockets on loopback.
//!
//! The relay keeps every datagram until the LogGP wire it emulates would have
//! delivered it. A wire serves one message at a time in each direction:
//!
//! ```text
//! start    = max(arrival, free)
//! free     = start + g(s) + (s − 1)·G(s)
//! delivery = start + L + (s − 1)·G(s)
//! ```
//!
//! `arrival` is the kernel's own time stamp of the datagram, so that it does
//! not matter how late the relay wakes up, as long as that is less than L. It
//! sleeps until shortly before a delivery and busy-waits for the rest, so
//! that it needs a core only while it delivers: initiator, relay and
//! responder fit on a machine with two cores.

use std::collections::VecDeque;
use std::io::IoSliceMut;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use loggap::clock::HostClock;
use loggap_core::measure::Clock;
use loggap_core::units::{Bytes, PerByte, Picos};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl::set_timerslack;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;

/// Parameters from one message size on.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// First size they hold for, in bytes.
    pub first: usize,
    /// `g`.
    pub gap: Picos,
    /// `G`.
    pub gap_per_byte: PerByte,
}

/// The network to emulate, the same in both directions.
#[derive(Clone, Debug)]
pub struct Wire {
    /// `L`.
    pub latency: Picos,
    /// By ascending size, the first from 0 or 1 on.
    pub ranges: Vec<Range>,
}

impl Wire {
    fn range(&self, size: usize) -> Range {
        *self
            .ranges
            .iter()
            .rev()
            .find(|range| range.first <= size.max(1))
            .expect("a range from size 1 on")
    }
}

/// A running relay; it ends when dropped.
#[derive(Debug)]
pub struct Relay {
    front: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts a relay between whoever sends to [`Relay::address`] first and
    /// the socket that is returned, which is connected to it.
    #[must_use]
    pub fn start(wire: Wire) -> (Self, UdpSocket) {
        let [front, back, responder] =
            [(); 3].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        back.connect(responder.local_addr().unwrap()).unwrap();
        responder.connect(back.local_addr().unwrap()).unwrap();
        let address = front.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || Engine::new(wire, front, back).run(&stopped));
        (Self { front: address, stop, thread: Some(thread) }, responder)
    }

    /// Where the initiator sends to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.front
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed already.
            let _ended = thread.join();
        }
    }
}

/// One direction.
#[derive(Debug, Default)]
struct Lane {
    free: Picos,
    /// Datagrams on the wire with their delivery times, which ascend.
    flying: VecDeque<(Picos, Vec<u8>)>,
}

impl Lane {
    fn accept(&mut self, wire: &Wire, arrival: Picos, datagram: Vec<u8>) {
        let range = wire.range(datagram.len());
        let bytes = Bytes(datagram.len() as u64).after_first();
        let on_wire = range.gap_per_byte.times(bytes).unwrap();
        let start = arrival.max(self.free);
        self.free = start.plus(range.gap).unwrap().plus(on_wire).unwrap();
        let delivery = start.plus(wire.latency).unwrap().plus(on_wire).unwrap();
        self.flying.push_back((delivery, datagram));
    }

    fn due(&mut self, now: Picos) -> Option<Vec<u8>> {
        let (delivery, _) = self.flying.front()?;
        if *delivery > now { None } else { self.flying.pop_front().map(|(_, datagram)| datagram) }
    }

    fn next(&self) -> Option<Picos> {
        self.flying.front().map(|(delivery, _)| *delivery)
    }
}

struct Engine {
    wire: Wire,
    clock: HostClock,
    front: UdpSocket,
    back: UdpSocket,
    /// Who sent to `front` last.
    initiator: Option<SocketAddr>,
    there: Lane,
    home: Lane,
}

impl Engine {
    /// How long before a delivery the relay stops sleeping: beyond what any
    /// wake-up takes.
    const AWAKE: Picos = Picos(150_000_000);

    fn new(wire: Wire, front: UdpSocket, back: UdpSocket) -> Self {
        for socket in [&front, &back] {
            socket.set_nonblocking(true).unwrap();
            setsockopt(socket, sockopt::ReceiveTimestampns, &true).unwrap();
            // Trains of datagrams wait here while the relay sleeps.
            setsockopt(socket, sockopt::RcvBuf, &(4 << 20)).unwrap();
        }
        let clock = HostClock::calibrated();
        Self {
            wire,
            clock,
            front,
            back,
            initiator: None,
            there: Lane::default(),
            home: Lane::default(),
        }
    }

    fn run(mut self, stop: &AtomicBool) {
        // Sleeping is 50 us late by default.
        set_timerslack(1).unwrap();
        while !stop.load(Ordering::Relaxed) {
            self.take_in();
            self.deliver();
            self.rest();
        }
    }

    fn now(&self) -> Picos {
        self.clock.duration(self.clock.now())
    }

    fn take_in(&mut self) {
        while let Some((age, from, datagram)) = receive(&self.front) {
            self.initiator = from.or(self.initiator);
            let arrival = self.now().since(age);
            self.there.accept(&self.wire, arrival, datagram);
        }
        while let Some((age, _, datagram)) = receive(&self.back) {
            let arrival = self.now().since(age);
            self.home.accept(&self.wire, arrival, datagram);
        }
    }

    /// A peer that is gone, or whose buffer is full, loses what was on the
    /// way to it, as on any network.
    fn deliver(&mut self) {
        while let Some(datagram) = self.there.due(self.now()) {
            let _lost = self.back.send(&datagram);
        }
        while let Some(datagram) = self.home.due(self.now()) {
            let _lost = self.initiator.map(|peer| self.front.send_to(&datagram, peer));
        }
    }

    /// Sleeps until something arrives or a delivery is near.
    fn rest(&self) {
        let next = self.there.next().into_iter().chain(self.home.next()).min();
        let wait = match next {
            None => Duration::from_millis(20),
            Some(due) => Duration::from_nanos(due.since(self.now()).since(Self::AWAKE).0 / 1_000),
        };
        if wait.is_zero() {
            return;
        }
        let mut sockets =
            [&self.front, &self.back].map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN));
        match ppoll(&mut sockets, Some(TimeSpec::from(wait)), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => panic!("ppoll: {error}"),
        }
    }
}

/// A datagram, its sender, and how long ago the kernel got it.
fn receive(socket: &UdpSocket) -> Option<(Picos, Option<SocketAddr>, Vec<u8>)> {
    let mut bytes = vec![0; 65_536];
    let mut space = cmsg_space!(TimeSpec);
    let (length, from, stamp) = {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let descriptor = socket.as_raw_fd();
        let message = match recvmsg::<SockaddrStorage>(
            descriptor,
            &mut parts,
            Some(&mut space),
            MsgFlags::empty(),
        ) {
            Ok(message) => message,
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED) => return None,
            Err(error) => panic!("recvmsg: {error}"),
        };
        let stamp = message.cmsgs().unwrap().find_map(|attached| match attached {
            ControlMessageOwned::ScmTimestampns(stamp) => Some(Duration::from(stamp)),
            _ => None,
        });
        let from = message.address.and_then(|address| address.as_sockaddr_in().copied());
        (message.bytes, from.map(|v4| SocketAddr::from((v4.ip(), v4.port()))), stamp)
    };
    bytes.truncate(length);
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let age = now.saturating_sub(stamp.expect("the kernel stamps every datagram"));
    Some((Picos(u64::try_from(age.as_nanos()).unwrap() * 1_000), from, bytes))
}
