//! When processors and interfaces are free.

use super::engine::Engine;
use super::rank::Rank;

/// Of a rank, a processor, or the sending or receiving side of an interface.
#[derive(Clone, Copy, Debug)]
pub(super) enum Clock {
    Cpu(u16),
    Out(u16),
    Into(u16),
}

/// Clocks; those beyond a rank's last read as 0.
impl<N, O, W, S> Engine<'_, '_, N, O, W, S> {
    #[inline]
    pub(super) fn rank(&self, rank: u32) -> &Rank {
        self.ranks.at(rank)
    }

    /// Place of a clock that is not a first one.
    #[inline]
    fn extra(&self, rank: u32, clock: Clock) -> Option<usize> {
        let (Clock::Cpu(index) | Clock::Out(index) | Clock::Into(index)) = clock;
        let offset = usize::from(index).checked_sub(1)?;
        let (cpus, nics) = (self.cpus - 1, self.nics - 1);
        let before = match clock {
            Clock::Cpu(_) => 0,
            Clock::Out(_) => cpus,
            Clock::Into(_) => cpus + nics,
        };
        let place = rank as usize * (cpus + 2 * nics) + before + offset;
        debug_assert!(place < self.clocks.len(), "no clock {place}");
        Some(place)
    }

    #[inline]
    pub(super) fn clock_of(&self, rank: u32, clock: Clock) -> u64 {
        if let Some(place) = self.extra(rank, clock) {
            return self.clocks.get(place).copied().unwrap_or_default();
        }
        let state = self.rank(rank);
        match clock {
            Clock::Cpu(_) => state.cpu,
            Clock::Out(_) => state.out,
            Clock::Into(_) => state.into,
        }
    }

    #[inline]
    pub(super) fn clock_mut(&mut self, rank: u32, clock: Clock) -> &mut u64 {
        let extra = self.extra(rank, clock).and_then(|place| self.clocks.get_mut(place));
        let state = self.ranks.at_mut(rank);
        match (extra, clock) {
            (Some(extra), _) => extra,
            (None, Clock::Cpu(_)) => &mut state.cpu,
            (None, Clock::Out(_)) => &mut state.out,
            (None, Clock::Into(_)) => &mut state.into,
        }
    }
}
