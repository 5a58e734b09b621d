//! Connections that carry messages between two processes.
//!
//! Each link does the least that its transport allows: one system call a
//! send for sockets, one copy in and one copy out for shared memory; no
//! allocation, no lock. Everything that can wait has a time limit.

mod any;
mod datagram;
mod endpoint;
mod error;
mod eth;
mod shm;
mod stream;
mod tcp;
mod udp;
mod unix;
mod verbs;

pub use any::AnyLink;
pub use datagram::{DatagramLink, DatagramSocket, Received};
pub use endpoint::{DEFAULT_PORT, Endpoint, EndpointError, Transport, connect};
pub(crate) use endpoint::{canonical, shown, wrong_kind};
pub use error::LinkError;
pub(crate) use eth::{Arrived, Senders, Station};
pub use eth::{EthLink, EthSocket, Shown, parse_address};
pub use shm::{RING_BYTES, ShmLink};
pub use stream::StreamLink;
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

/// The longest message of a link that cuts messages into pieces itself. The
/// bound keeps an absurd size from asking for absurd buffers.
pub const LONGEST_MESSAGE: Bytes = Bytes(1 << 30);

/// What an end does while nothing has arrived.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Waiting {
    /// Look again at once: the lowest latency, and a whole core.
    #[default]
    Poll,
    /// Give the core away: sleep until something arrives, a bounded time
    /// (shared memory: let others run, then look again). For machines where
    /// both ends share a core; wake-ups become part of the latency.
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

/// What a peer does that waits to be served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Queued {
    /// It has said nothing yet; its socket is readable when it does.
    Silent,
    /// Its hello is not there whole, and no socket tells when it is.
    Incomplete,
    /// It can be served.
    Ready,
    /// It has left.
    Gone,
    /// It sends more than somebody has to say who waits.
    Flooding,
    /// What it sends is no frame.
    Foreign,
}

/// How a link waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LinkSettings {
    /// What to do while nothing has arrived.
    pub waiting: Waiting,
    /// How long a peer may take no byte before a send gives up, and how long
    /// connecting may take.
    pub limit: Duration,
    /// How RDMA verbs are used.
    pub verbs: VerbsSettings,
}

impl Default for LinkSettings {
    /// Polling, 10 s.
    fn default() -> Self {
        Self {
            waiting: Waiting::Poll,
            limit: Duration::from_secs(10),
            verbs: VerbsSettings::default(),
        }
    }
}
