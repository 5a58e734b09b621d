//! A link of any transport.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsFd;

use loggap_core::measure::Link;

use super::{
    CallTimes, EthLink, LinkError, LinkFingerprint, Queued, ShmLink, TcpLink, Transport, UdpLink,
    UnixLink, VerbsLink,
};
use crate::machine::clock::HostClock;

/// Link of this host. Its descriptor is the socket, or the control socket of shared memory and RDMA
/// verbs.
pub trait HostLink: Link<Error = LinkError> + AsFd + fmt::Debug + Send + 'static {
    /// Transport of the messages.
    fn transport(&self) -> Transport;

    /// The peer's address, path or process.
    fn peer(&self) -> &str;

    /// Properties of the link, as stored in a profile.
    fn fingerprint(&self) -> LinkFingerprint;

    /// Sends a control frame without waiting, regardless of the settings. False if the peer is gone
    /// or accepts nothing: the link is then unusable.
    fn send_at_once(&mut self, frame: &[u8]) -> bool;

    /// State of a peer that waits to be served.
    fn look_while_queued(&mut self) -> Queued;

    /// Times the parts of sending and receiving from now on, which makes messages slower. False if
    /// this link has no such parts.
    fn time_calls(&mut self, clock: HostClock) -> bool {
        let _ = clock;
        false
    }

    /// Stops the timing; returns the medians, for messages of `size_bytes`.
    fn take_call_times(&mut self, size_bytes: u32) -> Option<CallTimes> {
        let _ = size_bytes;
        None
    }
}

/// Work on a link, compiled for each transport.
pub trait LinkVisitor {
    /// Result of the work.
    type Output;

    /// Works on `link`.
    fn visit<L: HostLink>(self, link: L) -> Self::Output;
}

/// A link of any transport. Used as a [`HostLink`], its methods are called dynamically;
/// [`AnyLink::visit`] times a transport's own code.
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

impl AnyLink {
    /// Passes the link with its own type to `visitor`.
    pub fn visit<V: LinkVisitor>(self, visitor: V) -> V::Output {
        match self {
            Self::Tcp(link) => visitor.visit(link),
            Self::Udp(link) => visitor.visit(link),
            Self::Unix(link) => visitor.visit(link),
            Self::Shm(link) => visitor.visit(link),
            Self::Eth(link) => visitor.visit(link),
            Self::Verbs(link) => visitor.visit(*link),
        }
    }
}

impl Deref for AnyLink {
    type Target = dyn HostLink;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Tcp(link) => link,
            Self::Udp(link) => link,
            Self::Unix(link) => link,
            Self::Shm(link) => link,
            Self::Eth(link) => link,
            Self::Verbs(link) => &**link,
        }
    }
}

impl DerefMut for AnyLink {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Tcp(link) => link,
            Self::Udp(link) => link,
            Self::Unix(link) => link,
            Self::Shm(link) => link,
            Self::Eth(link) => link,
            Self::Verbs(link) => &mut **link,
        }
    }
}
