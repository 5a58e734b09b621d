//! Owned memory for networks with fair sharing of links.

use std::io;

use loggap_core::sim::Entry;
use loggap_core::sim::network::{
    Delivery, Flow, FlowsMemory as Memory, FlowsRequirements as Requirements, Hop, Link, QueuedLink,
};

use crate::simulation::memory::owned_memory;
use crate::sys::pages::Pages;

owned_memory! {
    /// Owner of the parts of [`Memory`], each as long as a network requires.
    pub(super) struct OwnedFlows {
        links: Link,
        link_queue: QueuedLink,
        changed: u32,
        hops: Hop,
        flows: Flow,
        deliveries: Delivery,
        buckets: u32,
        ends: Entry,
        ends_in_order: Entry,
        unlimited: u32,
        arrivals: Entry,
        arrivals_in_order: Entry,
    }
}
