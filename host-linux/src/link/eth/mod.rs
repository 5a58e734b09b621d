//! Raw Ethernet link: one frame a message, without IP.

mod filter;
mod station;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use loggap_core::units::Bytes;
use loggap_core::wire::Message;
use loggap_core::wire::ethernet::{Address, BROADCAST};
use nix::errno::Errno;

use super::datagram::{DatagramLink, DatagramSocket, Received};
use super::{LinkError, LinkFingerprint, LinkSettings, Transport};

pub(crate) use station::{Arrived, Senders, Station};
pub use station::{Shown, parse_address};

/// Link to another station on the same Ethernet.
///
/// Frames are those of [`loggap_core::wire::ethernet`], and may be lost. Two stations can have one
/// session at a time, because frames carry no session number.
pub type EthLink = DatagramLink<EthSocket>;

/// Socket for frames to and from one peer.
#[derive(Debug)]
pub struct EthSocket {
    station: Station,
    /// Address of the peer; while it is unknown, messages are broadcast.
    peer: Option<Address>,
    /// Reference count shared with the listener, which thus learns that the link was dropped.
    _alive: Arc<()>,
}

impl EthLink {
    /// Opens a link over `interface` to `peer`, or to the first station that answers. Nothing is
    /// sent: only the first answer shows that the peer exists.
    ///
    /// # Errors
    ///
    /// [`LinkError::Interface`] if there is no such Ethernet interface, it is down, or this process
    /// may not use it.
    pub fn open(
        interface: &str,
        peer: Option<Address>,
        settings: LinkSettings,
    ) -> Result<Self, LinkError> {
        let (name, senders) = match peer {
            Some(peer) => (name(peer, interface), Senders::One(peer)),
            None => (format!("a station on {interface}"), Senders::Any),
        };
        let station = Station::open(interface, senders)?;
        let socket = EthSocket { station, peer, _alive: Arc::default() };
        Ok(Self::unanswered(socket, name, settings))
    }

    /// A listener's link to `peer`, whose `hello` has been read on another socket. `alive` is
    /// dropped with the link.
    pub(crate) fn accepted(
        station: Station,
        peer: Address,
        hello: Vec<u8>,
        alive: Arc<()>,
        settings: LinkSettings,
    ) -> Self {
        let name = name(peer, station.interface());
        let socket = EthSocket { station, peer: Some(peer), _alive: alive };
        Self::over(socket, name, Some(hello), settings)
    }

    /// Name of the interface.
    #[must_use]
    pub fn interface(&self) -> &str {
        self.socket().station.interface()
    }

    /// Address of this station.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.socket().station.address()
    }
}

/// Name of a station in errors.
fn name(station: Address, interface: &str) -> String {
    format!("station {} on {interface}", Shown(station))
}

impl AsFd for EthSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.station.as_fd()
    }
}

impl DatagramSocket for EthSocket {
    const TRANSPORT: Transport = Transport::Eth;

    fn describe(&self, basic: LinkFingerprint) -> LinkFingerprint {
        basic.on_interface(self.station.interface().to_owned())
    }

    fn longest(&self) -> Bytes {
        self.station.longest()
    }

    #[inline]
    fn try_send(&mut self, message: &[u8]) -> Result<(), Errno> {
        self.station.send(self.peer.unwrap_or(BROADCAST), message)
    }

    #[inline]
    fn try_receive(&mut self, buffer: &mut [u8]) -> Result<Received, Errno> {
        /// Limit on the foreign frames that one call skips.
        const MOST_FOREIGN: usize = 64;
        for _ in 0..MOST_FOREIGN {
            let frame = match self.station.receive()? {
                Arrived::Frame(frame) => frame,
                Arrived::Foreign => continue,
                Arrived::Nothing => return Ok(Received::Nothing),
            };
            let (source, message) = (frame.source(), frame.message());
            let length = message.len();
            // A message longer than both ends agreed on is skipped like a foreign frame, because
            // any station on the Ethernet could have sent it.
            let room = buffer.get_mut(..length);
            match self.peer {
                Some(peer) if peer != source => continue,
                None if frame.destination() == BROADCAST || !is_answer(message) => continue,
                _ => {}
            }
            if let Some(room) = room {
                room.copy_from_slice(message);
            }
            let fitted = buffer.len() >= length;
            if self.peer.is_none() {
                self.settle(source);
            }
            if fitted {
                return Ok(Received::Message(length));
            }
        }
        Ok(Received::Nothing)
    }
}

impl EthSocket {
    /// Fixes the station that has answered as the peer.
    #[cold]
    fn settle(&mut self, peer: Address) {
        self.peer = Some(peer);
        // If this fails, frames of other stations are skipped by comparison instead.
        let _kept_out_by_the_comparison = self.station.restrict(Senders::One(peer));
    }
}

/// True if this is a responder's answer to a hello.
fn is_answer(message: &[u8]) -> bool {
    use Message::{Challenge, Queue, Refuse, Welcome};
    matches!(Message::parse(message), Ok(Challenge { .. } | Queue { .. } | Refuse(_) | Welcome(_)))
}
