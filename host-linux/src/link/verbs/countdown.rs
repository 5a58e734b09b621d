//! Something that is due once in so many times.

/// Counts down to the time when it is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Countdown {
    /// Times until it is due, from 1 on.
    left: u32,
    /// Times from one to the next.
    every: u32,
}

impl Countdown {
    /// Due once in `every` times.
    pub(super) const fn new(every: u32) -> Self {
        Self { left: every, every }
    }

    pub(super) const fn every(self) -> u32 {
        self.every
    }

    /// One time more; whether it is due now. It is to be restarted, or replaced, then.
    #[inline(always)]
    pub(super) const fn tick(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    #[inline(always)]
    pub(super) const fn restart(&mut self) {
        self.left = self.every;
    }

    /// Due at the next time.
    pub(super) const fn hurry(&mut self) {
        self.left = 1;
    }

    /// Whether there was no time since it was due.
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
