//! Waiting for a message without letting the clock disturb the timing.

use crate::measure::{Clock, Link};

/// A wait that ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Deadline {
    /// A reading of the clock at or before the begin of the wait, in ticks.
    pub since: u64,
    /// Ticks after which the wait is over.
    pub limit: u64,
}

/// Polls a link and looks at the clock only once in several polls.
///
/// The number of polls between two looks adapts: it doubles while such a
/// stretch lasts less than a 64th of the limit, so that a link polled in
/// nanoseconds is almost never disturbed, and halves when it lasts longer, so
/// that a link that waits inside overruns its limit by little. Keep one poller
/// for the whole life of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Poller {
    stride: u32,
    /// The last look at the clock.
    looked: u64,
}

impl Default for Poller {
    fn default() -> Self {
        Self { stride: 1, looked: 0 }
    }
}

impl Poller {
    /// Most polls between two looks at the clock.
    const LONGEST_STRIDE: u32 = 256;

    /// The last look at the clock, in ticks; 0 without any.
    pub(super) const fn looked(&self) -> u64 {
        self.looked
    }

    /// Polls until a message is complete and returns its length, or `None`
    /// once the deadline has passed.
    ///
    /// Where a single stretch of polls takes longer than the whole limit, this
    /// end was stopped, and the other one perhaps with it: by Ctrl-Z, in a
    /// machine that was suspended or moved. Then the wait begins anew, once.
    ///
    /// # Errors
    ///
    /// Those of [`Link::wait_receive`].
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

    /// Time passes with each poll; one of them takes very long.
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
            LinkProperties { max_message: Bytes(1), reliable: true }
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

    /// What comes of a wait for a message at the poll `arrives`, with the
    /// polls of `slow` being slow; and how long it took.
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
