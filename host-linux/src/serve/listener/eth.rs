//! Listener for raw Ethernet: separates the stations on one interface.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Weak};

use loggap_core::wire::ethernet::Address;
use loggap_core::wire::{Admission, Message};

use super::{Arrival, TurnedAway};
use crate::link::{AnyLink, Arrived, EthLink, LinkError, LinkSettings, Senders, Shown, Station};
use crate::serve::hello::{HelloVerifier, frame};

/// Listener on one interface. Each station with a verified address gets a socket of its own.
#[derive(Debug)]
pub(super) struct EthListener {
    /// Socket that receives hellos only.
    station: Station,
    hellos: HelloVerifier,
    /// Stations accepted before, while their links live: a repeated hello of theirs arrives here,
    /// too, and is no new peer.
    taken: Vec<(Address, Weak<()>)>,
}

impl EthListener {
    pub(super) fn open(interface: &str) -> Result<Self, LinkError> {
        let station = Station::open(interface, Senders::Hellos)?;
        let hellos = HelloVerifier::new()
            .map_err(|source| LinkError::Interface { interface: interface.to_owned(), source })?;
        Ok(Self { station, hellos, taken: Vec::new() })
    }

    /// Next station with a verified hello.
    pub(super) fn accept(&mut self, settings: LinkSettings) -> io::Result<Option<Arrival>> {
        self.taken.retain(|(_, link)| link.strong_count() > 0);
        for _ in 0..super::MOST_AT_ONCE {
            let received = match self.station.receive()? {
                Arrived::Nothing => break,
                Arrived::Foreign => continue,
                Arrived::Frame(frame) => frame,
            };
            let (source, message) = (received.source(), received.message());
            if self.taken.iter().any(|(taken, _)| *taken == source) {
                continue;
            }
            match self.hellos.judge(&source, message) {
                None => {}
                Some(Admission::Accepted(_)) => {
                    let hello = message.to_vec();
                    return self.link(source, hello, settings).map(Some).map_err(io::Error::other);
                }
                Some(Admission::Challenged(nonce)) => {
                    // If the answer is lost, the station repeats its hello.
                    let _lost = self.station.send(source, &frame(&Message::Challenge { nonce }));
                }
                Some(Admission::Refused(refusal)) => {
                    let _lost = self.station.send(source, &frame(&Message::Refuse(refusal)));
                    let peer = format!("station {}", Shown(source));
                    return Ok(Some(Arrival::TurnedAway(TurnedAway::refused(peer, refusal))));
                }
            }
        }
        Ok(None)
    }

    fn link(
        &mut self,
        peer: Address,
        hello: Vec<u8>,
        settings: LinkSettings,
    ) -> Result<Arrival, LinkError> {
        let station = self.station.again(Senders::One(peer))?;
        let alive = Arc::new(());
        self.taken.push((peer, Arc::downgrade(&alive)));
        let link = EthLink::accepted(station, peer, hello, alive, settings);
        Ok(Arrival::Client(AnyLink::Eth(link)))
    }
}

impl AsFd for EthListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.station.as_fd()
    }
}
