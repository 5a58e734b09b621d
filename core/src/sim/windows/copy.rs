//! Copies of a schedule that has not run, for runs with other parameters.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::memory::{Memory, Requirements};
use super::record::WindowRecord;
use super::schedule::Schedule;
use crate::sim::parameters::Parameters;

impl Schedule<'_> {
    /// Memory for [`Schedule::copy`], without what copies share with the
    /// original.
    #[must_use]
    pub const fn copy_requirements(&self) -> Requirements {
        self.requirements
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
        let memory = memory.cut(&self.copy_requirements())?;
        self.copy_records(memory.records, 0..self.requirements.ops)?;
        self.copy_records(memory.records, self.further_records())?;
        memory.ranks.copy_from_slice(self.memory.ranks);
        memory.slots.copy_from_slice(self.memory.slots);
        memory.times.fill_with(AtomicU64::default);
        for (link, own) in memory.links.iter_mut().zip(&*self.memory.links) {
            *link = own.load(Relaxed).into();
        }
        Some(Schedule { memory, parameters, ..*self })
    }

    /// Copies some of the records; others were not built.
    fn copy_records(&self, records: &mut [WindowRecord], range: Range<usize>) -> Option<()> {
        records.get_mut(range.clone())?.clone_from_slice(self.memory.records.get(range)?);
        Some(())
    }
}
