//! Telling the stations on one interface apart.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Weak};

use loggap_core::wire::Message;
use loggap_core::wire::ethernet::Address;

use super::EthLink;
use super::station::{Look, Shown, Station};
use crate::link::{LinkError, LinkSettings};

/// An interface on which stations are listened for. Each one that greets
/// gets a socket of its own.
#[derive(Debug)]
pub(crate) struct EthDoor {
    station: Station,
    /// Stations that have been taken, for as long as their links live: what
    /// they send arrives here too and is not another peer.
    taken: Vec<(Address, Weak<()>)>,
}

impl EthDoor {
    pub(crate) fn open(interface: &str) -> Result<Self, LinkError> {
        Ok(Self { station: Station::open(interface)?, taken: Vec::new() })
    }

    /// The station whose greeting has arrived; whatever else arrives is
    /// dropped.
    pub(crate) fn accept(&mut self, settings: LinkSettings) -> io::Result<Option<EthLink>> {
        const MOST_AT_ONCE: usize = 1_024;
        self.taken.retain(|(_, link)| link.strong_count() > 0);
        for _ in 0..MOST_AT_ONCE {
            let frame = match self.station.look()? {
                Look::Nothing => break,
                Look::Foreign => continue,
                Look::Frame(frame) => frame,
            };
            let (source, message) = (frame.source(), frame.message());
            let known = self.taken.iter().any(|(taken, _)| *taken == source);
            if known || !matches!(Message::parse(message), Ok(Message::Hello(_))) {
                continue;
            }
            let first = Some(message.to_vec());
            let station = self.station.again().map_err(io::Error::other)?;
            let alive = Arc::new(());
            self.taken.push((source, Arc::downgrade(&alive)));
            let name = format!("station {} on {}", Shown(source), station.interface());
            let peer = Some(source);
            return Ok(Some(EthLink { station, peer, name, settings, first, _alive: alive }));
        }
        Ok(None)
    }
}

impl AsFd for EthDoor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.station.as_fd()
    }
}
