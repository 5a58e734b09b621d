//! The memory that [`Flows`](super::Flows) are lent.

use super::fabric::Fabric;
use crate::sim::lent::lent_memory;
use crate::sim::queues::queue::Entry;

/// No link, no hop, no flow.
pub(super) const NONE: u32 = u32::MAX;

/// Messages that wait in order, at most: as many as ranks often do the same at
/// the same time.
const MOST_IN_ORDER: usize = 1 << 16;

/// Flows of a bucket, where all that there may be are under way; few are, as a rule.
const FLOWS_OF_BUCKET: usize = 4;

// Links look at all flows on them: one takes one line of a cache.
const _: () = assert!(size_of::<Flow>() == 64, "a flow has 64 bytes");

/// A link, and what the solver knows of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    pub(super) capacity: f64,
    /// What it has carried: ps of a host's link.
    pub(super) carried: f64,
    /// What its flows leave of it; less than nothing while rates are computed.
    pub(super) spare: f64,
    /// The rate of the flows whose bottleneck it is.
    pub(super) limited_rate: f64,
    /// At least the rate of the fastest other flow on it.
    pub(super) fastest: f64,
    /// What the one of them that ends second had left at the leader's `since`; says
    /// whether the leader ends alone.
    pub(super) second_remaining: f64,
    /// The hop of its newest flow, or [`NONE`].
    pub(super) first: u32,
    /// Flows on it.
    pub(super) flows: u32,
    /// Those of them whose bottleneck it is.
    pub(super) limited_flows: u32,
    /// The one of these that ends first, or [`NONE`].
    pub(super) leader: u32,
    /// Where the leader's end is in the queue of ends, or [`NONE`].
    pub(super) end_position: u32,
    /// Where the link is in the queue of links to be filled, or [`NONE`].
    pub(super) queue_position: u32,
    /// The last pass in which it became the bottleneck of faster flows.
    pub(super) filled_in: u64,
    /// Whether it is listed in [`Memory::changed`].
    pub(super) is_changed: bool,
}

/// A flow on a link: an element of the list of the link's flows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hop {
    pub(super) link: u32,
    pub(super) flow: u32,
    pub(super) next: u32,
    pub(super) before: u32,
}

/// A message whose bytes are under way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    /// What is left to send at `since`: ps of a host's link.
    pub(super) remaining: f64,
    /// Of a host's link.
    pub(super) rate: f64,
    /// The full link on which no flow is faster, or [`NONE`] at rate 1.
    pub(super) bottleneck: u32,
    /// All that is to be sent.
    pub(super) volume: u64,
    pub(super) since: u64,
    /// The message's stamp and record.
    pub(super) created: u64,
    pub(super) seq: u32,
    pub(super) op: u32,
    /// Links of its route.
    pub(super) hops: u32,
    /// Where its end is in the queue of ends, or [`NONE`]: ends of flows with a
    /// bottleneck are there by the link.
    pub(super) end_position: u32,
}

/// When a message arrives whose flow has ended, and what it waits for (module
/// `order`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery {
    /// The ranks that it goes from and to.
    pub(super) pair: u64,
    /// From its end to the arrival of its last byte.
    pub(super) delay: u64,
    /// The flows before and after it in its bucket of pairs, or [`NONE`].
    pub(super) older: u32,
    pub(super) newer: u32,
    /// The last of the messages that wait until it is through; itself where none does.
    pub(super) last_waiting: u32,
    /// Of it and those the next one, unless it is the last; of a free one, the next
    /// free one.
    pub(super) next: u32,
}

/// A link in the queue of those to be filled, by a rate below which nothing changes on
/// it.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueuedLink {
    pub(super) rate: f64,
    pub(super) link: u32,
}

lent_memory! {
    parts {
        /// Links.
        links: Link,
        /// Links to be filled, while rates are computed.
        link_queue: QueuedLink,
        /// Links whose flows have changed.
        changed: u32,
        /// Flows on links.
        hops: Hop,
        /// Messages whose bytes are under way.
        flows: Flow,
        /// When these arrive, and in which order.
        deliveries: Delivery,
        /// Of each bucket of pairs of ranks its newest flow.
        buckets: u32,
        /// When flows end.
        ends: Entry,
        /// The same, as far as they end in the order in which they began.
        ends_in_order: Entry,
        /// Those without a bottleneck whose end is not in the queue yet.
        unlimited: u32,
        /// Messages whose last byte is under way.
        arrivals: Entry,
        /// The same, as far as they arrive in the order in which flows ended.
        arrivals_in_order: Entry,
    }
    further {}
}

impl Requirements {
    /// For at most so many `messages` under way at a time; saturating.
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
