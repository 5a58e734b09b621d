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
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use loggap::machine::clock::HostClock;
use loggap_core::measure::{Clock, Link, LinkProperties};
use loggap_core::random::Random;
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

/// What is added to the latency of each datagram.
#[derive(Clone, Copy, Debug, Default)]
pub enum Jitter {
    /// Nothing.
    #[default]
    None,
    /// Any time up to this one, each equally likely.
    Uniform(Picos),
    /// Exponentially distributed with this mean.
    Exponential(Picos),
}

impl Jitter {
    /// Median of what a round trip has more, both ways together, in seconds:
    /// of the sum of two, which for the exponential distribution is Gamma
    /// distributed with shape 2.
    #[must_use]
    pub fn of_round_trip(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Uniform(most) => most.seconds(),
            Self::Exponential(mean) => 1.678_347 * mean.seconds(),
        }
    }

    fn draw(self, random: &mut Random) -> Picos {
        match self {
            Self::None => Picos::ZERO,
            Self::Uniform(most) => Picos((most.0 as f64 * random.unit()) as u64),
            Self::Exponential(mean) => Picos((mean.0 as f64 * -(1.0 - random.unit()).ln()) as u64),
        }
    }
}

/// What happens to datagrams, each as a probability.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mishaps {
    /// It never arrives.
    pub loss: f64,
    /// It arrives late by [`Relay::LATE`], after those sent later.
    pub reordering: f64,
    /// It arrives twice.
    pub duplication: f64,
}

/// The network to emulate, the same in both directions.
#[derive(Clone, Debug)]
pub struct Wire {
    /// `L`.
    pub latency: Picos,
    /// By ascending size, the first from 0 or 1 on.
    pub ranges: Vec<Range>,
    /// What is added to `L`; datagrams stay in their order.
    pub jitter: Jitter,
    /// What happens to some datagrams.
    pub mishaps: Mishaps,
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
    /// Ends the serving from then on.
    deadline: Option<Picos>,
    /// Ends the serving when set.
    over: Option<Arc<AtomicBool>>,
    punctuality: Arc<Punctuality>,
}

/// How many datagrams a relay has passed on, and how many of them so late
/// that who measures the wire measures the relay.
#[derive(Debug, Default)]
pub struct Punctuality {
    passed: AtomicU64,
    late: AtomicU64,
}

impl Punctuality {
    /// Lateness that counts, as a part of the latency.
    const LATE: u64 = 20;
    /// Share of the datagrams that may be late.
    const LATE_AT_MOST: f64 = 0.05;

    fn add(&self, due: Picos, now: Picos, wire: &Wire) {
        self.passed.fetch_add(1, Ordering::Relaxed);
        let is_late = now.since(due).0 > wire.latency.0 / Self::LATE;
        self.late.fetch_add(u64::from(is_late), Ordering::Relaxed);
    }

    /// What it says against the machine when more were late than medians bear.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        let [late, passed] = [&self.late, &self.passed].map(|count| count.load(Ordering::Relaxed));
        let share = late as f64 / passed.max(1) as f64;
        (share > Self::LATE_AT_MOST)
            .then(|| format!("the relay was late with {:.0}% of the datagrams", 100.0 * share))
    }
}

/// One direction.
#[derive(Debug)]
struct Lane {
    free: Picos,
    random: Random,
    /// The latest delivery of a datagram in its order.
    latest: Picos,
    /// Datagrams on the wire with their delivery times, which ascend.
    flying: VecDeque<(Picos, Vec<u8>)>,
}

impl Lane {
    fn new(seed: u64) -> Self {
        let (free, latest) = (Picos::ZERO, Picos::ZERO);
        Self { free, random: Random::new(seed), latest, flying: VecDeque::new() }
    }

    fn accept(&mut self, wire: &Wire, arrival: Picos, datagram: Vec<u8>) {
        let range = wire.range(datagram.len());
        let bytes = Bytes(datagram.len() as u64).after_first();
        let on_wire = range.gap_per_byte.times(bytes).unwrap();
        let start = arrival.max(self.free);
        self.free = start.plus(range.gap).unwrap().plus(on_wire).unwrap();
        let jitter = wire.jitter.draw(&mut self.random);
        let delivery =
            start.plus(wire.latency).unwrap().plus(on_wire).unwrap().plus(jitter).unwrap();
        let Mishaps { loss, reordering, duplication } = wire.mishaps;
        let [lost, twice, late] =
            [loss, duplication, reordering].map(|probability| self.random.unit() < probability);
        if lost {
            return;
        }
        if twice {
            self.fly(delivery.max(self.latest), datagram.clone());
        }
        if late {
            self.fly(delivery.plus(Relay::LATE).unwrap(), datagram);
        } else {
            self.latest = delivery.max(self.latest);
            self.fly(self.latest, datagram);
        }
    }

    fn fly(&mut self, delivery: Picos, datagram: Vec<u8>) {
        let before = self.flying.partition_point(|(other, _)| *other <= delivery);
        self.flying.insert(before, (delivery, datagram));
    }

    /// The next datagram, and when it was due, unless that is after `now`.
    fn due(&mut self, now: Picos) -> Option<(Picos, Vec<u8>)> {
        let (delivery, _) = self.flying.front()?;
        if *delivery > now { None } else { self.flying.pop_front() }
    }

    fn next(&self) -> Option<Picos> {
        self.flying.front().map(|(delivery, _)| *delivery)
    }
}

