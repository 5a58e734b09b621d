//! When processors and interfaces are free, and whose an operation is.

use super::engine::Engine;
use super::rank::Rank;

/// Clocks; those beyond a rank's last read as 0.
impl<N, O, W> Engine<'_, '_, N, O, W> {
    #[inline]
    pub(super) fn rank(&self, rank: u32) -> &Rank {
        self.ranks.at(rank)
    }

    /// The rank that has an operation.
    #[allow(clippy::cast_possible_truncation, reason = "at most one for each rank")]
    pub(super) fn owner(&self, op: u32) -> u32 {
        self.firsts.partition_point(|&first| first <= op).saturating_sub(1) as u32
    }

    /// First operation of a rank, and the one after its last.
    pub(super) fn bounds(&self, rank: u32) -> (u32, u32) {
        let at = |rank: usize| self.firsts.get(rank).copied().unwrap_or_default();
        (at(rank as usize), at(rank as usize + 1))
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

    /// See [`Engine::times`]; 0 where none are kept.
    #[inline]
    pub(super) fn time_of(&self, op: u32) -> u64 {
        self.times.get(op as usize).copied().unwrap_or_default()
    }

    #[inline]
    pub(super) fn set_time(&mut self, op: u32, time: u64) {
        if let Some(slot) = self.times.get_mut(op as usize) {
            *slot = time;
        }
    }
}
