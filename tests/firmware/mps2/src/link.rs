//! The LAN9118 as a [`Link`]: one frame a message.

use loggap_core::measure::{Link, LinkProperties};
use loggap_core::units::Bytes;
use loggap_core::wire::Message;
use loggap_core::wire::ethernet::{self, Address, BROADCAST, EthernetFrame};

use crate::lan9118::{Error, Lan9118};

/// Which station a link talks to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Peer {
    /// Whoever says hello first: of a responder. Nobody else is heard before
    /// its session is over, so that a nonce sent to one cannot serve another.
    FirstHello,
    /// Whoever answers a hello first: of an initiator.
    FirstAnswer,
    /// This one.
    Station(Address),
}

/// A message channel to one station.
pub struct EthernetLink {
    nic: Lan9118,
    peer: Peer,
    frame: [u8; ethernet::MAX_FRAME],
    /// Frames that were not for this link.
    pub foreign: u32,
}

impl EthernetLink {
    /// A link over `nic`.
    pub const fn new(nic: Lan9118, peer: Peer) -> Self {
        Self { nic, peer, frame: [0; ethernet::MAX_FRAME], foreign: 0 }
    }

    /// Begins anew with another peer.
    pub fn set_peer(&mut self, peer: Peer) {
        self.peer = peer;
    }

    /// The station that the link has settled on.
    pub const fn peer(&self) -> Peer {
        self.peer
    }

    /// Frames that arrived damaged, or longer than any of ours.
    pub const fn dropped(&self) -> u32 {
        self.nic.dropped
    }

    /// The message of `frame` and its sender, if it is for this link.
    fn admit<'f>(&self, frame: &'f [u8]) -> Option<(Address, &'f [u8])> {
        let frame = EthernetFrame::parse(frame).ok()?;
        let direct = frame.destination() == self.nic.address();
        let addressed = direct || frame.destination() == BROADCAST;
        let (source, message) = (frame.source(), frame.message());
        let admitted = match self.peer {
            // A hello may be repeated to everybody.
            Peer::Station(peer) => peer == source && addressed,
            Peer::FirstHello => {
                addressed && matches!(Message::parse(message), Ok(Message::Hello(_)))
            }
            Peer::FirstAnswer => {
                let answer = Message::parse(message);
                direct
                    && matches!(
                        answer,
                        Ok(Message::Challenge { .. }
                            | Message::Welcome(_)
                            | Message::Queue { .. }
                            | Message::Refuse(_))
                    )
            }
        };
        admitted.then_some((source, message))
    }
}

impl Link for EthernetLink {
    type Error = Error;

    fn properties(&self) -> LinkProperties {
        LinkProperties::datagrams(Bytes(ethernet::MAX_MESSAGE as u64))
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        let to = match self.peer {
            Peer::Station(peer) => peer,
            Peer::FirstHello | Peer::FirstAnswer => BROADCAST,
        };
        let length = ethernet::emit(to, self.nic.address(), message, &mut self.frame)
            .ok_or(Error::TooLong(message.len()))?;
        self.nic.send(&self.frame[..length])
    }

    fn poll_receive(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Error> {
        let Some(length) = self.nic.receive(&mut self.frame) else { return Ok(None) };
        let Some((source, message)) = self.admit(&self.frame[..length]) else {
            self.foreign = self.foreign.wrapping_add(1);
            return Ok(None);
        };
        // Longer than both ends agreed on: as good as foreign.
        let Some(room) = buffer.get_mut(..message.len()) else { return Ok(None) };
        room.copy_from_slice(message);
        let length = message.len();
        self.peer = Peer::Station(source);
        Ok(Some(length))
    }

    fn discard(&mut self) -> Result<(), Error> {
        // The chip holds fewer frames than this.
        for _ in 0..256 {
            if self.nic.receive(&mut self.frame).is_none() {
                break;
            }
        }
        Ok(())
    }
}