impl Relay {
    /// How long before a delivery the relay stops sleeping: beyond what any
    /// wake-up takes.
    const AWAKE: Picos = Picos(300_000_000);
    /// How late a datagram is that others overtake.
    pub const LATE: Picos = Picos(2_000_000_000);

    /// A relay on a port that the system chooses.
    #[must_use]
    pub fn new(wire: Wire) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).unwrap();
        // Trains of datagrams wait here while the relay sleeps.
        setsockopt(&socket, sockopt::RcvBuf, &(4 << 20)).unwrap();
        // Not the clock that measures: an error of that one is to show.
        let clock = HostClock::monotonic_raw();
        let (there, home) = (Lane::new(1), Lane::new(2));
        let punctuality = Arc::default();
        Self {
            wire,
            clock,
            socket,
            initiator: None,
            there,
            home,
            deadline: None,
            over: None,
            punctuality,
        }
    }

    /// Whether it is in time, as long as it serves.
    #[must_use]
    pub fn punctuality(&self) -> Arc<Punctuality> {
        Arc::clone(&self.punctuality)
    }

    /// The same relay, whose serving fails after this time from now on, or
    /// once `over` is set.
    #[must_use]
    pub fn until(mut self, time: Duration, over: Arc<AtomicBool>) -> Self {
        let picos = Picos(u64::try_from(time.as_nanos()).unwrap() * 1_000);
        self.deadline = Some(self.now().plus(picos).unwrap());
        self.over = Some(over);
        self
    }

    /// Changes the network from now on.
    pub fn set_wire(&mut self, wire: Wire) {
        self.wire = wire;
    }

    /// Whether serving is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over.as_ref().is_some_and(|over| over.load(Ordering::Relaxed))
            || self.deadline.is_some_and(|deadline| self.now() > deadline)
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
        while let Some((due, datagram)) = self.home.due(self.now()) {
            self.punctuality.add(due, self.now(), &self.wire);
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
        LinkProperties::datagrams(Bytes(65_507))
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let now = self.now();
        self.home.accept(&self.wire, now, message.to_vec());
        self.pump();
        Ok(())
    }

    fn poll_receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if self.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.pump();
        let Some((due, datagram)) = self.there.due(self.now()) else {
            self.rest();
            return Ok(None);
        };
        self.punctuality.add(due, self.now(), &self.wire);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Picos {
        Picos::from_micros(micros).unwrap()
    }

    /// 100 us of latency, and neither gap nor bytes cost anything.
    fn wire(jitter: Jitter, mishaps: Mishaps) -> Wire {
        let range = Range { first: 1, gap: Picos::ZERO, gap_per_byte: PerByte::ZERO };
        Wire { latency: micros(100), ranges: vec![range], jitter, mishaps }
    }

    /// Numbers of datagrams sent 10 us apart, in the order of their delivery.
    fn delivered(wire: &Wire, count: u8) -> Vec<(Picos, u8)> {
        let mut lane = Lane::new(7);
        for number in 0..count {
            lane.accept(wire, micros(10 * u64::from(number)), vec![number]);
        }
        lane.flying.into_iter().map(|(delivery, datagram)| (delivery, datagram[0])).collect()
    }

    #[test]
    fn jitter_keeps_the_order_and_only_adds_to_the_latency() {
        let jitter = Jitter::Exponential(micros(50));
        let delivered = delivered(&wire(jitter, Mishaps::default()), 200);
        assert!(delivered.is_sorted());
        for (at, (delivery, number)) in delivered.iter().enumerate() {
            assert_eq!(at, usize::from(*number));
            assert!(*delivery >= micros(100 + 10 * u64::from(*number)));
        }
    }

    #[test]
    fn a_late_datagram_is_overtaken_by_those_within_its_delay() {
        let mishaps = Mishaps { reordering: 0.1, ..Mishaps::default() };
        let delivered = delivered(&wire(Jitter::None, mishaps), 200);
        assert_eq!(delivered.len(), 200);
        let due = |number: u8| micros(100 + 10 * u64::from(number));
        let late = delivered.iter().filter(|(delivery, number)| *delivery > due(*number));
        let late: Vec<_> = late.collect();
        assert!((10..35).contains(&late.len()), "{} of 200 at 10%", late.len());
        for (delivery, number) in late {
            assert_eq!(*delivery, due(*number).plus(Relay::LATE).unwrap());
        }
    }

    #[test]
    fn some_are_lost_and_some_arrive_twice() {
        let lossy = Mishaps { loss: 0.05, ..Mishaps::default() };
        let left = delivered(&wire(Jitter::None, lossy), 250).len();
        assert!((225..248).contains(&left), "{left} of 250 left at 5% loss");
        let double = Mishaps { duplication: 0.05, ..Mishaps::default() };
        let all = delivered(&wire(Jitter::None, double), 250).len();
        assert!((252..275).contains(&all), "{all} for 250 at 5% duplication");
    }

    #[test]
    fn the_median_of_a_round_trips_jitter_is_what_it_says() {
        let mut random = Random::new(3);
        for jitter in [Jitter::Uniform(micros(100)), Jitter::Exponential(micros(50))] {
            let mut both: Vec<u64> = (0..40_001)
                .map(|_| jitter.draw(&mut random).0 + jitter.draw(&mut random).0)
                .collect();
            both.sort_unstable();
            let median = Picos(both[20_000]).seconds();
            assert!((median / jitter.of_round_trip() - 1.0).abs() < 0.02, "{median} of {jitter:?}");
        }
    }
}
