//! Raw Ethernet: one frame a message, without IP.

mod door;
mod station;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use loggap_core::measure::{Link, LinkProperties};
use loggap_core::wire::Message;
use loggap_core::wire::ethernet::{Address, BROADCAST};
use nix::errno::Errno;
use nix::poll::PollFlags;

use self::station::{Look, Station};
use super::refused::{Refused, Refusing};
use super::stream::wait_bounded;
use super::{LinkError, LinkSettings, Waiting};

pub(crate) use door::EthDoor;
pub use station::{Shown, parse_address};

/// Messages between this station and another one on the same Ethernet.
///
/// Frames have the form of [`loggap_core::wire::ethernet`]. They may be lost.
/// Two stations hold one session at a time, since nothing in a frame tells
/// two of them apart.
#[derive(Debug)]
pub struct EthLink {
    station: Station,
    /// The other station; before it is known, messages go to everybody.
    peer: Option<Address>,
    /// What errors call it.
    name: String,
    settings: LinkSettings,
    /// The message by which a door learned of this peer, not yet given to
    /// the caller.
    first: Option<Vec<u8>>,
    /// Tells the door that this peer still has a link.
    _alive: Arc<()>,
}

/// Frames of others that one look passes over.
const MOST_FOREIGN: usize = 64;

impl EthLink {
    /// A link over `interface` to `peer`, or to the first station that
    /// answers. Nothing is sent: whether somebody is there shows with the
    /// first answer.
    ///
    /// # Errors
    ///
    /// [`LinkError::Interface`] when there is no such Ethernet interface, it
    /// is down, or this process may not use it.
    pub fn open(
        interface: &str,
        peer: Option<Address>,
        settings: LinkSettings,
    ) -> Result<Self, LinkError> {
        let name = match peer {
            Some(peer) => format!("station {} on {interface}", Shown(peer)),
            None => format!("a station on {interface}"),
        };
        let station = Station::open(interface)?;
        Ok(Self { station, peer, name, settings, first: None, _alive: Arc::default() })
    }

    /// The peer's address and interface.
    #[must_use]
    pub fn peer(&self) -> &str {
        &self.name
    }

    /// The interface.
    #[must_use]
    pub fn interface(&self) -> &str {
        self.station.interface()
    }

    /// This station's address.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.station.address()
    }

    #[inline]
    fn look(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        if let Some(first) = self.first.take() {
            return Ok(copy(&first, buffer));
        }
        for _ in 0..MOST_FOREIGN {
            let frame = match self.station.look() {
                Ok(Look::Frame(frame)) => frame,
                Ok(Look::Foreign) => continue,
                Ok(Look::Nothing) => return Ok(None),
                Err(error) => return Err(failed(&self.name, "recv", error)),
            };
            let (source, message) = (frame.source(), frame.message());
            match self.peer {
                Some(peer) if peer == source => {}
                None if frame.destination() != BROADCAST && is_answer(message) => {
                    self.peer = Some(source);
                }
                _ => continue,
            }
            if let Some(length) = copy(message, buffer) {
                return Ok(Some(length));
            }
        }
        Ok(None)
    }
}

impl AsFd for EthLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.station.as_fd()
    }
}

impl Refusing for EthLink {
    #[inline]
    fn try_send(&mut self, message: &[u8]) -> Result<(), Errno> {
        self.station.send(self.peer.unwrap_or(BROADCAST), message)
    }

    fn refused(&self, message: &[u8]) -> Refused<'_> {
        Refused {
            socket: self.station.as_fd(),
            peer: &self.name,
            settings: &self.settings,
            length: message.len(),
            longest: self.station.longest().0,
        }
    }
}

impl Link for EthLink {
    type Error = LinkError;

    fn properties(&self) -> LinkProperties {
        LinkProperties { max_message: self.station.longest(), reliable: false }
    }

    #[inline]
    fn send(&mut self, message: &[u8]) -> Result<(), LinkError> {
        self.send_in_time(message)
    }

    #[inline]
    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, LinkError> {
        match self.look(buffer)? {
            None if self.settings.waiting == Waiting::Block => {
                wait_bounded(self.station.as_fd(), PollFlags::POLLIN)
                    .map_err(|error| LinkError::from_io(&self.name, "poll", error))?;
                self.look(buffer)
            }
            looked => Ok(looked),
        }
    }

    fn discard(&mut self) -> Result<(), LinkError> {
        // A peer that sends faster than this reads must not hold us here.
        const MOST: usize = 1 << 16;
        self.first = None;
        for _ in 0..MOST {
            match self.station.look() {
                Ok(Look::Nothing) => break,
                Ok(Look::Frame(_) | Look::Foreign) => {}
                Err(error) => return Err(failed(&self.name, "recv", error)),
            }
        }
        Ok(())
    }
}

/// Whether this is what a responder says to a greeting.
fn is_answer(message: &[u8]) -> bool {
    matches!(
        Message::parse(message),
        Ok(Message::Welcome(_) | Message::Queue { .. } | Message::Refuse(_))
    )
}

/// A message longer than `buffer` is longer than both ends agreed on. Anybody
/// on the Ethernet can send one, so it is passed over like a foreign frame.
fn copy(message: &[u8], buffer: &mut [u8]) -> Option<usize> {
    buffer.get_mut(..message.len())?.copy_from_slice(message);
    Some(message.len())
}

#[cold]
fn failed(name: &str, action: &'static str, error: Errno) -> LinkError {
    LinkError::from_io(name, action, error.into())
}
