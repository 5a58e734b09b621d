//! Releases operations in windows.

use super::partition::Partition;
use super::rank::WindowRank;
use super::shared::{HeapLinks, Shared};
use crate::sim::chain::Chain;
use crate::sim::hooks::{Noise, Observer, Released, Satisfied};
use crate::sim::record::{Kind, Successors};
use crate::sim::release::{Operations, Reached, Ready};

impl<N: Noise, O: Observer> Partition<'_, N, O> {
    /// Releases what waited for no more than what `op` has reached, through
    /// `creator`.
    #[inline]
    pub(super) fn satisfy(
        &mut self,
        (rank, state): (u32, &mut WindowRank),
        (on, creator): (u32, u32),
        reached: Reached,
    ) {
        let (successors, on) = (self.shared.successors(on), self.shared.send_of(on));
        if let (Successors::Listed, list) = successors {
            self.satisfy_listed((rank, state), (list, creator), (on, reached));
            return;
        }
        let Self { shared, observer, .. } = self;
        let told = |op, end| observer.satisfied(&Satisfied { rank, op, on, end });
        if let Some(op) = shared.satisfy_one(successors, reached, told) {
            self.release((rank, state), op, creator);
        }
    }

    fn satisfy_listed(
        &mut self,
        (rank, state): (u32, &mut WindowRank),
        (list, creator): (u32, u32),
        (on, reached): (u32, Reached),
    ) {
        let mut ready = Ready::default();
        let Self { shared, observer, .. } = self;
        let edges = shared.edges;
        let told = |op, end| observer.satisfied(&Satisfied { rank, op, on, end });
        shared.satisfy_listed((list, edges), reached, &mut ready, told);
        while let Some(op) = ready.take(&mut self.shared) {
            self.release((rank, state), op, creator);
        }
    }

    /// Releases an operation.
    #[inline]
    pub(super) fn release(&mut self, (rank, state): (u32, &mut WindowRank), op: u32, creator: u32) {
        self.observer.released(&Released { rank, op: self.shared.send_of(op), cpu: 0 });
        self.shared.at(op).release(creator, state.released);
        self.events += 1;
        let Self { shared, heaps, overlap, .. } = self;
        shared.enlist(overlap.then_some(heaps), state, op);
    }
}

impl Shared<'_> {
    /// Puts a released operation into its list, or its heap.
    #[inline]
    pub(super) fn enlist(
        &mut self,
        heaps: Option<&mut HeapLinks<'_>>,
        state: &mut WindowRank,
        op: u32,
    ) {
        let record = self.at(op);
        state.released += 1;
        let last = match record.kind() {
            Kind::Send => &mut state.sends,
            Kind::Calc => &mut state.calcs,
            Kind::Receive => {
                record.time.set(state.cpu.max(self.time_of(op)));
                &mut state.receives
            }
        };
        match heaps {
            None => self.push(last, op),
            Some(heaps) => self.await_turn(heaps, state, op),
        }
    }
}
