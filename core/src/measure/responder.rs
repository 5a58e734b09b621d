//! The responder: a [`Mirror`] driven over a [`Link`].

use core::fmt;

use super::exchange::fill;
use super::{
    Awaited, Burst, Clock, Deadline, Ending, Link, Mirror, Served, Watch, without_reading,
};
use crate::units::{Bytes, Picos};
use crate::wire::{Bounds, FRAME_LEN};

/// Why a session was not served to its end. The link should be closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ServeError<E> {
    /// The link failed, or the initiator is gone.
    Link(E),
    /// The initiator was silent for this long.
    Silent(Picos),
    /// A lent buffer or the link does not take a control frame.
    TooSmall {
        /// Bytes that are needed.
        needed: usize,
        /// Bytes that there are.
        lent: usize,
    },
}

impl<E: fmt::Display> fmt::Display for ServeError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(error) => write!(f, "the link failed: {error}"),
            Self::Silent(limit) => write!(f, "the initiator was silent for {limit}"),
            Self::TooSmall { needed, lent } => {
                write!(f, "{needed} bytes are needed for a control frame, there are {lent}")
            }
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for ServeError<E> {}

/// Serves one initiator on `link` until it says goodbye, is refused, goes
/// away or falls silent. Whatever arrives, at most `bounds` is done for it:
/// messages up to their size, for at most their session's time. Messages come
/// into `buffer` and replies go out of it, so that a reply carries what came
/// last; it is as long as the largest message and at least [`FRAME_LEN`].
///
/// # Errors
///
/// [`ServeError`]; the counts of a failed session are lost.
pub fn serve<C: Clock, L: Link>(
    clock: &C,
    link: &mut L,
    buffer: &mut [u8],
    bounds: Bounds,
) -> Result<(Served, Ending), ServeError<L::Error>> {
    let properties = link.properties();
    let largest = usize::try_from(properties.max_message.0).unwrap_or(usize::MAX);
    let largest = largest.min(buffer.len());
    if largest < FRAME_LEN {
        return Err(ServeError::TooSmall { needed: FRAME_LEN, lent: largest });
    }
    fill(buffer);
    let bounds = bounds.with_message_at_most(Bytes(largest as u64));
    let mut server = Server {
        clock,
        link,
        buffer,
        mirror: Mirror::new(bounds, properties),
        watch: Watch::default(),
        datagrams: !properties.reliable,
        silence: clock.ticks(bounds.silence),
        alive: clock.now(),
        rounds: 0,
        silent: false,
    };
    loop {
        server.step().map_err(ServeError::Link)?;
        if let Some(ending) = server.mirror.ending() {
            return Ok((*server.mirror.served(), ending));
        }
        if server.silent {
            return Err(ServeError::Silent(server.mirror.agreed().silence));
        }
    }
}

/// A session under way.
struct Server<'a, C, L> {
    clock: &'a C,
    link: &'a mut L,
    buffer: &'a mut [u8],
    mirror: Mirror,
    watch: Watch,
    datagrams: bool,
    /// Longest silence, in ticks.
    silence: u64,
    /// The last look at the clock that counts as a sign of life.
    alive: u64,
    /// Rounds that had come to their end by then.
    rounds: u64,
    /// The silence was too long.
    silent: bool,
}

impl<C: Clock, L: Link> Server<'_, C, L> {
    /// Takes messages up to the next one that has to be answered.
    #[inline]
    fn step(&mut self) -> Result<(), L::Error> {
        let Some(Burst { messages, expected }) = self.mirror.burst() else {
            let arrived = self.take_one()?;
            return self.step_aside(arrived, 0);
        };
        let deadline = Deadline { since: self.alive, limit: self.silence };
        let window = expected.window(self.buffer);
        let mut taken = 0;
        while taken < messages {
            match self.watch.receive(self.clock, self.link, window, deadline)? {
                Some(length) if expected.matches(window, length) => taken += 1,
                other => {
                    if taken > 0 {
                        self.mirror.handle_burst(taken);
                    }
                    return self.step_aside(other, taken);
                }
            }
        }
        self.mirror.handle_burst(taken);
        self.transmit()?;
        // The clock is read once a round, while its reply travels.
        if self.mirror.served().rounds == self.rounds {
            return Ok(());
        }
        let now = self.clock.now();
        self.is_alive(now);
        self.mirror.handle_time(self.clock.duration(now));
        self.transmit()
    }

    /// A control frame, or a message of a round with pauses or timed
    /// receives.
    #[cold]
    fn take_one(&mut self) -> Result<Option<usize>, L::Error> {
        let Awaited { length, timed, pause } = self.mirror.awaited();
        wait(self.clock, pause);
        let length = if self.datagrams { self.buffer.len() } else { length };
        let window = self.buffer.get_mut(..length).unwrap_or_default();
        let since = self.clock.now();
        let deadline = Deadline { since, limit: self.silence };
        let arrived = self.watch.receive(self.clock, self.link, window, deadline)?;
        if timed && arrived.is_some() {
            let ticks = self.clock.now().saturating_sub(since);
            self.mirror.handle_timed(without_reading(self.clock, ticks));
        }
        Ok(arrived)
    }

    /// Whatever is not the next message of a plain round: a message of that
    /// length, or nothing in time, after `taken` messages of the round.
    #[cold]
    fn step_aside(&mut self, arrived: Option<usize>, taken: u32) -> Result<(), L::Error> {
        let mut alive = taken > 0;
        if let Some(length) = arrived {
            let strays = self.mirror.served().strays;
            let now = self.clock.duration(self.clock.now());
            self.mirror.handle(now, self.buffer.get(..length).unwrap_or_default());
            self.silence = self.clock.ticks(self.mirror.agreed().silence);
            // Strays alone are no sign of life.
            alive |= self.mirror.served().strays == strays;
            self.transmit()?;
        }
        let now = self.clock.now();
        if alive {
            self.is_alive(now);
        } else if now.saturating_sub(self.alive) > self.silence {
            self.silent = self.mirror.handle_silence();
            self.alive = now;
        }
        Ok(())
    }

    /// The initiator is alive at `now`.
    #[inline]
    const fn is_alive(&mut self, now: u64) {
        (self.alive, self.rounds) = (now, self.mirror.served().rounds);
    }

    /// Sends what is to be sent.
    #[cfg_attr(not(target_os = "none"), inline)]
    #[cfg_attr(target_os = "none", inline(never))]
    fn transmit(&mut self) -> Result<(), L::Error> {
        while let Some(length) = self.mirror.poll_transmit(self.buffer) {
            self.link.send(self.buffer.get(..length).unwrap_or_default())?;
        }
        Ok(())
    }
}

/// Busy-waits for `pause`.
fn wait<C: Clock>(clock: &C, pause: Picos) {
    if pause == Picos::ZERO {
        return;
    }
    let since = clock.now();
    let ticks = clock.ticks(pause);
    while clock.now().saturating_sub(since) < ticks {}
}
