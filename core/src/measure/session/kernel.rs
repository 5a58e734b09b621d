//! Timed loops: the code between two readings of the clock.
//!
//! They are generic over [`Clock`] and [`Link`], whose calls are inlined, so that the same
//! instructions are timed on every host and on the device. On hosts each loop is a function of its
//! own with contiguous code. Between the readings there are only the link's own calls, a counter
//! and, if a delay was requested, the busy wait.

use crate::measure::{Clock, Deadline, Link, Poller};
use crate::units::Picos;

/// Result of one timed round, in ticks of the clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Ticks {
    /// Time between the two readings around the timed part, including the cost of one reading.
    pub elapsed: u64,
    /// Sum of the busy waits, each from the reading after a send to the last reading before the
    /// next one; each too short by the cost of one reading.
    pub waited: u64,
    /// Time from the round's first reading to its last.
    pub whole: u64,
    /// True if the reply had arrived before the first poll.
    pub prompt: bool,
}

/// Properties that distinguish the reply from a stray message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Expected {
    /// Length in bytes.
    pub length: usize,
    /// First byte.
    pub tag: u8,
    /// True if the link may deliver other messages. Receives then use the whole buffer, otherwise
    /// exactly `length` bytes.
    pub datagrams: bool,
}

impl Expected {
    /// True if the first `length` bytes of `buffer` are the reply.
    #[inline]
    #[must_use]
    pub fn matches(&self, buffer: &[u8], length: usize) -> bool {
        length == self.length && buffer.first() == Some(&self.tag)
    }

    /// Part of `buffer` to receive into.
    #[inline]
    #[must_use]
    pub fn window<'b>(&self, buffer: &'b mut [u8]) -> &'b mut [u8] {
        let length = if self.datagrams { buffer.len() } else { self.length.min(buffer.len()) };
        buffer.split_at_mut_checked(length).map_or(&mut [], |(window, _)| window)
    }
}

/// Clock, poller, time limit and expected reply of a timed round.
#[derive(Debug)]
pub struct Timer<'a, C> {
    /// Clock that is read.
    pub clock: &'a C,
    /// Poller of the link.
    pub poller: &'a mut Poller,
    /// Time limit for the reply, in ticks from the round's first reading.
    pub limit: u64,
    /// The reply.
    pub expected: Expected,
    /// Number of messages received that were not the expected reply. On a link that loses nothing
    /// the first one ends the wait.
    pub strays: u64,
}

