//! Countdown for periodic actions.

/// Countdown to an action that is due once in `every` ticks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Countdown {
    /// Ticks until the action is due, at least 1.
    left: u32,
    /// Ticks between two actions.
    every: u32,
}

impl Countdown {
    /// An action that is due every `every` ticks.
    pub(super) const fn new(every: u32) -> Self {
        Self { left: every, every }
    }

    pub(super) const fn every(self) -> u32 {
        self.every
    }

    /// Counts one tick; true if the action is due now. It must then be restarted or replaced.
    #[inline(always)]
    pub(super) const fn tick(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    #[inline(always)]
    pub(super) const fn restart(&mut self) {
        self.left = self.every;
    }

    /// Makes the action due at the next tick.
    pub(super) const fn hurry(&mut self) {
        self.left = 1;
    }

    /// True if no tick was counted since the last restart.
    pub(super) const fn has_just_restarted(self) -> bool {
        self.left == self.every
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_once_in_so_many_times_and_sooner_when_hurried() {
        let mut signal = Countdown::new(3);
        let mut ticks = |count: usize| -> Vec<bool> {
            let tick = |_| {
                let due = signal.tick();
                if due {
                    signal.restart();
                }
                due
            };
            (0..count).map(tick).collect()
        };
        assert_eq!(ticks(7), [false, false, true, false, false, true, false]);
        assert!(!signal.has_just_restarted());
        signal.hurry();
        assert!(signal.tick());
        signal.restart();
        assert!(signal.has_just_restarted() && signal.every() == 3);
    }
}
