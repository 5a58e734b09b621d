//! Copies of a schedule that has not run, so that one that was loaded once
//! runs often, also side by side.

use super::memory::{Memory, Requirements};
use super::records::Records;
use super::schedule::Schedule;

impl Schedule<'_> {
    /// Memory for [`Schedule::copy`], without what copies share with the
    /// original.
    #[must_use]
    pub const fn copy_requirements(&self) -> Requirements {
        Requirements {
            records: self.records.all().len(),
            edges: 0,
            ranks: self.ranks.len(),
            firsts: 0,
            slots: self.slots.len(),
            crowds: self.crowds.len(),
            index: self.index.len(),
            clocks: self.clocks.len(),
            times: self.records.times.len(),
            next_attempts: self.next_attempts.len(),
            links: self.links.len(),
            done: self.done.len(),
            queue: self.queue.len(),
            places: self.places.len(),
            scratch: 0,
            cpus: self.cpus,
            nics: self.nics,
        }
    }

    /// The same schedule in `memory`, ready to run once; dependencies are
    /// shared. Costs as much as its memory takes to copy. `None` where
    /// `memory` is smaller than [`Schedule::copy_requirements`].
    #[must_use]
    pub fn copy<'n>(&'n self, memory: Memory<'n>) -> Option<Schedule<'n>> {
        let Memory { records, ranks, slots, crowds, index, clocks, .. } = memory;
        let Memory { times, next_attempts, links, done, queue, places, .. } = memory;
        // Only these have content before a run; everything else is 0 or need
        // not be anything.
        let records = records.get_mut(..self.records.all().len())?;
        records.copy_from_slice(self.records.all());
        let ranks = ranks.get_mut(..self.ranks.len())?;
        ranks.copy_from_slice(self.ranks);
        let slots = slots.get_mut(..self.slots.len())?;
        slots.copy_from_slice(self.slots);
        let crowds = crowds.get_mut(..self.crowds.len())?;
        crowds.copy_from_slice(self.crowds);
        let clocks = clocks.get_mut(..self.clocks.len())?;
        let times = times.get_mut(..self.records.times.len())?;
        let done = done.get_mut(..self.done.len())?;
        clocks.fill(0);
        times.fill(0);
        done.fill(0);
        Some(Schedule {
            records: Records::new(records, times),
            edges: self.edges,
            ranks,
            firsts: self.firsts,
            slots,
            crowds,
            index: index.get_mut(..self.index.len())?,
            clocks,
            next_attempts: next_attempts.get_mut(..self.next_attempts.len())?,
            links: links.get_mut(..self.links.len())?,
            done,
            queue: queue.get_mut(..self.queue.len())?,
            places: places.get_mut(..self.places.len())?,
            cpus: self.cpus,
            nics: self.nics,
            sends: self.sends,
        })
    }
}
