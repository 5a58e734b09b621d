//! When processors and interfaces are free.

use super::engine::Engine;
use super::rank::Rank;

/// Clocks; those beyond a rank's last read as 0.
impl<N, O, W> Engine<'_, '_, N, O, W> {
    #[inline]
    pub(super) fn rank(&self, rank: u32) -> &Rank {
        self.ranks.at(rank)
    }

    /// Place of a clock that is not a first one.
    fn extra(&self, rank: u32, offset: usize) -> usize {
        let each = (self.cpus - 1) + 2 * (self.nics - 1);
        rank as usize * each + offset
    }

    fn clock(&self, place: usize) -> u64 {
        debug_assert!(place < self.clocks.len(), "no clock {place}");
        self.clocks.get(place).copied().unwrap_or_default()
    }

    #[inline]
    pub(super) fn cpu(&self, rank: u32, cpu: usize) -> u64 {
        if cpu == 0 { self.rank(rank).cpu } else { self.clock(self.extra(rank, cpu - 1)) }
    }

    #[inline]
    pub(super) fn out(&self, rank: u32, nic: usize) -> u64 {
        if nic == 0 {
            return self.rank(rank).out;
        }
        self.clock(self.extra(rank, self.cpus - 1 + nic - 1))
    }

    #[inline]
    pub(super) fn arrivals(&self, rank: u32, nic: usize) -> u64 {
        if nic == 0 {
            return self.rank(rank).into;
        }
        self.clock(self.extra(rank, self.cpus - 1 + self.nics - 1 + nic - 1))
    }

    fn clock_mut(&mut self, place: usize) -> &mut u64 {
        debug_assert!(place < self.clocks.len(), "no clock {place}");
        match self.clocks.get_mut(place) {
            Some(clock) => clock,
            None => &mut self.ranks.sentinel.cpu,
        }
    }

    #[inline]
    pub(super) fn cpu_mut(&mut self, rank: u32, cpu: usize) -> &mut u64 {
        if cpu == 0 {
            return &mut self.ranks.at_mut(rank).cpu;
        }
        let place = self.extra(rank, cpu - 1);
        self.clock_mut(place)
    }

    #[inline]
    pub(super) fn out_mut(&mut self, rank: u32, nic: usize) -> &mut u64 {
        if nic == 0 {
            return &mut self.ranks.at_mut(rank).out;
        }
        let place = self.extra(rank, self.cpus - 1 + nic - 1);
        self.clock_mut(place)
    }

    #[inline]
    pub(super) fn arrivals_mut(&mut self, rank: u32, nic: usize) -> &mut u64 {
        if nic == 0 {
            return &mut self.ranks.at_mut(rank).into;
        }
        let place = self.extra(rank, self.cpus - 1 + self.nics - 1 + nic - 1);
        self.clock_mut(place)
    }
}
