//! Waiting for a message without letting the clock disturb the timing.

use super::{Clock, Link};

/// A wait that ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
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
/// that a link that waits inside overruns its limit by little. Keep one watch
/// for the whole life of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Watch {
    stride: u32,
}

impl Default for Watch {
    fn default() -> Self {
        Self { stride: 1 }
    }
}

impl Watch {
    /// Most polls between two looks at the clock.
    const LONGEST_STRIDE: u32 = 256;

    /// Polls until a message is complete and returns its length, or `None`
    /// once the deadline has passed.
    ///
    /// # Errors
    ///
    /// Those of [`Link::poll_receive`].
    #[inline]
    pub fn receive<C: Clock, L: Link>(
        &mut self,
        clock: &C,
        link: &mut L,
        buffer: &mut [u8],
        deadline: Deadline,
    ) -> Result<Option<usize>, L::Error> {
        let mut looked = deadline.since;
        loop {
            for _ in 0..self.stride {
                if let Some(length) = link.poll_receive(buffer)? {
                    return Ok(Some(length));
                }
            }
            let now = clock.now();
            if now.saturating_sub(deadline.since) > deadline.limit {
                return Ok(None);
            }
            self.adapt(now.saturating_sub(looked), deadline.limit);
            looked = now;
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
