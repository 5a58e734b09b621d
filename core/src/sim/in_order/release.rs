//! Release of operations.

use super::engine::Engine;
use crate::sim::hooks::{Noise, Observed, Observer, Released};
use crate::sim::network::Network;
use crate::sim::outcome::SimError;
use crate::sim::rank::dependencies::{Operations, Ready};
use crate::sim::rank::rules::Rules;
use crate::sim::rank::{Class, Clock};
use crate::sim::record::{Kind, NONE};
use crate::sim::storage::Storage;

/// Ready operations of one of the ranks that an event touches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touched {
    pub(super) rank: u32,
    pub(super) ready: Ready,
}

impl Default for Touched {
    fn default() -> Self {
        Self { rank: NONE, ready: Ready::default() }
    }
}

impl Touched {
    /// Notes that an event touches `rank`: its own, or at most one other.
    #[inline]
    pub(super) fn note([own, other]: &mut [Self; 2], rank: u32) -> &mut Ready {
        let place = if own.rank == NONE || own.rank == rank { own } else { other };
        debug_assert!(place.rank == NONE || place.rank == rank, "an event touches two ranks");
        place.rank = rank;
        &mut place.ready
    }
}

impl<N: Noise, O: Observer, W: Network, S: Storage> Engine<'_, '_, N, O, W, S> {
    /// Releases the ready operations of a rank.
    #[inline]
    pub(super) fn release(&mut self, touched: Touched) -> Result<(), SimError> {
        let Touched { rank, mut ready } = touched;
        while let Some(op) = ready.take(&mut self.ranks.records) {
            self.release_op(rank, op)?;
        }
        Ok(())
    }

    /// Draws a stamp for an operation and appends it to its list.
    #[inline]
    fn release_op(&mut self, rank: u32, op: u32) -> Result<(), SimError> {
        let seq = self.draw()?;
        let (kind, cpu) = (self.ranks.records.at(op).kind(), self.ranks.records.units_of(op).cpu);
        let number = self.op_number(op);
        let released = Released { rank, op: number, cpu };
        self.charges.observer.observe(Observed::Released(&released));
        let posting = (kind == Kind::Receive).then(|| {
            self.ranks.clock_of(rank, Clock::Cpu(cpu)).max(self.ranks.records.time_of(op))
        });
        self.ranks.records.stamp(op, self.ranks.now, seq);
        if let Some(time) = posting {
            self.ranks.records.at_mut(op).amount = time;
        }
        self.storage.note_released(&mut self.ranks.records, op);
        self.ranks.enlist(rank, Class::of(kind), op);
        Ok(())
    }
}
