//! The loops between two readings of the clock.
//!
//! They are generic over [`Clock`] and [`Link`], whose calls are inlined, so that
//! the same instructions are timed on every host and on the device. On hosts each
//! loop is a function of its own, whose code lies together. Between the
//! readings there is nothing but the link's own calls, a counter and, where
//! a delay was asked for, the busy wait.

use crate::measure::{Clock, Deadline, Link, Poller};
use crate::units::Picos;

/// What came out of one timed round, in ticks of the clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Ticks {
    /// Between the two readings around the timed part; one reading's cost
    /// too long.
    pub elapsed: u64,
    /// Sum of the busy waits, each from the reading after a send to the last
    /// reading before the next one; each one reading's cost too short.
    pub waited: u64,
    /// From the round's first reading to its last.
    pub whole: u64,
    /// Whether the reply was complete when it was looked for first.
    pub prompt: bool,
}

/// How a reply is told from a stray message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Expected {
    /// Its length in bytes.
    pub length: usize,
    /// Its first byte.
    pub tag: u8,
    /// Whether the link may deliver something else: then the whole buffer is
    /// passed to it, otherwise exactly `length` bytes.
    pub datagrams: bool,
}

impl Expected {
    /// Whether the `length` bytes at the front of `buffer` are the reply.
    #[inline]
    #[must_use]
    pub fn matches(&self, buffer: &[u8], length: usize) -> bool {
        length == self.length && buffer.first() == Some(&self.tag)
    }

    /// The part of `buffer` to receive into.
    #[inline]
    #[must_use]
    pub fn window<'b>(&self, buffer: &'b mut [u8]) -> &'b mut [u8] {
        let length = if self.datagrams { buffer.len() } else { self.length.min(buffer.len()) };
        buffer.split_at_mut_checked(length).map_or(&mut [], |(window, _)| window)
    }
}

/// What is needed to time calls on a link.
#[derive(Debug)]
pub struct Timer<'a, C> {
    /// What is read.
    pub clock: &'a C,
    /// How the link is polled.
    pub poller: &'a mut Poller,
    /// Ticks after which the reply is given up, counted from the round's
    /// first reading.
    pub limit: u64,
    /// Counts arrivals that were not the reply that was waited for. On a link
    /// that loses nothing the first one ends the wait.
    pub strays: u64,
}

impl<C: Clock> Timer<'_, C> {
    /// `PRTT(n, 0, s)`: sends `message` `count` times back to back, without
    /// reading the clock between them, and waits for the reply. `None` when
    /// the reply did not come in time.
    ///
    /// # Errors
    ///
    /// Those of the link.
    #[cfg_attr(not(target_os = "none"), inline(never))]
    #[cfg_attr(target_os = "none", inline)]
    pub fn back_to_back<L: Link>(
        &mut self,
        link: &mut L,
        message: &[u8],
        count: u32,
        (reply, expected): (&mut [u8], Expected),
    ) -> Result<Option<Ticks>, L::Error> {
        link.train(message, |link| {
            let started = self.clock.now();
            for _ in 0..count {
                link.send(message)?;
            }
            let arrival = self.arrival(link, reply, expected, started)?;
            Ok(arrival.map(|arrival| arrival.ticks(started, started, 0)))
        })
    }

    /// `PRTT(n, d, s)`: like [`Timer::back_to_back`], with a busy wait of at
    /// least `delay` ticks from the end of each send to the next.
    ///
    /// # Errors
    ///
    /// Those of the link.
    #[cfg_attr(not(target_os = "none"), inline(never))]
    #[cfg_attr(target_os = "none", inline)]
    pub fn paced<L: Link>(
        &mut self,
        link: &mut L,
        message: &[u8],
        (count, delay): (u32, u64),
        (reply, expected): (&mut [u8], Expected),
    ) -> Result<Option<Ticks>, L::Error> {
        link.train(message, |link| {
            let mut waited = 0;
            let started = self.clock.now();
            for _ in 1..count {
                link.send(message)?;
                waited += self.idle(delay).kept;
            }
            link.send(message)?;
            let arrival = self.arrival(link, reply, expected, started)?;
            Ok(arrival.map(|arrival| arrival.ticks(started, started, waited)))
        })
    }

    /// Sends `message` once, stays idle for `delay` ticks and times only the
    /// receive of the reply. With a delay beyond the round trip the reply has
    /// arrived by then, and what is timed is the receive overhead.
    ///
    /// # Errors
    ///
    /// Those of the link.
    #[cfg_attr(not(target_os = "none"), inline(never))]
    #[cfg_attr(target_os = "none", inline)]
    pub fn receive<L: Link>(
        &mut self,
        link: &mut L,
        message: &[u8],
        delay: u64,
        (reply, expected): (&mut [u8], Expected),
    ) -> Result<Option<Ticks>, L::Error> {
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
            if self.is_over(expected, started, ended) {
                return Ok(None);
            }
            from = self.clock.now();
            arrived = link.wait_receive(window)?;
        }
    }

    /// Waits for the reply and reads the clock as soon as it is there.
    #[cfg_attr(not(target_os = "none"), inline(always))]
    #[cfg_attr(target_os = "none", inline)]
    fn arrival<L: Link>(
        &mut self,
        link: &mut L,
        reply: &mut [u8],
        expected: Expected,
        since: u64,
    ) -> Result<Option<Arrival>, L::Error> {
        let deadline = Deadline { since, limit: self.limit };
        let window = expected.window(reply);
        loop {
            let arrived = self.poller.receive(self.clock, link, window, deadline)?;
            let at = self.clock.now();
            let Some(length) = arrived else { return Ok(None) };
            if expected.matches(window, length) {
                return Ok(Some(Arrival { at, prompt: true }));
            }
            if self.is_over(expected, since, at) {
                return Ok(None);
            }
        }
    }

    /// Counts a stray message that was there at `now`. True when the wait is
    /// over: where nothing gets lost the reply will not come any more, and
    /// elsewhere strays must not keep it going beyond its limit.
    #[cold]
    fn is_over(&mut self, expected: Expected, since: u64, now: u64) -> bool {
        self.strays += 1;
        !expected.datagrams || now.saturating_sub(since) > self.limit
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

/// A busy wait that is over.
#[derive(Clone, Copy)]
struct Idle {
    /// Ticks from its first reading to its last.
    kept: u64,
    /// Its last reading.
    until: u64,
}

/// The expected reply is there.
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

/// A span between two readings without the cost of reading.
pub(crate) fn without_reading<C: Clock>(clock: &C, ticks: u64) -> Picos {
    clock.duration(ticks).since(clock.read_cost())
}

/// The mean of `waits` busy waits that sum up to `waited` ticks. A send ends
/// before the wait's first reading begins and the next one begins after the
/// last reading ended, so that each wait is one reading's cost longer than
/// the distance of the readings.
pub(crate) fn mean_delay<C: Clock>(clock: &C, waited: u64, waits: u32) -> Picos {
    if waits == 0 {
        return Picos::ZERO;
    }
    let mean = clock.duration(waited).0 / u64::from(waits);
    Picos(mean.saturating_add(clock.read_cost().0))
}
