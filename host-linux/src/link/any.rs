//! A link of any transport.

use std::os::fd::{AsFd, BorrowedFd};

use loggap_core::measure::{Link, LinkProperties};

use super::{
    EthLink, LinkError, Queued, ShmLink, TcpLink, Transport, UdpLink, UnixLink, VerbsLink,
};

/// A link of any transport. Used as a [`Link`] it costs one predictable branch a call; match on it
/// to time a transport's own code.
#[derive(Debug)]
pub enum AnyLink {
    /// TCP.
    Tcp(TcpLink),
    /// UDP.
    Udp(UdpLink),
    /// A Unix stream socket.
    Unix(UnixLink),
    /// Shared memory.
    Shm(ShmLink),
    /// Raw Ethernet.
    Eth(EthLink),
    /// RDMA verbs.
    Verbs(Box<VerbsLink>),
}

macro_rules! each {
    ($any:expr, $link:ident => $call:expr) => {
        match $any {
            AnyLink::Tcp($link) => $call,
            AnyLink::Udp($link) => $call,
            AnyLink::Unix($link) => $call,
            AnyLink::Shm($link) => $call,
            AnyLink::Eth($link) => $call,
            AnyLink::Verbs($link) => $call,
        }
    };
}

impl AnyLink {
    /// Transport of this link.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        match self {
            Self::Tcp(_) => Transport::Tcp,
            Self::Udp(_) => Transport::Udp,
            Self::Unix(_) => Transport::Unix,
            Self::Shm(_) => Transport::Shm,
            Self::Eth(_) => Transport::Eth,
            Self::Verbs(_) => Transport::Verbs,
        }
    }

    /// The peer's address, path or process.
    #[must_use]
    pub fn peer(&self) -> &str {
        each!(self, link => link.peer())
    }

    /// Sends a control frame without waiting, regardless of the settings. False if the peer is gone
    /// or accepts nothing: the link is then unusable.
    pub(crate) fn send_at_once(&mut self, frame: &[u8]) -> bool {
        each!(self, link => link.send_at_once(frame))
    }

    /// State of a peer that waits to be served.
    pub(crate) fn look_while_queued(&mut self) -> Queued {
        each!(self, link => link.look_while_queued())
    }
}

impl AsFd for AnyLink {
    /// The socket; for shared memory and RDMA verbs the control socket.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(link) => link.stream().as_fd(),
            Self::Udp(link) => link.socket().as_fd(),
            Self::Unix(link) => link.stream().as_fd(),
            Self::Shm(link) => link.control().as_fd(),
            Self::Eth(link) => link.socket().as_fd(),
            Self::Verbs(link) => link.as_fd(),
        }
    }
}

impl Link for AnyLink {
    type Error = LinkError;

    fn properties(&self) -> LinkProperties {
        each!(self, link => link.properties())
    }

    fn begin_session(&mut self) {
        each!(self, link => link.begin_session());
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        each!(self, link => link.send(message))
    }

    #[inline]
    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        each!(self, link => link.poll_receive(buffer))
    }

    fn discard(&mut self) -> Result<(), LinkError> {
        each!(self, link => link.discard())
    }
}
