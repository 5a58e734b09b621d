//! The memory that [`Flows`](super::Flows) are lent.

use super::fabric::Fabric;
use crate::sim::lent::lent_memory;
use crate::sim::queue::Entry;

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
    /// The rate of the flows that it holds back.
    pub(super) held_rate: f64,
    /// A rate that none of the others is above.
    pub(super) fastest: f64,
    /// What the second of those that it holds back had left to send when the
    /// leader was found: says whether one end or several are due.
    pub(super) second: f64,
    /// Hop of the flow that took it last, or [`NONE`].
    pub(super) first: u32,
    /// Flows on it.
    pub(super) flows: u32,
    /// Those of them that it holds back.
    pub(super) holds: u32,
    /// The one of these that ends first, or [`NONE`].
    pub(super) leader: u32,
    /// Where in the queue of ends that is, or [`NONE`].
    pub(super) end: u32,
    /// Where it is in the queue of links to be filled, or [`NONE`].
    pub(super) place: u32,
    /// The solution in which it was full last.
    pub(super) filled: u64,
    /// Whether it is listed as one whose flows have changed.
    pub(super) touched: bool,
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
    /// The link that holds it back, or [`NONE`].
    pub(super) held_by: u32,
    /// All that is to be sent.
    pub(super) volume: u64,
    pub(super) since: u64,
    /// The message's stamp and record.
    pub(super) created: u64,
    pub(super) seq: u32,
    pub(super) op: u32,
    /// Links of its route.
    pub(super) hops: u32,
    /// Where it is in the queue of ends, or [`NONE`].
    pub(super) place: u32,
}

/// When a message arrives whose flow has ended, and what it waits for: see
/// [`super::order`].
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

/// A link and the rate below which nothing happens there, in a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    pub(super) rate: f64,
    pub(super) link: u32,
}

lent_memory! {
    parts {
        /// Links.
        links: Link,
        /// Links while rates are computed.
        shares: Share,
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
        /// When they end.
        ends: Entry,
        /// The same, as far as they end in the order in which they began.
        ends_in_order: Entry,
        /// Those that nothing holds back and whose end is not noted yet.
        unheld: u32,
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
            shares: links,
            changed: links,
            hops: messages.saturating_mul(fabric.longest_route() as usize),
            flows: messages,
            deliveries: messages,
            buckets: messages.div_ceil(FLOWS_OF_BUCKET),
            ends: messages,
            ends_in_order: in_order,
            unheld: messages,
            arrivals: messages,
            arrivals_in_order: in_order,
        }
    }
}
