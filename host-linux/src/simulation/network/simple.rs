//! Memory for LogGOPSim's network `simple`.

use loggap_core::sim::Entry;
use loggap_core::sim::network::{Hop, Link, Simple, SimpleMemory, Transmission};

use super::{NetworkError, NetworkPlan, Places, Wiring};
use crate::sys::pages::Pages;

/// A network `simple` of its size, and its memory.
#[derive(Debug)]
pub struct PlacedSimple {
    places: Places,
    links: Pages<Link>,
    hops: Pages<Hop>,
    transmissions: Pages<Transmission>,
    polls: Pages<Entry>,
    alone: Pages<Entry>,
}

impl NetworkPlan {
    /// As [`NetworkPlan::place`], for [`LinkModel::Simple`](super::LinkModel::Simple).
    ///
    /// # Errors
    ///
    /// [`NetworkError`].
    pub fn place_simple(&self, ranks: u32, messages: usize) -> Result<PlacedSimple, NetworkError> {
        let (places, needs) = self.places(ranks, 1, messages)?;
        Ok(PlacedSimple {
            places,
            links: Pages::zeroed(needs.links).map_err(NetworkError::Pages)?,
            hops: Pages::zeroed(needs.hops).map_err(NetworkError::Pages)?,
            transmissions: Pages::zeroed(messages).map_err(NetworkError::Pages)?,
            polls: Pages::zeroed(messages).map_err(NetworkError::Pages)?,
            alone: Pages::zeroed(messages).map_err(NetworkError::Pages)?,
        })
    }
}

impl PlacedSimple {
    /// The network.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Flows`].
    pub fn lend(&mut self) -> Result<Simple<'_, &Wiring>, NetworkError> {
        let memory = SimpleMemory {
            links: &mut self.links,
            hops: &mut self.hops,
            transmissions: &mut self.transmissions,
            polls: &mut self.polls,
            alone: &mut self.alone,
        };
        Ok(Simple::new(&self.places.topology, self.places.tenants(), memory)?)
    }
}
