//! Copies of a schedule that has not run, for runs with other parameters.

use core::sync::atomic::Ordering::Relaxed;

use super::memory::{Memory, Requirements};
use super::schedule::Schedule;
use crate::sim::parameters::Parameters;
use crate::sim::record::NONE;

impl Schedule<'_> {
    /// Memory for [`Schedule::copy`], without what copies share with the
    /// original.
    #[must_use]
    pub const fn copy_requirements(&self) -> Requirements {
        Requirements {
            records: self.records.len(),
            ops: self.ops as usize,
            edges: 0,
            ranks: self.ranks.len(),
            firsts: 0,
            slots: self.slots.len(),
            words: self.words.len(),
            times: self.times.len(),
            links: self.links.len(),
            receiving: self.receiving.len(),
            scratch: 0,
            partitions: 0,
            shift: self.shift,
        }
    }

    /// The same schedule in `memory`, for a run with `parameters`;
    /// dependencies are shared. `None` where `memory` is smaller than
    /// [`Schedule::copy_requirements`], o + L is 0, or other messages than
    /// with the parameters of the original are above the eager limit.
    #[must_use]
    pub fn copy<'n>(
        &'n self,
        memory: Memory<'n>,
        parameters: Parameters<'n>,
    ) -> Option<Schedule<'n>> {
        if parameters.lookahead().0 == 0 || !parameters.has_limits_of(&self.parameters) {
            return None;
        }
        let Memory { records, ranks, slots, words, times, links, receiving, .. } =
            memory.cut(&self.copy_requirements())?;
        self.copy_records(records, 0, self.ops)?;
        if self.further != NONE {
            self.copy_records(records, self.further, self.handshakes.checked_mul(3)?)?;
        }
        ranks.copy_from_slice(self.ranks);
        let receives = self.receives as usize;
        slots.get_mut(..receives)?.copy_from_slice(self.slots.get(..receives)?);
        for time in &mut *times {
            *time = 0.into();
        }
        for (link, own) in links.iter_mut().zip(self.links) {
            *link = own.load(Relaxed).into();
        }
        Some(Schedule {
            records,
            edges: self.edges,
            ranks,
            firsts: self.firsts,
            slots,
            words,
            times,
            links,
            receiving,
            parameters,
            shift: self.shift,
            ops: self.ops,
            further: self.further,
            handshakes: self.handshakes,
            sends: self.sends,
            receives: self.receives,
        })
    }

    /// Copies so many records from `first` on; what is between was not built.
    fn copy_records(
        &self,
        records: &mut [super::WindowRecord],
        first: u32,
        count: u32,
    ) -> Option<()> {
        let range = first as usize..first.checked_add(count)? as usize;
        let own = self.records.get(range.clone())?;
        for (record, own) in records.get_mut(range)?.iter_mut().zip(own) {
            *record = own.copied();
        }
        Some(())
    }
}
