//! What the two drivers, in windows and in global order, do each in its way.

use super::error::ImplicitError;
use super::pool::Item;
use super::program::{Program, Transfer};
use super::rank::Rank;
use super::runner::Simulation;
use crate::sim::hooks::Noise;

/// [`Item::created`] and [`Item::parent`] of what an event creates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    pub(super) created: u64,
    pub(super) parent: u64,
}

/// A message leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    /// The rank that sends.
    pub(super) source: u32,
    pub(super) transfer: Transfer,
    /// What was [drawn](Driver::draw) for it.
    pub(super) stamps: Stamps,
    /// When its first byte arrives, if it shares no link.
    pub(super) arrival: u64,
    /// (s − 1)·G, in ps.
    pub(super) volume: u64,
}

impl Outgoing {
    /// What a node says of it.
    #[inline]
    pub(super) const fn item(&self, first: u32) -> Item {
        let Stamps { created, parent } = self.stamps;
        Item { first, last: self.transfer.receive, kind: 0, created, parent }
    }
}

/// Who has the next event, and how messages get on. The rules of events are
/// in [`super::step`], for both.
pub(super) trait Driver: Sized {
    /// Whether messages share links, so that they are there with their last
    /// byte.
    const SHARED: bool;

    /// The stamps of what an event creates `now` that was itself created at
    /// `parent`.
    fn stamps(now: u64, parent: u64) -> Stamps;

    /// The stamps of the first of `count` things with these.
    fn draw(&mut self, stamps: Stamps, count: u32) -> Result<Stamps, ImplicitError>;

    /// What a node says of receives that are posted at `time`.
    #[inline]
    fn receives(item: Item, time: u64) -> Item {
        Item { parent: time, ..item }
    }

    /// Puts a message on its way; `own` is the rank that sends it.
    fn deliver<P: Program, N: Noise>(
        simulation: &mut Simulation<'_, '_, P, N, Self>,
        own: &mut Rank<P::State>,
        message: &Outgoing,
    ) -> Result<(), ImplicitError>;

    /// Releases what waits for nothing on all ranks.
    fn begin_all<P: Program, N: Noise>(
        simulation: &mut Simulation<'_, '_, P, N, Self>,
    ) -> Result<(), ImplicitError>;

    /// Runs the next event, or the next window; `false` where there is none.
    fn advance<P: Program, N: Noise>(
        simulation: &mut Simulation<'_, '_, P, N, Self>,
    ) -> Result<bool, ImplicitError>;
}
