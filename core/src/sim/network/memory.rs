//! Memory of [`Flows`](super::Flows).

use super::fabric::Fabric;
use crate::sim::lent::lent_memory;

/// Sentinel: no link, no hop, no flow.
pub(super) const NONE: u32 = u32::MAX;

/// Capacity of the fast paths of the queues, for entries in order; that many ranks often do the
/// same at the same time.
const MOST_IN_ORDER: usize = 1 << 16;

/// Flows in a bucket at full load, which is rare.
const FLOWS_OF_BUCKET: usize = 4;

// Links are filled by visiting all their flows: a flow has one cache line.
const _: () = assert!(size_of::<Flow>() == 64, "a flow has 64 bytes");

/// Link, with its state in the solver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    pub(super) capacity: f64,
    /// Load so far, in ps of a host's link.
    pub(super) carried: f64,
    /// Spare capacity; negative while rates are computed.
    pub(super) spare: f64,
    /// Rate of the flows that it limits.
    pub(super) limited_rate: f64,
    /// Upper bound of the rate of its other flows.
    pub(super) fastest: f64,
    /// Remaining volume, at the leader's `since`, of the limited flow that ends second; tells if
    /// the leader ends alone.
    pub(super) second_remaining: f64,
    /// Hop of its newest flow, or [`NONE`].
    pub(super) first: u32,
    /// Number of flows.
    pub(super) flows: u32,
    /// Number of flows that it limits.
    pub(super) limited_flows: u32,
    /// Limited flow that ends first, or [`NONE`].
    pub(super) leader: u32,
    /// Position of the leader's end in the queue of ends, or [`NONE`].
    pub(super) end_position: u32,
    /// Position in the queue of links to be filled, or [`NONE`].
    pub(super) queue_position: u32,
    /// Last pass in which it became the bottleneck of faster flows.
    pub(super) filled_in: u64,
    /// True if it is listed in [`Memory::changed`].
    pub(super) is_changed: bool,
}

/// Hop: a flow on a link, as an element of the link's list of flows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hop {
    pub(super) link: u32,
    pub(super) flow: u32,
    pub(super) next: u32,
    pub(super) before: u32,
}

/// Flow: a message whose bytes are under way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    /// Remaining volume at `since`, in ps of a host's link.
    pub(super) remaining: f64,
    /// Rate, in units of a host's link.
    pub(super) rate: f64,
    /// Full link on which no flow is faster, or [`NONE`] at rate 1.
    pub(super) bottleneck: u32,
    /// Total volume, in ps of a host's link.
    pub(super) volume: u64,
    pub(super) since: u64,
    /// Stamp and record of the message.
    pub(super) created: u64,
    pub(super) seq: u32,
    pub(super) op: u32,
    /// Number of links of its route.
    pub(super) hops: u32,
    /// Position of its end in the queue of ends, or [`NONE`]; a flow with a bottleneck is
    /// represented by that link.
    pub(super) end_position: u32,
}

/// Delivery of a message after the end of its flow, and the messages that wait for it (module
/// `order`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery {
    /// Source and target rank.
    pub(super) pair: u64,
    /// Time from the end of the flow to the arrival of the last byte, ps.
    pub(super) delay: u64,
    /// Neighbours in its bucket of pairs, or [`NONE`].
    pub(super) older: u32,
    pub(super) newer: u32,
    /// Last of the messages that wait for this one; itself if none does.
    pub(super) last_waiting: u32,
    /// Next of these messages, unless it is the last; for a free element, the next free one.
    pub(super) next: u32,
}

/// Entry of the queue of links to be filled, with a rate below which nothing changes on the link.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueuedLink {
    pub(super) rate: f64,
    pub(super) link: u32,
}

/// As [`with_memory_parts`](crate::with_memory_parts), for the parts of a network.
#[macro_export]
macro_rules! with_network_memory_parts {
    ($then:ident $($first:tt)*) => {
        $then! {
            $($first)*
            /// Links.
            links: $crate::sim::network::Link,
            /// Links to be filled, while rates are computed.
            link_queue: $crate::sim::network::QueuedLink,
            /// Links whose flows have changed.
            changed: u32,
            /// Hops of flows on links.
            hops: $crate::sim::network::Hop,
            /// Flows.
            flows: $crate::sim::network::Flow,
            /// Arrival and order of the messages of flows.
            deliveries: $crate::sim::network::Delivery,
            /// Newest flow of each bucket of pairs of ranks.
            buckets: u32,
            /// Ends of flows.
            ends: $crate::sim::Entry,
            /// Ends of flows that end in the order in which they began.
            ends_in_order: $crate::sim::Entry,
            /// Flows without a bottleneck whose end is not queued yet.
            unlimited: u32,
            /// Arrivals of messages whose last byte is in flight.
            arrivals: $crate::sim::Entry,
            /// Arrivals in the order in which flows ended.
            arrivals_in_order: $crate::sim::Entry,
        }
    };
}

with_network_memory_parts!(lent_memory further {});

impl Requirements {
    /// Requirements for at most `messages` messages under way at a time; saturating.
    #[must_use]
    pub fn new(fabric: &impl Fabric, messages: usize) -> Self {
        let links = fabric.links() as usize;
        let in_order = messages.min(MOST_IN_ORDER);
        Self {
            links,
            link_queue: links,
            changed: links,
            hops: messages.saturating_mul(fabric.longest_route() as usize),
            flows: messages,
            deliveries: messages,
            buckets: messages.div_ceil(FLOWS_OF_BUCKET),
            ends: messages,
            ends_in_order: in_order,
            unlimited: messages,
            arrivals: messages,
            arrivals_in_order: in_order,
        }
    }
}
