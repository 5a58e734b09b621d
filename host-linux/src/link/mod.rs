//! Connections that carry messages between two processes.
//!
//! Each link does the minimum that its transport allows: one system call a send for sockets; one
//! copy in and one copy out for shared memory; no allocation and no lock. Every wait has a time
//! limit.

mod any;
mod datagram;
mod endpoint;
mod error;
mod eth;
mod fingerprint;
mod shm;
mod stream;
mod tcp;
mod udp;
mod unix;
mod verbs;

pub use any::{AnyLink, HostLink, LinkVisitor};
pub use datagram::{DatagramLink, DatagramSocket, Received};
pub use endpoint::{DEFAULT_PORT, Endpoint, EndpointError, Transport, connect};
pub(crate) use endpoint::{canonical, shown, wrong_kind};
pub use error::LinkError;
pub(crate) use eth::{Arrived, Senders, Station};
pub use eth::{EthLink, EthSocket, Shown, parse_address};
pub use fingerprint::{LinkFingerprint, MpiLibrary};
pub use shm::{RING_BYTES, ShmLink};
pub(crate) use stream::wait_bounded;
pub use stream::{StreamLink, StreamSocket};
pub use tcp::TcpLink;
pub(crate) use udp::path_mtu;
pub use udp::{LONGEST_DATAGRAM, UdpLink, WANTED_RECEIVE_BUFFER, receive_buffer};
pub use unix::UnixLink;
pub use verbs::{
    CallTimes, DeviceName, Operation, VerbsError, VerbsLink, VerbsPort, VerbsRecord, VerbsSettings,
};
pub(crate) use verbs::{OFFER, begins_an_offer};

use std::time::Duration;

use loggap_core::units::Bytes;

/// Longest message of a link that splits messages into pieces itself. The limit prevents absurdly
/// large buffers.
pub const LONGEST_MESSAGE: Bytes = Bytes(1 << 30);

/// Behaviour of an end while no message has arrived.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Waiting {
    /// Poll again immediately: lowest latency, but occupies a core.
    #[default]
    Poll,
    /// Sleep for a bounded time until something arrives (shared memory: yield, then poll again).
    /// For machines on which both ends share a core; wake-ups become part of the latency.
    Block,
}

impl Waiting {
    /// `poll` or `block`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Block => "block",
        }
    }
}

/// State of a peer that waits to be served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Queued {
    /// It has sent nothing yet; its socket becomes readable when it does.
    Silent,
    /// Its hello is missing or incomplete, and its socket does not signal the rest.
    Incomplete,
    /// It is ready to be served.
    Ready,
    /// It has left.
    Gone,
    /// It sends more than a waiting client has to.
    Flooding,
    /// It sends data that are not frames.
    Foreign,
}

/// Waiting, time limit and RDMA settings of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LinkSettings {
    /// Behaviour while no message has arrived.
    pub waiting: Waiting,
    /// Time limit for connecting, and for a send during which the peer accepts no data.
    pub limit: Duration,
    /// Settings for RDMA verbs.
    pub verbs: VerbsSettings,
}

impl Default for LinkSettings {
    /// Polling, with a limit of 10 s.
    fn default() -> Self {
        Self {
            waiting: Waiting::Poll,
            limit: Duration::from_secs(10),
            verbs: VerbsSettings::default(),
        }
    }
}