impl<C: Clock> Timer<'_, C> {
    /// `PRTT(n, 0, s)`: sends `message` `count` times back to back, without reading the clock in
    /// between, and waits for the reply. `None` if the reply did not arrive in time.
    ///
    /// # Errors
    ///
    /// Errors of the link.
    #[cfg_attr(not(target_os = "none"), inline(never))]
    #[cfg_attr(target_os = "none", inline)]
    pub fn back_to_back<L: Link>(
        &mut self,
        link: &mut L,
        message: &[u8],
        count: u32,
        reply: &mut [u8],
    ) -> Result<Option<Ticks>, L::Error> {
        link.train(message, |link| {
            let started = self.clock.now();
            for _ in 0..count {
                link.send(message)?;
            }
            let arrival = self.arrival(link, reply, started)?;
            Ok(arrival.map(|arrival| arrival.ticks(started, started, 0)))
        })
    }

    /// `PRTT(n, d, s)`: like [`Timer::back_to_back`], with a busy wait of at
    /// least `delay` ticks from the end of each send to the next.
    ///
    /// # Errors
    ///
    /// Errors of the link.
    #[cfg_attr(not(target_os = "none"), inline(never))]
    #[cfg_attr(target_os = "none", inline)]
    pub fn paced<L: Link>(
        &mut self,
        link: &mut L,
        message: &[u8],
        count: u32,
        delay: u64,
        reply: &mut [u8],
    ) -> Result<Option<Ticks>, L::Error> {
        link.train(message, |link| {
            let mut waited = 0;
            let started = self.clock.now();
            for _ in 1..count {
                link.send(message)?;
                waited += self.idle(delay).kept;
            }
            link.send(message)?;
            let arrival = self.arrival(link, reply, started)?;
            Ok(arrival.map(|arrival| arrival.ticks(started, started, waited)))
        })
    }

    /// Sends `message` once, busy-waits for `delay` ticks and times only the receive of the reply.
    /// If the delay exceeds the round trip, the reply has arrived by then and the time is the
    /// receive overhead.
    ///
    /// # Errors
    ///
    /// Errors of the link.
    #[cfg_attr(not(target_os = "none"), inline(never))]
    #[cfg_attr(target_os = "none", inline)]
    pub fn receive<L: Link>(
        &mut self,
        link: &mut L,
        message: &[u8],
        delay: u64,
        reply: &mut [u8],
    ) -> Result<Option<Ticks>, L::Error> {
        let expected = self.expected;
        let window = expected.window(reply);
        let started = self.clock.now();
        let (idle, mut arrived) = link.receive_after(window, |link| {
            link.send(message)?;
            Ok(self.idle(delay))
        })?;
        let mut from = idle.until;
        loop {
            let prompt = arrived.is_some();
            if arrived.is_none() {
                let deadline = Deadline { since: started, limit: self.limit };
                arrived = self.poller.receive(self.clock, link, window, deadline)?;
            }
            let ended = self.clock.now();
            let Some(length) = arrived else { return Ok(None) };
            if expected.matches(window, length) {
                let arrival = Arrival { at: ended, prompt };
                return Ok(Some(arrival.ticks(started, from, idle.kept)));
            }
            if self.is_over(started, ended) {
                return Ok(None);
            }
            from = self.clock.now();
            arrived = link.wait_receive(window)?;
        }
    }

    /// Waits for the reply and reads the clock immediately after.
    #[cfg_attr(not(target_os = "none"), inline(always))]
    #[cfg_attr(target_os = "none", inline)]
    fn arrival<L: Link>(
        &mut self,
        link: &mut L,
        reply: &mut [u8],
        since: u64,
    ) -> Result<Option<Arrival>, L::Error> {
        let deadline = Deadline { since, limit: self.limit };
        let expected = self.expected;
        let window = expected.window(reply);
        loop {
            let arrived = self.poller.receive(self.clock, link, window, deadline)?;
            let at = self.clock.now();
            let Some(length) = arrived else { return Ok(None) };
            if expected.matches(window, length) {
                return Ok(Some(Arrival { at, prompt: true }));
            }
            if self.is_over(since, at) {
                return Ok(None);
            }
        }
    }

    /// Counts a stray message received at `now`. True if the wait is over: on a reliable link the
    /// reply can no longer come, and on others strays must not extend the wait beyond its limit.
    #[cold]
    fn is_over(&mut self, since: u64, now: u64) -> bool {
        self.strays += 1;
        !self.expected.datagrams || now.saturating_sub(since) > self.limit
    }

    /// Busy-waits for at least `delay` ticks.
    #[inline]
    fn idle(&self, delay: u64) -> Idle {
        let from = self.clock.now();
        loop {
            let until = self.clock.now();
            let kept = until.saturating_sub(from);
            if kept >= delay {
                return Idle { kept, until };
            }
        }
    }
}

/// A completed busy wait.
#[derive(Clone, Copy)]
struct Idle {
    /// Ticks from the first reading of the clock to the last.
    kept: u64,
    /// Last reading of the clock.
    until: u64,
}

/// Arrival of the expected reply.
struct Arrival {
    at: u64,
    prompt: bool,
}

impl Arrival {
    #[cfg_attr(target_os = "none", inline(never))]
    fn ticks(&self, started: u64, from: u64, waited: u64) -> Ticks {
        Ticks {
            elapsed: self.at.saturating_sub(from),
            waited,
            whole: self.at.saturating_sub(started),
            prompt: self.prompt,
        }
    }
}

/// Duration of a span between two readings, without the cost of reading.
pub(crate) fn without_reading<C: Clock>(clock: &C, ticks: u64) -> Picos {
    clock.duration(ticks).since(clock.read_cost())
}

/// Mean of `waits` busy waits with a sum of `waited` ticks. A send ends before the wait's first
/// reading begins, and the next send begins after the last reading has ended, so each wait is
/// longer than the distance of its readings by the cost of one reading.
pub(crate) fn mean_delay<C: Clock>(clock: &C, waited: u64, waits: u32) -> Picos {
    if waits == 0 {
        return Picos::ZERO;
    }
    let mean = clock.duration(waited).0 / u64::from(waits);
    Picos(mean.saturating_add(clock.read_cost().0))
}
