//! Dependencies: who is released by what.

use super::partition::Partition;
use super::rank::WindowRank;
use super::record::{Kind, NONE, Successors, WindowRecord};
use crate::sim::hooks::Noise;

/// What an operation has reached in an event, for those that wait for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reached {
    Start,
    End,
    /// First its start, then its end.
    Both,
}

impl<N: Noise> Partition<'_, N> {
    /// Releases what waited for no more than that `op` has `reached` this,
    /// on behalf of `creator`.
    #[inline]
    pub(super) fn satisfy(
        &mut self,
        state: &mut WindowRank,
        op: u32,
        (reached, creator): (Reached, u32),
    ) {
        let record = self.shared.at(op);
        match (record.successors(), reached) {
            (Successors::None, _)
            | (Successors::Ends, Reached::Start)
            | (Successors::Starts, Reached::End) => {}
            (Successors::Ends | Successors::Starts, _) => {
                let next = record.next();
                if self.shared.at(next).count_down() {
                    self.release(state, next, creator);
                }
            }
            (Successors::Listed, _) => {
                self.satisfy_listed(state, record.next(), (reached, creator));
            }
        }
    }

    fn satisfy_listed(
        &mut self,
        state: &mut WindowRank,
        list: u32,
        (reached, creator): (Reached, u32),
    ) {
        let edges = self.shared.edges;
        let Some((&[ends, starts], all)) =
            edges.get(list as usize..).and_then(|words| words.split_first_chunk())
        else {
            return;
        };
        let (ends, starts) = (ends as usize, starts as usize);
        let ends_list = all.get(..ends).unwrap_or_default();
        let starts_list = all.get(ends..ends.saturating_add(starts)).unwrap_or_default();
        // Sends, receives, calculations, each in the order of becoming ready.
        let mut ready = [NONE; 3];
        let mut count = |shared: &super::shared::Shared<'_>, list: &[u32]| {
            for &op in list {
                let record = shared.at(op);
                if record.count_down()
                    && let Some(last) = ready.get_mut(record.kind() as usize)
                {
                    shared.push(last, op);
                }
            }
        };
        if reached != Reached::End {
            count(&self.shared, starts_list);
        }
        if reached != Reached::Start {
            count(&self.shared, ends_list);
        }
        self.release_all(state, ready, creator);
    }

    fn release_all(&mut self, state: &mut WindowRank, ready: [u32; 3], creator: u32) {
        let Self { shared, events, .. } = self;
        shared.each_ready(ready, |op| {
            shared.at(op).release(creator, state.released);
            *events += 1;
            shared.enlist(state, op);
        });
    }

    /// Releases an operation.
    #[inline]
    fn release(&mut self, state: &mut WindowRank, op: u32, creator: u32) {
        self.shared.at(op).release(creator, state.released);
        self.events += 1;
        self.shared.enlist(state, op);
    }
}

impl super::shared::Shared<'_> {
    /// Puts a released operation into its list.
    #[inline]
    pub(super) fn enlist(&self, state: &mut WindowRank, op: u32) {
        let record: &WindowRecord = self.at(op);
        state.released += 1;
        let last = match record.kind() {
            Kind::Send => &mut state.sends,
            Kind::Calc => &mut state.calcs,
            Kind::Receive => {
                record.set_time(state.cpu);
                &mut state.receives
            }
        };
        self.push(last, op);
    }
}
