//! Links that lose messages by a rule.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use loggap_core::measure::{Link, LinkProperties};

use crate::timing::go_before_the_first;

/// Which of all datagrams, counted from 1 over both directions, get lost.
#[derive(Clone, Copy, Debug)]
pub enum Loss {
    /// Each whose number is a multiple of this.
    Every(u64),
    /// All after this many.
    AllAfter(u64),
}

impl Loss {
    const fn takes(self, number: u64) -> bool {
        match self {
            Self::Every(period) => number.is_multiple_of(period),
            Self::AllAfter(last) => number > last,
        }
    }
}

/// A link that loses messages on their way out.
#[derive(Debug)]
pub struct LossyLink<L> {
    /// The link that carries the others.
    pub link: L,
    /// Which messages are lost.
    pub loss: Loss,
    /// Messages that were sent so far.
    pub sent: u64,
}

impl<L: Link> Link for LossyLink<L> {
    type Error = L::Error;

    fn properties(&self) -> LinkProperties {
        self.link.properties()
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Self::Error> {
        self.sent += 1;
        if self.loss.takes(self.sent) { Ok(()) } else { self.link.send(message) }
    }

    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Self::Error> {
        self.link.poll_receive(buffer)
    }

    fn discard(&mut self) -> Result<(), Self::Error> {
        self.link.discard()
    }
}

/// A stretch of UDP: forwards between one client and a server until dropped.
#[derive(Debug)]
pub struct Lossy {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    loss: Loss,
    passed: AtomicU64,
    over: AtomicBool,
    client: Mutex<Option<SocketAddr>>,
}

impl Lossy {
    /// A stretch to `server`.
    #[must_use]
    pub fn to(server: SocketAddr, loss: Loss) -> Self {
        let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let back = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        back.connect(server).expect("a server on loopback");
        for socket in [&front, &back] {
            socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        }
        let address = front.local_addr().expect("an address");
        let passed = AtomicU64::new(0);
        let (over, client) = (AtomicBool::new(false), Mutex::new(None));
        let shared = Arc::new(Shared { loss, passed, over, client });
        let sockets = [&front, &back].map(|socket| socket.try_clone().expect("a descriptor"));
        let [front_there, back_there] = sockets;
        let (there, home) = (shared.clone(), shared.clone());
        let threads = vec![
            thread::spawn(move || {
                go_before_the_first();
                there.carry(&front_there, |datagram, from| {
                    *there.client.lock().expect("no panic") = Some(from);
                    let _lost_too = back_there.send(datagram);
                });
            }),
            thread::spawn(move || {
                go_before_the_first();
                home.carry(&back, |datagram, _| {
                    if let Some(client) = *home.client.lock().expect("no panic") {
                        let _lost_too = front.send_to(datagram, client);
                    }
                });
            }),
        ];
        Self { address, shared, threads }
    }

    /// Where clients connect to.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Shared {
    fn carry(&self, from: &UdpSocket, mut on: impl FnMut(&[u8], SocketAddr)) {
        let mut buffer = vec![0; 1 << 16];
        while !self.over.load(Ordering::Relaxed) {
            match from.recv_from(&mut buffer) {
                Ok((length, peer)) => {
                    let number = self.passed.fetch_add(1, Ordering::Relaxed) + 1;
                    if let (false, Some(datagram)) = (self.loss.takes(number), buffer.get(..length))
                    {
                        on(datagram, peer);
                    }
                }
                // Nothing for a while, or the server has gone.
                Err(error) => assert_ne!(error.kind(), ErrorKind::InvalidInput),
            }
        }
    }
}

impl Drop for Lossy {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _panicked_already = thread.join();
        }
    }
}
