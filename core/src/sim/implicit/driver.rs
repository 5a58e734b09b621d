//! Trait of the two drivers: in windows and in global order.

use super::error::ImplicitError;
use super::pool::{NONE, Node};
use super::program::{Program, Transfer};
use super::rank::Rank;
use super::runner::Simulation;
use crate::sim::hooks::Noise;

/// [`Node::created`] and [`Node::parent`] of an element that an event creates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    pub(super) created: u64,
    pub(super) parent: u64,
}

/// A message that leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    /// Rank that sends.
    pub(super) source: u32,
    pub(super) transfer: Transfer,
    /// Stamps [drawn](Driver::draw) for it.
    pub(super) stamps: Stamps,
    /// Arrival time of the first byte on unshared links, ps.
    pub(super) arrival: u64,
    /// (s − 1)·G, ps.
    pub(super) volume: u64,
}

impl Outgoing {
    /// Node contents for the message.
    #[inline]
    pub(super) const fn item(&self, first: u32) -> Node {
        let Stamps { created, parent } = self.stamps;
        Node { next: NONE, first, last: self.transfer.receive, kind: 0, created, parent }
    }
}

/// Driver: selects the next event and transports messages. The rules of events are in
/// [`super::step`], for both drivers.
pub(super) trait Driver: Sized {
    /// True if messages share links, and therefore arrive with their last byte.
    const SHARED: bool;

    /// Stamps of the elements created `now` by an event that was itself created at `parent`.
    fn stamps(now: u64, parent: u64) -> Stamps;

    /// Draws stamps for `count` elements; returns those of the first.
    fn draw(&mut self, stamps: Stamps, count: u32) -> Result<Stamps, ImplicitError>;

    /// Node contents for receives that are posted at `time`.
    #[inline]
    fn receives(item: Node, time: u64) -> Node {
        Node { parent: time, ..item }
    }

    /// Puts a message in flight; `own` is the sending rank.
    fn deliver<P: Program, N: Noise>(
        simulation: &mut Simulation<'_, '_, P, N, Self>,
        own: &mut Rank<P::State>,
        message: &Outgoing,
    ) -> Result<(), ImplicitError>;

    /// Releases the operations of all ranks that have no dependencies.
    fn begin_all<P: Program, N: Noise>(
        simulation: &mut Simulation<'_, '_, P, N, Self>,
    ) -> Result<(), ImplicitError>;

    /// Runs the next event, or the next window; `false` at the end of the run.
    fn advance<P: Program, N: Noise>(
        simulation: &mut Simulation<'_, '_, P, N, Self>,
    ) -> Result<bool, ImplicitError>;
}
