//! Plain loops over sockets: an independent measurement of a link.
//!
//! Nothing of `loggap`'s planning, timing or statistics is used; over raw
//! Ethernet its link is.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use loggap::link::{EthLink, LinkSettings, Waiting, parse_address};
use loggap::machine::clock::HostClock;
use loggap::machine::placement;
use loggap_core::measure::{Clock, Link};
use loggap_core::units::Picos;

use crate::cable::{ADDRESSES, CLIENT, Cable, End, INTERFACE, SERVER};

/// Groups of rounds of each kind.
const GROUPS: usize = 301;
/// The first part of them warms up: one in this many.
const WARM_UP: usize = 4;
/// Rounds of a group: one after a pause, and others that follow it at once.
const GROUP: usize = 4;
/// Busy wait before each group.
const PAUSE: Duration = Duration::from_micros(300);
/// Messages of a burst.
const BURST: usize = 10;
/// Longest time for all rounds.
const LONGEST: Duration = Duration::from_secs(4);
/// A message that does not come for so long is lost.
const LOST: Duration = Duration::from_secs(2);

/// How the loops run.
#[derive(Clone, Copy, Debug)]
pub struct Plain {
    /// `tcp`, `udp` or `eth`.
    pub transport: &'static str,
    /// Sleeping or polling.
    pub waiting: Waiting,
    /// Processors, the client's first.
    pub cpus: [usize; 2],
    /// Two sizes for the slope of the gap, if that is wanted.
    pub sizes: Option<[usize; 2]>,
}

/// What they gave: medians, in seconds. Of a round after a pause, and of one
/// that follows others at once: processors wake up and caches are filled
/// meanwhile, so that what is true lies between.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    /// Half a round trip of one byte.
    pub half_rtt: [f64; 2],
    /// Slope of the gap between both sizes, a byte.
    pub gap_per_byte: Option<[f64; 2]>,
}

/// One end and its clock: making one takes a while.
struct Station {
    socket: Socket,
    clock: HostClock,
}

enum Socket {
    Tcp(TcpStream),
    Udp(UdpSocket),
    Eth(Box<EthLink>, Vec<u8>),
}

impl Station {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let Self { socket, clock } = self;
        match socket {
            Socket::Tcp(stream) => {
                let mut sent = 0;
                while sent < message.len() {
                    sent += retry(clock, || stream.write(&message[sent..]))?;
                }
                Ok(())
            }
            Socket::Udp(socket) => retry(clock, || socket.send(message)).map(|_| ()),
            Socket::Eth(link, _) => link.send(message).map_err(io::Error::other),
        }
    }

    /// Receives a whole message of this length.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let Self { socket, clock } = self;
        match socket {
            Socket::Tcp(stream) => {
                let mut got = 0;
                while got < buffer.len() {
                    match retry(clock, || stream.read(&mut buffer[got..]))? {
                        0 => return Err(ErrorKind::UnexpectedEof.into()),
                        more => got += more,
                    }
                }
                Ok(())
            }
            Socket::Udp(socket) => retry(clock, || socket.recv(buffer)).map(|_| ()),
            Socket::Eth(link, room) => {
                let next = || match link.poll_receive(room).map_err(io::Error::other)? {
                    Some(_) => Ok(()),
                    None => Err(ErrorKind::WouldBlock.into()),
                };
                retry(clock, next)
            }
        }
    }
}

fn passed(clock: &HostClock, began: u64) -> Duration {
    Duration::from_nanos(clock.duration(clock.now().saturating_sub(began)).0 / 1_000)
}

