//! LogGOPSim's network `simple` and its memory.

use std::io;

use loggap_core::sim::Entry;
use loggap_core::sim::network::{
    Hop, Link, Simple, SimpleMemory as Memory, SimpleRequirements as Requirements, Transmission,
};

use super::{NetworkError, NetworkPlan, PlacedRanks, Wiring};
use crate::simulation::memory::owned_memory;
use crate::sys::pages::Pages;

owned_memory! {
    /// Owner of the parts of [`Memory`], each as long as a network requires.
    pub(super) struct OwnedSimple {
        links: Link,
        hops: Hop,
        transmissions: Transmission,
        polls: Entry,
        alone: Entry,
    }
}

/// A network `simple` for a given number of ranks, with its memory.
#[derive(Debug)]
pub struct PlacedSimple {
    placed: PlacedRanks,
    memory: OwnedSimple,
}

impl NetworkPlan {
    /// As [`NetworkPlan::place`], for [`LinkModel::Simple`](super::LinkModel::Simple).
    ///
    /// # Errors
    ///
    /// [`NetworkError`].
    pub fn place_simple(&self, ranks: u32, messages: usize) -> Result<PlacedSimple, NetworkError> {
        let placed = self.placed(ranks, 1, messages)?;
        let needs = Requirements::new(&placed.topology, messages);
        let memory = OwnedSimple::new(&needs).map_err(NetworkError::Pages)?;
        Ok(PlacedSimple { placed, memory })
    }
}

impl PlacedSimple {
    /// The network, in this memory.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Flows`].
    pub fn lend(&mut self) -> Result<Simple<'_, Wiring>, NetworkError> {
        let tenants = self.placed.tenants();
        Ok(Simple::new(&self.placed.topology, tenants, self.memory.lend())?)
    }
}
