//! Polling for a message with few readings of the clock, so that they do not disturb the timing.

use crate::measure::{Clock, Link};

/// Time limit of a wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Deadline {
    /// Reading of the clock at or before the beginning of the wait, in ticks.
    pub since: u64,
    /// Longest wait, in ticks.
    pub limit: u64,
}

/// Polls a link and reads the clock once in several polls.
///
/// The number of polls between two readings (the stride) adapts. It doubles if they took less than
/// a 64th of the limit, so that readings hardly disturb a link that is polled in nanoseconds, and
/// halves if they took longer, so that a link whose polls block exceeds its limit by little. Keep
/// one poller for the lifetime of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Poller {
    stride: u32,
    /// Last reading of the clock, in ticks.
    looked: u64,
}

impl Default for Poller {
    fn default() -> Self {
        Self { stride: 1, looked: 0 }
    }
}

impl Poller {
    /// Most polls between two readings of the clock.
    const LONGEST_STRIDE: u32 = 256;

    /// Last reading of the clock, in ticks; 0 if there was none.
    pub(super) const fn looked(&self) -> u64 {
        self.looked
    }

    /// Polls until a message is complete and returns its length, or `None` once the deadline has
    /// passed.
    ///
    /// If the polls between two readings take longer than the whole limit, this process was
    /// stopped, perhaps with its peer: by Ctrl-Z, or in a virtual machine that was suspended or
    /// moved. The wait is then restarted, once.
    ///
    /// # Errors
    ///
    /// Errors of [`Link::wait_receive`].
    #[cfg_attr(not(target_os = "none"), inline(always))]
    #[cfg_attr(target_os = "none", inline(never))]
    pub fn receive<C: Clock, L: Link>(
        &mut self,
        clock: &C,
        link: &mut L,
        buffer: &mut [u8],
        deadline: Deadline,
    ) -> Result<Option<usize>, L::Error> {
        let Deadline { mut since, limit } = deadline;
        let (mut looked, mut stopped) = (since, false);
        loop {
            for _ in 0..self.stride {
                if let Some(length) = link.wait_receive(buffer)? {
                    return Ok(Some(length));
                }
            }
            let now = clock.now();
            let stretch = now.saturating_sub(looked);
            if stretch > limit && !stopped {
                (since, stopped) = (now, true);
            } else if now.saturating_sub(since) > limit {
                return Ok(None);
            }
            self.adapt(stretch, limit);
            (looked, self.looked) = (now, now);
        }
    }

    fn adapt(&mut self, stretch: u64, limit: u64) {
        self.stride = if stretch > limit / 64 {
            (self.stride / 2).max(1)
        } else {
            (self.stride * 2).min(Self::LONGEST_STRIDE)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::LinkProperties;
    use crate::units::{Bytes, Picos};
    use core::cell::Cell;
    use core::convert::Infallible;

    const LIMIT: u64 = 1_000;

    /// Link and clock on which each poll takes time, and the polls of a range take very long.
    struct Stopped<'c> {
        now: &'c Cell<u64>,
        polls: u64,
        slow: core::ops::Range<u64>,
        arrives: u64,
    }

    struct Reading<'c>(&'c Cell<u64>);

    impl Clock for Reading<'_> {
        fn now(&self) -> u64 {
            self.0.get()
        }
        fn duration(&self, ticks: u64) -> Picos {
            Picos(ticks)
        }
        fn ticks(&self, duration: Picos) -> u64 {
            duration.0
        }
        fn read_cost(&self) -> Picos {
            Picos::ZERO
        }
    }

    impl Link for Stopped<'_> {
        type Error = Infallible;
        fn properties(&self) -> LinkProperties {
            LinkProperties::reliable(Bytes(1))
        }
        fn send(&mut self, _: &[u8]) -> Result<(), Infallible> {
            Ok(())
        }
        fn poll_receive(&mut self, _: &mut [u8]) -> Result<Option<usize>, Infallible> {
            self.polls += 1;
            let slow = self.slow.contains(&self.polls);
            self.now.set(self.now.get() + if slow { 50 * LIMIT } else { 1 });
            Ok((self.polls >= self.arrives).then_some(1))
        }
        fn discard(&mut self) -> Result<(), Infallible> {
            Ok(())
        }
    }

    /// Result and duration of a wait for a message that arrives at poll number `arrives`, with slow
    /// polls in the range `slow`.
    fn wait(slow: core::ops::Range<u64>, arrives: u64) -> (Option<usize>, u64) {
        let now = Cell::new(7);
        let mut link = Stopped { now: &now, polls: 0, slow, arrives };
        let deadline = Deadline { since: 7, limit: LIMIT };
        let mut poller = Poller::default();
        let arrived = poller.receive(&Reading(&now), &mut link, &mut [0], deadline).unwrap();
        (arrived, now.get() - 7)
    }

    #[test]
    fn a_wait_ends_at_its_limit() {
        let (arrived, took) = wait(0..0, u64::MAX);
        assert!(arrived.is_none() && (LIMIT..LIMIT + LIMIT / 16).contains(&took), "{took}");
        assert_eq!(wait(0..0, LIMIT / 2).0, Some(1));
    }

    #[test]
    fn after_a_stop_the_wait_begins_anew_but_only_once() {
        assert_eq!(wait(10..11, LIMIT / 2).0, Some(1));
        let (arrived, took) = wait(10..11, u64::MAX);
        assert!(arrived.is_none() && (51 * LIMIT..52 * LIMIT).contains(&took), "{took}");
        let (arrived, took) = wait(1..u64::MAX, u64::MAX);
        assert!(arrived.is_none() && took <= 4 * 50 * LIMIT, "{took}");
    }
}