/// Calls again while a polled socket has nothing, for a bounded time.
fn retry<T>(clock: &HostClock, mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut began = None;
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let began = *began.get_or_insert_with(|| clock.now());
                if passed(clock, began) > LOST {
                    return Err(ErrorKind::TimedOut.into());
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn prepare_tcp(stream: TcpStream, waiting: Waiting) -> io::Result<Socket> {
    stream.set_nodelay(true)?;
    match waiting {
        Waiting::Block => stream.set_read_timeout(Some(LOST))?,
        Waiting::Poll => stream.set_nonblocking(true)?,
    }
    Ok(Socket::Tcp(stream))
}

fn prepare_udp(socket: UdpSocket, waiting: Waiting) -> io::Result<Socket> {
    match waiting {
        Waiting::Block => socket.set_read_timeout(Some(LOST))?,
        Waiting::Poll => socket.set_nonblocking(true)?,
    }
    Ok(Socket::Udp(socket))
}

fn ethernet(peer: &str, waiting: Waiting) -> io::Result<Socket> {
    let settings = LinkSettings { waiting, ..LinkSettings::default() };
    let link = EthLink::open(INTERFACE, parse_address(peer), settings).map_err(io::Error::other)?;
    let longest = usize::try_from(link.properties().max_message.0).map_err(io::Error::other)?;
    Ok(Socket::Eth(Box::new(link), vec![0; longest]))
}

/// Rounds of one kind: so many messages of so many bytes, one back.
#[derive(Clone, Copy)]
struct Round {
    messages: usize,
    size: usize,
}

impl Plain {
    /// Runs the loops at both ends of `cable`, or on loopback.
    ///
    /// # Errors
    ///
    /// A message was lost or a call failed.
    pub fn run(&self, cable: Option<&Cable>) -> io::Result<Reference> {
        thread::scope(|scope| {
            let (tell, told) = mpsc::channel();
            let server = scope.spawn(move || {
                self.place(cable, End::Server);
                self.answer(cable, &tell)
            });
            let client = scope.spawn(move || {
                self.place(cable, End::Client);
                self.ask(cable, &told)
            });
            let asked = client.join().expect("no panic");
            let answered = server.join().expect("no panic");
            // Where the client stops early the server's receive fails: only its own result counts.
            asked.map_err(|error| answered.err().unwrap_or(error))
        })
    }

    fn place(&self, cable: Option<&Cable>, end: End) {
        if let Some(cable) = cable {
            cable.enter(end);
        }
        let [client, server] = self.cpus;
        // Where it is not allowed the loops run where they may.
        let _ = placement::pin(if end == End::Server { server } else { client });
    }

    fn address(cable: Option<&Cable>, end: End) -> SocketAddr {
        let of_cable = |_| ADDRESSES[end as usize].parse().expect("an address");
        SocketAddr::new(cable.map_or(Ipv4Addr::LOCALHOST.into(), of_cable), 0)
    }

    /// The rounds in their order, groups of all kinds interleaved.
    fn rounds(&self) -> Vec<Round> {
        let mut kinds = vec![Round { messages: 1, size: 1 }];
        for size in self.sizes.into_iter().flatten() {
            kinds.extend([1, BURST].map(|messages| Round { messages, size }));
        }
        let groups: Vec<Round> = kinds.into_iter().flat_map(|kind| [kind; GROUP]).collect();
        groups.repeat(GROUPS)
    }

    fn answer(&self, cable: Option<&Cable>, tell: &Sender<SocketAddr>) -> io::Result<()> {
        let here = Self::address(cable, End::Server);
        let clock = HostClock::calibrated();
        let socket = match self.transport {
            "tcp" => {
                let listener = TcpListener::bind(here)?;
                let _ = tell.send(listener.local_addr()?);
                listener.set_nonblocking(true)?;
                let (stream, _) = retry(&clock, || listener.accept())?;
                stream.set_nonblocking(false)?;
                prepare_tcp(stream, self.waiting)?
            }
            "udp" => {
                let socket = UdpSocket::bind(here)?;
                let _ = tell.send(socket.local_addr()?);
                socket.set_read_timeout(Some(LOST))?;
                let (_, peer) = socket.recv_from(&mut [0; 8])?;
                socket.connect(peer)?;
                prepare_udp(socket, self.waiting)?
            }
            _ => {
                let socket = ethernet(CLIENT, self.waiting)?;
                let _ = tell.send(here);
                socket
            }
        };
        let mut station = Station { socket, clock };
        let mut buffer = vec![0; 1 << 16];
        for Round { messages, size } in self.rounds() {
            for _ in 0..messages {
                station.receive(&mut buffer[..size])?;
            }
            station.send(&buffer[..size])?;
        }
        Ok(())
    }

    fn ask(&self, cable: Option<&Cable>, told: &Receiver<SocketAddr>) -> io::Result<Reference> {
        let there = told.recv_timeout(LOST).map_err(io::Error::other)?;
        let clock = HostClock::calibrated();
        let socket = match self.transport {
            "tcp" => prepare_tcp(TcpStream::connect(there)?, self.waiting)?,
            "udp" => {
                let socket = UdpSocket::bind(Self::address(cable, End::Client))?;
                socket.connect(there)?;
                socket.send(b"here")?;
                prepare_udp(socket, self.waiting)?
            }
            _ => ethernet(SERVER, self.waiting)?,
        };
        let mut station = Station { socket, clock };
        let mut buffer = vec![1; 1 << 16];
        let rounds = self.rounds();
        let length = rounds.len() / GROUPS;
        let mut times = vec![Vec::new(); length];
        let began = clock.now();
        for (index, Round { messages, size }) in rounds.into_iter().enumerate() {
            if index % length == 0 && index / length >= 5 && passed(&clock, began) > LONGEST {
                break;
            }
            let idle = clock.now();
            while index % GROUP == 0 && passed(&clock, idle) < PAUSE {}
            let sent = clock.now();
            for _ in 0..messages {
                station.send(&buffer[..size])?;
            }
            station.receive(&mut buffer[..size])?;
            times[index % length].push(clock.duration(clock.now() - sent));
        }
        let medians: Vec<f64> = times.into_iter().map(median).collect();
        // Of each kind the first of a group and the last.
        let both = |kind: usize| [medians[kind * GROUP], medians[kind * GROUP + GROUP - 1]];
        let slope = |[small, large]: [usize; 2]| {
            let of = |which: usize| {
                let gap = |kind: usize| both(kind + 1)[which] - both(kind)[which];
                (gap(3) - gap(1)) / (BURST - 1) as f64 / large.abs_diff(small) as f64
            };
            [of(0), of(1)]
        };
        let half_rtt = both(0).map(|trip| trip / 2.0);
        Ok(Reference { half_rtt, gap_per_byte: self.sizes.map(slope) })
    }
}

/// In seconds, the first ones left out.
fn median(mut values: Vec<Picos>) -> f64 {
    let first = values.len() / WARM_UP;
    let warm = &mut values[first..];
    warm.sort_unstable();
    warm[warm.len() / 2].seconds()
}
