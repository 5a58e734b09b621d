//! Copies of a schedule that has not run, for runs with other parameters.

use core::ops::Range;
use core::sync::atomic::Ordering::Relaxed;

use super::memory::{Memory, Requirements};
use super::record::WindowRecord;
use super::schedule::Schedule;
use crate::sim::parameters::Parameters;

impl Schedule<'_> {
    /// Memory for [`Schedule::copy`], without what copies share with the
    /// original.
    #[must_use]
    pub const fn copy_requirements(&self) -> Requirements {
        Requirements { edges: 0, firsts: 0, scratch: 0, ..self.requirements }
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
        self.copy_records(records, 0..self.requirements.ops)?;
        self.copy_records(records, self.further_records())?;
        ranks.copy_from_slice(self.ranks);
        slots.copy_from_slice(self.slots);
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
            requirements: self.requirements,
            further: self.further,
            handshakes: self.handshakes,
            sends: self.sends,
        })
    }

    /// Copies some of the records; others were not built.
    fn copy_records(&self, records: &mut [WindowRecord], range: Range<usize>) -> Option<()> {
        records.get_mut(range.clone())?.clone_from_slice(self.records.get(range)?);
        Some(())
    }
}
