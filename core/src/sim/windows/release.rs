//! Dependencies: who is released by what.

use core::sync::atomic::Ordering::Relaxed;

use super::partition::Partition;
use super::rank::WindowRank;
use super::record::{Kind, NONE, WindowRecord};
use super::shared::HeapLinks;
use crate::sim::hooks::Noise;
use crate::sim::record::Successors;

/// What an operation has reached in an event, for those that wait for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reached {
    /// What releases them.
    pub(super) creator: u32,
    /// When it has started, if it has.
    pub(super) start: Option<u64>,
    /// When it ends, if it does.
    pub(super) end: Option<u64>,
}

impl<N: Noise> Partition<'_, N> {
    /// Releases what waited for no more than what `op` has reached: first its
    /// start, then its end.
    #[inline]
    pub(super) fn satisfy(&mut self, state: &mut WindowRank, op: u32, reached: Reached) {
        let record = self.shared.at(op);
        let next = record.next();
        let time = match record.successors() {
            Successors::None => None,
            Successors::Ends => reached.end,
            Successors::Starts => reached.start,
            Successors::Listed => {
                self.satisfy_listed(state, next, reached);
                None
            }
        };
        if let Some(time) = time
            && self.shared.count_down(next, time)
        {
            self.release(state, next, reached.creator);
        }
    }

    fn satisfy_listed(&mut self, state: &mut WindowRank, list: u32, reached: Reached) {
        let edges = self.shared.edges;
        let Some((&[ends, starts], all)) =
            edges.get(list as usize..).and_then(|words| words.split_first_chunk())
        else {
            return;
        };
        let (ends, starts) = (ends as usize, starts as usize);
        debug_assert!(ends + starts <= all.len(), "a list ends where it says");
        let ends_list = all.get(..ends).unwrap_or_default();
        let starts_list = all.get(ends..ends.saturating_add(starts)).unwrap_or_default();
        // Sends, receives, calculations, each in the order of becoming ready.
        let mut ready = [NONE; 3];
        for (list, time) in [(starts_list, reached.start), (ends_list, reached.end)] {
            let Some(time) = time else { continue };
            for &op in list {
                if self.shared.count_down(op, time)
                    && let Some(last) = ready.get_mut(self.shared.at(op).kind() as usize)
                {
                    self.shared.push(last, op);
                }
            }
        }
        self.release_all(state, ready, reached.creator);
    }

    fn release_all(&mut self, state: &mut WindowRank, ready: [u32; 3], creator: u32) {
        let Self { shared, events, heaps, overlap, .. } = self;
        shared.each_ready(ready, |op| {
            shared.at(op).release(creator, state.released);
            *events += 1;
            shared.enlist(overlap.then_some(&mut *heaps), state, op);
        });
    }

    /// Releases an operation.
    #[inline]
    pub(super) fn release(&mut self, state: &mut WindowRank, op: u32, creator: u32) {
        self.shared.at(op).release(creator, state.released);
        self.events += 1;
        let Self { shared, heaps, overlap, .. } = self;
        shared.enlist(overlap.then_some(heaps), state, op);
    }
}

impl super::shared::Shared<'_> {
    /// One operation fewer for `op` to wait for; it may not begin before
    /// `time`. Whether that was the last.
    #[inline]
    fn count_down(&self, op: u32, time: u64) -> bool {
        if let Some(not_before) = self.times.get(op as usize) {
            not_before.store(not_before.load(Relaxed).max(time), Relaxed);
        }
        self.at(op).count_down()
    }

    /// Puts a released operation into its list, or its heap.
    #[inline]
    pub(super) fn enlist(
        &self,
        heaps: Option<&mut HeapLinks<'_>>,
        state: &mut WindowRank,
        op: u32,
    ) {
        let record: &WindowRecord = self.at(op);
        state.released += 1;
        let last = match record.kind() {
            Kind::Send => &mut state.sends,
            Kind::Calc => &mut state.calcs,
            Kind::Receive => {
                record.set_time(state.cpu.max(self.time_of(op)));
                &mut state.receives
            }
        };
        match heaps {
            None => self.push(last, op),
            Some(heaps) => self.await_turn(heaps, state, op),
        }
    }
}
