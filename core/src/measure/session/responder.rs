//! Responder on a link: runs a [`ResponderState`] over a [`Link`].

use core::fmt;

use crate::measure::session::exchange::fill;
use crate::measure::{
    Awaited, Burst, Clock, Deadline, Ending, Link, Poller, ResponderState, Served, without_reading,
};
use crate::units::{Bytes, Picos};
use crate::wire::{Bounds, FRAME_LEN};

/// Reasons why a session failed. The link should be closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ServeError<E> {
    /// The link failed, or the initiator is gone.
    Link(E),
    /// The initiator was silent for this long.
    Silent(Picos),
    /// A lent buffer or the link is too small for a control frame.
    TooSmall {
        /// Bytes required.
        needed: usize,
        /// Bytes available.
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

/// Options of a responder.
#[derive(Clone, Copy, Debug)]
pub struct ServeOptions<D = [u8; 0]> {
    /// Bounds that it allows.
    pub bounds: Bounds,
    /// Nonce of the challenge on a datagram link: unpredictable, and different for each session. A
    /// session opens only after the peer has echoed it, which proves that the peer receives at its
    /// source address. 0 if that is already known. Until then `link` sends to the source of the
    /// first hello and receives only from there.
    pub nonce: u64,
    /// Description of the environment, sent on request: UTF-8, at most
    /// [`MAX_DESCRIPTION`](crate::wire::MAX_DESCRIPTION) bytes; may be empty.
    pub description: D,
}

/// Serves a peer whose address is verified: on a stream, or by other means. Otherwise call
/// [`serve_with`] with a nonce.
///
/// # Errors
///
/// As [`serve_with`].
pub fn serve<C: Clock, L: Link>(
    clock: &C,
    link: &mut L,
    buffer: &mut [u8],
    bounds: Bounds,
) -> Result<(Served, Ending), ServeError<L::Error>> {
    serve_with(clock, link, buffer, ServeOptions { bounds, nonce: 0, description: [] })
}

/// Serves one initiator on `link` until it says goodbye, is refused, disconnects or falls silent.
/// `bounds` limits the work for it, whatever it sends: message sizes, and the duration of the
/// session. `buffer` is used for messages and replies, so that a reply carries the content of the
/// last message, unless the link has other bytes for it ([`Link::begin_session`]). It is as long as
/// the largest message and at least [`FRAME_LEN`].
///
/// # Errors
///
/// [`ServeError`]; the counts of a failed session are lost.
pub fn serve_with<C: Clock, L: Link, D: AsRef<[u8]>>(
    clock: &C,
    link: &mut L,
    buffer: &mut [u8],
    options: ServeOptions<D>,
) -> Result<(Served, Ending), ServeError<L::Error>> {
    let properties = link.properties();
    let largest = usize::try_from(properties.max_message.0).unwrap_or(usize::MAX);
    let largest = largest.min(buffer.len());
    if largest < FRAME_LEN {
        return Err(ServeError::TooSmall { needed: FRAME_LEN, lent: largest });
    }
    fill(buffer);
    link.begin_session();
    let bounds = options.bounds.with_message_at_most(Bytes(largest as u64));
    let mut server = Server {
        clock,
        link,
        buffer,
        responder: ResponderState::with(bounds, properties, options.nonce, options.description),
        poller: Poller::default(),
        datagrams: !properties.reliable,
        silence: clock.ticks(bounds.silence),
        alive: clock.now(),
        unread: 0,
        silent: false,
    };
    loop {
        server.step().map_err(ServeError::Link)?;
        if let Some(ending) = server.responder.ending() {
            return Ok((*server.responder.served(), ending));
        }
        if server.silent {
            return Err(ServeError::Silent(server.responder.agreed().silence));
        }
    }
}

/// Number of messages after which the clock is read if no wait was long enough for the poller to
/// read it.
const MESSAGES_A_READING: u32 = 16;

/// A session in progress.
struct Server<'a, C, L, D> {
    clock: &'a C,
    link: &'a mut L,
    buffer: &'a mut [u8],
    responder: ResponderState<D>,
    poller: Poller,
    datagrams: bool,
    /// Longest silence of the initiator, in ticks.
    silence: u64,
    /// Time at which the initiator was last known to be alive, in ticks.
    alive: u64,
    /// Number of burst messages since that time.
    unread: u32,
    /// True if the silence was too long.
    silent: bool,
}

