//! A network of known parameters in front of a responder.
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
//! It is a [`Link`] for the responder, and runs on the responder's thread:
//! initiator, relay and responder need two cores. `arrival` is the kernel's
//! own time stamp of a datagram, so that it does not matter when the relay
//! looks, as long as it looks in time for the delivery. While nothing is due
//! for a while it sleeps.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, SystemTime};

use loggap::clock::HostClock;
use loggap_core::measure::{Clock, Link, LinkProperties};
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

/// The far end of a wire, whose near end is a UDP port on loopback.
#[derive(Debug)]
pub struct Relay {
    wire: Wire,
    clock: HostClock,
    socket: UdpSocket,
    /// Who sent something last.
    initiator: Option<SocketAddr>,
    there: Lane,
    home: Lane,
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

impl Relay {
    /// How long before a delivery the relay stops sleeping: beyond what any
    /// wake-up takes.
    const AWAKE: Picos = Picos(300_000_000);

    /// A relay on a port that the system chooses.
    #[must_use]
    pub fn new(wire: Wire) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).unwrap();
        // Trains of datagrams wait here while the relay sleeps.
        setsockopt(&socket, sockopt::RcvBuf, &(4 << 20)).unwrap();
        let clock = HostClock::calibrated();
        let (there, home) = (Lane::default(), Lane::default());
        Self { wire, clock, socket, initiator: None, there, home }
    }

    /// Where the initiator sends to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    /// Sleeps exactly from now on, on this thread: by default the kernel is
    /// 50 us late.
    pub fn sleep_exactly() {
        set_timerslack(1).unwrap();
    }

    fn now(&self) -> Picos {
        self.clock.duration(self.clock.now())
    }

    /// Takes in what has arrived and sends what is due. What a peer that is
    /// gone does not get is lost, as on any network.
    fn pump(&mut self) {
        while let Some((age, from, datagram)) = receive(&self.socket) {
            self.initiator = from.or(self.initiator);
            let arrival = self.now().since(age);
            self.there.accept(&self.wire, arrival, datagram);
        }
        while let Some(datagram) = self.home.due(self.now()) {
            let _lost = self.initiator.map(|peer| self.socket.send_to(&datagram, peer));
        }
    }

    /// Sleeps until something arrives or a delivery is near, at most 10 ms.
    fn rest(&self) {
        let next = self.there.next().into_iter().chain(self.home.next()).min();
        let left = next.map_or(Picos::MAX, |due| due.since(self.now()).since(Self::AWAKE));
        let wait = Duration::from_nanos(left.0 / 1_000).min(Duration::from_millis(10));
        if wait.is_zero() {
            return;
        }
        let mut sockets = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut sockets, Some(TimeSpec::from(wait)), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => panic!("ppoll: {error}"),
        }
    }
}

impl Link for Relay {
    type Error = io::Error;

    fn properties(&self) -> LinkProperties {
        LinkProperties { max_message: Bytes(65_507), reliable: false }
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let now = self.now();
        self.home.accept(&self.wire, now, message.to_vec());
        self.pump();
        Ok(())
    }

    fn poll_receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.pump();
        let Some(datagram) = self.there.due(self.now()) else {
            self.rest();
            return Ok(None);
        };
        let room = buffer.get_mut(..datagram.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        room.copy_from_slice(&datagram);
        Ok(Some(datagram.len()))
    }

    fn discard(&mut self) -> io::Result<()> {
        self.pump();
        while self.there.due(self.now()).is_some() {}
        Ok(())
    }
}

/// A datagram, its sender, and how long ago the kernel got it.
fn receive(socket: &UdpSocket) -> Option<(Picos, Option<SocketAddr>, Vec<u8>)> {
    // On the stack: a fresh vector of this size would cost page faults.
    let mut bytes = [0; 65_536];
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
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let age = now.saturating_sub(stamp.expect("the kernel stamps every datagram"));
    Some((Picos(u64::try_from(age.as_nanos()).unwrap() * 1_000), from, bytes[..length].to_vec()))
}
