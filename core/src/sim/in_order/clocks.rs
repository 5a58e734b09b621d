//! Clocks of all ranks in global order, and the queues that wait for them.

use core::ops::Range;

use crate::sim::in_order::rank::Rank;
use crate::sim::in_order::ranks::Ranks;
use crate::sim::queues::agenda::Agenda;
use crate::sim::queues::queue::Entry;
use crate::sim::rank::Clock;
use crate::sim::record::NONE;
use crate::units::Picos;

/// Groups of records that wait for one clock.
#[derive(Clone, Copy, Debug)]
pub struct ClockQueue {
    /// Root of the heap of groups.
    pub(super) groups: u32,
    /// Group that was added last; [`NONE`] once it has left.
    pub(super) newest: u32,
    /// Position in the heap of clocks.
    place: u32,
}

impl Default for ClockQueue {
    fn default() -> Self {
        Self { groups: NONE, newest: NONE, place: NONE }
    }
}

impl Ranks<'_> {
    #[inline]
    pub(super) fn rank(&self, rank: u32) -> &Rank {
        self.states.at(rank)
    }

    /// Finishing time of `rank`: when its processors are free and its last message is complete.
    pub(super) fn finish(&self, rank: u32) -> Picos {
        let processors =
            (0..=u16::MAX).take(self.cpus).map(|cpu| self.clock_of(rank, Clock::Cpu(cpu))).max();
        let done = self.done.get(rank as usize).copied().unwrap_or_default();
        Picos(processors.unwrap_or_default().max(done))
    }

    #[inline]
    pub(super) fn clock_of(&self, rank: u32, clock: Clock) -> u64 {
        if self.clocks.is_empty() {
            return self.rank(rank).free.of(clock);
        }
        let place = self.clocks_of(rank).start + self.clock_number(clock);
        debug_assert!(place < self.clocks.len(), "no clock {place}");
        self.clocks.get(place).copied().unwrap_or_default()
    }

    #[inline]
    pub(super) fn set_clock(&mut self, rank: u32, clock: Clock, time: u64) {
        if self.clocks.is_empty() {
            *self.states.at_mut(rank).free.of_mut(clock) = time;
            return;
        }
        let place = self.clocks_of(rank).start + self.clock_number(clock);
        if let Some(own) = self.clocks.get_mut(place) {
            *own = time;
        }
    }

    /// Range of a rank's clocks among those of all ranks.
    const fn clocks_of(&self, rank: u32) -> Range<usize> {
        let each = self.cpus + 2 * self.nics;
        let first = rank as usize * each;
        first..first + each
    }

    /// Number of a clock on its rank.
    fn clock_number(&self, clock: Clock) -> usize {
        match clock {
            Clock::Cpu(index) => usize::from(index),
            Clock::Out(index) => self.cpus + usize::from(index),
            Clock::Into(index) => self.cpus + self.nics + usize::from(index),
        }
    }

    /// Clock with this number; inverse of `clock_number`.
    #[allow(clippy::cast_possible_truncation, reason = "cpus and nics are counted in 16 bits")]
    pub(super) const fn clock_at(&self, number: u32) -> Clock {
        let number = number as usize;
        if number < self.cpus {
            Clock::Cpu(number as u16)
        } else if number < self.cpus + self.nics {
            Clock::Out((number - self.cpus) as u16)
        } else {
            Clock::Into((number - self.cpus - self.nics) as u16)
        }
    }

    /// Position of a clock's [`ClockQueue`].
    pub(super) fn clock_place(&self, rank: u32, clock: Clock) -> Option<usize> {
        let place = self.clocks_of(rank).start + self.clock_number(clock);
        debug_assert!(place < self.clock_queues.len(), "no clock {place}");
        Some(place).filter(|&place| place < self.clock_queues.len())
    }

    pub(super) fn clock_queue(&self, rank: u32, clock: Clock) -> ClockQueue {
        let place = self.clock_place(rank, clock);
        place.and_then(|place| self.clock_queues.get(place)).copied().unwrap_or_default()
    }

    /// Entry of the earliest clock of a rank for which something waits; its time may be too early.
    pub(super) fn first_clock(&mut self, rank: u32) -> Option<Entry> {
        let first = self.clock_heap.get(self.clocks_of(rank).start).copied();
        first.filter(|_| *self.states.at_mut(rank).waited_for() > 0)
    }

    /// Updates a clock's position in the heap of clocks for which something waits.
    #[allow(clippy::cast_possible_truncation, reason = "clocks of a rank are counted in 32 bits")]
    pub(super) fn refresh_clock(&mut self, rank: u32, clock: Clock) {
        let ClockQueue { groups, place, .. } = self.clock_queue(rank, clock);
        let (all, number) = (self.clocks_of(rank), self.clock_number(clock));
        let time = self.clock_of(rank, clock).max(self.now);
        let Self { records, states, clock_queues, clock_heap, .. } = self;
        let Some(queues) = clock_queues.get_mut(all.clone()) else { return };
        let Some(heap) = clock_heap.get_mut(all) else { return };
        let waited_for = states.at_mut(rank).waited_for();
        let mut agenda = Agenda::of_heap(heap, *waited_for as usize);
        if groups == NONE && place == NONE {
            return;
        }
        let mut note = |number: usize, place: u32| {
            if let Some(queue) = queues.get_mut(number) {
                queue.place = place;
            }
        };
        if groups == NONE {
            agenda.remove(place as usize, |entry, at| note(entry.index as usize, at as u32));
            note(number, NONE);
        } else {
            let entry = records.at(groups).entry(time, number as u32);
            agenda.set(place as usize, entry, |entry, at| note(entry.index as usize, at as u32));
        }
        *waited_for = agenda.heaped() as u32;
    }
}