impl<C: Clock, L: Link, D: AsRef<[u8]>> Server<'_, C, L, D> {
    /// Handles messages up to the next one that requires an answer.
    #[inline]
    fn step(&mut self) -> Result<(), L::Error> {
        let Some(Burst { messages, expected }) = self.responder.burst() else {
            let arrived = self.take_one()?;
            return self.handle_other(arrived);
        };
        self.link.expect_send(self.responder.reply_length());
        let mut deadline = Deadline { since: self.alive, limit: self.silence };
        let window = expected.window(self.buffer);
        let mut taken = 0;
        while taken < messages {
            match self.poller.receive(self.clock, self.link, window, deadline)? {
                Some(length) if expected.matches(window, length) => {
                    taken += 1;
                    // If the poller waited before this message, it has read the clock.
                    deadline.since = deadline.since.max(self.poller.looked());
                }
                other => {
                    if taken > 0 {
                        self.responder.handle_burst(taken);
                        self.note_life(deadline.since);
                    }
                    return self.handle_other(other);
                }
            }
        }
        self.responder.handle_burst(taken);
        self.transmit()?;
        // The clock is read after the reply was sent, and not for each reply: if a reading is slow,
        // the initiator would wait for it.
        self.unread += taken;
        let now = match self.poller.looked() {
            looked if looked > self.alive => looked,
            _ if self.unread < MESSAGES_A_READING => return Ok(()),
            _ => self.clock.now(),
        };
        self.note_life(now);
        self.responder.handle_time(self.clock.duration(now));
        self.transmit_otherwise()
    }

    /// Receives a control frame, or a message of a round with pauses or timed receives.
    #[cold]
    fn take_one(&mut self) -> Result<Option<usize>, L::Error> {
        let Awaited { length, timed, pause } = self.responder.awaited();
        wait(self.clock, pause);
        let length = if self.datagrams { self.buffer.len() } else { length };
        let window = self.buffer.get_mut(..length).unwrap_or_default();
        let since = self.clock.now();
        // What an earlier stray used up of the silence is not granted again.
        let deadline = Deadline { since: self.alive, limit: self.silence };
        let arrived = self.poller.receive(self.clock, self.link, window, deadline)?;
        if timed && arrived.is_some() {
            let ticks = self.clock.now().saturating_sub(since);
            self.responder.handle_timed(without_reading(self.clock, ticks));
        }
        Ok(arrived)
    }

    /// Handles a message that is not the next one of a plain round, or a timeout.
    #[cold]
    fn handle_other(&mut self, arrived: Option<usize>) -> Result<(), L::Error> {
        let mut alive = false;
        if let Some(length) = arrived {
            let strays = self.responder.served().strays;
            let now = self.clock.duration(self.clock.now());
            self.responder.handle(now, self.buffer.get(..length).unwrap_or_default());
            self.silence = self.clock.ticks(self.responder.agreed().silence);
            // Strays alone are no sign of life.
            alive = self.responder.served().strays == strays;
            self.transmit_otherwise()?;
        }
        let now = self.clock.now();
        if alive {
            self.note_life(now);
        } else {
            self.silent = now.saturating_sub(self.alive) > self.silence;
        }
        Ok(())
    }

    /// Records that the initiator was alive at `now`.
    #[inline]
    const fn note_life(&mut self, now: u64) {
        (self.alive, self.unread) = (now, 0);
    }

    /// Sends pending frames, out of line: only bursts use the inlined `transmit`.
    #[cfg_attr(not(target_os = "none"), inline(never))]
    fn transmit_otherwise(&mut self) -> Result<(), L::Error> {
        self.transmit()
    }

    /// Sends pending frames.
    #[cfg_attr(not(target_os = "none"), inline(always))]
    #[cfg_attr(target_os = "none", inline(never))]
    fn transmit(&mut self) -> Result<(), L::Error> {
        while let Some(length) = self.responder.poll_transmit(self.buffer) {
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
