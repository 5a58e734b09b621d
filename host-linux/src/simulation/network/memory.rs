//! Owned memory for networks with fair sharing of links.

use std::io;

use loggap_core::sim::network::{FlowsMemory as Memory, FlowsRequirements as Requirements};

use crate::simulation::memory::owned_memory;
use crate::sys::pages::Pages;

loggap_core::with_network_memory_parts! {
    owned_memory
    /// Owner of the parts of [`Memory`], each as long as a network requires.
    pub(super) struct OwnedFlows;
}
