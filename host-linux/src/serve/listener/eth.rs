//! Telling the stations on one interface apart.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Weak};

use loggap_core::wire::Message;
use loggap_core::wire::ethernet::Address;

use super::{Arrival, TurnedAway};
use crate::link::{AnyLink, Arrived, EthLink, LinkError, LinkSettings, Senders, Shown, Station};
use crate::serve::hello::{HelloVerifier, Verdict, frame};

/// An interface on which stations are listened for. Each one that has said
/// hello from its own address gets a socket of its own.
#[derive(Debug)]
pub(super) struct EthListener {
    /// Gets hellos and nothing else.
    station: Station,
    hellos: HelloVerifier,
    /// Stations that have been taken, for as long as their links live: a hello
    /// that they repeat arrives here too and is not another peer.
    taken: Vec<(Address, Weak<()>)>,
}

impl EthListener {
    pub(super) fn open(interface: &str) -> Result<Self, LinkError> {
        let station = Station::open(interface, Senders::Hellos)?;
        let hellos = HelloVerifier::new()
            .map_err(|source| LinkError::Interface { interface: interface.to_owned(), source })?;
        Ok(Self { station, hellos, taken: Vec::new() })
    }

    /// The station that has said hello.
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
                Verdict::Ignored => {}
                Verdict::Accepted => {
                    let hello = message.to_vec();
                    return self.link(source, hello, settings).map(Some).map_err(io::Error::other);
                }
                Verdict::Answer(answer) => {
                    // A station that has no room for one frame asks again.
                    let _lost = self.station.send(source, &frame(&answer));
                    if let Message::Refuse(refusal) = answer {
                        let peer = format!("station {}", Shown(source));
                        return Ok(Some(Arrival::TurnedAway(TurnedAway::refused(peer, refusal))));
                    }
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
        let link = EthLink::accepted((station, peer), hello, alive, settings);
        Ok(Arrival::Client(AnyLink::Eth(link)))
    }
}

impl AsFd for EthListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.station.as_fd()
    }
}
