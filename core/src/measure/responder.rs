//! The responder: a [`Mirror`] driven over a [`Link`].

use core::fmt;

use super::exchange::fill;
use super::{
    Action, Buffers, Burst, Clock, Deadline, Ending, Link, Mirror, Served, Watch, without_reading,
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
/// messages up to their size, for at most their session's time.
///
/// # Errors
///
/// [`ServeError`]; the counts of a failed session are lost.
pub fn serve<C: Clock, L: Link>(
    clock: &C,
    link: &mut L,
    buffers: Buffers<'_>,
    bounds: Bounds,
) -> Result<(Served, Ending), ServeError<L::Error>> {
    let properties = link.properties();
    let largest = usize::try_from(properties.max_message.0).unwrap_or(usize::MAX);
    let largest = largest.min(buffers.outgoing.len()).min(buffers.incoming.len());
    if largest < FRAME_LEN {
        return Err(ServeError::TooSmall { needed: FRAME_LEN, lent: largest });
    }
    fill(buffers.outgoing);
    let bounds = bounds.with_message_at_most(Bytes(largest as u64));
    let mut server = Server {
        clock,
        link,
        buffers,
        mirror: Mirror::new(bounds, properties),
        watch: Watch::default(),
        datagrams: !properties.reliable,
        silence: clock.ticks(bounds.silence),
        looked: Looked { at: clock.now(), rounds: 0, messages: 0 },
    };
    loop {
        if let Some(ending) = server.step()? {
            return Ok((*server.mirror.served(), ending));
        }
    }
}

/// A session under way.
struct Server<'a, C, L> {
    clock: &'a C,
    link: &'a mut L,
    buffers: Buffers<'a>,
    mirror: Mirror,
    watch: Watch,
    datagrams: bool,
    /// Longest silence, in ticks.
    silence: u64,
    /// The last look at the clock that counts as a sign of life.
    looked: Looked,
}

/// A reading of the clock, and what had been received by then.
#[derive(Clone, Copy)]
struct Looked {
    at: u64,
    rounds: u64,
    /// Messages of rounds.
    messages: u64,
}

/// What the link gave in one step.
struct Heard {
    /// Messages of the burst that was waited for.
    expected: u32,
    /// Then another one of this length, or `Some(None)`: nothing in time.
    other: Option<Option<usize>>,
}

impl<C: Clock, L: Link> Server<'_, C, L> {
    /// Takes messages up to the next one that has to be answered.
    #[inline]
    fn step(&mut self) -> Result<Option<Ending>, ServeError<L::Error>> {
        let heard = match self.mirror.burst() {
            Some(burst) => self.take_burst(&burst).map_err(ServeError::Link)?,
            None => self.take_one().map_err(ServeError::Link)?,
        };
        if heard.expected > 0 {
            let action = self.mirror.handle_burst(heard.expected, self.buffers.outgoing);
            self.perform(action)?;
        }
        match heard.other {
            Some(other) => self.step_aside(other),
            // The clock is read once a round, while its reply travels.
            None if self.mirror.served().rounds != self.looked.rounds => self.look(),
            None => Ok(None),
        }
    }

    /// The tight loop.
    #[inline]
    fn take_burst(&mut self, burst: &Burst) -> Result<Heard, L::Error> {
        let Burst { messages, expected } = *burst;
        let deadline = Deadline { since: self.looked.at, limit: self.silence };
        let window = expected.window(self.buffers.incoming);
        let mut taken = 0;
        while taken < messages {
            match self.watch.receive(self.clock, self.link, window, deadline)? {
                Some(length) if expected.matches(window, length) => taken += 1,
                other => return Ok(Heard { expected: taken, other: Some(other) }),
            }
        }
        Ok(Heard { expected: taken, other: None })
    }

    /// A control frame, or a message of a round with pauses or timed
    /// receives.
    #[cold]
    fn take_one(&mut self) -> Result<Heard, L::Error> {
        wait(self.clock, self.mirror.pause());
        let length = self.mirror.expected();
        let length = if self.datagrams { self.buffers.incoming.len() } else { length };
        let window = self.buffers.incoming.get_mut(..length).unwrap_or_default();
        let since = self.clock.now();
        let deadline = Deadline { since, limit: self.silence };
        let other = self.watch.receive(self.clock, self.link, window, deadline)?;
        if self.mirror.is_timed() && other.is_some() {
            let ticks = self.clock.now().saturating_sub(since);
            self.mirror.handle_timed(without_reading(self.clock, ticks));
        }
        Ok(Heard { expected: 0, other: Some(other) })
    }

    /// Whatever is not the next message of a plain round.
    #[cold]
    fn step_aside(&mut self, other: Option<usize>) -> Result<Option<Ending>, ServeError<L::Error>> {
        let mut control = false;
        if let Some(length) = other {
            let now = self.clock.duration(self.clock.now());
            let message = self.buffers.incoming.get(..length).unwrap_or_default();
            let received = self.mirror.served().received;
            let action = self.mirror.handle(now, message, self.buffers.outgoing);
            control = self.mirror.served().received == received;
            if let Some(ending) = self.perform(action)? {
                return Ok(Some(ending));
            }
            self.silence = self.clock.ticks(self.mirror.agreed().silence);
        }
        if control || self.messages() != self.looked.messages {
            return self.look();
        }
        // Strays alone are no sign of life.
        let now = self.clock.now();
        if now.saturating_sub(self.looked.at) > self.silence {
            if self.mirror.handle_silence() {
                return Err(ServeError::Silent(self.mirror.agreed().silence));
            }
            self.looked.at = now;
        }
        Ok(None)
    }

    /// Messages of rounds received so far.
    fn messages(&self) -> u64 {
        let served = self.mirror.served();
        served.received.saturating_sub(served.strays)
    }

    /// The initiator is alive; but does the session last too long?
    #[inline]
    fn look(&mut self) -> Result<Option<Ending>, ServeError<L::Error>> {
        let rounds = self.mirror.served().rounds;
        self.looked = Looked { at: self.clock.now(), rounds, messages: self.messages() };
        let now = self.clock.duration(self.looked.at);
        let action = self.mirror.handle_time(now, self.buffers.outgoing);
        self.perform(action)
    }

    /// Sends what `action` says; the ending, if the session is over.
    #[inline]
    fn perform(&mut self, action: Action) -> Result<Option<Ending>, ServeError<L::Error>> {
        match action {
            Action::Nothing => Ok(None),
            Action::Send(length) => self.send(length).map(|()| None),
            Action::SendMore(length) => {
                self.send(length)?;
                // The report overwrites the front of the buffer that data messages are sent from.
                match self.mirror.poll_more(self.buffers.outgoing) {
                    Some(length) => self.send(length).map(|()| None),
                    None => Ok(None),
                }
            }
            Action::End(length, ending) => self.send(length).map(|()| Some(ending)),
        }
    }

    #[inline]
    fn send(&mut self, length: usize) -> Result<(), ServeError<L::Error>> {
        match self.buffers.outgoing.get(..length) {
            None | Some([]) => Ok(()),
            Some(message) => self.link.send(message).map_err(ServeError::Link),
        }
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
